//! HTTP-12, 13, 17: methods that are not there, lists that are probed, pings.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{gated, initialize, json_of, only_message, send, usual};
use crate::cases::{before, call};
use crate::support::eventually;
use crate::support::gateway::Gateway;
use crate::support::mcp::{LEGACY, Peer, Session};
use crate::support::odd::Odd;
use crate::support::{SOON, http};

#[test]
fn http_12_what_is_not_known_is_answered_and_ends() {
    let gateway = Gateway::start();
    let session = gateway.session(&gateway.add_key("full"));
    let unknown = r#"{"jsonrpc":"2.0","id":"u","method":"foo/bar","params":{"a":1}}"#;
    for accept in ["application/json, text/event-stream", "text/event-stream", "application/json"] {
        let mut reply = session.post_with(&[("Accept", accept)], unknown);
        assert_eq!(reply.status, 200, "{accept}");
        let answer = json_of(&mut reply);
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&json!("u"), &json!(-32601)),
            "{accept}: {answer}"
        );
    }
    for notice in ["notifications/foo", "foo/bar", "notifications/initialized"] {
        let mut reply = session.post(&format!(r#"{{"jsonrpc":"2.0","method":"{notice}"}}"#));
        assert_eq!((reply.status, reply.text().unwrap()), (202, String::new()), "{notice}");
    }
    // An answer to a question that nobody asked.
    let mut reply = session.post(r#"{"jsonrpc":"2.0","id":"made-up","result":{}}"#);
    assert_eq!((reply.status, reply.text().unwrap()), (202, String::new()));
    assert_eq!(session.clone().request("ping", "{}").result(), "{}", "the session goes on");
}

#[test]
fn http_13_lists_that_clients_probe_are_empty_and_the_rest_is_refused() {
    let odd = Odd::of(&["t"]).start();
    let (_gateway, mut session) = before(&odd);
    let hello = json_of(&mut session.post(&initialize("0", LEGACY)));
    let offered = &hello["result"]["capabilities"];
    assert_eq!(offered["tools"]["listChanged"], true, "{hello}");
    assert_eq!(offered.get("completions"), None, "{hello}");
    // What is said to be there answers its lists, and promises no news of what never changes.
    assert_eq!((&offered["resources"], &offered["prompts"]), (&json!({}), &json!({})), "{hello}");
    for (method, member) in [
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
        ("prompts/list", "prompts"),
    ] {
        for params in ["{}", r#"{"cursor":null}"#] {
            let result: Value =
                serde_json::from_str(session.request(method, params).result()).unwrap();
            assert_eq!(result, json!({ member: [] }), "{method}");
        }
    }
    assert!(offered.get("logging").is_some(), "{hello}");
    assert_eq!(session.request("logging/setLevel", r#"{"level":"info"}"#).result(), "{}");
    for method in ["completion/complete", "resources/subscribe"] {
        let error = session.request(method, "{}").error();
        assert_eq!(error.unwrap()["code"], -32601, "{method}");
    }
    for (method, params) in
        [("resources/read", r#"{"uri":"a:b"}"#), ("prompts/get", r#"{"name":"a"}"#)]
    {
        assert!(session.request(method, params).error().is_some(), "{method}");
    }
    assert_eq!(session.tool_names(), ["t"], "the session goes on");
}

#[test]
fn http_17_a_ping_is_answered_before_a_session_in_it_and_beside_a_call() {
    let gate = Arc::new(AtomicBool::new(false));
    let odd = gated(&gate);
    let gateway = Gateway::start();
    gateway.add_server(&odd.registration("odd"));
    let key = gateway.add_key("full").bearer();
    let ping = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;
    let pong = json!({"jsonrpc": "2.0", "id": "p", "result": {}});
    let mut early = http::send(gateway.address, "POST", "/mcp", &usual(&key, ""), ping).unwrap();
    assert_eq!((early.status, json_of(&mut early)), (200, pong.clone()), "before any session");

    let session = Session::open(gateway.address, &key);
    let other = session.clone();
    let running = std::thread::spawn(move || only_message(&mut other.post(&call("1", "t", "{}"))));
    eventually("the call", SOON, || (odd.calls("t") == 1).then_some(()));
    let started = Instant::now();
    for _ in 0..3 {
        assert_eq!(json_of(&mut session.post(ping)), pong);
        let without = r#"{"jsonrpc":"2.0","id":"p","method":"ping","params":{"_meta":{}}}"#;
        assert_eq!(json_of(&mut send(&session, "POST", &usual(&key, session.id()), without)), pong);
    }
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    assert!(!running.is_finished());
    gate.store(true, Ordering::SeqCst);
    assert!(running.join().unwrap().contains("result"));
}
