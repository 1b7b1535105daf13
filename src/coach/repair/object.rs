//! Members: names in another case, `null` for what may be left out, a wrapper that is missing.

use std::collections::BTreeMap;

use protocol::json::{self, Members};
use serde_json::{Map, Value};

use super::scalar::kinds;
use super::{Part, Reading, Repair, Row, escaped, multiplied, reference};
use crate::nearest::normal;

/// What an object's schema declares, its own words and those it refers to or includes.
#[derive(Default)]
struct Declared {
    /// Name → place of its schema.
    places: BTreeMap<String, String>,
    required: Vec<String>,
    /// The place of the schema for members of other names, if there is one.
    others: Option<String>,
}

impl Repair<'_> {
    /// Readings of an object: member by member, or as the content of a wrapper.
    pub(super) fn object(
        &mut self,
        place: &str,
        node: &Map<String, Value>,
        part: Part<'_>,
    ) -> Vec<Reading> {
        let Ok(members) = Members::parse(part.raw) else { return Vec::new() };
        let mut declared = Declared::default();
        self.declared(place, node, part.depth, &mut declared);
        let mut found = self.members(&declared, &members, part);
        found.extend(self.in_a_wrapper(&declared, &members, part));
        found.extend(self.wrapped(place, &kinds(node), part));
        found
    }

    fn declared(&self, place: &str, node: &Map<String, Value>, depth: usize, to: &mut Declared) {
        if let Some(Value::Object(properties)) = node.get("properties") {
            for name in properties.keys() {
                let at = format!("{place}/properties/{}", escaped(name));
                to.places.entry(name.clone()).or_insert(at);
            }
        }
        let required = node.get("required").and_then(Value::as_array).into_iter().flatten();
        to.required.extend(required.filter_map(Value::as_str).map(str::to_owned));
        if node.get("additionalProperties").is_some_and(Value::is_object) {
            to.others = Some(format!("{place}/additionalProperties"));
        }
        let Some(depth) = depth.checked_sub(1) else { return };
        let all = node.get("allOf").and_then(Value::as_array).map_or(0, Vec::len);
        let included = (0..all).map(|branch| format!("{place}/allOf/{branch}"));
        for place in reference(node).into_iter().chain(included) {
            if let Some(Value::Object(node)) = self.at(&place) {
                self.declared(&place, node, depth, to);
            }
        }
    }

    fn members(&mut self, to: &Declared, members: &Members<'_>, part: Part<'_>) -> Vec<Reading> {
        let mut rows: Vec<Row> = vec![(Vec::new(), Vec::new())];
        for (name, raw) in members.iter() {
            let readings = self.member(to, members, (name, raw), part);
            rows = multiplied(rows, &readings);
        }
        let joined = |(mut texts, changes): Row| {
            texts.retain(|text| !text.is_empty());
            Reading { text: format!("{{{}}}", texts.join(",")), changes }
        };
        rows.into_iter().map(joined).collect()
    }

    /// Readings of one member, name and value; the empty text is one that is left out. One that
    /// cannot be read stays, for the whole to be refused.
    fn member(
        &mut self,
        to: &Declared,
        members: &Members<'_>,
        (name, raw): (&str, &str),
        part: Part<'_>,
    ) -> Vec<Reading> {
        let mut options = Vec::new();
        for (is, at) in self.meant(to, members, name) {
            let path = within(part.path, &is);
            let renamed = (is != name).then(|| format!("`{}` → `{is}`", within(part.path, name)));
            let optional = !to.required.contains(&is);
            if raw == "null" && optional && !self.fits(&at, raw) {
                let mut changes: Vec<String> = renamed.into_iter().collect();
                changes.push(format!("`{path}`: null left out"));
                options.push(Reading { text: String::new(), changes });
                continue;
            }
            let member = Part { path: &path, raw, depth: part.depth };
            for reading in self.readings(&at, member) {
                let text = format!("{}:{}", json::quoted(&is), reading.text);
                let changes = renamed.iter().cloned().chain(reading.changes).collect();
                options.push(Reading { text, changes });
            }
        }
        if options.is_empty() {
            options.push(Reading::same(&format!("{}:{raw}", json::quoted(name))));
        }
        options
    }

    /// The names that a sent one may stand for, with the places of their schemas.
    fn meant(&self, to: &Declared, members: &Members<'_>, name: &str) -> Vec<(String, String)> {
        if let Some(at) = to.places.get(name) {
            return vec![(name.to_owned(), at.clone())];
        }
        let sent = |wanted: &str| members.get(wanted).is_some();
        let alike = |other: &str| normal(other) == normal(name);
        // Two spellings of one name sent: which of them counts is not ours to say.
        let twice = members.iter().filter(|(other, _)| alike(other)).count() > 1;
        let free = to.places.iter().filter(|(known, _)| alike(known) && !sent(known) && !twice);
        let mut meant: Vec<_> = free.map(|(name, at)| (name.clone(), at.clone())).collect();
        if meant.is_empty() {
            meant.extend(to.others.clone().map(|at| (name.to_owned(), at)));
        }
        meant
    }

    /// The whole as the value of the one member that was asked for and left out.
    fn in_a_wrapper(
        &mut self,
        to: &Declared,
        members: &Members<'_>,
        part: Part<'_>,
    ) -> Vec<Reading> {
        let known = members.iter().any(|(name, _)| to.places.contains_key(name));
        if known || members.is_empty() {
            return Vec::new();
        }
        let mut found = Vec::new();
        for name in to.required.iter().filter(|name| to.places.contains_key(*name)) {
            let Some(at) = to.places.get(name) else { continue };
            let path = within(part.path, name);
            let inner = Part { path: &path, ..part };
            for reading in self.readings(at, inner) {
                // A list of it would be a second step.
                if reading.text.trim_start().starts_with('{') {
                    let text = format!("{{{}:{}}}", json::quoted(name), reading.text);
                    let change = format!("the arguments → in `{path}`");
                    let changes = std::iter::once(change).chain(reading.changes).collect();
                    found.push(Reading { text, changes });
                }
            }
        }
        found
    }
}

fn within(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
