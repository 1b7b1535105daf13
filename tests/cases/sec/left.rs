//! SEC-04: sessions that are opened and left.

use serde_json::json;

use super::metric;
use crate::cases::before;
use crate::support::gateway::{Gateway, Key};
use crate::support::mcp::{Peer, initialize_params};
use crate::support::odd::Odd;
use crate::support::process::{memory, open_files, settled_files};
use crate::support::{SOON, eventually, http};

/// Opens so many sessions and leaves them, some without having used them.
fn open(gateway: &Gateway, key: &Key, count: usize) {
    let bearer = key.bearer();
    let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
    let params = initialize_params();
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{params}}}"#);
    for _ in 0..count {
        let reply = http::send(gateway.address, "POST", "/mcp", &headers, &body).unwrap();
        assert!(reply.header("mcp-session-id").is_some());
    }
}

#[test]
fn sec_04_sessions_that_are_opened_and_left_cost_nothing() {
    let odd = Odd::of(&["t"]).start();
    let (gateway, mut session) = before(&odd);
    let key = gateway.add_key("full");
    assert_eq!(session.call("t", "{}").text(), "t");
    open(&gateway, &key, 200);
    let (files, kib) = (settled_files(gateway.pid()), memory(gateway.pid()));
    open(&gateway, &key, 2000);
    let grown = memory(gateway.pid()).saturating_sub(kib);
    assert!(grown < 4 << 10, "{grown} KiB for 2000 sessions");
    eventually("as few open files as before", SOON, || {
        (open_files(gateway.pid()) <= files + 3).then_some(())
    });
    let kept = metric(&gateway, r#"mcpm_client_sessions{era="legacy"}"#).unwrap();
    assert!(kept <= 2, "{kept} sessions in memory");
    assert!(odd.sessions() <= 2, "{} sessions on the server", odd.sessions());
}

#[test]
fn sec_04_an_ended_session_takes_its_stream_and_its_place_with_it() {
    let odd = Odd::of(&["t"]).start();
    let (gateway, _) = before(&odd);
    let key = gateway.add_key("full");
    let bearer = key.bearer();
    let files = settled_files(gateway.pid());
    let held: Vec<_> = (0..100)
        .map(|_| {
            let session = gateway.session(&key);
            let stream = session.listen();
            (session, stream)
        })
        .collect();
    let count = || metric(&gateway, r#"mcpm_client_sessions{era="legacy"}"#).unwrap();
    assert!(count() >= 100);
    assert!(open_files(gateway.pid()) >= files + 100);
    for (session, mut stream) in held {
        let headers = [("Authorization", bearer.as_str()), ("Mcp-Session-Id", session.id())];
        let reply = http::send(gateway.address, "DELETE", "/mcp", &headers, "").unwrap();
        assert_eq!(reply.status, 204);
        assert!(stream.ends_within(SOON), "the stream of an ended session is still open");
    }
    assert!(count() <= 1, "{} sessions in memory", count());
    eventually("as few open files as before", SOON, || {
        (open_files(gateway.pid()) <= files + 3).then_some(())
    });
}

#[test]
fn sec_04_a_key_that_goes_takes_its_sessions_with_it() {
    let (gateway, _) = before(&Odd::of(&["t"]).start());
    let key = gateway.add_key("full");
    let held: Vec<_> = (0..50)
        .map(|_| {
            let mut session = gateway.session(&key);
            assert_eq!(session.tool_names(), ["t"]);
            session
        })
        .collect();
    let count = || metric(&gateway, r#"mcpm_client_sessions{era="legacy"}"#).unwrap();
    assert!(count() >= 50);
    assert_eq!(gateway.api("DELETE", &format!("/keys/{}", key.id), &json!(null)).0, 200);
    assert!(count() <= 1, "{} sessions in memory", count());
    assert_eq!(held.len(), 50);
}

#[test]
fn sec_04_unused_sessions_leave_memory_and_a_key_keeps_so_many_at_most() {
    let settings = "limits: {sessions_per_key: 5}\nsessions: {client_idle: 4s}\n";
    let gateway = Gateway::start_as(settings, &[]);
    let key = gateway.add_key("full");
    let sessions: Vec<_> = (0..40)
        .map(|_| {
            let mut session = gateway.session(&key);
            assert_eq!(session.request("ping", "{}").result(), "{}");
            session
        })
        .collect();
    let held = gateway.session(&key);
    let mut stream = held.listen();
    let count = || metric(&gateway, r#"mcpm_client_sessions{era="legacy"}"#).unwrap();
    assert!(count() >= 40);
    eventually("as many as a key may keep", SOON, || (2..=6).contains(&count()).then_some(()));
    // Nobody uses the one whose stream is open, but it stays.
    eventually("an end of the unused", SOON, || (count() == 1).then_some(()));
    assert!(!stream.ends_within(std::time::Duration::from_millis(200)));
    for mut session in sessions {
        assert_eq!(session.request("ping", "{}").result(), "{}", "its id stays good");
    }
}
