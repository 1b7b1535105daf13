//! ARG: arguments, and what a call may and may not do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::{before, call, call_with_token, progress, result};
use crate::support::gateway::Gateway;
use crate::support::mcp::Peer;
use crate::support::odd::{Action, Answer, Odd};
use crate::support::{SOON, eventually};

#[test]
fn arg_02_only_what_reads_is_run_again_when_its_answer_is_lost() {
    let tool = |name: &str, annotations: &str| {
        format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}}{annotations}}}"#)
    };
    let tools = [
        tool("reads", r#","annotations":{"readOnlyHint":true}"#),
        tool("writes", r#","annotations":{"readOnlyHint":false}"#),
        tool("says_nothing", ""),
    ];
    let tools: Vec<&str> = tools.iter().map(String::as_str).collect();
    // Runs, and cuts the connection before the first answer.
    let odd = Odd::of(&tools)
        .script(|request, state| match request.tool() {
            Some(tool) if state.calls(tool) == 1 => Action::Close,
            _ => Action::Usual,
        })
        .start();
    let (_gateway, mut session) = before(&odd);
    for tool in ["writes", "says_nothing"] {
        let answer = session.call(tool, "{}");
        assert!(answer.is_refusal(), "{answer:?}");
        let text = answer.text().to_lowercase();
        assert!(text.contains("unknown") && text.contains("may or may not"), "{answer:?}");
        assert_eq!(odd.calls(tool), 1, "{tool} was run again");
    }
    let answer = session.call("reads", "{}");
    assert!(!answer.is_refusal(), "{answer:?}");
    assert_eq!((answer.text().as_str(), odd.calls("reads")), ("reads", 2));
}

#[test]
fn arg_05_calls_have_a_time_of_their_own() {
    let odd = Odd::of(&["silent", "talks", "never"])
        .script(|request, state| {
            let (token, answer) = (request.token(), state.usual(request));
            match request.tool() {
                Some("silent") => Action::talk(move |wire| {
                    pause(Duration::from_millis(900));
                    wire.answer(&answer);
                    true
                }),
                Some("talks") => Action::events(move |wire| {
                    for step in 0..8 {
                        pause(Duration::from_millis(400));
                        wire.event(&progress(&token, step, "on it"));
                    }
                    wire.event(&answer.message());
                }),
                Some("never") => Action::Hang,
                _ => Action::Usual,
            }
        })
        .start();
    let gateway = Gateway::start();
    let mut registration = odd.registration("odd");
    registration["timeout_ms"] = json!(300);
    registration["call_timeout_ms"] = json!(1500);
    gateway.add_server(&registration);
    let mut session = gateway.session(&gateway.add_key("full"));
    assert_eq!(session.call("silent", "{}").text(), "silent", "`timeout_ms` is not for calls");

    let mut reply = session.post(&call_with_token("8", "talks", "{}", "1"));
    let messages: Vec<_> = std::iter::from_fn(|| reply.event().unwrap()).collect();
    let last = &messages.last().unwrap().data;
    assert!(last.contains("\"result\"") && last.contains("talks"), "progress gives time: {last}");

    let answer = session.call("never", "{}");
    assert!(answer.is_refusal() && answer.text().contains("did not answer"), "{answer:?}");
    let asked = odd.requests(|request| request.tool() == Some("never")).remove(0);
    eventually("the server told to stop", SOON, || {
        let told = |id| cancelled(&odd) == [id];
        told(asked.id().clone()).then_some(())
    });
}

/// Lets real time pass: what is tested here is a time limit.
fn pause(time: Duration) {
    let started = std::time::Instant::now();
    while started.elapsed() < time {
        std::thread::park_timeout(time.saturating_sub(started.elapsed()));
    }
}

/// The ids of cancelled requests, as the server was told.
fn cancelled(odd: &Odd) -> Vec<serde_json::Value> {
    let told = odd.requests(|request| request.rpc() == "notifications/cancelled");
    told.iter().map(|request| request.body["params"]["requestId"].clone()).collect()
}

#[test]
fn arg_06_a_slow_call_holds_up_neither_a_fast_one_nor_a_ping() {
    let open = Arc::new(AtomicBool::new(false));
    let gate = Arc::clone(&open);
    let odd = Odd::of(&["slow", "fast"])
        .script(move |request, state| match request.tool() {
            Some("slow") => {
                let (gate, answer) = (Arc::clone(&gate), state.usual(request));
                Action::talk(move |wire| {
                    wire.until(|| gate.load(Ordering::SeqCst));
                    wire.answer(&answer);
                    true
                })
            }
            _ => Action::Usual,
        })
        .start();
    let (_gateway, mut session) = before(&odd);
    let other = session.clone();
    let slow = std::thread::spawn(move || other.post(&call("9", "slow", "{}")).text().unwrap());
    eventually("the slow call", SOON, || (odd.calls("slow") == 1).then_some(()));
    assert_eq!(session.call("fast", "{}").text(), "fast");
    assert_eq!(session.request("ping", "{}").result(), "{}");
    assert!(!slow.is_finished());
    open.store(true, Ordering::SeqCst);
    assert!(slow.join().unwrap().contains("slow"));
}

#[test]
fn arg_07_arguments_are_an_object_or_nothing() {
    let odd = Odd::of(&["t"])
        .script(|request, _| match request.tool() {
            Some(_) => Answer::text(request, &request.arguments().to_string()).into(),
            None => Action::Usual,
        })
        .start();
    let (_gateway, mut session) = before(&odd);
    for arguments in ["[]", "5", r#""{}""#, "true"] {
        let answer = session.call("t", arguments);
        assert_eq!(answer.error().unwrap()["code"], -32602, "{arguments}");
        assert!(answer.0.contains("arguments"), "what to send: {answer:?}");
    }
    assert_eq!(odd.calls("t"), 0, "something reached the server");
    for params in
        [r#"{"name":"t","arguments":null}"#, r#"{"name":"t"}"#, r#"{"name":"t","arguments":{}}"#]
    {
        assert_eq!(session.request("tools/call", params).text(), "{}", "{params}");
    }
}

/// A tool that answers with the arguments that its server got, and what came back for these.
fn mended(properties: &str, sent: &str) -> (bool, Value) {
    let tool =
        format!(r#"{{"name":"t","inputSchema":{{"type":"object","properties":{properties}}}}}"#);
    let odd = Odd::of(&[&tool])
        .script(|request, _| match request.tool() {
            Some(_) => {
                let got = request.arguments().to_string();
                let text = serde_json::to_string(&got).unwrap();
                let result = format!(r#"{{"content":[{{"type":"text","text":{text}}}]}}"#);
                Answer::result(request, &result).into()
            }
            None => Action::Usual,
        })
        .start();
    let (_gateway, mut session) = before(&odd);
    let answer = session.call("t", sent);
    let value = result(&answer);
    let text = value["content"][0]["text"].as_str().unwrap_or_default();
    (value["isError"] == true, serde_json::from_str(text).unwrap_or_else(|_| text.into()))
}

/// The rest of the table is `src/coach/tests/slips.jsonl`; here, what reaches a server.
fn check_mended(properties: &str, cases: &[(&str, Option<&str>)]) {
    for (sent, expect) in cases {
        let (refused, got) = mended(properties, sent);
        match expect {
            None => assert!(refused, "{sent} was sent as {got}"),
            Some(expect) => {
                let expect: Value = serde_json::from_str(expect).unwrap();
                assert_eq!((refused, got), (false, expect), "{sent}");
            }
        }
    }
}

#[test]
fn arg_01_lists_and_objects_written_as_text() {
    let properties = r#"{"tags":{"type":"array","items":{"type":"string"}},"config":{"type":"object"},"maybe":{"anyOf":[{"type":"array","items":{"type":"integer"}},{"type":"null"}]}}"#;
    check_mended(
        properties,
        &[
            (r#"{"tags":"[\"a\",\"b\"]"}"#, Some(r#"{"tags":["a","b"]}"#)),
            (r#"{"config":"{\"x\":1}"}"#, Some(r#"{"config":{"x":1}}"#)),
            (r#"{"maybe":"[1,2]"}"#, Some(r#"{"maybe":[1,2]}"#)),
            (r#"{"config":"[1]"}"#, None),
        ],
    );
}

#[test]
fn arg_03_numbers_and_booleans_written_as_text() {
    let properties = r#"{"x":{"type":"integer"},"b":{"type":"boolean"}}"#;
    check_mended(
        properties,
        &[
            (r#"{"x":"448"}"#, Some(r#"{"x":448}"#)),
            (r#"{"x":"1e3"}"#, Some(r#"{"x":1000}"#)),
            (r#"{"x":"5px"}"#, None),
            (r#"{"x":"NaN"}"#, None),
            (r#"{"b":"FALSE"}"#, Some(r#"{"b":false}"#)),
            (r#"{"b":"no"}"#, None),
        ],
    );
}

#[test]
fn arg_04_null_and_what_may_be_null() {
    let properties =
        r#"{"count":{"anyOf":[{"type":"integer"},{"type":"null"}]},"opt":{"type":"string"}}"#;
    check_mended(
        properties,
        &[
            (r#"{"count":"42"}"#, Some(r#"{"count":42}"#)),
            (r#"{"opt":null}"#, Some("{}")),
            (r#"{"count":null}"#, Some(r#"{"count":null}"#)),
        ],
    );
}
