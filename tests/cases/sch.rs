//! SCH: schemas pass through as they are.

use super::before;
use crate::support::mcp::Peer;
use crate::support::odd::Odd;

/// Lists these tools through the gateway and compares their text, each with its own.
fn same(tools: &[&str]) {
    same_on(tools, "{}");
}

/// The same, called on those arguments.
fn same_on(tools: &[&str], arguments: &str) {
    let odd = Odd::of(tools).start();
    let (_gateway, mut session) = before(&odd);
    let listed = session.tools();
    let listed: Vec<&str> = listed.iter().map(|tool| tool.text.as_str()).collect();
    assert_eq!(listed, tools);
    for tool in session.tool_names() {
        assert_eq!(session.call(&tool, arguments).text(), tool);
    }
}

#[test]
fn sch_01_schemas_keep_their_definitions_and_the_order_of_their_keys() {
    let tools = &[
        r##"{"name":"a","inputSchema":{"required":["p"],"$defs":{"P":{"type":"object","properties":{"z":{"type":"integer"},"a":{"$ref":"#/$defs/Q"}}},"Q":{"enum":[1,2.0,"é"]}},"type":"object","properties":{"p":{"$ref":"#/$defs/P"}}}}"##,
    ];
    same_on(tools, r#"{"p":{}}"#);
}

#[test]
fn sch_02_boolean_schemas_are_kept() {
    same(&[
        r#"{"name":"a","inputSchema":{"type":"object","properties":{"raw":true,"no":false},"additionalProperties":false}}"#,
        r#"{"name":"b","inputSchema":{"type":"object","properties":{"list":{"type":"array","items":true}}}}"#,
    ]);
}

#[test]
fn sch_02_a_broken_tool_is_left_out_alone_and_named_in_the_log() {
    let odd = Odd::of(&["a", r#"{"title":"nameless one"}"#, r#"{"name":5}"#, "b"]).start();
    let (gateway, mut session) = before(&odd);
    assert_eq!(session.tool_names(), ["a", "b"]);
    assert_eq!(gateway.server("odd")["status"], "connected");
    let log = gateway.log();
    assert!(log.contains("WARN") && log.contains("left a tool out"), "{log}");
}

#[test]
fn sch_03_a_tool_without_a_schema_is_listed_with_the_least_and_can_be_called() {
    let odd = Odd::of(&[
        r#"{"name":"a","inputSchema":{}}"#,
        r#"{"name":"b","inputSchema":{"$schema":"s"}}"#,
        r#"{"name":"c","inputSchema":{"type":"object"}}"#,
        r#"{"name":"d"}"#,
        r#"{"name":"e","inputSchema":null}"#,
        r#"{"name":"f","inputSchema":{"type":["object"]}}"#,
    ])
    .start();
    let (_gateway, mut session) = before(&odd);
    let listed = session.tools();
    assert_eq!(listed.len(), 6);
    for tool in &listed {
        let value: serde_json::Value = serde_json::from_str(&tool.text).unwrap();
        let kind = &value["inputSchema"]["type"];
        assert!(kind == "object" || kind[0] == "object", "{}", tool.text);
        assert_eq!(session.call(&tool.name, "{}").text(), tool.name);
        let params = format!(r#"{{"name":"{}"}}"#, tool.name);
        assert_eq!(session.request("tools/call", &params).text(), tool.name, "no arguments");
    }
    for untouched in [2, 5] {
        let text = ["c", "f"].map(|name| format!(r#"{{"name":"{name}","inputSchema":"#));
        assert!(text.iter().any(|text| listed[untouched].text.starts_with(text)));
    }
    assert_eq!(listed[5].text, r#"{"name":"f","inputSchema":{"type":["object"]}}"#);
    assert!(listed[1].text.contains(r#""$schema":"s""#), "{}", listed[1].text);
}

#[test]
fn sch_04_a_strange_output_schema_does_not_hide_the_tool() {
    same(&[
        r##"{"name":"a","inputSchema":{"type":"object"},"outputSchema":{"type":"object","$ref":"#/$defs/nowhere"}}"##,
        r#"{"name":"b","inputSchema":{"type":"object"},"outputSchema":{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","id":"x","properties":{"n":{"minimum":0,"exclusiveMinimum":true}}}}"#,
        r#"{"name":"c","inputSchema":{"type":"object"},"outputSchema":{"type":"object","pattern":"("}}"#,
    ]);
}

/// The schemas of these clients' SDKs want an object's, and throw the whole list away.
#[test]
fn sch_04_an_output_schema_that_older_clients_throw_on_is_left_out_for_them() {
    let odd = Odd::of(&[
        r##"{"name":"a","inputSchema":{"type":"object"},"outputSchema":{"$ref":"#/$defs/nowhere"}}"##,
    ])
    .start();
    let (_gateway, mut session) = before(&odd);
    let listed: Vec<String> = session.tools().into_iter().map(|tool| tool.text).collect();
    assert_eq!(listed, [r#"{"name":"a","inputSchema":{"type":"object"}}"#]);
}
