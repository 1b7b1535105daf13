//! What happens around the manager: nobody reads its log, it is its own server, another process
//! holds its database, a key goes away while its call runs.

use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::gateway::{Gateway, command};
use crate::support::mcp::Peer;
use crate::support::odd::{Action, Odd};
use crate::support::process::Process;
use crate::support::{SOON, eventually, http};

/// Answers with its status, or not at all.
fn status(address: SocketAddr, path: &str) -> Option<u16> {
    http::send(address, "GET", path, &[], "").ok().map(|reply| reply.status)
}

#[test]
fn a_log_that_nobody_reads_holds_up_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    // Its pipe takes 64 KiB and is never read.
    let mut gateway = command(folder.path(), address.port(), &[]).spawn().unwrap();
    eventually("a gateway that listens", SOON, || status(address, "/livez"));
    let started = Instant::now();
    let served = (0..1000).filter(|_| status(address, "/livez") == Some(200)).count();
    let took = started.elapsed();
    gateway.kill().unwrap();
    gateway.wait().unwrap();
    assert_eq!(served, 1000);
    assert!(took < SOON, "1000 requests took {took:?}");
}

#[test]
fn the_manager_is_not_its_own_server() {
    let gateway = Gateway::start();
    let key = gateway.add_key("full");
    let server = gateway.post(
        "/upstreams",
        &json!({"name": "self", "url": gateway.url(), "headers": {"Authorization": key.bearer()}}),
    );
    assert_eq!(server["status"], "down", "{server}");
    assert!(server["error"].as_str().unwrap().contains("this manager"), "{server}");
}

#[test]
fn a_locked_database_is_told_at_once_and_calls_go_on() {
    let gateway = Gateway::start();
    let odd = Odd::of(&["t"]).start();
    gateway.add_server(&odd.registration("odd"));
    let mut session = gateway.session(&gateway.add_key("full"));
    const HOLD: &str = "import sqlite3, sys, time\n\
        held = sqlite3.connect(sys.argv[1], isolation_level=None)\n\
        held.execute('BEGIN IMMEDIATE')\n\
        print('held', flush=True)\ntime.sleep(60)";
    let mut other = Process::start(
        Command::new("python3").args(["-c", HOLD]).arg(gateway.database()).stdout(Stdio::piped()),
    );
    other.line("the lock", |line| (line == "held").then_some(()));
    // What was written a moment ago vouches for the database for a while.
    let told = eventually("a degraded database", Duration::from_secs(12), || {
        let asked = Instant::now();
        let mut reply = http::send(gateway.address, "GET", "/readyz", &[], "").unwrap();
        let ready: Value = serde_json::from_str(&reply.text().unwrap()).unwrap();
        assert!(asked.elapsed() < Duration::from_secs(3), "readiness took {:?}", asked.elapsed());
        (ready["status"] == "degraded").then_some(ready)
    });
    assert_eq!(told["ready"], true, "{told}");
    assert_eq!(session.call("t", "{}").text(), "t");
}

#[test]
fn a_call_that_is_cut_says_why() {
    let odd = Odd::of(&["t"])
        .script(|request, _| match request.tool() {
            Some(_) => Action::Hang,
            None => Action::Usual,
        })
        .start();
    let gateway = Gateway::start();
    gateway.add_server(&odd.registration("odd"));
    let key = gateway.add_key("full");
    for (cut, expected) in [("session", 404), ("key", 401)] {
        let session = gateway.session(&key);
        let running = odd.count("tools/call");
        let call = std::thread::spawn({
            // A client that takes no stream is answered with a status.
            let session = session.clone();
            move || {
                let call =
                    r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"t"}}"#;
                let mut reply = session.post_with(&[("Accept", "application/json")], call);
                (reply.status, reply.text().unwrap())
            }
        });
        eventually("a running call", SOON, || (odd.count("tools/call") > running).then_some(()));
        match cut {
            "session" => {
                let headers = session.headers();
                let ended = http::send(gateway.address, "DELETE", "/mcp", &headers, "").unwrap();
                assert_eq!(ended.status, 204);
            }
            _ => drop(gateway.api("DELETE", &format!("/keys/{}", key.id), &Value::Null)),
        }
        let (status, text) = call.join().unwrap();
        assert_eq!(status, expected, "{cut}: {text}");
        assert!(text.contains("\"error\""), "{cut}: {text}");
    }
}
