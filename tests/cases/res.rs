//! RES: results and errors come through as the server wrote them.

use std::time::Instant;

use serde_json::{Value, json};

use super::{before, call, result};
use crate::support::SOON;
use crate::support::gateway::Gateway;
use crate::support::mcp::{Peer, Session};
use crate::support::odd::{Action, Answer, Odd};
use crate::support::peers::Local;

/// A server whose tool `t` gives this result, a gateway before it, and what came through.
fn through(given: &'static str) -> String {
    let odd = Odd::of(&["t"])
        .script(move |request, _| match request.tool() {
            Some(_) => Answer::result(request, given).into(),
            None => Action::Usual,
        })
        .start();
    let (_gateway, mut session) = before(&odd);
    session.call("t", "{}").result().to_owned()
}

#[test]
fn res_01_structured_content_and_meta_come_through() {
    let given = r#"{"structuredContent":{"n":1.0,"big":12345678901234567890,"z":null,"a":[{}]},"content":[{"type":"text","text":"{\"n\":1.0}"}],"_meta":{"x/y":{"k":[1]}},"isError":false}"#;
    assert_eq!(through(given), given);
}

#[test]
fn res_02_every_field_of_a_tool_is_listed() {
    let tool = r#"{"x-new":{"a":1.50,"b":[]},"name":"t","title":"T","description":"d","inputSchema":{"type":"object"},"outputSchema":{"type":"object"},"annotations":{"title":"A","readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false,"x":0},"icons":[{"src":"data:,","mimeType":"image/png","sizes":["48x48"]}],"execution":{"taskSupport":"optional"},"_meta":{"k":"v"}}"#;
    let odd = Odd::of(&[tool]).start();
    let (_gateway, mut session) = before(&odd);
    assert_eq!(session.tools()[0].text, tool);
}

/// As [`before`], for calls that may take half a second.
fn before_impatient(odd: &Odd) -> (Gateway, Session) {
    let gateway = Gateway::start();
    let mut registration = odd.registration("odd");
    registration["call_timeout_ms"] = json!(500);
    gateway.add_server(&registration);
    let session = gateway.session(&gateway.add_key("full"));
    (gateway, session)
}

/// A result that says that it is an error, in words.
fn refused_in_words(session: &mut Session, tool: &str, arguments: &str) {
    let answer = session.call(tool, arguments);
    let value = result(&answer);
    assert_eq!(value["isError"], true, "{tool}: {answer:?}");
    let text = value["content"][0]["text"].as_str().unwrap_or_default();
    assert!(text.contains("odd") && !text.contains('<'), "{tool}: {answer:?}");
}

#[test]
fn res_03_failures_of_a_server_are_results_of_tools() {
    let mut odd = Odd::of(&["page", "cut", "slow", "reset"])
        .early(|request, _| match request.header("content-length") {
            Some(length) if length.len() > 6 => Action::Close,
            _ => Action::Usual,
        })
        .script(|request, _| match request.tool() {
            Some("page") => Answer { body: "<html>Oops</html>".into(), ..Answer::empty(500) }
                .with_header("Content-Type", "text/html")
                .into(),
            Some("cut") => Action::Close,
            Some("slow") => Action::Hang,
            _ => Action::Usual,
        })
        .start();
    let (_gateway, mut session) = before_impatient(&odd);
    for tool in ["page", "cut", "slow"] {
        refused_in_words(&mut session, tool, "{}");
    }
    // Closed with bytes unread, which the system turns into a reset.
    let large = json!({"text": "x".repeat(3 << 20)}).to_string();
    refused_in_words(&mut session, "reset", &large);
    odd.refuse();
    refused_in_words(&mut session, "page", "{}");
}

/// The text of `size` bytes that the servers here make.
fn text(size: usize) -> String {
    let mut text = "0123456789abcde\u{e9}".repeat(size / 17 + 1);
    while text.len() > size {
        text.pop();
    }
    text
}

/// The odd server's answer of the size that is asked for, as JSON or as events.
fn large(request: &crate::support::odd::Request) -> Action {
    let Some(tool) = request.tool() else { return Action::Usual };
    let size = request.arguments()["size"].as_u64().unwrap();
    let answer = Answer::text(request, &text(usize::try_from(size).unwrap()));
    match tool {
        "json" => answer.into(),
        _ => Action::events(move |wire| wire.event(&answer.message())),
    }
}

#[test]
fn res_04_large_results_come_through_whole() {
    let odd = Odd::of(&["json", "events"]).script(|request, _| large(request)).start();
    let (gateway, session) = before(&odd);
    gateway.add_server(&Local::odd().registration());
    let sizes = [(64 << 10) + 1, 1 << 20, 21 << 19];
    for tool in ["json", "events", "big"] {
        std::thread::scope(|scope| {
            for size in sizes.into_iter().chain([1 << 20]) {
                let mut session = session.clone();
                scope.spawn(move || {
                    let answer = session.call(tool, &json!({ "size": size }).to_string());
                    let given = answer.text();
                    let expected = match tool {
                        // The local server counts characters.
                        "big" => "0123456789abcd\u{e9}".repeat(size / 15 + 1),
                        _ => text(size),
                    };
                    let expected: String = match tool {
                        "big" => expected.chars().take(size).collect(),
                        _ => expected,
                    };
                    assert!(given == expected, "{tool} {size}: {} bytes came", given.len());
                });
            }
        });
    }
}

#[test]
fn res_04_a_result_beyond_the_limit_says_so() {
    let odd = Odd::of(&["json", "events", "t"])
        .script(
            |request, _| if request.tool() == Some("t") { Action::Usual } else { large(request) },
        )
        .start();
    let (_gateway, mut session) = before(&odd);
    let arguments = json!({"size": 65 << 20}).to_string();
    for tool in ["json", "events"] {
        let answer = session.call(tool, &arguments);
        assert!(answer.is_refusal(), "{tool}");
        assert!(answer.text().contains("67108864"), "{tool}: {answer:?}");
        assert_eq!(session.call("t", "{}").text(), "t", "others are unaffected");
    }
}

#[test]
fn res_05_blocks_of_every_kind_come_through() {
    let given = r#"{"content":[{"type":"text","text":"t","annotations":{"audience":["user"],"priority":0.5,"lastModified":"2026-01-01T00:00:00Z"},"_meta":{}},{"type":"image","data":"aGk=","mimeType":"image/png","x":1},{"type":"audio","data":"aGk=","mimeType":"audio/wav"},{"type":"resource","resource":{"uri":"a://b","mimeType":"text/plain","text":"x","_meta":{"k":1}}},{"type":"resource_link","uri":"a://b","name":"n","size":12345678901234567890},{"type":"future","a":{"b":[null]}}]}"#;
    assert_eq!(through(given), given);
}

#[test]
fn res_06_errors_of_a_server_keep_code_message_and_data() {
    let odd = Odd::of(&["t"])
        .script(|request, _| match request.tool() {
            Some(_) => {
                Answer::error(request, request.arguments()["error"].as_str().unwrap()).into()
            }
            None => Action::Usual,
        })
        .start();
    let (_gateway, session) = before(&odd);
    for error in [
        r#"{"code":-32063,"message":"busy \u00e9","data":{"retry":[1.0,null]}}"#,
        r#"{"code":-32602,"message":"bad params"}"#,
        r#"{"code":-32042,"message":"url","data":{"elicitations":[]}}"#,
        r#"{"code":7,"message":""}"#,
    ] {
        let arguments = json!({ "error": error }).to_string();
        let mut reply = session.post(&call("1", "t", &arguments));
        assert_eq!(reply.status, 200);
        let body = reply.text().unwrap();
        let answer: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(answer["error"], serde_json::from_str::<Value>(error).unwrap(), "{body}");
    }
}

#[test]
fn res_03_a_server_that_is_silent_costs_its_own_time_only() {
    let odd = Odd::of(&["slow", "t"])
        .script(|request, _| match request.tool() {
            Some("slow") => Action::Hang,
            _ => Action::Usual,
        })
        .start();
    let (_gateway, mut session) = before_impatient(&odd);
    let started = Instant::now();
    assert!(session.call("slow", "{}").is_refusal());
    assert!(started.elapsed() < SOON / 4, "{:?}", started.elapsed());
    assert_eq!(session.call("t", "{}").text(), "t");
}
