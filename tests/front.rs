//! The front door: names, methods, forms, limits, TLS. Each test carries the id of the rule or
//! of the reported fault that it stands for.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::gateway::Gateway;
use crate::support::http;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":"init-1","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

/// A POST with an app's key and what else is given; a header given here replaces the usual one.
fn post(gateway: &Gateway, key: &str, more: &[(&str, &str)], body: &str) -> (http::Reply, Value) {
    let mut headers = vec![
        ("Authorization", key),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
    ];
    for (name, value) in more {
        headers.retain(|(usual, _)| !usual.eq_ignore_ascii_case(name));
        if !value.is_empty() {
            headers.push((name, value));
        }
    }
    let mut reply = http::send(gateway.address, "POST", "/mcp", &headers, body).unwrap();
    let text = reply.text().unwrap();
    let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
    (reply, value)
}

fn setup() -> (Gateway, String) {
    let gateway = Gateway::start();
    let key = gateway.add_key("full").bearer();
    (gateway, key)
}

#[test]
fn http_01_both_spellings_of_the_path_are_served() {
    let (gateway, key) = setup();
    for path in ["/mcp", "/mcp/"] {
        let headers = [("Authorization", key.as_str()), ("Content-Type", "application/json")];
        let mut reply = http::send(gateway.address, "POST", path, &headers, INITIALIZE).unwrap();
        assert_eq!(reply.status, 200);
        let answer: Value = serde_json::from_str(&reply.text().unwrap()).unwrap();
        assert_eq!(answer["id"], "init-1");
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
        assert_eq!(http::send(gateway.address, "POST", path, &[], INITIALIZE).unwrap().status, 401);
    }
}

#[test]
fn http_07_only_our_names_are_served_and_before_anything_else() {
    let (gateway, key) = setup();
    let port = gateway.address.port();
    let status = |host: &str, extra: &str| {
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {host}\r\nAuthorization: {key}\r\n{extra}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{INITIALIZE}",
            INITIALIZE.len()
        );
        http::raw(gateway.address, &head).unwrap().status
    };
    for host in ["localhost", &format!("LOCALHOST:{port}"), &format!("[::1]:{port}"), "127.0.0.1"] {
        assert_eq!(status(host, ""), 200, "{host}");
    }
    for host in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1"] {
        assert_eq!(status(host, ""), 403, "{host}");
    }
    assert_eq!(status("localhost", "Origin: http://localhost:3000\r\n"), 200);
    assert_eq!(status("localhost", "Origin: https://evil.example\r\n"), 403);
    assert_eq!(status("localhost", "Origin: null\r\n"), 403);
    // The page and the API are behind the same check.
    for path in ["/", "/api/v1/groups", "/metrics", "/livez"] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: evil.example\r\n\r\n");
        assert_eq!(http::raw(gateway.address, &request).unwrap().status, 403, "{path}");
    }
}

#[test]
fn http_03_and_06_cors_for_pages_that_may_call() {
    let (gateway, _) = setup();
    let origin = ("Origin", "http://localhost:3000");
    let asked = "authorization, mcp-session-id, mcp-protocol-version, last-event-id";
    let headers = [
        origin,
        ("Access-Control-Request-Method", "POST"),
        ("Access-Control-Request-Headers", asked),
    ];
    let reply = http::send(gateway.address, "OPTIONS", "/mcp", &headers, "").unwrap();
    assert_eq!(reply.status, 204);
    assert_eq!(reply.header("access-control-allow-origin"), Some("http://localhost:3000"));
    assert_eq!(reply.header("access-control-allow-headers"), Some(asked));
    let (refused, _) = post(&gateway, "Bearer wrong", &[origin], INITIALIZE);
    assert_eq!(refused.status, 401);
    assert_eq!(refused.header("access-control-allow-origin"), Some("http://localhost:3000"));
    assert!(refused.header("access-control-expose-headers").unwrap().contains("Mcp-Session-Id"));
}

#[test]
fn http_08_batches_get_one_clear_answer() {
    let (gateway, key) = setup();
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for body in ["[]".to_owned(), format!("[{ping},{ping}]"), "[1]".to_owned()] {
        let (reply, answer) = post(&gateway, &key, &[], &body);
        assert_eq!((reply.status, &answer["error"]["code"]), (400, &json!(-32600)), "{body}");
    }
}

#[test]
fn http_09_and_10_forms() {
    let (gateway, key) = setup();
    let status = |name, value| post(&gateway, &key, &[(name, value)], INITIALIZE).0.status;
    assert_eq!(status("Accept", "*/*"), 200);
    assert_eq!(status("Accept", ""), 200);
    assert_eq!(status("Accept", "application/json"), 200);
    assert_eq!(status("Accept", "text/html"), 406);
    assert_eq!(status("Content-Type", "Application/JSON; charset=utf-8"), 200);
    assert_eq!(status("Content-Type", "text/plain"), 415);
    assert_eq!(status("Content-Type", ""), 415);
}

#[test]
fn http_11_versions() {
    let (gateway, key) = setup();
    for (asked, agreed) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2099-01-01", "2025-11-25"),
        ("foo", "2025-11-25"),
    ] {
        let body = INITIALIZE.replace("2025-11-25", asked);
        let (reply, answer) = post(&gateway, &key, &[], &body);
        assert_eq!(answer["result"]["protocolVersion"], agreed);
        let session = reply.header("mcp-session-id").unwrap().to_owned();
        let list = r#"{"jsonrpc":"2.0","id":"7","method":"tools/list"}"#;
        let with = |version| {
            let more = [("Mcp-Session-Id", session.as_str()), ("MCP-Protocol-Version", version)];
            post(&gateway, &key, &more, list)
        };
        assert_eq!(with("").1["id"], "7");
        assert_eq!(with(agreed).0.status, 200);
        assert_eq!(with("1999-01-01").0.status, 400);
        assert_eq!(with("foo").0.status, 400);
    }
}

#[test]
fn ses_02_sessions_that_are_not_there() {
    let (gateway, key) = setup();
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    assert_eq!(post(&gateway, &key, &[], list).0.status, 400);
    assert_eq!(post(&gateway, &key, &[("Mcp-Session-Id", "made-up")], list).0.status, 404);
    for method in ["GET", "DELETE"] {
        let status = |more: &[(&str, &str)]| {
            let mut headers =
                vec![("Authorization", key.as_str()), ("Accept", "text/event-stream")];
            headers.extend(more);
            http::send(gateway.address, method, "/mcp", &headers, "").unwrap().status
        };
        assert_eq!(status(&[]), 400, "{method}");
        assert_eq!(status(&[("Mcp-Session-Id", "made-up")]), 404, "{method}");
    }
    let (opened, _) = post(&gateway, &key, &[], INITIALIZE);
    let id = opened.header("mcp-session-id").unwrap();
    // SEC-01: to another key, somebody's session is one that does not exist.
    let other = gateway.add_key("full").bearer();
    assert_eq!(post(&gateway, &other, &[("Mcp-Session-Id", id)], list).0.status, 404);
    assert_eq!(post(&gateway, &key, &[("Mcp-Session-Id", id)], list).0.status, 200);
    let headers = [("Authorization", key.as_str()), ("Mcp-Session-Id", id)];
    assert_eq!(http::send(gateway.address, "DELETE", "/mcp", &headers, "").unwrap().status, 204);
    assert_eq!(post(&gateway, &key, &[("Mcp-Session-Id", id)], list).0.status, 404);
}

#[test]
fn http_12_13_and_17_methods() {
    let (gateway, key) = setup();
    let (opened, _) = post(&gateway, &key, &[], INITIALIZE);
    let session = [("Mcp-Session-Id", opened.header("mcp-session-id").unwrap())];
    let ask = |method: &str, params: &str| {
        let body = format!(r#"{{"jsonrpc":"2.0","id":5,"method":"{method}","params":{params}}}"#);
        post(&gateway, &key, &session, &body)
    };
    assert_eq!(ask("foo/bar", "{}").1["error"]["code"], -32601);
    assert_eq!(ask("foo/bar", "{}").0.status, 200);
    assert_eq!(ask("ping", "{}").1["result"], json!({}));
    assert_eq!(ask("resources/list", "{}").1["result"], json!({"resources": []}));
    assert_eq!(ask("prompts/list", "{}").1["result"], json!({"prompts": []}));
    assert_eq!(ask("logging/setLevel", r#"{"level":"info"}"#).1["result"], json!({}));
    assert_eq!(ask("logging/setLevel", r#"{"level":"loud"}"#).1["error"]["code"], -32602);
    // CAT-09: the list is one page.
    assert_eq!(ask("tools/list", r#"{"cursor":"8"}"#).1["error"]["code"], -32602);
    assert_eq!(ask("tools/list", r#"{"cursor":null}"#).1["result"], json!({"tools": []}));
    // ARG-07.
    assert_eq!(ask("tools/call", r#"{"name":"x","arguments":[]}"#).1["error"]["code"], -32602);
    assert_eq!(ask("tools/call", "{}").1["error"]["code"], -32602);
    assert_eq!(ask("tools/call", r#"{"name":"x"}"#).1["result"]["isError"], true);
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    assert_eq!(post(&gateway, &key, &[], ping).1["result"], json!({}), "before initialize");
}

#[test]
fn http_14_bodies_beyond_the_limit_get_an_answer() {
    let (gateway, key) = setup();
    let large = "x".repeat(17 << 20);
    let (reply, answer) = post(&gateway, &key, &[("Origin", "http://localhost")], &large);
    assert_eq!(reply.status, 413);
    assert!(answer["error"]["message"].as_str().unwrap().contains("16777216"), "{answer}");
    assert!(reply.header("access-control-allow-origin").is_some());
    // Five megabytes are fine, and so is a call after the refusal.
    let name = "y".repeat(5 << 20);
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"a":"{name}"}}}}"#);
    assert_eq!(post(&gateway, &key, &[], &body).1["result"], json!({}));
}

#[test]
fn p7_hostile_bodies_get_an_error_and_never_silence() {
    let (gateway, key) = setup();
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"a":{}1{}}}}}"#,
        "[".repeat(3000),
        "]".repeat(3000)
    );
    assert_eq!(post(&gateway, &key, &[], &deep).1["result"], json!({}));
    for body in ["", "{", "nonsense", "5", "null", r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#]
    {
        let (reply, answer) = post(&gateway, &key, &[], body);
        assert_eq!(reply.status, 400, "{body}");
        assert!(answer["error"]["message"].is_string(), "{body}: {answer}");
    }
}

#[test]
fn f60_to_f66_modern_requests_say_what_they_are() {
    let (gateway, key) = setup();
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let ask = |method: &str, params: &str, more: &[(&str, &str)]| {
        let body = format!(r#"{{"jsonrpc":"2.0","id":"m","method":"{method}","params":{params}}}"#);
        let mut headers = vec![("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)];
        headers.retain(|(usual, _)| !more.iter().any(|(name, _)| name.eq_ignore_ascii_case(usual)));
        headers.extend(more.iter().filter(|(_, value)| !value.is_empty()));
        let (reply, answer) = post(&gateway, &key, &headers, &body);
        (reply.status, answer)
    };
    let with_meta = format!("{{{meta}}}");
    let (status, answer) = ask("server/discover", &with_meta, &[]);
    assert_eq!((status, &answer["result"]["resultType"]), (200, &json!("complete")));
    assert_eq!(answer["result"]["supportedVersions"][0], "2026-07-28");
    let code = |method: &str, params: &str, more: &[(&str, &str)]| {
        let (status, answer) = ask(method, params, more);
        (status, answer["error"]["code"].as_i64().unwrap_or_default())
    };
    assert_eq!(code("server/discover", "{}", &[]), (400, -32602));
    assert_eq!(code("server/discover", &with_meta, &[("MCP-Protocol-Version", "")]), (400, -32020));
    assert_eq!(code("server/discover", &with_meta, &[("Mcp-Method", "tools/list")]), (400, -32020));
    assert_eq!(code("server/discover", &with_meta, &[("Mcp-Method", "")]), (400, -32020));
    let other = with_meta.replace("2026-07-28", "2027-01-01");
    assert_eq!(
        code("server/discover", &other, &[("MCP-Protocol-Version", "2027-01-01")]),
        (400, -32022)
    );
    for gone in ["ping", "initialize", "logging/setLevel", "foo/bar"] {
        assert_eq!(code(gone, &with_meta, &[]), (404, -32601), "{gone}");
    }
    let call = format!(r#"{{"name":"nowhere","arguments":{{}},{meta}}}"#);
    assert_eq!(code("tools/call", &call, &[]), (400, -32020), "no Mcp-Name");
    assert_eq!(code("tools/call", &call, &[("Mcp-Name", "other")]), (400, -32020));
    assert_eq!(code("tools/call", &call, &[("Mcp-Name", "nowhere")]), (200, -32602));
    assert_eq!(
        code("tools/call", &call, &[("Mcp-Name", "=?base64?bm93aGVyZQ==?=")]),
        (200, -32602)
    );
}

#[test]
fn p1_tls_with_h1_and_h2_and_half_a_pair_stops_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (cert, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    fs::write(&cert, made.cert.pem()).unwrap();
    fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let (cert, key) = (cert.to_str().unwrap(), key.to_str().unwrap());
    let gateway = Gateway::start_with(&[("MCPM_TLS_CERT", cert), ("MCPM_TLS_KEY", key)]);
    let url = format!("https://localhost:{}/livez", gateway.address.port());
    for (version, expect) in [("--http1.1", "1.1 200"), ("--http2", "2 200")] {
        let output = Command::new("curl")
            .args(["-sS", version, "--cacert", cert, "-o", "/dev/null"])
            .args(["-w", "%{http_version} %{http_code}", "--resolve"])
            .arg(format!("localhost:{}:127.0.0.1", gateway.address.port()))
            .arg(&url)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(said, expect, "{}", String::from_utf8_lossy(&output.stderr));
    }
    let half = Command::new(env!("CARGO_BIN_EXE_mcp-manager"))
        .args(["check"])
        .current_dir(folder.path())
        .env("MCPM_TLS_CERT", cert)
        .output()
        .unwrap();
    assert!(!half.status.success());
    let said = String::from_utf8_lossy(&half.stderr);
    assert!(said.contains("tls_key"), "{said}");
}
