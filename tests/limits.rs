//! What the front bears and what it refuses (P6, P92): heads, connections, calls of one key,
//! pipelined requests, TLS pairs read again, plain HTTP on a TLS port, the way up and down.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::gateway::{Gateway, command};
use crate::support::mcp::{Peer as _, Session};
use crate::support::odd::{Action, Odd};
use crate::support::{SOON, eventually, http};

/// All that comes back on a connection that this is written to.
fn talk(stream: &mut TcpStream, request: &str) -> String {
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut said = Vec::new();
    // A reset after the answer is as good an end as any.
    let _ = stream.read_to_end(&mut said);
    String::from_utf8_lossy(&said).into_owned()
}

fn connect(gateway: &Gateway) -> TcpStream {
    TcpStream::connect(gateway.address).unwrap()
}

/// A server whose calls of `t` never end.
fn hanging() -> Odd {
    let script = |request: &crate::support::odd::Request, _: &_| match request.tool() {
        Some("t") => Action::Hang,
        _ => Action::Usual,
    };
    Odd::of(&["t", "u"]).script(script).start()
}

/// Starts a call that hangs, and waits until the server has it.
fn start_hanging(session: &Session, odd: &Odd) -> TcpStream {
    let before = odd.calls("t");
    let mut stream = TcpStream::connect(session.address).unwrap();
    let call =
        r#"{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"t","arguments":{}}}"#;
    stream.write_all(session.post_raw(call).as_bytes()).unwrap();
    eventually("a running call", SOON, || (odd.calls("t") > before).then_some(()));
    stream
}

#[test]
fn p6_a_large_head_is_answered() {
    let gateway = Gateway::start();
    let long = "x".repeat(70 << 10);
    let request = format!(
        "GET /livez HTTP/1.1\r\nHost: {}\r\nX-Long: {long}\r\nConnection: close\r\n\r\n",
        gateway.address
    );
    let said = talk(&mut connect(&gateway), &request);
    assert!(said.starts_with("HTTP/1.1 431") && said.contains("65536"), "{said}");
}

#[test]
fn p6_a_head_that_drips_is_cut_and_told() {
    let gateway = Gateway::start();
    let mut stream = connect(&gateway);
    let started = Instant::now();
    stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut said = Vec::new();
    let ended =
        b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Drip: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
            .iter()
            .any(|byte| {
                let mut chunk = [0; 512];
                let written = stream.write_all(&[*byte]);
                match stream.read(&mut chunk) {
                    Ok(0) => true,
                    Ok(read) => {
                        said.extend_from_slice(&chunk[..read]);
                        false
                    }
                    Err(error) => {
                        written.is_err() || error.kind() == std::io::ErrorKind::ConnectionReset
                    }
                }
            });
    assert!(ended, "still open after {:?}", started.elapsed());
    assert!(started.elapsed() < Duration::from_secs(17), "cut after {:?}", started.elapsed());
    let said = String::from_utf8_lossy(&said);
    assert!(said.starts_with("HTTP/1.1 408") && said.contains("15 s"), "{said}");
}

#[test]
fn p6_a_head_that_is_no_http_is_told() {
    let gateway = Gateway::start();
    for head in ["\x01\x02\r\n\r\n", "GET /livez HTTP/1.1\r\nno colon\r\n\r\n", "hello\r\n\r\n"] {
        let said = talk(&mut connect(&gateway), head);
        let (head, body) = said.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 400") && !head.contains("Pingora"), "{said}");
        let body: Value = serde_json::from_str(body).unwrap();
        assert!(body["error"].as_str().unwrap().contains("cannot be read"), "{said}");
        assert!(
            head.contains(&format!("content-length: {}", body.to_string().len() + 2)),
            "{said}"
        );
    }
}

#[test]
fn p6_one_connection_too_many_is_told() {
    let gateway = Gateway::start_as("limits: {connections: 2}\n", &[]);
    // Each has its place once it has been served.
    let held = [(); 2].map(|()| {
        let mut stream = connect(&gateway);
        let request = format!("GET /livez HTTP/1.1\r\nHost: {}\r\n\r\n", gateway.address);
        stream.write_all(request.as_bytes()).unwrap();
        assert!(stream.read(&mut [0; 1024]).unwrap() > 0);
        stream
    });
    let request =
        format!("GET /livez HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", gateway.address);
    let said = talk(&mut connect(&gateway), &request);
    assert!(said.starts_with("HTTP/1.1 503") && said.contains("limits.connections"), "{said}");
    drop(held);
    eventually("room again", SOON, || {
        http::send(gateway.address, "GET", "/livez", &[], "")
            .ok()
            .filter(|reply| reply.status == 200)
    });
}

#[test]
fn p6_streams_keep_their_place_among_the_connections() {
    let gateway = Gateway::start_as("limits: {connections: 3}\n", &[]);
    let session = gateway.session(&gateway.add_key("full"));
    let others =
        [gateway.session(&gateway.add_key("full")), gateway.session(&gateway.add_key("full"))];
    let held: Vec<_> = others.iter().chain([&session]).map(Session::listen).collect();
    let request =
        format!("GET /livez HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", gateway.address);
    let said = talk(&mut connect(&gateway), &request);
    assert!(said.starts_with("HTTP/1.1 503"), "{said}");
    drop(held);
}

#[test]
fn p6_one_call_too_many_of_a_key_is_told() {
    let odd = hanging();
    let gateway = Gateway::start_as("limits: {calls_per_key: 2}\n", &[]);
    gateway.add_server(&odd.registration("odd"));
    let session = gateway.session(&gateway.add_key("full"));
    let _running = [start_hanging(&session, &odd), start_hanging(&session, &odd)];
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"u"}}"#;
    let mut reply = session.post(call);
    assert_eq!(reply.status, 429);
    assert!(reply.text().unwrap().contains("too many calls"));
    // Another key is not held up.
    assert_eq!(gateway.session(&gateway.add_key("full")).call("u", "{}").text(), "u");
}

#[test]
fn p6_pipelined_requests_are_answered_in_turn() {
    let gateway = Gateway::start();
    let one = format!("GET /livez HTTP/1.1\r\nHost: {}\r\n\r\n", gateway.address);
    let last = one.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
    let said = talk(&mut connect(&gateway), &format!("{one}{one}{last}"));
    assert_eq!(said.matches("HTTP/1.1 200").count(), 3, "{said}");
}

#[test]
fn p6_a_stop_ends_at_once_when_idle_and_waits_for_calls() {
    let odd = hanging();
    let mut gateway = Gateway::start();
    gateway.add_server(&odd.registration("odd"));
    let session = gateway.session(&gateway.add_key("full"));
    let _stream = session.listen();
    let started = Instant::now();
    gateway.stop();
    assert!(started.elapsed() < Duration::from_secs(2), "idle: {:?}", started.elapsed());
}

#[test]
fn p6_a_port_in_use_ends_the_start_with_a_message() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let port = taken.local_addr().unwrap().port();
    let output = command(folder.path(), port, &[]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(said.contains("is it in use"), "{said}");
    assert!(!folder.path().join("mcp-manager.db").exists(), "the database was touched");
}

#[test]
fn p6_a_name_without_an_address_is_an_error_of_its_server_alone() {
    let gateway = Gateway::start();
    let server =
        gateway.post("/upstreams", &json!({"name": "x", "url": "http://nowhere.invalid/mcp"}));
    assert_eq!(server["status"], "down", "{server}");
    assert!(server["error"].as_str().unwrap().contains("nowhere.invalid"), "{server}");
}

#[test]
fn a_database_of_another_program_is_left_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mcp-manager.db");
    let made = Command::new("python3")
        .args(["-c", "import sqlite3, sys\nc = sqlite3.connect(sys.argv[1])\nc.execute('CREATE TABLE foo (x)')\nc.commit()"])
        .arg(&file)
        .status()
        .unwrap();
    assert!(made.success());
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let before = fs::read(&file).unwrap();
    let output = command(folder.path(), 0, &[]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("another program"), "{said}");
    assert_eq!(fs::read(&file).unwrap(), before);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o644);
}

/// Makes a pair for `localhost` and puts it where the gateway reads it.
fn new_pair(folder: &Path) -> String {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    fs::write(folder.join("cert.pem"), made.cert.pem()).unwrap();
    fs::write(folder.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    made.cert.pem()
}

/// What curl says of `/livez` when it trusts this certificate alone.
fn trusts(gateway: &Gateway, folder: &Path, pem: &str) -> bool {
    let trusted = folder.join("trusted.pem");
    fs::write(&trusted, pem).unwrap();
    let port = gateway.address.port();
    Command::new("curl")
        .args(["-sS", "-o", "/dev/null", "--resolve", &format!("localhost:{port}:127.0.0.1")])
        .arg("--cacert")
        .arg(&trusted)
        .arg(format!("https://localhost:{port}/livez"))
        .output()
        .unwrap()
        .status
        .success()
}

#[test]
fn p92_the_pair_is_read_again_and_plain_http_is_sent_to_https() {
    let folder = tempfile::tempdir().unwrap();
    let first = new_pair(folder.path());
    let (cert, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    let gateway = Gateway::start_with(&[
        ("MCPM_TLS_CERT", cert.to_str().unwrap()),
        ("MCPM_TLS_KEY", key.to_str().unwrap()),
    ]);
    assert!(trusts(&gateway, folder.path(), &first));

    let plain = |host: &str| {
        let request =
            format!("POST /mcp?x=1 HTTP/1.1\r\nHost: {host}\r\nContent-Length: 2\r\n\r\n{{}}");
        talk(&mut connect(&gateway), &request)
    };
    let own = format!("localhost:{}", gateway.address.port());
    let said = plain(&own);
    assert!(said.starts_with("HTTP/1.1 308"), "{said}");
    assert!(said.to_lowercase().contains(&format!("location: https://{own}/mcp?x=1")), "{said}");
    let said = plain("evil.example");
    assert!(said.starts_with("HTTP/1.1 403") && !said.contains("https://evil"), "{said}");

    let hang_up = || {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(gateway.pid()), Signal::SIGHUP).unwrap()
    };
    let second = new_pair(folder.path());
    hang_up();
    eventually("the new certificate", SOON, || {
        trusts(&gateway, folder.path(), &second).then_some(())
    });
    // A pair that cannot be used is told, and the one in use stays.
    fs::write(&cert, "no certificate").unwrap();
    hang_up();
    eventually("a line about it", SOON, || {
        gateway.log().contains("old certificate is kept").then_some(())
    });
    assert!(trusts(&gateway, folder.path(), &second));
}

#[test]
fn f30_an_answer_that_was_written_can_still_be_asked_for() {
    let odd = Odd::of(&["t"])
        .script(|request, state| match request.tool() {
            Some(_) => {
                let answer = state.usual(request);
                Action::talk(move |wire| {
                    std::thread::park_timeout(Duration::from_millis(400));
                    wire.answer(&answer);
                    true
                })
            }
            None => Action::Usual,
        })
        .start();
    let gateway = Gateway::start();
    gateway.add_server(&odd.registration("odd"));
    let session = gateway.session(&gateway.add_key("full"));
    let call =
        r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"t","arguments":{}}}"#;
    let mut reply = session.post(call);
    assert!(reply.is_event_stream());
    let whole = reply.text().unwrap();
    let first = whole.lines().find_map(|line| line.strip_prefix("id: ")).unwrap().to_owned();
    let get = |id: &str| {
        let mut headers = session.headers();
        headers.extend([("Accept", "text/event-stream"), ("Last-Event-ID", id)]);
        http::send(gateway.address, "GET", "/mcp", &headers, "").unwrap()
    };
    // Written is not received: twice over.
    for _ in 0..2 {
        let again = get(&first).text().unwrap();
        assert!(again.contains("\"id\":5") && again.contains("\"result\""), "{again}");
    }
    // What is not kept is said, and the session's own stream stays.
    let mut own = session.listen();
    for unknown in ["1-0", "x", "99-0"] {
        let mut reply = get(unknown);
        assert_eq!(reply.status, 400, "{unknown}");
        assert!(reply.text().unwrap().contains("Last-Event-ID"), "{unknown}");
    }
    odd.set_tools(&["t", "u"]);
    gateway.post("/upstreams/odd/reconnect", &Value::Null);
    assert!(own.event().unwrap().unwrap().data.contains("list_changed"));
}
