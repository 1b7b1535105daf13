//! Slips in arguments that have exactly one reading under the schema (P51).
//!
//! Each part of the arguments is read under its part of the schema. A part that is valid there
//! has one reading, itself. For any other, every conversion that the schema's words allow is
//! tried, and those whose outcome is valid are its readings. With none or several, nothing is
//! mended. Only what is changed is written anew; all other bytes stay.

mod object;
mod scalar;

use jsonschema::ValidatorMap;
use protocol::json;
use serde_json::{Map, Value};

/// How deep arguments and references are followed.
const DEPTH: usize = 24;

/// How many parts are looked at before it is given up, so that no schema can hold up a call.
const BUDGET: usize = 4000;

/// Readings of one part that are kept; more than one is ambiguous anyway.
const MOST_READINGS: usize = 8;

/// One way to read a part of the arguments.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    /// Raw JSON.
    pub(crate) text: String,
    /// What was changed to get there.
    pub(crate) changes: Vec<String>,
}

impl Reading {
    fn same(raw: &str) -> Self {
        Self { text: raw.to_owned(), changes: Vec::new() }
    }

    /// A reading of the part at `path` as something else.
    fn instead(path: &str, raw: &str, text: String) -> Self {
        let change = format!(
            "`{path}`: {} → {}",
            crate::cut(raw.trim(), SHOWN),
            crate::cut(text.trim(), SHOWN)
        );
        Self { text, changes: vec![change] }
    }
}

/// Characters of a value that are shown.
const SHOWN: usize = 40;

/// One attempt at mending.
pub(crate) struct Repair<'s> {
    root: &'s Value,
    parts: &'s ValidatorMap,
    left: usize,
}

/// A part of the arguments, and how deep it lies.
#[derive(Clone, Copy)]
pub(crate) struct Part<'a> {
    /// Its name for people: `filter.tags[0]`.
    path: &'a str,
    /// Raw JSON.
    raw: &'a str,
    depth: usize,
}

impl<'s> Repair<'s> {
    pub(crate) fn new(root: &'s Value, parts: &'s ValidatorMap) -> Self {
        Self { root, parts, left: BUDGET }
    }

    /// The arguments mended, and what was changed, if they can be read in exactly one way.
    pub(crate) fn only(mut self, arguments: &str) -> Option<(String, Vec<String>)> {
        let part = Part { path: "", raw: arguments, depth: DEPTH };
        let readings = self.readings("#", part);
        match <[Reading; 1]>::try_from(readings) {
            // Out of budget, there may be others.
            Ok([Reading { text, changes }]) if self.left > 0 => Some((text, changes)),
            _ => None,
        }
    }

    /// Every reading of a part under the schema at `place` (`#/properties/x`).
    fn readings(&mut self, place: &str, part: Part<'_>) -> Vec<Reading> {
        if self.left == 0 || part.depth == 0 {
            return Vec::new();
        }
        self.left -= 1;
        if self.fits(place, part.raw) {
            return vec![Reading::same(part.raw)];
        }
        let Some(Value::Object(node)) = self.at(place) else { return Vec::new() };
        let deeper = Part { depth: part.depth - 1, ..part };
        let mut found = Vec::new();
        if let Some(target) = reference(node) {
            found.extend(self.readings(&target, deeper));
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let branches = node.get(keyword).and_then(Value::as_array).map_or(0, Vec::len);
            for branch in 0..branches {
                found.extend(self.readings(&format!("{place}/{keyword}/{branch}"), deeper));
            }
        }
        found.extend(match part.raw.trim_start().as_bytes().first() {
            Some(b'{') => self.object(place, node, deeper),
            Some(b'[') => self.array(place, node, deeper),
            _ => self.scalar(place, node, deeper),
        });
        self.distinct(place, found)
    }

    /// Those that are valid, each once.
    fn distinct(&self, place: &str, found: Vec<Reading>) -> Vec<Reading> {
        let mut kept: Vec<(Value, Reading)> = Vec::new();
        for reading in found {
            let Ok(value) = serde_json::from_str::<Value>(&reading.text) else { continue };
            let valid = self.parts.get(place).is_some_and(|part| part.is_valid(&value));
            if valid && kept.iter().all(|(other, _)| *other != value) {
                kept.push((value, reading));
            }
        }
        kept.truncate(MOST_READINGS);
        kept.into_iter().map(|(_, reading)| reading).collect()
    }

    /// Elements one by one.
    fn array(&mut self, place: &str, node: &Map<String, Value>, part: Part<'_>) -> Vec<Reading> {
        let Ok(elements) = json::elements(part.raw) else { return Vec::new() };
        let first = node.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len);
        let mut rows = vec![(Vec::new(), Vec::new())];
        for (number, raw) in elements.iter().enumerate() {
            let items = match number < first {
                true => format!("{place}/prefixItems/{number}"),
                false => format!("{place}/items"),
            };
            let path = format!("{}[{number}]", part.path);
            let element = Part { path: &path, raw, depth: part.depth };
            let readings = match self.at(&items) {
                Some(_) => self.readings(&items, element),
                None => vec![Reading::same(raw)],
            };
            rows = multiplied(rows, &readings);
        }
        let joined = |(texts, changes): (Vec<String>, Vec<String>)| Reading {
            text: format!("[{}]", texts.join(",")),
            changes,
        };
        rows.into_iter().map(joined).collect()
    }

    fn fits(&self, place: &str, raw: &str) -> bool {
        let value = serde_json::from_str::<Value>(raw);
        let part = self.parts.get(place);
        part.zip(value.ok()).is_some_and(|(part, value)| part.is_valid(&value))
    }

    fn at(&self, place: &str) -> Option<&'s Value> {
        self.root.pointer(place.strip_prefix('#')?)
    }
}

/// Texts of parts so far, and what was changed in them.
type Row = (Vec<String>, Vec<String>);

/// Each row with each reading of one part more. More rows than can matter are not made.
fn multiplied(rows: Vec<Row>, readings: &[Reading]) -> Vec<Row> {
    let longer = |row: &Row, reading: &Reading| {
        let (mut texts, mut changes) = row.clone();
        texts.push(reading.text.clone());
        changes.extend(reading.changes.iter().cloned());
        (texts, changes)
    };
    if let ([row], [reading]) = (&rows[..], readings) {
        return vec![longer(row, reading)];
    }
    let all = rows.iter().flat_map(|row| readings.iter().map(move |reading| longer(row, reading)));
    all.take(MOST_READINGS).collect()
}

/// The place that a local reference names; others are not followed.
fn reference(node: &Map<String, Value>) -> Option<String> {
    let target = node.get("$ref")?.as_str()?;
    let local = target == "#" || target.starts_with("#/");
    (local && !target.contains('%')).then(|| target.to_owned())
}

/// A member's name as part of a place.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
