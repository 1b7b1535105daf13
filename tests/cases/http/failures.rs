//! HTTP-02: whatever goes wrong behind, what an app gets is an MCP answer with status 200.

use serde_json::{Value, json};

use super::only_message;
use crate::cases::call;
use crate::support::gateway::Gateway;
use crate::support::mcp::{Peer, Session};
use crate::support::odd::{Action, Answer, Odd, Request};
use crate::support::peers::Local;

const WAYS: [&str; 18] = [
    "status-400",
    "status-403",
    "status-404",
    "status-429",
    "status-500",
    "status-503",
    "redirect",
    "page",
    "nothing",
    "nonsense",
    "error",
    "other-id",
    "close",
    "cut-head",
    "cut-body",
    "cut-stream",
    "odd-event",
    "hang",
];

fn goes_wrong(request: &Request, way: &str) -> Action {
    if let Some(status) = way.strip_prefix("status-") {
        let page =
            Answer { body: b"<h1>Oops</h1>".to_vec(), ..Answer::empty(status.parse().unwrap()) };
        return page.with_header("Content-Type", "text/html").into();
    }
    let talk = |bytes: &'static str| {
        Action::talk(move |wire| {
            wire.write(bytes.as_bytes());
            false
        })
    };
    match way {
        "redirect" => Answer::empty(307).with_header("Location", "/mcp").into(),
        "page" => Answer::json("<h1>Hello</h1>").with_header("Content-Type", "text/html").into(),
        "nothing" => Answer::json("").into(),
        "nonsense" => Answer::json("nonsense").into(),
        "error" => Answer::error(request, r#"{"code":-32603,"message":"broken"}"#).into(),
        "other-id" => Answer::json(r#"{"jsonrpc":"2.0","id":"else","result":{}}"#).into(),
        "close" => Action::Close,
        "cut-head" => talk("HTTP/1.1 200 OK\r\nContent-Ty"),
        "cut-body" => talk(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{\"jsonrpc\":",
        ),
        "cut-stream" => talk(
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n5\r\ndata:\r\n",
        ),
        "odd-event" => Action::events(|wire| wire.event("nonsense")),
        _ => Action::Hang,
    }
}

/// A call that fails; what the app gets of it.
fn fail(session: &Session, tool: &str) -> Value {
    let mut reply = session.post(&call("\"c-1\"", tool, "{}"));
    assert_eq!(reply.status, 200, "{tool}");
    let answer: Value = serde_json::from_str(&only_message(&mut reply)).unwrap();
    assert_eq!(answer["id"], "c-1", "{tool}: {answer}");
    let told = match answer.get("error") {
        Some(error) => error["message"].as_str(),
        None => {
            assert_eq!(answer["result"]["isError"], true, "{tool}: {answer}");
            answer["result"]["content"][0]["text"].as_str()
        }
    };
    assert!(told.is_some_and(|text| !text.is_empty()), "{tool}: {answer}");
    answer
}

#[test]
fn http_02_a_failure_behind_is_an_answer_with_status_200() {
    let ways = [&WAYS[..], &["status-401", "fine"]].concat();
    let odd = Odd::of(&ways)
        .script(|request, _| match request.tool() {
            Some(way) if way != "fine" => goes_wrong(request, way),
            _ => Action::Usual,
        })
        .start();
    let gateway = Gateway::start();
    let mut registration = odd.registration("odd");
    registration["call_timeout_ms"] = json!(1000);
    gateway.add_server(&registration);
    gateway.add_server(&Local::rough(&[]).registration());
    let session = gateway.session(&gateway.add_key("full"));
    for way in WAYS {
        fail(&session, way);
        assert_eq!(session.clone().call("fine", "{}").text(), "fine", "after {way}");
    }
    // Refused credentials, a local program that ends, then a server that is gone, then a tool that is nowhere.
    fail(&session, "status-401");
    fail(&session, "die");
    let (mut odd, mut session) = (odd, session);
    odd.refuse();
    fail(&session, "fine");
    fail(&session, "nowhere");
    assert_eq!(session.request("ping", "{}").result(), "{}", "the session goes on");
}

#[test]
fn http_02_a_session_that_cannot_be_opened_behind_is_an_answer_with_status_200() {
    for way in ["status-500", "status-404", "nonsense", "error", "close", "hang"] {
        let odd = Odd::of(&["t"])
            .script(move |request, state| match request.rpc() {
                // The first is that of the link, which lists.
                "initialize" if state.count("initialize") > 1 => goes_wrong(request, way),
                _ => Action::Usual,
            })
            .start();
        let gateway = Gateway::start();
        let mut registration = odd.registration("odd");
        registration["timeout_ms"] = json!(1000);
        gateway.add_server(&registration);
        let session = gateway.session(&gateway.add_key("full"));
        fail(&session, "t");
        assert_eq!(odd.calls("t"), 0, "{way}");
        assert_eq!(session.clone().tool_names(), ["t"], "{way}");
    }
}
