//! HTTP-05, 08, 09, 10: ids, batches, media types.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{initialize, json_of, only_message, send, usual};
use crate::cases::{before, call};
use crate::support::gateway::Gateway;
use crate::support::mcp::{LEGACY, Session};
use crate::support::odd::{Action, Answer, Odd};

#[derive(Deserialize)]
struct WithId<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
}

#[test]
fn http_05_an_id_comes_back_as_it_was_sent() {
    let odd = Odd::of(&["t", "fails"])
        .script(|request, _| match request.tool() {
            Some("fails") => Answer::error(request, r#"{"code":-32000,"message":"no"}"#).into(),
            _ => Action::Usual,
        })
        .start();
    let (_gateway, session) = before(&odd);
    let ids = [
        r#""init-1""#,
        r#""7""#,
        "7",
        "0",
        "-1",
        "9007199254740993",
        r#""9007199254740993""#,
        r#""""#,
        r#""a\u00e9\"b""#,
        r#""é🚀""#,
    ];
    for id in ids {
        let request = |method: &str, params: &str| {
            format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params},"id":{id}}}"#)
        };
        for (message, kind) in [
            (initialize(id, LEGACY), "result"),
            (request("tools/list", "{}"), "result"),
            (request("ping", "{}"), "result"),
            (call(id, "t", "{}"), "result"),
            (call(id, "fails", "{}"), "error"),
            (call(id, "t", "[]"), "error"),
            (request("no/such", "{}"), "error"),
            (request("tools/call", "{}"), "error"),
            (request("tools/list", r#"{"cursor":"bogus"}"#), "error"),
        ] {
            let answer = only_message(&mut session.post(&message));
            let back: WithId = serde_json::from_str(&answer).unwrap();
            assert_eq!(back.id.get(), id, "{message} gave {answer}");
            let answer: Value = serde_json::from_str(&answer).unwrap();
            assert!(answer.get(kind).is_some(), "{message} gave {answer}");
        }
    }
}

/// A session of the one version that has batches.
fn with_batches(session: &Session, key: &str) -> impl Fn(&str) -> (u16, Value) {
    let opening = initialize("1", "2025-03-26");
    let opened = send(session, "POST", &usual(key, ""), &opening);
    let id = opened.header("mcp-session-id").unwrap().to_owned();
    move |body| {
        let mut headers = usual(key, &id);
        headers.retain(|(name, _)| *name != "MCP-Protocol-Version");
        let mut reply = send(session, "POST", &headers, body);
        let text = reply.text().unwrap();
        (reply.status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }
}

#[test]
fn http_08_batches_of_the_version_that_has_them_are_answered_in_full() {
    let odd = Odd::of(&["t"]).start();
    let gateway = Gateway::start();
    gateway.add_server(&odd.registration("odd"));
    let key = gateway.add_key("full");
    let session = gateway.session(&key);
    let bearer = key.bearer();
    let batch = with_batches(&session, &bearer);
    let ping = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;
    let note = r#"{"jsonrpc":"2.0","method":"notifications/foo"}"#;
    let pong = json!({"jsonrpc": "2.0", "id": "p", "result": {}});

    let (status, answer) = batch("[]");
    assert_eq!((status, &answer["error"]["code"]), (400, &json!(-32600)), "{answer}");
    let (status, answer) = batch("[1]");
    assert_eq!((status, answer.as_array().unwrap().len()), (200, 1), "{answer}");
    assert_eq!(
        (&answer[0]["error"]["code"], &answer[0]["id"]),
        (&json!(-32600), &Value::Null),
        "{answer}"
    );
    assert_eq!(batch(&format!("[{ping},{ping}]")), (200, json!([pong, pong])));
    assert_eq!(batch(&format!("[{note}]")), (202, json!("")));
    let unknown = r#"{"jsonrpc":"2.0","id":5,"method":"foo/bar"}"#;
    let mixed = format!("[{ping},{note},1,{unknown},{}]", call("6", "t", "{}"));
    let (status, answer) = batch(&mixed);
    assert_eq!((status, answer.as_array().unwrap().len()), (200, 4), "{answer}");
    assert_eq!(answer[0], pong);
    assert_eq!(answer[1]["error"]["code"], -32600);
    assert_eq!((&answer[2]["id"], &answer[2]["error"]["code"]), (&json!(5), &json!(-32601)));
    assert_eq!(
        (&answer[3]["id"], &answer[3]["result"]["content"][0]["text"]),
        (&json!(6), &json!("t"))
    );
}

#[test]
fn http_09_answers_come_in_a_form_that_the_client_takes() {
    let odd = Odd::of(&["t"]).start();
    let (_gateway, session) = before(&odd);
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let (json, events) = ("application/json", "text/event-stream");
    for (accept, forms) in [
        ("application/json", vec![json]),
        ("Application/JSON", vec![json]),
        ("application/json;charset=utf-8", vec![json]),
        ("text/event-stream", vec![events]),
        ("text/html, text/event-stream;q=0.1", vec![events]),
        ("*/*", vec![json, events]),
        ("", vec![json, events]),
        ("application/json;q=0.9, text/event-stream", vec![json, events]),
        ("application/json; text/event-stream", vec![json, events]),
        ("text/html, application/*;q=0.8", vec![json]),
    ] {
        let accepts = [("Accept", accept)];
        let headers = if accept.is_empty() { &[][..] } else { &accepts[..] };
        for message in [ping.to_owned(), call("1", "t", "{}")] {
            let mut reply = session.post_with(headers, &message);
            assert_eq!(reply.status, 200, "{accept}: {message}");
            let kind = reply.header("content-type").unwrap().to_owned();
            assert!(forms.contains(&kind.as_str()), "{accept}: {message} in {kind}");
            assert!(json_of(&mut reply)["result"].is_object(), "{accept}: {message}");
        }
    }
    for accept in ["text/html", "application/xml", "image/*"] {
        let mut reply = session.post_with(&[("Accept", accept)], ping);
        assert_eq!(reply.status, 406, "{accept}");
        assert!(json_of(&mut reply)["error"]["message"].as_str().unwrap().contains("Accept"));
    }
}

#[test]
fn http_10_json_is_known_by_its_media_type_alone() {
    let gateway = Gateway::start();
    let key = gateway.add_key("full").bearer();
    let session = Session::open(gateway.address, &key);
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for (kind, status) in [
        ("application/json; charset=utf-8", 200),
        ("application/json;charset=UTF-8", 200),
        ("Application/JSON", 200),
        ("text/plain", 415),
        ("text/json", 415),
        ("application/jsonp", 415),
        ("application/x-www-form-urlencoded", 415),
        ("", 415),
    ] {
        let mut headers = usual(&key, session.id());
        headers.retain(|(name, _)| *name != "Content-Type");
        if !kind.is_empty() {
            headers.push(("Content-Type", kind));
        }
        let mut reply = send(&session, "POST", &headers, ping);
        assert_eq!(reply.status, status, "{kind}");
        let answer = json_of(&mut reply);
        if status == 415 {
            let why = answer["error"]["message"].as_str().unwrap();
            assert!(why.contains("application/json"), "{kind}: {answer}");
            assert!(answer["error"]["code"].is_i64(), "{kind}: {answer}");
        }
    }
}
