//! Connections: held open, refused early, over TLS.

use std::time::Instant;

use serde_json::json;

use super::super::before;
use crate::support::gateway::Gateway;
use crate::support::mcp::Peer;
use crate::support::odd::{Action, Answer, Odd, Request};
use crate::support::tls::Authority;
use crate::support::{SOON, eventually};

#[test]
fn ups_08_a_stream_that_stays_open_after_the_answer_is_left() {
    let odd = Odd::of(&["t"])
        .script(|request, state| {
            if request.tool().is_none() {
                return Action::Usual;
            }
            let answer = state.usual(request).message();
            Action::events(move |wire| {
                wire.event(&answer);
                wire.hold();
            })
        })
        .start();
    let (_gateway, mut session) = before(&odd);
    let started = Instant::now();
    for _ in 0..200 {
        assert_eq!(session.call("t", "{}").text(), "t");
    }
    assert!(started.elapsed() < SOON, "200 calls took {:?}", started.elapsed());
    eventually("connections given up", SOON, || (odd.connections() <= 4).then_some(()));
}

/// A request body that does not fit any buffer on the way.
fn large() -> String {
    json!({"text": "x".repeat(12 << 20)}).to_string()
}

fn is_large(request: &Request) -> bool {
    request.header("content-length").is_some_and(|length| length.len() > 6)
}

fn refusal(status: u16) -> Answer {
    Answer { body: "<html>not here</html>".repeat(100).into(), ..Answer::empty(status) }
        .with_header("Content-Type", "text/html")
}

/// One call that is refused, then one that is not.
fn refused_then_fine(odd: &Odd, status: u16) {
    let (_gateway, mut session) = before(odd);
    for _ in 0..2 {
        let started = Instant::now();
        let answer = session.call("t", &large());
        assert!(answer.is_refusal(), "{answer:?}");
        assert!(answer.text().contains(&status.to_string()), "{answer:?}");
        assert!(started.elapsed() < SOON / 2, "it took {:?}", started.elapsed());
        for _ in 0..3 {
            assert_eq!(session.call("t", "{}").text(), "t");
        }
    }
}

#[test]
fn ups_16_an_early_refusal_leaves_the_next_call_unharmed() {
    for status in [303, 413] {
        let odd = Odd::of(&["t"])
            .early(move |request, _| match is_large(request) {
                true => refusal(status).into(),
                false => Action::Usual,
            })
            .start();
        refused_then_fine(&odd, status);
    }
}

#[test]
fn ups_16_an_early_refusal_is_heard_although_the_server_reads_no_further() {
    let odd = Odd::of(&["t"])
        .early(|request, _| match is_large(request) {
            true => Action::talk(|wire| {
                wire.answer(&refusal(413));
                wire.hold();
                false
            }),
            false => Action::Usual,
        })
        .start();
    refused_then_fine(&odd, 413);
}

#[test]
fn ups_15_a_private_authority_is_trusted_by_the_server_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    let gateway = Gateway::start();
    for (case, name, ends, told) in [
        ("good", "localhost", 2999, None),
        ("expired", "localhost", 2020, Some("expired")),
        ("elsewhere", "other.example", 2999, Some("name")),
    ] {
        let authority = Authority::new();
        std::fs::write(&file, &authority.pem).unwrap();
        let odd = Odd::of(&[case]).tls(authority.certify(name, ends)).start();
        let url = format!("https://localhost:{}/mcp", odd.address.port());
        let server =
            gateway.post("/upstreams", &json!({"name": case, "url": url, "ca_file": file}));
        match told {
            None => {
                assert_eq!(server["status"], "connected", "{server}");
                let mut session = gateway.session(&gateway.add_key("full"));
                assert_eq!(session.call(case, "{}").text(), case);
                let bare = gateway.post("/test-connection", &json!({"url": url}));
                let error = bare["error"].as_str().unwrap_or_default().to_lowercase();
                assert!(error.contains("issuer"), "not trusted by others: {bare}");
            }
            Some(told) => {
                assert_eq!(server["status"], "down", "{server}");
                let error = server["error"].as_str().unwrap().to_lowercase();
                assert!(error.contains(told), "{case}: {error}");
                assert_eq!(odd.total(), 0, "{case}: something was sent");
            }
        }
    }
    // There is no way to look away.
    let loose = json!({"name": "x", "url": "https://localhost/mcp", "verify": false});
    assert_eq!(gateway.api("POST", "/upstreams", &loose).0, 400);
}
