//! HTTP-04, 06, 07: streams or plain refusals, what pages of other origins can read, names.

use std::time::{Duration, Instant};

use super::{initialize, json_of, send, usual};
use crate::support::gateway::Gateway;
use crate::support::http;
use crate::support::mcp::{LEGACY, MODERN, Session};

#[test]
fn http_04_a_get_is_a_stream_or_a_plain_refusal() {
    let gateway = Gateway::start();
    let key = gateway.add_key("full");
    let bearer = key.bearer();
    let session = gateway.session(&key);
    let (auth, id) = (("Authorization", bearer.as_str()), ("Mcp-Session-Id", session.id()));
    let events = ("Accept", "text/event-stream");
    let browser = ("Accept", "text/html,application/xhtml+xml;q=0.9,image/webp");

    for headers in [vec![auth, id, events], vec![auth, id, ("Accept", "*/*")], vec![auth, id]] {
        let started = Instant::now();
        let mut stream = send(&session, "GET", &headers, "");
        assert_eq!(stream.status, 200, "{headers:?}");
        assert!(stream.is_event_stream(), "{headers:?}: {:?}", stream.headers);
        assert_eq!(stream.header("cache-control"), Some("no-cache"));
        // A first sign, so that nobody in between holds the headers back.
        assert!(stream.line().unwrap().starts_with(':'));
        assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    }
    let modern = ("MCP-Protocol-Version", MODERN);
    for (status, method, headers) in [
        (401, "GET", vec![id, events]),
        (401, "GET", vec![browser]),
        (401, "GET", vec![("Authorization", "Bearer made-up"), id, events]),
        (400, "GET", vec![auth, events]),
        (404, "GET", vec![auth, events, ("Mcp-Session-Id", "made-up")]),
        (406, "GET", vec![auth, id, browser]),
        (405, "GET", vec![auth, events, modern]),
        (405, "PUT", vec![auth, id]),
    ] {
        let mut reply = send(&session, method, &headers, "");
        assert_eq!(reply.status, status, "{method} {headers:?}");
        assert_eq!(reply.header("allow").is_some(), status == 405, "{:?}", reply.headers);
        assert_eq!(reply.header("content-type"), Some("application/json"));
        assert!(json_of(&mut reply)["error"]["message"].is_string());
    }
    assert_eq!(send(&session, "DELETE", &[auth, id], "").status, 204);
    assert_eq!(send(&session, "GET", &[auth, id, events], "").status, 404, "it is over");
}

#[test]
fn http_06_pages_can_read_why_they_are_refused() {
    const PAGE: &str = "http://localhost:3000";
    let gateway = Gateway::start_as("limits: {body: 64KiB}\n", &[]);
    let key = gateway.add_key("full");
    let bearer = key.bearer();
    let session = gateway.session(&key);
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let large = format!("[{}]", "1,".repeat(64 << 10));
    let without = |name: &str, more: &[(&'static str, &'static str)]| {
        let mut headers = usual(&bearer, session.id());
        headers.retain(|(header, _)| *header != name);
        headers.extend(more);
        headers
    };
    for (status, method, headers, body) in [
        (200, "POST", without("", &[]), list),
        (400, "POST", without("Mcp-Session-Id", &[]), list),
        (400, "POST", without("MCP-Protocol-Version", &[("MCP-Protocol-Version", "foo")]), list),
        (401, "POST", without("Authorization", &[]), list),
        (401, "POST", without("Authorization", &[("Authorization", "Bearer bad")]), list),
        (404, "POST", without("Mcp-Session-Id", &[("Mcp-Session-Id", "expired")]), list),
        (404, "GET", without("Mcp-Session-Id", &[("Mcp-Session-Id", "expired")]), ""),
        (405, "PATCH", without("", &[]), ""),
        (406, "POST", without("Accept", &[("Accept", "text/html")]), list),
        (413, "POST", without("", &[]), &large),
        (415, "POST", without("Content-Type", &[("Content-Type", "text/plain")]), list),
    ] {
        let mut headers = headers;
        headers.push(("Origin", PAGE));
        let reply = send(&session, method, &headers, body);
        assert_eq!(reply.status, status, "{method} {headers:?}");
        assert_eq!(reply.header("access-control-allow-origin"), Some(PAGE), "{status}");
        assert_eq!(reply.header("vary"), Some("Origin"), "{status}");
        let exposed = reply.header("access-control-expose-headers").unwrap();
        assert!(exposed.contains("Mcp-Session-Id"), "{status}: {exposed}");
    }
    // What later requests carry may be sent, whether or not the preflight named it.
    let asked = [("Origin", PAGE), ("Access-Control-Request-Method", "DELETE")];
    let reply = send(&session, "OPTIONS", &asked, "");
    assert_eq!(reply.status, 204);
    for name in ["authorization", "mcp-session-id", "mcp-protocol-version", "last-event-id"] {
        assert!(reply.header("access-control-allow-headers").unwrap().contains(name), "{name}");
    }
    for name in ["GET", "POST", "DELETE"] {
        assert!(reply.header("access-control-allow-methods").unwrap().contains(name), "{name}");
    }
}

/// The status of an `initialize` that was sent to this name, from a page of this origin.
fn status(gateway: &Gateway, host: &str, origin: &str, key: &str) -> u16 {
    let body = initialize("1", LEGACY);
    let origin = if origin.is_empty() { String::new() } else { format!("Origin: {origin}\r\n") };
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {host}\r\nAuthorization: {key}\r\n{origin}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    http::raw(gateway.address, &head).unwrap().status
}

#[test]
fn http_07_on_a_network_the_listed_names_or_any() {
    let network = ("MCPM_HOST", "0.0.0.0");
    let gateway = Gateway::start_with(&[network]);
    let key = gateway.add_key("full").bearer();
    for host in ["box.lan", "box.lan:8899", "10.1.2.3:1", "localhost", "BOX.LAN"] {
        assert_eq!(status(&gateway, host, "", &key), 200, "{host}");
        assert_eq!(status(&gateway, host, "", "Bearer made-up"), 401, "{host}: a key is needed");
        assert_eq!(status(&gateway, host, "https://evil.example", &key), 403, "{host}");
    }

    let gateway = Gateway::start_with(&[
        network,
        ("MCPM_ALLOWED_HOSTS", "box.lan:*, mcp.lan:8899"),
        ("MCPM_ALLOWED_ORIGINS", "https://chat.lan"),
    ]);
    let key = gateway.add_key("full").bearer();
    // A proxy may strip the port.
    for host in ["box.lan:1", "BOX.lan", "mcp.lan:8899", "mcp.lan", "localhost:5"] {
        assert_eq!(status(&gateway, host, "", &key), 200, "{host}");
    }
    for host in ["mcp.lan:8898", "evil.example", "xbox.lan", "box.lan.evil.example"] {
        assert_eq!(status(&gateway, host, "", &key), 403, "{host}");
    }
    for (origin, expect) in
        [("https://chat.lan", 200), ("http://chat.lan", 403), ("null", 403), ("https://e.lan", 403)]
    {
        assert_eq!(status(&gateway, "box.lan", origin, &key), expect, "{origin}");
    }
}

#[test]
fn http_01_both_spellings_are_served_on_every_method_without_a_redirect() {
    let gateway = Gateway::start();
    let key = gateway.add_key("full");
    let session: Session = gateway.session(&key);
    let bearer = key.bearer();
    let headers = usual(&bearer, session.id());
    for path in ["/mcp", "/mcp/"] {
        for (method, status) in [("POST", 200), ("GET", 200), ("PUT", 405), ("OPTIONS", 204)] {
            let body = if method == "POST" { initialize("1", LEGACY) } else { String::new() };
            let reply = http::send(gateway.address, method, path, &headers, &body).unwrap();
            assert_eq!(reply.status, status, "{method} {path}");
        }
    }
    let reply = http::send(gateway.address, "DELETE", "/mcp/", &headers, "").unwrap();
    assert_eq!(reply.status, 204);
}
