//! A tool's JSON, without what would make a strict client refuse the whole list.
//!
//! Clients check each tool against the schema of the specification and reject all of a list
//! for one member of the wrong type. Such a member is left out; everything else stays the
//! same text.

use protocol::json::{self, Members};

/// The least that clients accept as an input schema (SCH-03).
const SCHEMA: &str = r#"{"type":"object"}"#;

/// The tool's text, mended where it must be, and the members that were left out. `None` for
/// what is no JSON object.
pub(crate) fn sound(text: &str) -> Option<(String, Vec<&'static str>)> {
    let mut tool = Members::parse(text).ok()?;
    let mut dropped = Vec::new();
    let mut changed = false;
    for (key, fits) in MEMBERS {
        if tool.get(key).is_some_and(|raw| !fits(raw)) {
            tool.remove(key);
            dropped.push(key);
        }
    }
    if let Some(mended) = tool.get("annotations").and_then(annotations) {
        tool.set("annotations", &mended);
        dropped.push("annotations");
    }
    if let Some(mended) = schema(tool.get("inputSchema"), &mut dropped) {
        tool.set("inputSchema", &mended);
        changed = true;
    }
    let text = match changed || !dropped.is_empty() {
        true => tool.to_text(),
        false => text.trim().to_owned(),
    };
    Some((text, dropped))
}

type Fits = fn(&str) -> bool;

/// Members and what they must be.
const MEMBERS: [(&str, Fits); 7] = [
    ("title", is_string),
    ("description", is_string),
    ("annotations", is_object),
    ("outputSchema", is_object),
    ("execution", is_object),
    ("icons", is_array),
    ("_meta", is_object),
];

/// Without hints that are no booleans; `None` when there are none.
fn annotations(raw: &str) -> Option<String> {
    const HINTS: [&str; 4] = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];
    let mut members = Members::parse(raw).ok()?;
    let wrong: Vec<_> = HINTS
        .into_iter()
        .filter(|hint| members.get(hint).is_some_and(|raw| !matches!(raw, "true" | "false")))
        .chain(members.get("title").filter(|raw| !is_string(raw)).map(|_| "title"))
        .collect();
    wrong.iter().for_each(|hint| members.remove(hint));
    (!wrong.is_empty()).then(|| members.to_text())
}

/// An input schema that says that it is one of an object; `None` when it does.
fn schema(raw: Option<&str>, dropped: &mut Vec<&'static str>) -> Option<String> {
    let Some(mut schema) = raw.and_then(|raw| Members::parse(raw).ok()) else {
        return Some(SCHEMA.to_owned());
    };
    let mut changed = false;
    if !schema.get("type").is_some_and(says_object) {
        schema.set("type", r#""object""#);
        changed = true;
    }
    if schema.get("properties").is_some_and(|raw| !is_object(raw)) {
        schema.remove("properties");
        dropped.push("inputSchema.properties");
        changed = true;
    }
    if schema.get("required").is_some_and(|raw| !is_list_of_strings(raw)) {
        schema.remove("required");
        dropped.push("inputSchema.required");
        changed = true;
    }
    changed.then(|| schema.to_text())
}

/// A list of types that has it is as good a schema, and stays (SCH-03).
fn says_object(raw: &str) -> bool {
    const OBJECT: &str = r#""object""#;
    raw == OBJECT || json::elements(raw).is_ok_and(|types| types.contains(&OBJECT))
}

fn is_string(raw: &str) -> bool {
    raw.starts_with('"')
}

fn is_object(raw: &str) -> bool {
    raw.starts_with('{')
}

fn is_array(raw: &str) -> bool {
    raw.starts_with('[')
}

fn is_list_of_strings(raw: &str) -> bool {
    json::elements(raw).is_ok_and(|list| list.into_iter().all(is_string))
}

#[cfg(test)]
mod tests {
    use super::sound;

    #[test]
    fn members_of_the_wrong_type_are_left_out_and_named() {
        let (text, dropped) = sound(
            r#"{"name":"x","description":5,"annotations":"x","outputSchema":5,"_meta":5,"icons":{},"execution":1,"title":[],"y":5,"inputSchema":{"type":"object"}}"#,
        )
        .expect("an object");
        assert_eq!(text, r#"{"name":"x","y":5,"inputSchema":{"type":"object"}}"#);
        assert_eq!(dropped.len(), 7);
        let (text, dropped) = sound(
            r#"{"name":"x","annotations":{"readOnlyHint":"yes","z":1},"inputSchema":{"type":"array","properties":5,"required":"a","additionalProperties":false}}"#,
        )
        .expect("an object");
        assert_eq!(
            text,
            r#"{"name":"x","annotations":{"z":1},"inputSchema":{"type":"object","additionalProperties":false}}"#
        );
        assert_eq!(dropped, ["annotations", "inputSchema.properties", "inputSchema.required"]);
    }

    #[test]
    fn a_sound_tool_stays_the_same_text() {
        let tool = r#"{ "name":"x", "inputSchema": {"type":"object","properties":{"a":true},"required":["a"]} }"#;
        assert_eq!(sound(tool), Some((tool.to_owned(), Vec::new())));
    }
}
