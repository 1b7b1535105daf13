//! Sessions of legacy clients over time: their end, what is said on their streams and when, ids,
//! batches, and calls whose client leaves. Named after the rules of the protocol.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::gateway::{ADMIN_TOKEN, Gateway, Key};
use crate::support::mcp::{Peer as _, Session, initialize_params};
use crate::support::odd::{Action, Odd};
use crate::support::{SOON, eventually, http};

/// A server whose calls of `t` are answered once the gate is open.
fn gated(gate: &Arc<AtomicBool>) -> Odd {
    let gate = gate.clone();
    Odd::of(&["t", "u"])
        .script(move |request, state| match request.tool() {
            Some("t") => {
                let (gate, answer) = (gate.clone(), state.usual(request));
                Action::talk(move |wire| {
                    let open = wire.until(|| gate.load(Ordering::SeqCst));
                    wire.answer(&answer);
                    open
                })
            }
            _ => Action::Usual,
        })
        .start()
}

fn call(id: &str, tool: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{}}}}}}"#
    )
}

/// The status of a ping in the session.
fn ping(session: &Session) -> u16 {
    session.post(r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#).status
}

fn delete(session: &Session) -> u16 {
    http::send(session.address, "DELETE", "/mcp", &session.headers(), "").unwrap().status
}

/// Sends a message on a connection that the test holds.
fn send(session: &Session, message: &str) -> TcpStream {
    let mut stream = TcpStream::connect(session.address).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    stream.write_all(session.post_raw(message).as_bytes()).unwrap();
    stream
}

/// What comes until `word`, or until the end.
fn until(stream: &mut TcpStream, word: &str) -> String {
    let mut said = Vec::new();
    let mut byte = [0];
    while !String::from_utf8_lossy(&said).contains(word) && stream.read(&mut byte).unwrap_or(0) > 0
    {
        said.extend(byte);
    }
    String::from_utf8_lossy(&said).into_owned()
}

#[test]
fn f24_an_ended_session_stays_ended_over_a_restart() {
    let mut gateway = Gateway::start();
    let key = gateway.add_key("full");
    let (ended, other) = (gateway.session(&key), gateway.session(&key));
    assert_eq!(delete(&ended), 204);
    assert_eq!((ping(&ended), ping(&other)), (404, 200));
    gateway.restart();
    assert_eq!((ping(&ended), ping(&other)), (404, 200), "after SIGTERM");
}

#[test]
fn f24_an_ended_session_is_written_down_within_a_second() {
    let mut gateway = Gateway::start();
    let session = gateway.session(&gateway.add_key("full"));
    assert_eq!(delete(&session), 204);
    eventually("the end of a session in the database", Duration::from_secs(2), || {
        let seen = ended_sessions_in(&gateway);
        (seen == 1).then_some(())
    });
    gateway.kill9();
    gateway.start_again();
    assert_eq!(ping(&session), 404, "after a power cut");
}

/// Ended sessions in the database, read by the program that every test machine has.
fn ended_sessions_in(gateway: &Gateway) -> i64 {
    let script = "import sqlite3,sys\nprint(sqlite3.connect(f'file:{sys.argv[1]}?mode=ro', uri=True)\
        .execute('SELECT count(*) FROM ended_sessions').fetchone()[0])";
    let mut python = std::process::Command::new("python3");
    let output = python.args(["-c", script]).arg(gateway.database()).output().unwrap();
    String::from_utf8_lossy(&output.stdout).trim().parse().unwrap_or(-1)
}

/// A session that was opened and has not said `notifications/initialized`.
fn opened(gateway: &Gateway, key: &Key) -> impl Fn(&str, &str) -> http::Reply + use<> {
    let (address, bearer) = (gateway.address, key.bearer());
    let headers = move |session: &str, accept: &str| {
        let mut headers = vec![
            ("Authorization".to_owned(), bearer.clone()),
            ("Content-Type".to_owned(), "application/json".to_owned()),
            ("Accept".to_owned(), accept.to_owned()),
        ];
        if !session.is_empty() {
            headers.push(("Mcp-Session-Id".to_owned(), session.to_owned()));
        }
        headers
    };
    let ask = move |session: &str, method: &str, body: &str| {
        let accept = if method == "GET" { "text/event-stream" } else { "*/*" };
        let headers = headers(session, accept);
        let headers: Vec<_> = headers.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        http::send(address, method, "/mcp", &headers, body).unwrap()
    };
    let hello = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}}"#,
        initialize_params()
    );
    let id = ask("", "POST", &hello).header("mcp-session-id").unwrap().to_owned();
    move |method, body| ask(&id, method, body)
}

#[test]
fn f40_nothing_is_told_before_the_client_is_ready_and_then_once() {
    let odd = Odd::of(&["a"]).start();
    let gateway = Gateway::start();
    gateway.add_server(&odd.registration("odd"));
    let ask = opened(&gateway, &gateway.add_key("full"));
    let listed = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    assert_eq!(ask("POST", listed).status, 200, "old clients list at once (F42)");
    let mut stream = ask("GET", "");
    assert_eq!(stream.status, 200);
    for tools in [&["a", "b"][..], &["a", "b", "c"]] {
        odd.set_tools(tools);
        gateway.post("/upstreams/odd/reconnect", &Value::Null);
        let count = gateway.get("/tools").as_array().map(Vec::len);
        assert_eq!(count, Some(tools.len()));
    }
    let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_eq!(ask("POST", ready).status, 202);
    let mut told = vec![stream.event().unwrap().unwrap().data];
    odd.set_tools(&["d"]);
    gateway.post("/upstreams/odd/reconnect", &Value::Null);
    told.push(stream.event().unwrap().unwrap().data);
    assert!(told.iter().all(|data| data.contains("list_changed")), "{told:?}");
    // Had the first two changes been told one by one, there would be more of them.
    assert_eq!(ask("DELETE", "").status, 204);
    assert_eq!(stream.event().unwrap(), None);
}

#[test]
fn calls_of_one_id_at_the_same_time_are_each_answered_and_cancelled_together() {
    let gate = Arc::new(AtomicBool::new(false));
    let odd = gated(&gate);
    let gateway = Gateway::start();
    gateway.add_server(&odd.registration("odd"));
    let session = gateway.session(&gateway.add_key("full"));
    let mut first = send(&session, &call("5", "t"));
    eventually("a running call", SOON, || (odd.calls("t") == 1).then_some(()));
    assert_eq!(session.post(&call("5", "u")).status, 200);
    let mut second = send(&session, &call("5", "t"));
    eventually("another running call", SOON, || (odd.calls("t") == 2).then_some(()));
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}"#;
    assert_eq!(session.post(cancel).status, 202);
    // The one that ended before took nothing of the others with it.
    for running in [&mut first, &mut second] {
        let rest = until(running, "\r\n0\r\n\r\n");
        assert!(!rest.contains("\"result\""), "{rest}");
    }
    gate.store(true, Ordering::SeqCst);
}

/// A session of the version that has batches.
fn with_batches(gateway: &Gateway, key: &Key) -> impl Fn(&str, &str) -> (u16, String) + use<> {
    let (address, bearer) = (gateway.address, key.bearer());
    let ask = move |session: &str, body: &str| {
        let mut headers = vec![
            ("Authorization", bearer.as_str()),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ];
        if !session.is_empty() {
            headers.push(("Mcp-Session-Id", session));
        }
        http::send(address, "POST", "/mcp", &headers, body).unwrap()
    };
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    let id = ask("", hello).header("mcp-session-id").unwrap().to_owned();
    move |kind, body| match kind {
        "id" => (0, id.clone()),
        _ => {
            let mut reply = ask(&id, body);
            (reply.status, reply.text().unwrap())
        }
    }
}

#[test]
fn two_requests_of_one_id_in_a_batch_are_both_answered_in_their_order() {
    let odd = Odd::of(&["t", "u"]).start();
    let gateway = Gateway::start();
    gateway.add_server(&odd.registration("odd"));
    let ask = with_batches(&gateway, &gateway.add_key("full"));
    let batch = format!(
        r#"[{},{},{}]"#,
        call("1", "t"),
        call("1", "u"),
        r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#
    );
    let (status, text) = ask("batch", &batch);
    let answers: Vec<Value> = serde_json::from_str(&text).unwrap();
    assert_eq!((status, answers.len()), (200, 3), "{text}");
    assert_eq!(answers[0]["result"]["content"][0]["text"], "t");
    assert_eq!(answers[1]["result"]["content"][0]["text"], "u");
    assert_eq!(answers[2]["result"], json!({}));
    assert_eq!((odd.ran("t"), odd.ran("u")), (1, 1));
}

/// Sends a batch with a call of `t`, and waits until its server has it.
fn start_batch(gateway: &Gateway, odd: &Odd, key: &Key, session: &str) -> TcpStream {
    let before = odd.calls("t");
    let body = format!("[{}]", call("1", "t"));
    let mut stream = TcpStream::connect(gateway.address).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: {}\r\nMcp-Session-Id: {session}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        gateway.address,
        key.bearer(),
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    eventually("a running batch", SOON, || (odd.calls("t") > before).then_some(()));
    stream
}

#[test]
fn f35_a_batch_whose_client_is_lost_runs_on() {
    let gate = Arc::new(AtomicBool::new(false));
    let odd = gated(&gate);
    let gateway = Gateway::start();
    gateway.add_server(&odd.registration("odd"));
    let key = gateway.add_key("full");
    let (_, session) = with_batches(&gateway, &key)("id", "");
    let stream = start_batch(&gateway, &odd, &key, &session);
    stream.shutdown(Shutdown::Both).unwrap();
    drop(stream);
    let served = || broken_requests(&gateway);
    eventually("a client that is noticed as lost", SOON, || (served() > 0).then_some(()));
    gate.store(true, Ordering::SeqCst);
    let done = r#"mcpm_tool_calls_total{outcome="ok",server="odd",tool="t"} 1"#;
    eventually("a call that was not cancelled", SOON, || {
        metrics(&gateway).contains(done).then_some(())
    });
    assert_eq!(odd.count("notifications/cancelled"), 0);
}

/// Requests of which the log says that their client broke off.
fn broken_requests(gateway: &Gateway) -> usize {
    gateway.whole_log().matches(r#""broken":true"#).count()
}

fn metrics(gateway: &Gateway) -> String {
    let bearer = format!("Bearer {ADMIN_TOKEN}");
    let headers = [("Authorization", bearer.as_str())];
    http::send(gateway.address, "GET", "/metrics", &headers, "").unwrap().text().unwrap()
}

#[test]
fn a_batch_that_is_cut_is_told_why() {
    let gate = Arc::new(AtomicBool::new(false));
    let odd = gated(&gate);
    let gateway = Gateway::start();
    gateway.add_server(&odd.registration("odd"));
    let key = gateway.add_key("full");
    let (_, session) = with_batches(&gateway, &key)("id", "");
    let mut stream = start_batch(&gateway, &odd, &key, &session);
    let bearer = key.bearer();
    let headers = [("Authorization", bearer.as_str()), ("Mcp-Session-Id", session.as_str())];
    assert_eq!(http::send(gateway.address, "DELETE", "/mcp", &headers, "").unwrap().status, 204);
    let said = until(&mut stream, "}}");
    assert!(said.starts_with("HTTP/1.1 404") && said.contains("unknown session"), "{said}");

    let (_, session) = with_batches(&gateway, &key)("id", "");
    let mut stream = start_batch(&gateway, &odd, &key, &session);
    gateway.post(&format!("/keys/{}/revoke", key.id), &Value::Null);
    let said = until(&mut stream, "}}");
    assert!(said.starts_with("HTTP/1.1 401") && said.contains("key is not valid"), "{said}");
}

#[test]
fn m4_a_call_whose_client_leaves_before_its_server_has_it_is_made_and_kept() {
    let gate = Arc::new(AtomicBool::new(true));
    let script_gate = gate.clone();
    // An app's session on the server takes until the gate is open; the link's is there.
    let odd = Odd::of(&["t"])
        .script(move |request, state| match request.rpc() {
            "initialize" => {
                let (gate, answer) = (script_gate.clone(), state.usual(request));
                Action::talk(move |wire| {
                    let open = wire.until(|| gate.load(Ordering::SeqCst));
                    wire.answer(&answer);
                    open
                })
            }
            _ => Action::Usual,
        })
        .start();
    let gateway = Gateway::start();
    gateway.add_server(&odd.registration("odd"));
    gate.store(false, Ordering::SeqCst);
    let session = gateway.session(&gateway.add_key("full"));
    let before = odd.count("initialize");
    let mut stream = send(&session, &call("5", "t"));
    let said = until(&mut stream, "data:");
    let first = said.lines().find_map(|line| line.strip_prefix("id: ")).unwrap().to_owned();
    eventually("a session that is being opened", SOON, || {
        (odd.count("initialize") > before).then_some(())
    });
    stream.shutdown(Shutdown::Both).unwrap();
    drop(stream);
    eventually("a client that is noticed as lost", SOON, || {
        (broken_requests(&gateway) > 0).then_some(())
    });
    assert_eq!(odd.calls("t"), 0, "the server has it already");
    gate.store(true, Ordering::SeqCst);
    let mut headers = session.headers();
    headers.extend([("Accept", "text/event-stream"), ("Last-Event-ID", first.as_str())]);
    let mut resumed = http::send(gateway.address, "GET", "/mcp", &headers, "").unwrap();
    let answer: Value = serde_json::from_str(&resumed.event().unwrap().unwrap().data).unwrap();
    assert_eq!((&answer["id"], &answer["result"]["content"][0]["text"]), (&json!(5), &json!("t")));
    assert_eq!(odd.ran("t"), 1);
    let mut other = session;
    assert_eq!(other.call("t", "{}").text(), "t");
}
