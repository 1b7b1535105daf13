//! PLT-05, 06: headers of one hop, and connections that nobody uses.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::cases::{before, call};
use crate::support::gateway::Gateway;
use crate::support::http;
use crate::support::odd::Odd;
use crate::support::process::{open_files, settled_files};
use crate::support::{SOON, eventually};

#[test]
fn plt_05_headers_of_one_hop_stay_on_it() {
    let odd = Odd::of(&["t"]).start();
    let (gateway, session) = before(&odd);
    let body = call("1", "t", "{}");
    let usual = session.post_raw(&body);
    let length = format!("Content-Length: {}\r\n", body.len());
    let (head, _) = usual.split_once(&length).unwrap();
    let hop = "Connection: close, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\nProxy-Connection: close\r\n\
               TE: trailers\r\nTrailer: X-Late\r\nUpgrade: h2c\r\nProxy-Authorization: Basic eA==\r\n\
               X-End-To-End: 1\r\nCookie: a=b\r\nTransfer-Encoding: chunked\r\n\r\n";
    let chunked = format!("{head}{hop}{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    // The session's own connection is there from the first call on.
    let mut connections = 0;
    for round in 0..10 {
        let mut reply = http::raw(gateway.address, &chunked).unwrap();
        assert_eq!(reply.status, 200);
        assert_eq!(reply.header("connection"), Some("close"), "{:?}", reply.headers);
        let text = reply.text().unwrap();
        assert!(text.contains("result"), "{text}");
        if round == 0 {
            connections = odd.taken();
        }
    }
    // A health check may take one beside.
    assert!(odd.taken() <= connections + 1, "{} connections, then {}", connections, odd.taken());
    let calls = odd.requests(|request| request.tool().is_some());
    assert_eq!(calls.len(), 10);
    for request in calls {
        for name in [
            "x-hop",
            "keep-alive",
            "proxy-connection",
            "te",
            "trailer",
            "upgrade",
            "cookie",
            "proxy-authorization",
            "transfer-encoding",
            "x-end-to-end",
            "authorization",
        ] {
            assert_eq!(request.header(name), None, "{name}: {request:?}");
        }
        assert_ne!(request.header("connection"), Some("close"), "{request:?}");
    }
}

#[test]
fn plt_06_connections_that_nobody_uses_are_closed_and_streams_are_not() {
    const IDLE: Duration = Duration::from_secs(3);
    let gateway = Gateway::start_as("limits: {idle: 3s}\n", &[]);
    let session = gateway.session(&gateway.add_key("full"));
    let stream = session.listen();
    let files = settled_files(gateway.pid());
    let ping = session.post_raw(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    let refused = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}";
    let api = "GET /api/v1/keys HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let live = "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let requests = [ping.as_str(), refused, api, live];
    let started = Instant::now();
    let mut clients: Vec<TcpStream> = (0..500)
        .map(|number| {
            let mut socket = TcpStream::connect(gateway.address).unwrap();
            socket.write_all(requests[number % requests.len()].as_bytes()).unwrap();
            socket
        })
        .collect();
    eventually("clients that are connected", IDLE, || {
        (open_files(gateway.pid()) >= files + 450).then_some(())
    });
    for (number, socket) in clients.iter_mut().enumerate() {
        let request = requests[number % requests.len()];
        // The answer, then the end.
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut all = String::new();
        let open = match socket.read_to_string(&mut all) {
            Ok(_) => false,
            Err(error) => error.kind() != ErrorKind::ConnectionReset,
        };
        assert!(!open, "still open after {:?}: {request}", started.elapsed());
        assert!(all.starts_with("HTTP/1.1 "), "{request}: {all}");
    }
    assert!(started.elapsed() >= IDLE, "{:?}", started.elapsed());
    assert!(started.elapsed() < IDLE * 4, "{:?}", started.elapsed());
    eventually("as few open files as before", SOON, || {
        (open_files(gateway.pid()) <= files + 3).then_some(())
    });
    // The stream has been open and silent for longer than that.
    let mut stream = stream;
    assert!(!stream.ends_within(Duration::from_millis(200)), "a stream was closed");
}

#[test]
fn plt_06_a_connection_that_says_nothing_is_closed() {
    const IDLE: Duration = Duration::from_secs(1);
    let gateway = Gateway::start_as("limits: {idle: 1s}\n", &[]);
    let started = Instant::now();
    let mut socket = TcpStream::connect(gateway.address).unwrap();
    socket.set_read_timeout(Some(SOON)).unwrap();
    let ended = socket.read(&mut [0; 64]);
    assert!(matches!(ended, Ok(0)), "{ended:?}");
    assert!(started.elapsed() >= IDLE, "{:?}", started.elapsed());
}

/// RFC 9112, section 6.1: what such a message's end is, two parties may see differently.
#[test]
fn plt_05_a_request_with_two_lengths_ends_its_connection() {
    let gateway = Gateway::start();
    for path in ["/mcp", "/livez"] {
        let mut socket = TcpStream::connect(gateway.address).unwrap();
        socket.set_read_timeout(Some(SOON)).unwrap();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\
             Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        );
        socket.write_all(request.as_bytes()).unwrap();
        let mut said = String::new();
        socket.read_to_string(&mut said).unwrap();
        assert!(said.starts_with("HTTP/1.1 4"), "{said}");
        assert!(said.to_ascii_lowercase().contains("connection: close"), "{said}");
    }
}
