//! The management API as an operator's scripts see it: every endpoint's shape, what bad input is
//! told, who is let in, and what other origins get.

mod door;
mod groups;
mod keys;
mod servers;

use serde_json::{Value, json};

use crate::support::gateway::Gateway;

/// Refused at once: nothing listens on the discard port.
pub(crate) const NOWHERE: &str = "http://127.0.0.1:9/mcp";

fn refused(gateway: &Gateway, request: (&str, &str, Value), expect: (u16, &str)) {
    let (method, path, body) = request;
    let (status, answer) = gateway.api(method, path, &body);
    assert_eq!((status, answer), (expect.0, json!({"error": expect.1})), "{method} {path} {body}");
}

fn group(gateway: &Gateway, name: &str) -> Value {
    let groups = gateway.get("/groups");
    let found = groups.as_array().unwrap().iter().find(|group| group["name"] == name);
    found.unwrap_or_else(|| panic!("no group {name} in {groups}")).clone()
}

fn patch(gateway: &Gateway, path: &str, body: &Value) -> Value {
    let (status, answer) = gateway.api("PATCH", path, body);
    assert_eq!(status, 200, "PATCH {path} {body} gave {answer}");
    answer
}

fn sentences(gateway: &Gateway, kind: &str) -> Vec<String> {
    let audit = gateway.get("/audit");
    let events = audit["events"].as_array().unwrap();
    let found = events.iter().filter(|event| event["kind"] == kind);
    found.map(|event| event["message"].as_str().unwrap().to_owned()).collect()
}
