//! HTTP-14, 15, 16: large and slow bodies, silence, callers who leave.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{gated, json_of, usual};
use crate::cases::{before, call};
use crate::support::gateway::Gateway;
use crate::support::http::{self, Reply};
use crate::support::mcp::{MODERN, Peer, Session};
use crate::support::odd::Odd;
use crate::support::process::{memory, open_files, settled_files};
use crate::support::{SOON, eventually};

#[test]
fn http_14_a_large_argument_arrives_whole() {
    let odd = Odd::of(&["t"]).start();
    let (_gateway, session) = before(&odd);
    let file = "QUJD".repeat((5 << 20) / 4);
    let arguments = json!({ "file": file }).to_string();
    let answer = json_of(&mut session.post(&call("1", "t", &arguments)));
    assert_eq!(answer["result"]["content"][0]["text"], "t", "{answer}");
    let arrived = odd.requests(|request| request.tool().is_some()).remove(0);
    assert!(arrived.arguments()["file"] == file.as_str(), "the argument was changed");
}

/// What a page is told of a body that is too large.
fn too_large(gateway: &Gateway, key: &str, framing: &str, body: &str) {
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: {key}\r\nOrigin: http://localhost\r\nContent-Type: application/json\r\n{framing}\r\n\r\n",
        gateway.address
    );
    let started = Instant::now();
    let mut reply = http::raw(gateway.address, &format!("{head}{body}")).unwrap();
    assert_eq!(reply.status, 413, "{framing}");
    assert_eq!(reply.header("access-control-allow-origin"), Some("http://localhost"));
    assert!(json_of(&mut reply)["error"]["message"].as_str().unwrap().contains("1048576"));
    assert!(started.elapsed() < Duration::from_secs(4), "{framing}: {:?}", started.elapsed());
}

#[test]
fn http_14_a_body_beyond_the_limit_is_refused_however_it_comes() {
    let gateway = Gateway::start_as("limits: {body: 1MiB}\n", &[]);
    let key = gateway.add_key("full").bearer();
    let large = "x".repeat(2 << 20);
    // Two hundred megabytes, of which not one is sent.
    too_large(&gateway, &key, "Content-Length: 209715200", "");
    too_large(&gateway, &key, &format!("Content-Length: {}", large.len()), &large);
    let chunks = format!("{:x}\r\n{large}\r\n0\r\n\r\n", large.len());
    too_large(&gateway, &key, "Transfer-Encoding: chunked", &chunks);
}

#[test]
fn http_14_a_body_that_drips_is_given_up_and_holds_up_nobody() {
    let gateway = Gateway::start_as("limits: {body_time: 2s}\n", &[]);
    let key = gateway.add_key("full");
    let (bearer, session) = (key.bearer(), gateway.session(&key));
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: {bearer}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n",
        gateway.address
    );
    let started = Instant::now();
    let slow: Vec<TcpStream> = (0..64)
        .map(|_| {
            let mut socket = TcpStream::connect(gateway.address).unwrap();
            socket.write_all(head.as_bytes()).unwrap();
            socket
        })
        .collect();
    for mut socket in &slow {
        socket.write_all(b"{").unwrap();
        let asked = Instant::now();
        assert_eq!(session.clone().request("ping", "{}").result(), "{}");
        assert!(asked.elapsed() < Duration::from_secs(1), "{:?}", asked.elapsed());
    }
    for mut socket in slow {
        // The rest keeps coming, ten bytes a second.
        let mut answer = [0; 12];
        socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        while socket.read_exact(&mut answer).is_err() {
            assert!(started.elapsed() < SOON, "a slow body is still waited for");
            let _refused_by_now = socket.write_all(b" ");
        }
        assert_eq!(&answer, b"HTTP/1.1 408");
    }
}

#[test]
fn http_14_a_client_that_asks_before_it_sends_is_told_at_once() {
    let gateway = Gateway::start_as("limits: {body: 1MiB}\n", &[]);
    let session = gateway.session(&gateway.add_key("full"));
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let whole = session.post_raw(ping);
    let (head, _) = whole.split_once("\r\n\r\n").unwrap();
    let ask = |head: &str| {
        let mut socket = TcpStream::connect(gateway.address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        socket.write_all(format!("{head}\r\nExpect: 100-continue\r\n\r\n").as_bytes()).unwrap();
        let mut first = [0; 12];
        socket.read_exact(&mut first).unwrap();
        (socket, String::from_utf8(first.to_vec()).unwrap())
    };
    let (mut socket, first) = ask(head);
    assert_eq!(first, "HTTP/1.1 100");
    socket.write_all(ping.as_bytes()).unwrap();
    let mut rest = String::new();
    while !rest.contains(r#""result":{}"#) {
        let mut part = [0; 4096];
        let count = socket.read(&mut part).unwrap();
        assert!(count > 0, "{rest}");
        rest.push_str(std::str::from_utf8(&part[..count]).unwrap());
    }
    assert!(rest.contains("HTTP/1.1 200"), "{rest}");
    // What would be refused is never sent.
    let large = head.replace(&format!("Content-Length: {}", ping.len()), "Content-Length: 9000000");
    assert_eq!(ask(&large).1, "HTTP/1.1 413");
}

/// Reads on until there has been a comment after the first line, and says how long that took.
fn silence(stream: &mut Reply) -> Duration {
    assert_eq!(stream.header("x-accel-buffering"), Some("no"));
    assert_eq!(stream.header("cache-control"), Some("no-cache"));
    let started = Instant::now();
    while !stream.line().unwrap().starts_with(':') {}
    started.elapsed()
}

#[test]
fn http_15_streams_are_never_silent_for_long_and_json_has_no_comments() {
    const MOST: Duration = Duration::from_secs(18);
    let gate = Arc::new(AtomicBool::new(false));
    let odd = gated(&gate);
    let (_gateway, session) = before(&odd);
    std::thread::scope(|scope| {
        let plain = scope.spawn(|| {
            let json = [("Accept", "application/json")];
            let mut reply = session.post_with(&json, &call("1", "t", "{}"));
            (reply.header("content-type").unwrap().to_owned(), reply.text().unwrap())
        });
        let call = scope.spawn(|| {
            let started = Instant::now();
            let mut reply = session.post(&call("2", "t", "{}"));
            assert!(reply.is_event_stream());
            silence(&mut reply);
            (started.elapsed(), reply)
        });
        let mut stream = session.listen();
        // The first one comes with the headers.
        silence(&mut stream);
        assert!(silence(&mut stream) < MOST, "the stream of the session");
        let (took, mut reply) = call.join().unwrap();
        assert!(took < MOST, "the stream of a call: {took:?}");
        gate.store(true, Ordering::SeqCst);
        assert_eq!(json_of(&mut reply)["id"], 2);
        let (kind, body) = plain.join().unwrap();
        assert_eq!((kind.as_str(), &body[..1]), ("application/json", "{"));
    });
}

/// The bytes of a call without a session, of a client of either era.
fn sessionless(session: &Session, key: &str, modern: bool) -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let mut body: Value = serde_json::from_str(&call("1", "t", "{}")).unwrap();
    let mut headers = usual(key, "");
    if modern {
        body["params"]["_meta"] = meta;
        headers.extend([
            ("MCP-Protocol-Version", MODERN),
            ("Mcp-Method", "tools/call"),
            ("Mcp-Name", "t"),
        ]);
    }
    let body = body.to_string();
    let mut head = format!("POST /mcp HTTP/1.1\r\nHost: {}\r\n", session.address);
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    format!("{head}Content-Length: {}\r\n\r\n{body}", body.len())
}

#[test]
fn http_16_callers_without_a_session_leave_nothing_behind() {
    let odd = Odd::of(&["t"]).start();
    let gateway = Gateway::start();
    gateway.add_server(&odd.registration("odd"));
    let key = gateway.add_key("full");
    let (bearer, session) = (key.bearer(), gateway.session(&key));
    let requests = [false, true].map(|modern| sessionless(&session, &bearer, modern));
    let round = |count: usize| {
        for number in 0..count {
            let modern = number % 2;
            if number % 4 < 2 {
                let expect = if modern == 1 { 200 } else { 400 };
                let reply = http::raw(gateway.address, &requests[modern]).unwrap();
                assert_eq!(reply.status, expect);
            } else {
                let mut socket = TcpStream::connect(gateway.address).unwrap();
                socket.write_all(requests[modern].as_bytes()).unwrap();
            }
        }
    };
    round(100);
    let before = (settled_files(gateway.pid()), memory(gateway.pid()));
    round(1200);
    eventually("as few open files as before", SOON, || {
        (open_files(gateway.pid()) <= before.0 + 5).then_some(())
    });
    let grown = memory(gateway.pid()).saturating_sub(before.1);
    assert!(grown < 16 << 10, "{grown} KiB more than after the first hundred");
    assert!(odd.sessions() <= 2, "{} sessions on the server", odd.sessions());
    assert!(gateway.server("odd")["sessions"].as_u64().unwrap() <= 1);
}
