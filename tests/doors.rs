//! Who is let in and what is answered at the door, beyond what `front.rs` looks at.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::support::gateway::{ADMIN_TOKEN, Gateway};
use crate::support::mcp::{Peer as _, Session, modern};
use crate::support::odd::{Action, Odd};
use crate::support::{SOON, eventually, http};

#[test]
fn p3_without_a_key_the_default_group_is_served_where_the_settings_say_so() {
    let odd = Odd::of(&["t"]).start();
    let gateway = Gateway::start_with(&[("MCPM_REQUIRE_KEY", "false")]);
    gateway.add_server(&odd.registration("odd"));
    // Neither a missing nor a wrong key keeps a client out; its sessions are nobody's.
    for key in ["", "Bearer nonsense"] {
        let mut session = Session::open(gateway.address, key);
        assert_eq!(session.call("t", "{}").text(), "t", "{key}");
    }
    let call = json!({"name": "t", "arguments": {}});
    assert!(!modern(gateway.address, "", "tools/call", call).is_refusal());
    let key = gateway.add_key("full");
    let session = gateway.session(&key);
    let stolen = [("Mcp-Session-Id", session.id()), ("Content-Type", "application/json")];
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let reply = http::send(gateway.address, "POST", "/mcp", &stolen, ping).unwrap();
    assert_eq!(reply.status, 404, "a key's session is not a key-less caller's");
}

#[test]
fn p4_metrics_have_a_token_of_their_own_or_none() {
    let status = |gateway: &Gateway, path: &str, token: &str| {
        let bearer = format!("Bearer {token}");
        let headers = [("Authorization", bearer.as_str())];
        let headers = if token.is_empty() { &[][..] } else { &headers[..] };
        http::send(gateway.address, "GET", path, headers, "").unwrap().status
    };
    let gateway = Gateway::start_with(&[("MCPM_METRICS_TOKEN", "for-the-metrics-alone")]);
    for (token, expected) in
        [("", 401), ("wrong", 401), (ADMIN_TOKEN, 200), ("for-the-metrics-alone", 200)]
    {
        assert_eq!(status(&gateway, "/metrics", token), expected, "{token}");
    }
    assert_eq!(status(&gateway, "/api/v1/groups", "for-the-metrics-alone"), 401);
    let public = Gateway::start_as("metrics:\n  public: true\n", &[]);
    for token in ["", "wrong", ADMIN_TOKEN] {
        assert_eq!(status(&public, "/metrics", token), 200, "{token}");
    }
    assert_eq!(status(&public, "/api/v1/groups", ""), 401);
}

#[test]
fn p2_a_wrong_name_is_told_in_the_form_of_what_was_asked() {
    let gateway = Gateway::start();
    let ask = |path: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nHost: evil.example\r\n\r\n");
        let mut reply = http::raw(gateway.address, &request).unwrap();
        let body: Value = serde_json::from_str(&reply.text().unwrap()).unwrap();
        (reply.status, body)
    };
    for path in ["/api/v1/groups", "/api/v1/nowhere", "/metrics", "/"] {
        let (status, body) = ask(path);
        assert_eq!(status, 403, "{path}");
        assert!(body["error"].as_str().unwrap().contains("allowed_hosts"), "{path}: {body}");
    }
    let (status, body) = ask("/mcp");
    assert_eq!((status, &body["jsonrpc"]), (403, &json!("2.0")), "{body}");
}

#[test]
fn p2_a_wrong_key_is_answered_before_eight_megabytes_are_sent() {
    let gateway = Gateway::start();
    let mut stream = TcpStream::connect(gateway.address).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    let size = 8 << 20;
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer wrong\r\nContent-Type: application/json\r\nContent-Length: {size}\r\n\r\n",
        gateway.address
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 401", "told while the body is still to come");
    // Who sends it all the same can do so, and reads the answer to its end.
    let sent = stream.write_all(&vec![b' '; size]);
    let mut rest = String::new();
    let _ = stream.read_to_string(&mut rest);
    assert!(sent.is_err() || rest.contains("the key is not valid"), "{sent:?} {rest}");
    assert!(rest.contains("the key is not valid"), "{rest}");
}

#[test]
fn p3_refused_calls_are_counted() {
    let odd = Odd::of(&["t"]).start();
    let gateway = Gateway::start();
    gateway.add_server(&odd.registration("odd"));
    let mut session = gateway.session(&gateway.add_key("full"));
    assert!(session.call("nowhere", "{}").is_refusal());
    assert!(session.call("t", "[]").is_refusal());
    let bearer = format!("Bearer {ADMIN_TOKEN}");
    let headers = [("Authorization", bearer.as_str())];
    let text =
        http::send(gateway.address, "GET", "/metrics", &headers, "").unwrap().text().unwrap();
    for line in [
        r#"mcpm_tool_calls_total{outcome="refused",server="other",tool="other"} 1"#,
        r#"mcpm_tool_calls_total{outcome="refused",server="odd",tool="t"} 1"#,
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}

#[test]
fn p6_a_stop_lets_a_running_call_end() {
    let gate = Arc::new(AtomicBool::new(false));
    let script_gate = gate.clone();
    let odd = Odd::of(&["t"])
        .script(move |request, state| match request.tool() {
            Some(_) => {
                let (gate, answer) = (script_gate.clone(), state.usual(request));
                Action::talk(move |wire| {
                    let open = wire.until(|| gate.load(Ordering::SeqCst));
                    wire.answer(&answer);
                    open
                })
            }
            None => Action::Usual,
        })
        .start();
    let mut gateway = Gateway::start();
    gateway.add_server(&odd.registration("odd"));
    let mut session = gateway.session(&gateway.add_key("full"));
    let address = gateway.address;
    std::thread::scope(|scope| {
        let call = scope.spawn(move || session.call("t", "{}").text());
        eventually("a running call", SOON, || (odd.calls("t") == 1).then_some(()));
        let stop = scope.spawn(move || gateway.stop());
        eventually("a manager that takes nobody any more", SOON, || {
            TcpStream::connect(address).is_err().then_some(())
        });
        assert!(!stop.is_finished() && !call.is_finished(), "it waits for the call");
        gate.store(true, Ordering::SeqCst);
        assert_eq!(call.join().unwrap(), "t");
        stop.join().unwrap();
    });
}
