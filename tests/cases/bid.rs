//! BID: both directions: progress, cancellation, and what servers ask.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{LIST_CHANGED, before, call, call_with_token, progress};
use crate::support::http::Reply;
use crate::support::mcp::Peer;
use crate::support::odd::{Action, Odd, Request};
use crate::support::peers::Local;
use crate::support::{SOON, eventually};

/// The messages of a reply, to its end.
fn messages(reply: &mut Reply) -> Vec<Value> {
    if !reply.is_event_stream() {
        return vec![serde_json::from_str(&reply.text().unwrap()).unwrap()];
    }
    let events = std::iter::from_fn(|| reply.event().unwrap());
    let data = events.map(|event| event.data).filter(|data| !data.is_empty());
    data.map(|data| serde_json::from_str(&data).unwrap()).collect()
}

#[test]
fn bid_01_progress_that_nobody_asked_for_is_dropped() {
    let odd = Odd::of(&["t"])
        .script(|request, state| {
            if request.tool().is_none() {
                return Action::Usual;
            }
            let (token, answer) = (request.token(), state.usual(request).message());
            Action::events(move |wire| {
                for token in ["1", r#""made-up""#, r#""mine""#, token.as_str()] {
                    wire.event(&progress(token, 1, "invented"));
                }
                wire.event(&answer);
            })
        })
        .start();
    let (_gateway, session) = before(&odd);
    let plain = messages(&mut session.post(&call("1", "t", "{}")));
    assert_eq!(plain.len(), 1, "{plain:?}");
    assert_eq!(odd.requests(|request| request.tool().is_some())[0].token(), "null");
    let asked = messages(&mut session.post(&call_with_token("2", "t", "{}", r#""mine""#)));
    assert!(asked.len() >= 2, "{asked:?}");
    for message in &asked[..asked.len() - 1] {
        assert_eq!(message["params"]["progressToken"], "mine", "{asked:?}");
    }
}

/// A tool that runs until its connection or the gate says otherwise.
fn running(odd_gate: &Arc<AtomicBool>) -> Odd {
    let gate = Arc::clone(odd_gate);
    Odd::of(&["t"])
        .script(move |request, state| {
            if request.tool().is_none() {
                return Action::Usual;
            }
            let (gate, answer) = (Arc::clone(&gate), state.usual(request).message());
            Action::events(move |wire| {
                wire.until(|| gate.load(Ordering::SeqCst));
                wire.event(&answer);
            })
        })
        .start()
}

fn cancelled(odd: &Odd) -> Vec<Request> {
    odd.requests(|request| request.rpc() == "notifications/cancelled")
}

#[test]
fn bid_02_the_server_is_told_once_of_a_cancelled_call() {
    let gate = Arc::default();
    let odd = running(&gate);
    let (_gateway, session) = before(&odd);
    let other = session.clone();
    let waiting = std::thread::spawn(move || messages(&mut other.post(&call("\"c\"", "t", "{}"))));
    let asked = eventually("the call", SOON, || odd.requests(|r| r.tool().is_some()).pop());
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "c"}});
    for _ in 0..3 {
        assert_eq!(session.post(&cancel.to_string()).status, 202);
    }
    assert_eq!(waiting.join().unwrap(), Vec::<Value>::new(), "no answer");
    eventually("the notice", SOON, || (!cancelled(&odd).is_empty()).then_some(()));
    gate.store(true, Ordering::SeqCst);
    // Another call passes after it, so a second notice would be here.
    assert!(session.post(&call("5", "t", "{}")).text().unwrap().contains("result"));
    let told = cancelled(&odd);
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(&told[0].body["params"]["requestId"], asked.id());
}

#[test]
fn bid_02_a_lost_connection_is_no_cancellation() {
    let gate = Arc::default();
    let odd = running(&gate);
    let (gateway, session) = before(&odd);
    let line = call("1", "t", "{}");
    let headers = session.post_raw(&line);
    let socket = std::net::TcpStream::connect(gateway.address).unwrap();
    std::io::Write::write_all(&mut &socket, headers.as_bytes()).unwrap();
    eventually("the call", SOON, || (odd.calls("t") == 1).then_some(()));
    drop(socket);
    // Longer than the gateway needs to notice: it answers others meanwhile.
    for _ in 0..20 {
        assert_eq!(session.clone().request("ping", "{}").result(), "{}");
        assert_eq!(gateway.server("odd")["status"], "connected");
    }
    gate.store(true, Ordering::SeqCst);
    assert!(session.post(&call("5", "t", "{}")).text().unwrap().contains("result"));
    assert_eq!(cancelled(&odd).len(), 0);
}

#[test]
fn bid_04_an_event_is_passed_on_at_once() {
    let sent: Arc<Mutex<Option<Instant>>> = Arc::default();
    let (open, written) = (Arc::new(AtomicBool::new(false)), Arc::clone(&sent));
    let gate = Arc::clone(&open);
    let odd = Odd::of(&["t"])
        .script(move |request, state| {
            if request.tool().is_none() {
                return Action::Usual;
            }
            let (token, answer) = (request.token(), state.usual(request).message());
            let (gate, written) = (Arc::clone(&gate), Arc::clone(&written));
            Action::events(move |wire| {
                *written.lock().unwrap() = Some(Instant::now());
                wire.event(&progress(&token, 1, "first"));
                wire.until(|| gate.swap(false, Ordering::SeqCst));
                wire.event(&answer);
            })
        })
        .start();
    let (_gateway, session) = before(&odd);
    let mut best = Duration::MAX;
    for round in 0..5 {
        let mut reply = session.post(&call_with_token("1", "t", "{}", "7"));
        let first = reply.event().unwrap().expect("an event while the server waits");
        let taken = sent.lock().unwrap().expect("it was sent").elapsed();
        assert!(first.data.contains("first"), "{first:?}");
        open.store(true, Ordering::SeqCst);
        assert!(messages(&mut reply)[0]["result"].is_object(), "round {round}");
        best = best.min(taken);
    }
    assert!(best < Duration::from_millis(100), "the first event took {best:?}");
}

#[test]
fn bid_05_nothing_meant_for_one_reaches_another() {
    let odd = Odd::of(&["t"])
        .script(|request, state| {
            if request.tool().is_none() {
                return Action::Usual;
            }
            let (token, answer) = (request.token(), state.usual(request).message());
            let who = request.arguments()["who"].as_str().unwrap().to_owned();
            let log = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "error", "data": who}});
            Action::events(move |wire| {
                for step in 0..3 {
                    wire.event(&progress(&token, step, &who));
                    wire.event(&log.to_string());
                }
                wire.event(&answer);
            })
        })
        .start();
    let (gateway, _) = before(&odd);
    std::thread::scope(|scope| {
        for app in 0..2 {
            let mut session = gateway.session(&gateway.add_key("full"));
            session.request("logging/setLevel", r#"{"level":"debug"}"#);
            for part in 0..2 {
                let session = session.clone();
                scope.spawn(move || {
                    for number in 0..50 {
                        let who = format!("{app}-{part}-{number}");
                        // The same ids and tokens in both apps.
                        let id = format!("\"{part}-{number}\"");
                        let arguments = json!({ "who": who }).to_string();
                        let body = call_with_token(&id, "t", &arguments, &id);
                        let all = messages(&mut session.post(&body));
                        assert_eq!(all.len(), 7, "{who}: {all:?}");
                        for message in &all[..6] {
                            let params = &message["params"];
                            let said = params.get("message").or(params.get("data"));
                            assert_eq!(said, Some(&json!(who)), "{all:?}");
                        }
                    }
                });
            }
        }
    });
}

#[test]
fn bid_06_progress_after_the_answer_is_dropped() {
    let odd = Odd::of(&["t"])
        .with_stream()
        .script(|request, state| {
            if request.tool().is_none() {
                return Action::Usual;
            }
            let (token, answer) = (request.token(), state.usual(request).message());
            Action::events(move |wire| {
                wire.event(&answer);
                wire.event(&progress(&token, 2, "late"));
                wire.state.say(&progress(&token, 3, "later"));
                wire.state.set_tools(&["t", "u"]);
                wire.state.say(LIST_CHANGED);
            })
        })
        .start();
    let (_gateway, session) = before(&odd);
    let mut stream = session.listen();
    eventually("the link's stream", SOON, || {
        (!odd.requests(|request| request.method == "GET").is_empty()).then_some(())
    });
    let all = messages(&mut session.post(&call_with_token("1", "t", "{}", "7")));
    assert_eq!(all.len(), 1, "{all:?}");
    assert!(all[0]["result"].is_object());
    // What came after the answer on the server's own stream is not on ours.
    let first = stream.event().unwrap().expect("the change that came last").data;
    assert!(first.contains("list_changed"), "{first}");
    assert!(session.post(&call("2", "u", "{}")).text().unwrap().contains("result"));
}

/// Whether the gateway answered the server's ping of this id, with an empty result.
fn answered(requests: &[Request], id: &str) -> bool {
    let answer = requests.iter().find(|request| request.id() == id && request.rpc().is_empty());
    answer.is_some_and(|answer| answer.body["result"] == json!({}))
}

#[test]
fn bid_07_a_ping_of_the_server_is_answered_while_a_call_runs() {
    let odd = Odd::of(&["t"])
        .with_stream()
        .script(|request, state| {
            if request.tool().is_none() {
                return Action::Usual;
            }
            let answer = state.usual(request).message();
            Action::events(move |wire| {
                let state = Arc::clone(&wire.state);
                wire.event(r#"{"jsonrpc":"2.0","id":"p-1","method":"ping"}"#);
                wire.state.say(r#"{"jsonrpc":"2.0","id":"g-1","method":"ping"}"#);
                for id in ["p-1", "g-1"] {
                    if !wire.until(|| answered(&state.requests(|_| true), id)) {
                        return;
                    }
                }
                wire.event(&answer);
            })
        })
        .start();
    let (gateway, mut session) = before(&odd);
    eventually("the link's stream", SOON, || {
        (!odd.requests(|request| request.method == "GET").is_empty()).then_some(())
    });
    assert_eq!(session.call("t", "{}").text(), "t");

    gateway.add_server(&Local::odd().registration());
    // Beside it stands that the server was added (P55).
    let text = session.call("ask", "{}").text();
    let said: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!((&said["id"], &said["result"]), (&json!("p-1"), &json!({})), "{said}");
}
