//! Bodies: compressed, and of types written in many ways.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::json;

use super::super::{before, call};
use crate::support::gateway::Gateway;
use crate::support::mcp::{Message, Peer};
use crate::support::odd::{Action, Answer, Odd};

/// Compressed by the system's own program.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut child = Command::new("gzip")
        .arg("-c")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("gzip is part of every system");
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    child.wait_with_output().unwrap().stdout
}

/// A server that compresses lists and calls, whether it was asked to or not.
fn compressing() -> Odd {
    Odd::of(&["json", "events"])
        .script(|request, state| match (request.rpc(), request.tool()) {
            (_, Some("events")) => {
                let event = format!("data: {}\n\n", state.usual(request).message());
                let whole = gzip(event.as_bytes());
                Action::events_with(&[("Content-Encoding", "gzip")], move |wire| {
                    whole.chunks(7).for_each(|part| wire.chunk(part));
                })
            }
            ("tools/list", _) | (_, Some(_)) => {
                let usual = state.usual(request);
                let body = gzip(&usual.body);
                Answer { body, ..usual }.with_header("Content-Encoding", "gzip").into()
            }
            _ => Action::Usual,
        })
        .start()
}

#[test]
fn ups_05_compressed_answers_are_read() {
    let odd = compressing();
    let (gateway, session) = before(&odd);
    assert_eq!(gateway.server("odd")["tools"], 2);
    for tool in ["json", "events"] {
        let more = [("Accept", "*/*"), ("Accept-Encoding", "gzip, br, x-odd")];
        let mut reply = session.post_with(&more, &call("1", tool, "{}"));
        let answer = Message(reply.text().unwrap());
        assert_eq!(answer.text(), tool, "{answer:?}");
    }
    // What servers are offered is the gateway's own, not the app's.
    for request in odd.requests(|_| true) {
        let offered = request.header("accept-encoding").unwrap_or_default();
        assert!(!offered.contains("x-odd"), "{request:?}");
    }
}

#[test]
fn ups_05_an_encoding_that_is_not_known_is_named() {
    let odd = Odd::of(&["t"])
        .script(|request, state| match request.rpc() {
            "tools/list" => {
                let usual = state.usual(request);
                Answer { body: vec![0x0b, 0x02, 0x80, 0xff, 0x03], ..usual }
                    .with_header("Content-Encoding", "x-odd")
                    .into()
            }
            _ => Action::Usual,
        })
        .start();
    let gateway = Gateway::start();
    let server = gateway.post("/upstreams", &odd.registration("odd"));
    assert_eq!(server["status"], "down", "{server}");
    assert!(server["error"].as_str().unwrap().contains("x-odd"), "{server}");
    let trial = gateway.post("/test-connection", &json!({"url": odd.url("/mcp")}));
    assert!(trial["error"].as_str().unwrap().contains("x-odd"), "{trial}");
}

#[test]
fn ups_11_headers_of_a_servers_answer_stay_behind() {
    let odd = Odd::of(&["t", "gzipped"])
        .script(|request, state| {
            let usual = state
                .usual(request)
                .with_header("Content-Encoding", "identity")
                .with_header("Set-Cookie", "a=b")
                .with_header("X-Own", "1");
            match request.tool() {
                Some("gzipped") => {
                    let body = gzip(&usual.body);
                    Answer { body, ..usual }.with_header("Content-Encoding", "gzip").into()
                }
                Some(_) => usual.into(),
                None => Action::Usual,
            }
        })
        .start();
    let (_gateway, session) = before(&odd);
    for tool in ["t", "gzipped"] {
        let mut reply = session.post(&call("1", tool, "{}"));
        for name in ["content-encoding", "transfer-encoding", "set-cookie", "x-own"] {
            assert_eq!(reply.header(name), None, "{tool}");
        }
        let length: usize = reply.header("content-length").unwrap().parse().unwrap();
        let text = reply.text().unwrap();
        assert_eq!(text.len(), length);
        assert_eq!(Message(text).text(), tool);
    }
}

#[test]
fn ups_14_the_media_type_alone_counts() {
    const TYPES: [(&str, bool); 7] = [
        ("application/json; charset=utf-8", false),
        ("APPLICATION/JSON", false),
        ("application/json ;charset=\"utf-8\"", false),
        ("text/event-stream;charset=UTF-8", true),
        ("Text/Event-Stream", true),
        ("", false),
        ("", true),
    ];
    let odd = Odd::of(&["t"])
        .script(|request, state| {
            let Some(number) = request.arguments()["type"].as_u64() else { return Action::Usual };
            let (kind, events) = TYPES[usize::try_from(number).unwrap()];
            let usual = state.usual(request).with_header("Content-Type", kind);
            if !events {
                return usual.into();
            }
            let event = format!("data: {}\n\n", usual.message());
            Action::talk(move |wire| {
                wire.head(200, kind, &[]);
                wire.chunk(event.as_bytes());
                wire.end();
                true
            })
        })
        .start();
    let (_gateway, mut session) = before(&odd);
    for (number, kind) in TYPES.iter().enumerate() {
        let answer = session.call("t", &json!({ "type": number }).to_string());
        assert!(!answer.is_refusal() && answer.text() == "t", "{kind:?}: {answer:?}");
    }
}
