//! The toy's tools: `echo`, and as many more as asked for, with the kind and size of schema that
//! real servers list (about 900 bytes each).

use serde_json::{Value, json};

const SUBJECTS: [&str; 10] = [
    "issue",
    "pull_request",
    "document",
    "calendar_event",
    "customer",
    "invoice",
    "deployment",
    "dashboard",
    "message",
    "ticket",
];
const ACTIONS: [&str; 8] =
    ["create", "update", "search", "list", "archive", "export", "assign", "comment_on"];

/// `count` tools as JSON text of an array; the first is `echo`.
pub(crate) fn tools(count: usize, prefix: Option<&str>) -> String {
    let named = |name: &str| match prefix {
        Some(prefix) => format!("{prefix}_{name}"),
        None => name.to_owned(),
    };
    let others = (0..count.saturating_sub(1)).map(|n| {
        let subject = SUBJECTS[n % SUBJECTS.len()];
        let action = ACTIONS[n / SUBJECTS.len() % ACTIONS.len()];
        let round = n / (SUBJECTS.len() * ACTIONS.len());
        let name = match round {
            0 => format!("{action}_{subject}"),
            _ => format!("{action}_{subject}_v{}", round + 1),
        };
        tool(&named(&name), action, subject)
    });
    let tools: Vec<Value> =
        std::iter::once(echo(&named("echo"))).take(count).chain(others).collect();
    Value::from(tools).to_string()
}

fn echo(name: &str) -> Value {
    json!({
        "name": name,
        "description": "Return the arguments as text, exactly as they were sent.",
        "inputSchema": {
            "type": "object",
            "properties": {"text": {"type": "string", "description": "Any text."}}
        },
        "annotations": {"readOnlyHint": true, "idempotentHint": true, "openWorldHint": false}
    })
}

fn tool(name: &str, action: &str, subject: &str) -> Value {
    let words = subject.replace('_', " ");
    let verb = action.replace('_', " ");
    let reads = matches!(action, "search" | "list" | "export");
    json!({
        "name": name,
        "title": format!("{verb} {words}"),
        "description": format!(
            "Use this to {verb} one {words} or several in the workspace. Give the identifier when \
             it is known; otherwise describe the {words} in `query` and the best match is used. \
             Returns the {words} with its current state and a link."
        ),
        "inputSchema": {
            "type": "object",
            "properties": {
                "id": {"type": "string", "description": format!("Identifier of the {words}.")},
                "query": {"type": "string", "description": "Free text, used when there is no id."},
                "fields": {
                    "type": "object",
                    "description": "Values to set, by field name.",
                    "additionalProperties": {"type": ["string", "number", "boolean", "null"]}
                },
                "labels": {"type": "array", "items": {"type": "string"}, "maxItems": 20},
                "priority": {"type": "string", "enum": ["low", "normal", "high", "urgent"]},
                "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 20}
            },
            "required": ["id"],
            "additionalProperties": false
        },
        "annotations": {"readOnlyHint": reads, "destructiveHint": action == "archive"}
    })
}

#[cfg(test)]
mod tests {
    use super::tools;
    use std::collections::HashSet;

    #[test]
    fn every_tool_has_its_own_name() {
        let list: serde_json::Value = serde_json::from_str(&tools(400, None)).unwrap();
        let names: HashSet<&str> =
            list.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!((names.len(), names.contains("echo")), (400, true));
        assert!(tools(1, Some("sse")).contains("\"sse_echo\""));
        assert_eq!(tools(0, None), "[]");
    }
}
