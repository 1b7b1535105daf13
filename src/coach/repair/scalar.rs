//! Values of the wrong kind: text that holds a number, a word in another case, one value where
//! a list is wanted.

use std::collections::BTreeSet;

use protocol::json;
use serde_json::{Map, Value};

use super::{Part, Reading, Repair};
use crate::nearest::normal;

impl Repair<'_> {
    /// Readings of a value that is neither object nor array.
    pub(super) fn scalar(
        &mut self,
        place: &str,
        node: &Map<String, Value>,
        part: Part<'_>,
    ) -> Vec<Reading> {
        let kinds = kinds(node);
        let raw = part.raw.trim();
        let instead = |text: String| Reading::instead(part.path, raw, text);
        let Some(text) = json::string(raw) else {
            // A number or a boolean; null is the business of the object that holds it.
            if raw == "null" {
                return Vec::new();
            }
            let mut found = self.wrapped(place, &kinds, part);
            if kinds.contains("string") {
                found.push(instead(json::quoted(raw)));
            }
            return found;
        };
        let words = text.trim();
        let mut found = Vec::new();
        found.extend(number(words, &kinds).map(instead));
        if kinds.contains("boolean") {
            let is = |word: &&str| words.eq_ignore_ascii_case(word);
            found.extend(
                ["true", "false"].iter().find(|word| is(word)).map(|w| instead((*w).into())),
            );
        }
        if kinds.contains("null") && words == "null" {
            found.push(instead("null".to_owned()));
        }
        let same = |value: &&str| normal(value) == normal(words) && !words.is_empty();
        found.extend(choices(node).filter(same).map(|value| instead(json::quoted(value))));
        if !words.starts_with(['{', '[']) {
            found.extend(self.wrapped(place, &kinds, part));
        } else if (kinds.contains("object") || kinds.contains("array"))
            && json::is_json(words.as_bytes())
        {
            // What was written as text is then read as what it holds.
            let readings = self.readings(place, Part { raw: words, ..part });
            found.extend(readings.into_iter().map(|inner| instead(inner.text)));
        }
        found
    }

    /// One value where a list is wanted.
    pub(super) fn wrapped(
        &mut self,
        place: &str,
        kinds: &BTreeSet<&str>,
        part: Part<'_>,
    ) -> Vec<Reading> {
        if !kinds.contains("array") {
            return Vec::new();
        }
        let items = format!("{place}/items");
        let inner = match self.at(&items) {
            Some(_) => self.readings(&items, part),
            None => vec![Reading::same(part.raw)],
        };
        let wrap =
            |item: Reading| Reading::instead(part.path, part.raw, format!("[{}]", item.text));
        inner.into_iter().map(wrap).collect()
    }
}

/// The JSON types that a schema's own words ask for.
pub(super) fn kinds(node: &Map<String, Value>) -> BTreeSet<&str> {
    let mut kinds = BTreeSet::new();
    match node.get("type") {
        Some(Value::String(kind)) => drop(kinds.insert(kind.as_str())),
        Some(Value::Array(all)) => kinds.extend(all.iter().filter_map(Value::as_str)),
        _ => {
            let implied = [("properties", "object"), ("items", "array")];
            kinds
                .extend(implied.iter().filter(|(key, _)| node.contains_key(*key)).map(|(_, k)| *k));
            kinds.extend(values(node).map(|value| match value {
                Value::Null => "null",
                Value::Bool(_) => "boolean",
                Value::Number(_) => "number",
                Value::String(_) => "string",
                Value::Array(_) => "array",
                Value::Object(_) => "object",
            }));
        }
    }
    kinds
}

/// The values of `enum` and `const`.
fn values(node: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    let all = node.get("enum").and_then(Value::as_array).into_iter().flatten();
    all.chain(node.get("const"))
}

fn choices(node: &Map<String, Value>) -> impl Iterator<Item = &str> {
    values(node).filter_map(Value::as_str)
}

/// The number that a text is, as JSON, where the schema wants one. `1e3` is the integer 1000;
/// `NaN`, `5px` and `1,000` are no numbers (ARG-03).
fn number(words: &str, kinds: &BTreeSet<&str>) -> Option<String> {
    if !kinds.contains("number") && !kinds.contains("integer") {
        return None;
    }
    let plain = words.strip_prefix('-').unwrap_or(words);
    if !plain.starts_with(|c: char| c.is_ascii_digit()) || !json::is_json(words.as_bytes()) {
        return None;
    }
    if kinds.contains("number") || plain.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(words.to_owned());
    }
    let value: f64 = words.parse().ok()?;
    // Beyond 2^53 a double no longer tells neighbours apart.
    let exact = value.fract() == 0.0 && value.abs() < 9_007_199_254_740_992.0;
    exact.then(|| format!("{value:.0}"))
}
