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
    if let Some(mended) = tool.get("execution").and_then(execution) {
        tool.set("execution", &mended);
        dropped.push("execution.taskSupport");
    }
    if let Some(mended) = tool.get("icons").and_then(icons) {
        tool.set("icons", &mended);
        dropped.push("icons");
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

/// Without a word on tasks that no version has; `None` when there is none.
fn execution(raw: &str) -> Option<String> {
    const WORDS: [&str; 3] = [r#""required""#, r#""optional""#, r#""forbidden""#];
    let mut members = Members::parse(raw).ok()?;
    members.get("taskSupport").filter(|word| !WORDS.contains(word))?;
    members.remove("taskSupport");
    Some(members.to_text())
}

/// Without icons that lead nowhere, and without members of the wrong type in the others;
/// `None` when all are in order.
fn icons(raw: &str) -> Option<String> {
    const MEMBERS: [(&str, Fits); 3] = [
        ("mimeType", is_string),
        ("sizes", is_list_of_strings),
        ("theme", |raw| matches!(raw, r#""light""# | r#""dark""#)),
    ];
    let icons = json::elements(raw).ok()?;
    let mut changed = false;
    let mut kept: Vec<String> = Vec::with_capacity(icons.len());
    for raw in icons {
        let icon = Members::parse(raw).ok().filter(|icon| icon.get("src").is_some_and(is_string));
        let Some(mut icon) = icon else {
            changed = true;
            continue;
        };
        let wrong =
            MEMBERS.iter().filter(|(key, fits)| icon.get(key).is_some_and(|raw| !fits(raw)));
        let wrong: Vec<_> = wrong.map(|(key, _)| *key).collect();
        wrong.iter().for_each(|key| icon.remove(key));
        changed |= !wrong.is_empty();
        kept.push(if wrong.is_empty() { raw.to_owned() } else { icon.to_text() });
    }
    changed.then(|| format!("[{}]", kept.join(",")))
}

/// The tool's text without an output schema that clients of older versions refuse the whole
/// list for: theirs had to be one of an object, with objects for its properties. `None` when it
/// can stay as it is.
pub(crate) fn for_older(text: &str) -> Option<String> {
    // Most have none, and need not be read again.
    if !text.contains("\"outputSchema\"") {
        return None;
    }
    let mut tool = Members::parse(text).ok()?;
    let schema = Members::parse(tool.get("outputSchema")?).unwrap_or_default();
    let properties = schema.get("properties").map(Members::parse);
    let fits = schema.get("type") == Some(r#""object""#)
        && schema.get("required").is_none_or(is_list_of_strings)
        && properties
            .is_none_or(|all| all.is_ok_and(|all| all.iter().all(|(_, raw)| is_object(raw))));
    if fits {
        return None;
    }
    tool.remove("outputSchema");
    Some(tool.to_text())
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
    use super::{for_older, sound};

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
    fn words_on_tasks_and_icons_are_mended_one_by_one() {
        let (text, dropped) = sound(
            r#"{"name":"x","execution":{"taskSupport":"maybe","z":1},"icons":[{"src":"a","sizes":["any"],"z":1},{"mimeType":"image/png"},5,{"src":"b","mimeType":null,"sizes":"48x48","theme":"pink"}],"inputSchema":{"type":"object"}}"#,
        )
        .expect("an object");
        assert_eq!(
            text,
            r#"{"name":"x","execution":{"z":1},"icons":[{"src":"a","sizes":["any"],"z":1},{"src":"b"}],"inputSchema":{"type":"object"}}"#
        );
        assert_eq!(dropped, ["execution.taskSupport", "icons"]);
        let good = r#"{"name":"x","execution":{"taskSupport":"optional"},"icons":[ {"src":"a","theme":"dark"} ],"inputSchema":{"type":"object"}}"#;
        assert_eq!(sound(good), Some((good.to_owned(), Vec::new())));
    }

    #[test]
    fn p13_only_an_output_schema_that_older_clients_choke_on_is_kept_from_them() {
        let tool = |schema: &str| format!(r#"{{"name":"x","outputSchema":{schema},"y":1e400}}"#);
        for fits in [
            r#"{"type":"object"}"#,
            r#"{"type":"object","properties":{"a":{}},"required":["a"],"additionalProperties":true}"#,
        ] {
            assert_eq!(for_older(&tool(fits)), None, "{fits}");
        }
        assert_eq!(for_older(r#"{"name":"x"}"#), None);
        for odd in [
            "{}",
            r#"{"type":"array","items":{}}"#,
            r#"{"type":["object"]}"#,
            r#"{"anyOf":[]}"#,
            r#"{"type":"object","properties":{"a":true}}"#,
            r#"{"type":"object","required":[1]}"#,
        ] {
            assert_eq!(
                for_older(&tool(odd)).as_deref(),
                Some(r#"{"name":"x","y":1e400}"#),
                "{odd}"
            );
        }
    }

    #[test]
    fn a_sound_tool_stays_the_same_text() {
        let tool = r#"{ "name":"x", "inputSchema": {"type":"object","properties":{"a":true},"required":["a"]} }"#;
        assert_eq!(sound(tool), Some((tool.to_owned(), Vec::new())));
    }
}
