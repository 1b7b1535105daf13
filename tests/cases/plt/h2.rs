//! PLT-03, 07: clients of HTTP/2. curl speaks it: sent from a pipe, a body has no length, and
//! ends with an empty frame.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::Value;
use tempfile::TempDir;

use crate::cases::call;
use crate::support::gateway::Gateway;
use crate::support::odd::{Action, Answer, Odd};
use crate::support::{SOON, eventually};

/// A certificate of its own for localhost.
fn certificate() -> (TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (cert, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    (folder, cert, key)
}

/// What curl has to say: version and status in front, then the body.
fn curl(gateway: &Gateway, cert: &Path, more: &[&str], body: &str) -> String {
    let mut child = start_curl(gateway, cert, "10", more);
    child.stdin.take().unwrap().write_all(body.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let (body, line) = said.rsplit_once('\n').unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    format!("{}\n{body}", line.trim())
}

fn start_curl(gateway: &Gateway, cert: &Path, seconds: &str, more: &[&str]) -> Child {
    let port = gateway.address.port();
    Command::new("curl")
        .args(["-sS", "-m", seconds, "--cacert"])
        .arg(cert)
        .args(["--resolve", &format!("localhost:{port}:127.0.0.1")])
        .args(["-w", "\n%{http_version} %{http_code} %{redirect_url}"])
        .args(["-H", "Content-Type: application/json"])
        .args(more)
        .arg(format!("https://localhost:{port}/mcp"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The same over TLS, with what was set up before.
fn with_tls(gateway: &mut Gateway) -> (TempDir, PathBuf) {
    let (folder, cert, key) = certificate();
    let (cert_text, key_text) = (cert.to_str().unwrap(), key.to_str().unwrap());
    gateway.stop();
    gateway.start_again_with(&[("MCPM_TLS_CERT", cert_text), ("MCPM_TLS_KEY", key_text)]);
    (folder, cert)
}

#[test]
fn plt_03_a_body_that_ends_with_an_empty_frame_leaves_connections_to_servers_clean() {
    // A strict server: whatever stands between two requests is a broken one.
    let odd = Odd::of(&["t"])
        .sessionless()
        .early(|request, _| match ["POST", "GET", "DELETE"].contains(&request.method.as_str()) {
            true => Action::Usual,
            false => Answer::empty(400).into(),
        })
        .start();
    let mut gateway = Gateway::start();
    gateway.add_server(&odd.registration("odd"));
    let key = gateway.add_key("full").bearer();
    let (_folder, cert) = with_tls(&mut gateway);
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let arguments = format!(r#"{{"text":"{}"}}"#, "x".repeat(100_000));
    let body = call("1", "t", &arguments);
    let body = body.replacen(r#""params":{"#, &format!(r#""params":{{{meta},"#), 1);
    let authorization = format!("Authorization: {key}");
    let headers = [
        "-H",
        &authorization,
        "-H",
        "MCP-Protocol-Version: 2026-07-28",
        "-H",
        "Mcp-Method: tools/call",
        "-H",
        "Mcp-Name: t",
    ];
    let piped = [&["--http2", "-X", "POST", "-T", "-"], &headers[..]].concat();
    let plain = [&["--http1.1", "--data-binary", "@-"], &headers[..]].concat();
    eventually("a server that is connected", SOON, || {
        curl(&gateway, &cert, &plain, &body).contains(r#""text":"t""#).then_some(())
    });
    let (taken, calls) = (odd.taken(), odd.calls("t"));
    for round in 0..3 {
        let said = curl(&gateway, &cert, &piped, &body);
        assert!(said.starts_with("2 200\n") && said.contains(r#""text":"t""#), "{round}: {said}");
        for _ in 0..7 {
            let said = curl(&gateway, &cert, &plain, &body);
            assert!(said.starts_with("1.1 200\n") && said.contains(r#""text":"t""#), "{said}");
        }
    }
    assert_eq!(odd.calls("t"), calls + 24, "each once");
    assert!(odd.taken() <= taken + 2, "connections are kept: {taken}, then {}", odd.taken());
    let strays = odd.requests(|r| !["POST", "GET", "DELETE"].contains(&r.method.as_str()));
    assert!(strays.is_empty(), "{strays:?}");
    for request in odd.requests(|request| request.tool().is_some()) {
        assert_eq!(request.arguments().to_string(), arguments);
    }
}

#[test]
fn plt_07_the_name_in_a_pseudo_header_counts_like_the_one_in_host() {
    let mut gateway = Gateway::start();
    let key = gateway.add_key("full").bearer();
    let (_folder, cert) = with_tls(&mut gateway);
    let authorization = format!("Authorization: {key}");
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let port = gateway.address.port();
    let own = format!("Host: LOCALHOST:{port}");
    for version in ["--http1.1", "--http2"] {
        let number = if version == "--http2" { "2" } else { "1.1" };
        let ask = |host: &str| {
            let more = [version, "-H", &authorization, "-H", host, "--data-binary", "@-"];
            curl(&gateway, &cert, &more, ping)
        };
        for host in ["X-None: 1", &own, "Host: localhost", "Host: 127.0.0.1:1", "Host: [::1]"] {
            let said = ask(host);
            assert!(said.starts_with(&format!("{number} 200\n")), "{host}: {said}");
            assert!(said.contains(r#""result":{}"#), "{host}: {said}");
        }
        for host in ["Host: evil.example", "Host: localhost.evil.example", "Host: 10.0.0.1"] {
            let said = ask(host);
            assert!(said.starts_with(&format!("{number} 403\n")), "{host}: {said}");
        }
    }
    let lines = eventually("a line of each request in the log", SOON, || {
        let log = gateway.whole_log();
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let lines = lines.filter(|line| line["target"] == "access").collect::<Vec<_>>();
        (lines.len() == 16).then_some(lines)
    });
    // The same in the log, whatever the version.
    let shape = |line: &Value| {
        let fields = &line["fields"];
        assert!(fields["peer"].as_str().unwrap().starts_with("127.0.0.1:"), "{line}");
        ["http", "path", "status", "method", "era", "key"].map(|name| fields[name].clone())
    };
    let shapes: Vec<_> = lines.iter().map(shape).collect();
    assert_eq!(shapes[..8], shapes[8..]);
}

#[test]
fn plt_06_streams_and_calls_over_h2_outlast_the_idle_limit() {
    let odd = slow(Duration::from_secs(4));
    let mut gateway = Gateway::start_as("limits: {idle: 1s}\n", &[]);
    gateway.add_server(&odd.registration("odd"));
    let key = gateway.add_key("full");
    let session = gateway.session(&key).id().to_owned();
    let (_folder, cert) = with_tls(&mut gateway);
    let authorization = format!("Authorization: {}", key.bearer());
    let session = format!("Mcp-Session-Id: {session}");
    let common = ["--http2", "-H", &authorization, "-H", &session];
    std::thread::scope(|scope| {
        let call = scope.spawn(|| {
            let more = [&common[..], &["--data-binary", "@-"]].concat();
            curl(&gateway, &cert, &more, &call("1", "t", "{}"))
        });
        // Ends with this limit of curl's, or it was cut before.
        let stream = scope.spawn(|| {
            let started = Instant::now();
            let more = [&common[..], &["-N", "-H", "Accept: text/event-stream"]].concat();
            let output = start_curl(&gateway, &cert, "5", &more).wait_with_output().unwrap();
            (started.elapsed(), output)
        });
        let said = call.join().unwrap();
        assert!(said.starts_with("2 200\n") && said.contains(r#""text":"t""#), "{said}");
        let (took, output) = stream.join().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(took >= Duration::from_millis(4900), "cut after {took:?}: {said}");
        assert!(said.contains("timed out"), "{said}");
    });
}

#[test]
fn plt_06_an_h2_connection_without_a_preface_is_closed() {
    let mut gateway = Gateway::start_as("limits: {idle: 1s}\n", &[]);
    let (_folder, cert) = with_tls(&mut gateway);
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&cert).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let name = "localhost".try_into().unwrap();
    let connection = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let socket = TcpStream::connect(gateway.address).unwrap();
    socket.set_read_timeout(Some(SOON)).unwrap();
    let mut stream = rustls::StreamOwned::new(connection, socket);
    // Half of the preface, and no more.
    stream.write_all(b"PRI * HTTP/2").unwrap();
    assert_eq!(stream.conn.alpn_protocol(), Some(&b"h2"[..]));
    let mut said = Vec::new();
    if let Err(error) = stream.read_to_end(&mut said) {
        assert!(!matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
    }
}

/// A server whose tool takes this long.
fn slow(takes: Duration) -> Odd {
    Odd::of(&["t"])
        .script(move |request, state| match request.tool() {
            Some(_) => {
                let answer = state.usual(request);
                Action::talk(move |wire| {
                    let started = Instant::now();
                    wire.until(|| started.elapsed() >= takes);
                    wire.answer(&answer);
                    true
                })
            }
            None => Action::Usual,
        })
        .start()
}
