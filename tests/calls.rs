//! What can happen while a call runs: progress, cancellation, other calls, a lost client. Each for
//! a server of either era.

use std::time::Instant;

use serde_json::{Value, json};

use crate::support::gateway::Gateway;
use crate::support::http::Reply;
use crate::support::mcp::{Peer, Session};
use crate::support::peers::HttpServer;

/// A gateway with one server of that era behind it, and a session of a client with sessions.
fn setup(era: &str) -> (HttpServer, Gateway, Session) {
    let server = HttpServer::typescript("ts", era);
    let gateway = Gateway::start();
    gateway.add_server(&server.registration());
    let session = gateway.session(&gateway.add_key("full"));
    (server, gateway, session)
}

/// Starts a call of `slow`; its answer comes on the reply.
fn slow(session: &Session, id: &str, step_ms: u32, meta: &str) -> Reply {
    session.post(&format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"slow","arguments":{{"steps":3,"step_ms":{step_ms}}}{meta}}}}}"#
    ))
}

#[test]
fn bid_01_progress_has_the_clients_token_or_does_not_come() {
    for era in ["legacy", "modern"] {
        let (_server, _gateway, session) = setup(era);
        let mut reply = slow(&session, "\"c-1\"", 20, r#","_meta":{"progressToken":"mine"}"#);
        assert!(reply.is_event_stream(), "{era}");
        let mut progress = Vec::new();
        loop {
            let event = reply.event().unwrap().expect("an answer before the end");
            let message: Value = serde_json::from_str(&event.data).unwrap();
            if message["id"] == "c-1" {
                assert_eq!(message["result"]["content"][0]["text"], "3 steps", "{era}");
                break;
            }
            assert_eq!(message["method"], "notifications/progress", "{era}");
            assert_eq!(message["params"]["progressToken"], "mine", "{era}");
            progress.push(message["params"]["progress"].as_u64().unwrap());
        }
        assert_eq!(progress, [1, 2, 3], "{era}");
        assert_eq!(reply.event().unwrap(), None, "{era}: the stream ends with the answer");

        let mut plain = slow(&session, "2", 1, "");
        assert!(!plain.is_event_stream(), "{era}: nothing to say before the answer");
        assert!(plain.text().unwrap().contains("3 steps"), "{era}");
    }
}

#[test]
fn bid_02_a_cancelled_call_gets_no_answer() {
    for era in ["legacy", "modern"] {
        let (_server, _gateway, mut session) = setup(era);
        let other = session.clone();
        let started = Instant::now();
        let call = std::thread::spawn(move || {
            let mut reply = slow(&other, "7", 1000, r#","_meta":{"progressToken":1}"#);
            let mut messages = Vec::new();
            while let Ok(Some(event)) = reply.event() {
                messages.push(event.data);
            }
            messages
        });
        // The first step takes a second; until then the call is noted, and it is cancelled.
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
        while !call.is_finished() && started.elapsed().as_millis() < 2500 {
            assert_eq!(session.post(&cancel.to_string()).status, 202);
            // ARG-06: other requests of the session are answered meanwhile.
            assert_eq!(session.request("ping", "{}").result(), "{}");
        }
        let messages = call.join().unwrap();
        assert!(
            !messages.iter().any(|message| message.contains("\"result\"")),
            "{era}: {messages:?}"
        );
    }
}

#[test]
fn arg_06_a_slow_call_does_not_hold_up_a_fast_one() {
    let (_server, _gateway, mut session) = setup("dual");
    let other = session.clone();
    let call = std::thread::spawn(move || slow(&other, "7", 700, "").text().unwrap());
    let started = Instant::now();
    assert_eq!(session.call("whoami", "{}").text(), "ts");
    assert!(!call.is_finished(), "the fast call took {:?}", started.elapsed());
    assert!(call.join().unwrap().contains("3 steps"));
}
