//! HTTP: the manager's own surface. More of it is in `front.rs`, from before these cases were
//! gathered.

mod doors;
mod failures;
mod forms;
mod methods;
mod weight;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::support::http::{self, Reply};
use crate::support::mcp::{LEGACY, Session};
use crate::support::odd::{Action, Odd};

/// A request with these headers and no others.
fn send(session: &Session, method: &str, headers: &[(&str, &str)], body: &str) -> Reply {
    http::send(session.address, method, "/mcp", headers, body).unwrap()
}

/// An `initialize` with this raw id, asking for this version.
fn initialize(id: &str, version: &str) -> String {
    let params = json!({
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": {"name": "mcpm-tests", "version": "1"},
    });
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"initialize","params":{params}}}"#)
}

/// The one message of an answer of either form, as it came, and that the answer ends after it.
fn only_message(reply: &mut Reply) -> String {
    if !reply.is_event_stream() {
        return reply.text().unwrap();
    }
    let events = std::iter::from_fn(|| reply.event().unwrap());
    let mut messages: Vec<String> = events.map(|event| event.data).collect();
    assert_eq!(messages.len(), 1, "{messages:?}");
    messages.remove(0)
}

fn json_of(reply: &mut Reply) -> Value {
    let text = only_message(reply);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

/// The headers of a legacy client that sends and takes what it should.
fn usual<'a>(key: &'a str, session: &'a str) -> Vec<(&'a str, &'a str)> {
    let mut headers = vec![
        ("Authorization", key),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
    ];
    if !session.is_empty() {
        headers.push(("Mcp-Session-Id", session));
        headers.push(("MCP-Protocol-Version", LEGACY));
    }
    headers
}

/// A call that ends when the gate opens.
fn gated(gate: &Arc<AtomicBool>) -> Odd {
    let gate = Arc::clone(gate);
    Odd::of(&["t"])
        .script(move |request, state| {
            let gate = Arc::clone(&gate);
            match request.tool() {
                None => Action::Usual,
                Some(_) => {
                    let answer = state.usual(request);
                    Action::talk(move |wire| {
                        wire.until(|| gate.load(Ordering::SeqCst));
                        wire.answer(&answer);
                        true
                    })
                }
            }
        })
        .start()
}
