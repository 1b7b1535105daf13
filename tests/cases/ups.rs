//! UPS: odd servers over HTTP: streams, addresses, headers. Odd bodies and connections are in
//! `ups/odd_bodies.rs`.

mod connections;
mod encodings;

use serde_json::{Value, json};

use super::{before, call, result};
use crate::support::gateway::Gateway;
use crate::support::mcp::Peer;
use crate::support::odd::{Action, Answer, Odd, Request};
use crate::support::peers::Local;
use crate::support::{SOON, eventually};

/// The usual answer as an event stream whose lines end like that.
fn with_line_ends(answer: &Answer, end: &str, cut: bool) -> Action {
    let event = format!("event: message{end}data: {}{end}{end}", answer.message());
    let headers: Vec<_> = answer.headers.clone();
    Action::talk(move |wire| {
        let kept = headers.into_iter().filter(|(name, _)| name == "Mcp-Session-Id");
        wire.head(200, "text/event-stream", &kept.collect::<Vec<_>>());
        match cut {
            true => event.bytes().for_each(|byte| wire.chunk(&[byte])),
            false => wire.chunk(event.as_bytes()),
        }
        wire.end();
        true
    })
}

#[test]
fn ups_01_lines_of_a_stream_may_end_in_any_way() {
    for (end, cut) in [("\r\n", false), ("\r\n", true), ("\r", false), ("\n", true)] {
        let odd = Odd::of(&["t"])
            .script(move |request, state| match request.rpc() {
                "initialize" | "tools/list" | "tools/call" | "ping" => {
                    with_line_ends(&state.usual(request), end, cut)
                }
                _ => Action::Usual,
            })
            .start();
        let (gateway, mut session) = before(&odd);
        let trial = gateway.post("/test-connection", &json!({"url": odd.url("/mcp")}));
        assert_eq!((&trial["ok"], &trial["tools"]), (&json!(true), &json!(1)), "{end:?}: {trial}");
        assert_eq!(session.call("t", "{}").text(), "t", "{end:?}");
    }
}

#[test]
fn ups_02_characters_cut_between_chunks_are_whole_again() {
    const TEXT: &str = "日本語 👩‍🚀 é \u{2028} ﷽";
    let odd = Odd::of(&["events", "json"])
        .script(|request, _| {
            let Some(tool) = request.tool() else { return Action::Usual };
            let answer = Answer::text(request, TEXT);
            match tool {
                "events" => with_line_ends(&answer, "\n", true),
                _ => Action::talk(move |wire| {
                    wire.head(200, "application/json", &[]);
                    answer.body.iter().for_each(|byte| wire.chunk(&[*byte]));
                    wire.end();
                    true
                }),
            }
        })
        .start();
    let (gateway, mut session) = before(&odd);
    gateway.add_server(&Local::odd().registration());
    let arguments = json!({ "text": TEXT }).to_string();
    for tool in ["events", "json", "cut"] {
        assert_eq!(session.call(tool, &arguments).text(), TEXT, "{tool}");
    }
}

/// Sends on with this status whatever does not come to `/mcp/`.
fn moved(status: u16, absolute: bool) -> Odd {
    Odd::of(&["t"])
        .script(move |request, _| {
            if request.path == "/mcp/" {
                return Action::Usual;
            }
            let host = request.header("host").unwrap();
            let target = if absolute { format!("http://{host}/mcp/") } else { "/mcp/".into() };
            Answer::empty(status).with_header("Location", &target).into()
        })
        .start()
}

#[test]
fn ups_03_redirects_that_keep_the_method_are_followed() {
    for (status, absolute) in [(307, false), (308, true)] {
        let odd = moved(status, absolute);
        let gateway = Gateway::start();
        let mut registration = odd.registration("odd");
        registration["headers"] = json!({"X-Own": "kept"});
        gateway.add_server(&registration);
        let mut session = gateway.session(&gateway.add_key("full"));
        assert_eq!(session.call("t", r#"{"a":1}"#).text(), "t", "{status}");
        let arrived = odd.requests(|r| r.path == "/mcp/" && r.tool().is_some()).remove(0);
        assert_eq!((arrived.method.as_str(), arrived.header("x-own")), ("POST", Some("kept")));
        assert_eq!(arrived.arguments(), &json!({"a": 1}));
        assert_eq!(odd.ran("t"), 1);
    }
}

#[test]
fn ups_03_redirects_in_a_circle_end() {
    let odd = Odd::of(&["t"])
        .script(|_, _| Answer::empty(307).with_header("Location", "/mcp").into())
        .start();
    let gateway = Gateway::start();
    let server = gateway.post("/upstreams", &odd.registration("odd"));
    assert_eq!(server["status"], "down", "{server}");
    let error = server["error"].as_str().unwrap().to_lowercase();
    assert!(error.contains("redirect") || error.contains("307"), "{error}");
    assert!(odd.total() <= 30, "{} requests for one attempt", odd.total());
}

#[test]
fn ups_04_what_else_a_stream_may_hold_is_passed_over() {
    let odd = Odd::of(&["t"])
        .script(|request, state| {
            if request.tool().is_none() {
                return Action::Usual;
            }
            let answer = state.usual(request).message();
            Action::events(move |wire| {
                for part in [
                    ": ping\n\n",
                    ":\n\n",
                    "retry: 3000\n\n",
                    "id: 7\nfoo: bar\nfoo\n\n",
                    "data:\n\n",
                    "data\n\n",
                    "event: other\ndata: words\n\n",
                    "id: 8\nevent: message\ndata: ",
                ] {
                    wire.chunk(part.as_bytes());
                }
                wire.chunk(format!("{answer}\n\n").as_bytes());
            })
        })
        .start();
    let (gateway, mut session) = before(&odd);
    assert_eq!(session.call("t", "{}").text(), "t");
    assert_eq!(gateway.server("odd")["status"], "connected");
}

#[test]
fn ups_07_each_server_hears_the_version_agreed_with_it() {
    for (version, header) in [("2025-03-26", None), ("2025-06-18", Some("2025-06-18"))] {
        let odd = Odd::of(&["t"])
            .script(move |request, state| {
                let told = request.header("mcp-protocol-version");
                match request.rpc() {
                    "initialize" => {
                        let mut asked = request.clone();
                        asked.body["params"]["protocolVersion"] = json!(version);
                        state.usual(&asked).into()
                    }
                    _ if told.is_some_and(|told| told != version) => {
                        let error = r#"{"code":-32600,"message":"unsupported version"}"#;
                        Answer::error(request, error).with_status(400).into()
                    }
                    _ => Action::Usual,
                }
            })
            .start();
        let (_gateway, mut session) = before(&odd);
        assert_eq!(session.call("t", "{}").text(), "t", "{version}");
        for request in odd.requests(|request| request.header("mcp-session-id").is_some()) {
            let told = request.header("mcp-protocol-version");
            assert!(told == header || told == Some(version), "{version}: {request:?}");
        }
        for opening in odd.requests(|request| request.rpc() == "initialize") {
            assert_eq!(opening.header("mcp-protocol-version"), None, "{version}");
        }
    }
}

/// A server that says that it can do this, and answers `tools/list` with that.
fn capable(capabilities: &'static str, list: fn(&Request) -> Answer) -> Odd {
    Odd::of(&[])
        .script(move |request, state| match request.rpc() {
            "initialize" => {
                let usual = state.usual(request);
                let hello =
                    usual.message().replace(r#"{"tools":{"listChanged":true}}"#, capabilities);
                Answer { body: hello.into(), ..usual }.into()
            }
            "tools/list" => list(request).into(),
            _ => Action::Usual,
        })
        .start()
}

#[test]
fn ups_09_a_server_without_tools_is_connected() {
    let refuses = |request: &Request| Answer::error(request, r#"{"code":-32601,"message":"no"}"#);
    let empty = |request: &Request| Answer::result(request, r#"{"tools":[]}"#);
    let gateway = Gateway::start();
    let good = Odd::of(&["t"]).start();
    gateway.add_server(&good.registration("good"));
    let servers = [
        ("prompts", capable(r#"{"prompts":{}}"#, refuses)),
        ("nothing", capable("{}", empty)),
        ("refuses", capable(r#"{"tools":{}}"#, refuses)),
    ];
    for (name, odd) in &servers {
        let server = gateway.add_server(&odd.registration(name));
        assert_eq!((&server["tools"], &server["error"]), (&json!(0), &Value::Null), "{server}");
    }
    let mut session = gateway.session(&gateway.add_key("full"));
    assert_eq!(session.tool_names(), ["t"]);
    // The first look at each server after some seconds finds it alive, and opens nothing anew.
    for (name, odd) in &servers {
        eventually("a sign of life", SOON, || (odd.count("ping") > 0).then_some(()));
        assert_eq!(gateway.server(name)["status"], "connected");
        assert_eq!(odd.count("initialize"), 1, "{name}: reconnected");
    }
    assert_eq!(session.call("t", "{}").text(), "t");
}

#[test]
fn ups_10_ids_that_come_back_as_text_are_understood_and_not_passed_on() {
    let odd = Odd::of(&["text", "error", "null"])
        .script(|request, state| {
            if request.id().is_null() {
                return Action::Usual;
            }
            let id = if request.tool() == Some("null") {
                "null".to_owned()
            } else {
                json!(request.id().to_string()).to_string()
            };
            let usual = match request.tool() {
                Some("error" | "null") => {
                    Answer::error(request, r#"{"code":-32000,"message":"no"}"#)
                }
                _ => state.usual(request),
            };
            let old = format!(r#""id":{}"#, request.id());
            let body = usual.message().replacen(&old, &format!(r#""id":{id}"#), 1);
            Answer { body: body.into(), ..usual }.into()
        })
        .start();
    let (_gateway, session) = before(&odd);
    for id in ["7", r#""7""#, "0", r#""x-1""#] {
        for (tool, kind) in [("text", "result"), ("error", "error"), ("null", "error")] {
            let mut reply = session.post(&call(id, tool, "{}"));
            let answer: Value = serde_json::from_str(&reply.text().unwrap()).unwrap();
            assert_eq!(answer["id"].to_string(), id, "{tool}: {answer}");
            assert!(answer[kind].is_object(), "{tool}: {answer}");
            if kind == "error" {
                assert_eq!(answer["error"]["code"], -32000, "{answer}");
            } else {
                assert_ne!(answer["result"]["isError"], true, "{answer}");
            }
        }
    }
}

#[test]
fn ups_12_the_address_is_used_byte_for_byte() {
    for path in ["/mcp/", "/mcp?key=abc&x=%2F", "/a//b/?", "/%7Euser/mcp"] {
        let odd = Odd::of(&["t"]).start();
        let gateway = Gateway::start();
        gateway.add_server(&json!({"name": "odd", "url": odd.url(path)}));
        let mut session = gateway.session(&gateway.add_key("full"));
        assert_eq!(session.call("t", "{}").text(), "t");
        gateway.api("DELETE", "/upstreams/odd", &Value::Null);
        for method in ["POST", "GET", "DELETE"] {
            eventually(method, SOON, || {
                (!odd.requests(|request| request.method == method).is_empty()).then_some(())
            });
        }
        for request in odd.requests(|_| true) {
            assert_eq!(request.path, path, "{request:?}");
        }
    }
}

#[test]
fn ups_13_servers_are_asked_for_both_forms() {
    const BOTH: &str = "application/json, text/event-stream";
    let odd = Odd::of(&["t"])
        .script(|request, _| match (request.method.as_str(), request.header("accept")) {
            ("POST", Some(BOTH)) | ("GET", Some("text/event-stream")) | ("DELETE", _) => {
                Action::Usual
            }
            _ => Answer::empty(406).into(),
        })
        .start();
    let (_gateway, session) = before(&odd);
    let mut reply = session.post_with(&[("Accept", "application/json")], &call("1", "t", "{}"));
    let answer = crate::support::mcp::Message(reply.text().unwrap());
    assert_eq!(result(&answer)["content"][0]["text"], "t", "{answer:?}");
    eventually("the link's GET", SOON, || {
        (!odd.requests(|request| request.method == "GET").is_empty()).then_some(())
    });
    for request in odd.requests(|request| request.method != "DELETE") {
        let wanted = if request.method == "GET" { "text/event-stream" } else { BOTH };
        assert_eq!(request.header("accept"), Some(wanted), "{request:?}");
    }
}
