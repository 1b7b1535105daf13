//! SES: sessions and reconnects.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::before;
use crate::api::NOWHERE;
use crate::support::gateway::Gateway;
use crate::support::mcp::Peer;
use crate::support::odd::{Action, Answer, Odd};
use crate::support::{SOON, eventually};

/// Long enough for a few attempts with growing pauses between them.
const RECONNECTED: Duration = Duration::from_secs(40);

fn is_status(gateway: &Gateway, name: &str, status: &str) -> Option<Value> {
    Some(gateway.server(name)).filter(|server| server["status"] == status)
}

#[test]
fn ses_01_a_forgotten_session_is_opened_anew_for_that_server_alone() {
    let (a, b) = (Odd::of(&["a"]).start(), Odd::of(&["b"]).start());
    let gateway = Gateway::start();
    gateway.add_server(&a.registration("a"));
    gateway.add_server(&b.registration("b"));
    let mut session = gateway.session(&gateway.add_key("full"));
    assert_eq!(session.call("a", "{}").text(), "a");
    assert_eq!(session.call("b", "{}").text(), "b");
    for restart in 1..=3 {
        let (opened, ran) = (b.count("initialize"), a.ran("a"));
        a.forget_sessions();
        a.close_connections();
        let answer = session.call("a", "{}");
        assert_eq!((answer.is_refusal(), answer.text()), (false, "a".into()), "restart {restart}");
        assert_eq!(a.ran("a"), ran + 1, "restart {restart}: run once");
        assert_eq!(session.call("b", "{}").text(), "b");
        assert_eq!(b.count("initialize"), opened, "restart {restart}: the other is left alone");
    }
    for opening in a.requests(|request| request.rpc() == "initialize") {
        assert_eq!(opening.header("mcp-session-id"), None);
    }
}

#[test]
fn ses_05_attempts_never_stop_and_a_healthy_time_resets_their_pace() {
    let mut odd = Odd::of(&["t"]).start();
    let (gateway, mut session) = before(&odd);
    odd.refuse();
    // A call meets the trouble, so that nobody has to wait for the next look at the server.
    assert!(session.call("t", "{}").is_refusal());
    eventually("pauses that grow", RECONNECTED, || {
        let pause = gateway.server("odd")["retry_in"].as_u64()?;
        (pause > 4).then_some(())
    });
    odd.accept();
    eventually("a server that is connected again", RECONNECTED, || {
        is_status(&gateway, "odd", "connected")
    });
    let first = session.call("t", "{}");
    assert!(!first.is_refusal(), "the first call after the return: {first:?}");
    let pings = odd.count("ping");
    eventually("a healthy time", SOON, || (odd.count("ping") > pings).then_some(()));

    odd.refuse();
    assert!(session.call("t", "{}").is_refusal());
    let down = eventually("a server that is down", SOON, || is_status(&gateway, "odd", "down"));
    assert!(down["retry_in"].as_u64().unwrap() <= 2, "the first pause is a short one: {down}");
}

#[test]
fn ses_06_refused_credentials_are_told_and_not_tried_at_the_apps_pace() {
    let locked = Arc::new(AtomicBool::new(false));
    let lock = Arc::clone(&locked);
    let odd = Odd::of(&["t"])
        .script(move |_, _| match lock.load(Ordering::SeqCst) {
            true => Answer::empty(401).into(),
            false => Action::Usual,
        })
        .start();
    let (gateway, mut session) = before(&odd);
    assert!(!session.call("t", "{}").is_refusal());
    locked.store(true, Ordering::SeqCst);
    assert!(session.call("t", "{}").is_refusal());
    let server = eventually("a server that is no longer called connected", SOON, || {
        Some(gateway.server("odd")).filter(|server| server["retry_in"].is_u64())
    });
    assert_ne!(server["status"], "connected");
    assert!(server["error"].as_str().unwrap().contains("401"), "{server}");
    assert!(server["retry_in"].as_u64().unwrap() >= 40, "one attempt a minute: {server}");

    let requests = odd.total();
    for _ in 0..20 {
        assert_eq!(session.tool_names(), ["t"]);
        assert!(session.call("t", "{}").is_refusal());
    }
    assert_eq!(odd.total(), requests, "apps do not drive the attempts");
}

#[test]
fn ses_07_a_session_that_is_lost_at_once_is_opened_once_more_per_call() {
    let odd = Odd::of(&["t"])
        .script(|request, _| match request.tool() {
            Some(_) => {
                let error = r#"{"code":-32001,"message":"Session not found"}"#;
                Answer::error(request, error).with_status(404).into()
            }
            None => Action::Usual,
        })
        .start();
    let (gateway, mut session) = before(&odd);
    for round in 1..=5 {
        let (calls, opened) = (odd.calls("t"), odd.count("initialize"));
        assert!(session.call("t", "{}").is_refusal());
        assert_eq!(odd.calls("t") - calls, 2, "call {round}: sent, and sent once more");
        assert!(odd.count("initialize") - opened <= 2, "call {round}");
    }
    eventually("sessions given back", SOON, || (odd.sessions() <= 2).then_some(()));
    assert!(gateway.server("odd")["sessions"].as_u64().unwrap() <= 1);
}

#[test]
fn ses_07_a_server_that_forgets_everything_at_once_is_paced() {
    let odd = Odd::of(&["t"])
        .script(|request, _| match request.rpc() {
            "initialize" => Action::Usual,
            _ => Answer::empty(404).into(),
        })
        .start();
    let gateway = Gateway::start();
    let server = gateway.post("/upstreams", &odd.registration("odd"));
    assert_eq!(server["status"], "down", "{server}");
    assert!(odd.count("initialize") <= 3, "{} sessions for one attempt", odd.count("initialize"));
}

#[test]
fn ses_08_a_changed_address_that_fails_leaves_nothing_of_the_old_one() {
    let odd = Odd::of(&["t"]).start();
    let (gateway, mut session) = before(&odd);
    assert_eq!(session.call("t", "{}").text(), "t");
    let (status, server) = gateway.api("PATCH", "/upstreams/odd", &json!({"url": NOWHERE}));
    assert_eq!((status, &server["status"]), (200, &json!("down")), "{server}");
    let posts = |odd: &Odd| odd.requests(|request| request.method == "POST").len();
    let sent = posts(&odd);
    for _ in 0..3 {
        let answer = session.call("t", "{}");
        assert!(answer.is_refusal() && answer.text().contains("odd"), "{answer:?}");
        assert!(answer.text().contains("down"), "{answer:?}");
    }
    assert_eq!(posts(&odd), sent, "something reached the old address");
}

#[test]
fn ses_09_a_ping_that_is_refused_is_a_sign_of_life() {
    let kinds = [(200, -32600), (200, -32601), (400, -32600)];
    let servers = kinds.map(|(status, code)| {
        Odd::of(&["t", "nonsense"])
            .script(move |request, _| match (request.rpc(), request.tool()) {
                ("ping", _) => {
                    let error = format!(r#"{{"code":{code},"message":"no ping here"}}"#);
                    Answer::error(request, &error).with_status(status).into()
                }
                (_, Some("nonsense")) => Answer::json("nonsense").into(),
                _ => Action::Usual,
            })
            .start()
    });
    for odd in &servers {
        let (gateway, mut session) = before(odd);
        // An answer that makes no sense has the gateway look at the server at once.
        assert!(session.call("nonsense", "{}").is_refusal());
        eventually("a ping", SOON, || (odd.count("ping") > 0).then_some(()));
        let opened = odd.count("initialize");
        for _ in 0..5 {
            assert_eq!(session.call("t", "{}").text(), "t");
            assert_eq!(gateway.server("odd")["status"], "connected");
        }
        assert_eq!(odd.count("initialize"), opened, "the link was opened anew");
    }
}

#[test]
fn ses_10_a_connection_that_the_server_closed_meanwhile_costs_no_call() {
    let read =
        r#"{"name":"read","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}"#;
    let odd = Odd::of(&[read, "write"]).start();
    let (_gateway, mut session) = before(&odd);
    for round in 1..=5 {
        for tool in ["read", "write"] {
            odd.close_connections();
            eventually("closed connections", SOON, || (odd.connections() == 0).then_some(()));
            let answer = session.call(tool, "{}");
            assert!(!answer.is_refusal(), "round {round}: {answer:?}");
            assert_eq!((odd.ran(tool), odd.calls(tool)), (round, round), "{tool}");
        }
    }
}

/// A server that holds `initialize` until the gate opens.
fn gated(gate: &Arc<AtomicBool>, tools: &[&str]) -> Odd {
    let gate = Arc::clone(gate);
    Odd::of(tools)
        .script(move |_, _| {
            let gate = Arc::clone(&gate);
            match gate.load(Ordering::SeqCst) {
                true => Action::Usual,
                false => Action::talk(move |wire| {
                    wire.until(|| gate.load(Ordering::SeqCst));
                    false
                }),
            }
        })
        .start()
}

#[test]
fn ses_11_what_was_known_is_listed_while_servers_start() {
    let gate = Arc::new(AtomicBool::new(true));
    let servers = ["a", "b", "c"].map(|name| (name, gated(&gate, &[name])));
    let mut gateway = Gateway::start();
    for (name, odd) in &servers {
        gateway.add_server(&odd.registration(name));
    }
    let key = gateway.add_key("full");
    let before = gateway.session(&key).tools();
    assert_eq!(before.len(), 3);
    gateway.stop();
    gate.store(false, Ordering::SeqCst);

    let started = Instant::now();
    gateway.start_again();
    let mut session = gateway.session(&key);
    assert_eq!(session.tools(), before, "the last known list");
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    for (name, _) in &servers {
        assert_eq!(gateway.server(name)["status"], "connecting");
    }
    let mut stream = session.listen();
    servers[0].1.set_tools(&["a", "a2"]);
    gate.store(true, Ordering::SeqCst);
    let news = stream.event().unwrap().expect("news of what changed meanwhile");
    assert!(news.data.contains("notifications/tools/list_changed"), "{news:?}");
    for tool in ["a", "b", "c"] {
        eventually("an answer of each", RECONNECTED, || {
            (!session.call(tool, "{}").is_refusal()).then_some(())
        });
    }
    assert!(session.tool_names().contains(&"a2".to_owned()));
}

#[test]
fn ses_11_a_new_server_that_still_starts_is_told_of_and_announced() {
    let gate = Arc::new(AtomicBool::new(false));
    let odd = gated(&gate, &["t"]);
    let gateway = Gateway::start();
    let mut session = gateway.session(&gateway.add_key("full"));
    let mut stream = session.listen();
    std::thread::scope(|scope| {
        let adding = scope.spawn(|| gateway.post("/upstreams", &odd.registration("odd")));
        eventually("a server that is connecting", SOON, || {
            let servers = gateway.get("/upstreams");
            (servers[0]["status"] == "connecting").then_some(())
        });
        assert_eq!(session.tool_names(), Vec::<String>::new());
        gate.store(true, Ordering::SeqCst);
        let news = stream.event().unwrap().expect("news of the new server");
        assert!(news.data.contains("notifications/tools/list_changed"), "{news:?}");
        adding.join().unwrap();
    });
    assert_eq!(session.tool_names(), ["t"]);
}
