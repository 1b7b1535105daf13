//! Who is let in, what other origins get, and what is open to all.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::NOWHERE;
use crate::support::gateway::Gateway;
use crate::support::http::{self, Reply};
use crate::support::process::Process;

#[test]
fn only_the_admin_token_opens_the_api() {
    let gateway = Gateway::start();
    let key = gateway.add_key("full");
    let ask = |bearer: &str| {
        let headers = [("Authorization", bearer), ("Origin", "https://ui.example")];
        http::send(gateway.address, "GET", "/api/v1/keys", &headers, "").unwrap()
    };
    for bearer in ["Bearer wrong", "Basic eA==", "Bearer ", &key.bearer()] {
        let mut reply = ask(bearer);
        assert_eq!(reply.status, 401, "{bearer}");
        assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
        assert_eq!(reply.header("access-control-allow-origin"), Some("*"), "HTTP-06");
        assert!(reply.text().unwrap().starts_with(r#"{"error":""#));
    }
    // What is not there looks the same from outside.
    let unknown = http::send(gateway.address, "GET", "/api/v1/no", &[], "").unwrap();
    assert_eq!(unknown.status, 401);
    assert_eq!(gateway.api("GET", "/no", &Value::Null).0, 404);
}

#[test]
fn http_03_preflight_passes_without_a_token() {
    let gateway = Gateway::start();
    let headers = [
        ("Origin", "https://ui.example"),
        ("Access-Control-Request-Method", "PATCH"),
        ("Access-Control-Request-Headers", "authorization, mcp-session-id"),
    ];
    let reply = http::send(gateway.address, "OPTIONS", "/api/v1/keys", &headers, "").unwrap();
    assert_eq!(reply.status, 204);
    let header = |name: &str| reply.header(name).unwrap_or_default().to_ascii_lowercase();
    assert_eq!(header("access-control-allow-origin"), "*");
    for name in ["authorization", "mcp-session-id", "mcp-protocol-version", "last-event-id"] {
        assert!(header("access-control-allow-headers").contains(name), "{name}");
    }
    for method in ["get", "post", "patch", "delete"] {
        assert!(header("access-control-allow-methods").contains(method), "{method}");
    }
    assert!(header("access-control-expose-headers").contains("mcp-session-id"));
}

#[test]
fn other_methods_health_metrics_and_the_page() {
    let gateway = Gateway::start();
    assert_eq!(gateway.api("PUT", "/groups", &json!({})).0, 405);
    let get = |path: &str| http::send(gateway.address, "GET", path, &[], "").unwrap();
    let json =
        |mut reply: Reply| -> Value { serde_json::from_str(&reply.text().unwrap()).unwrap() };
    assert_eq!(json(get("/livez")), json!({"ok": true}));
    assert_eq!(json(get("/readyz"))["status"], "ok");
    assert_eq!(get("/metrics").status, 401);
    let mut page = get("/");
    assert_eq!(page.status, 200);
    assert_eq!(page.header("cache-control"), Some("no-store"));
    assert!(
        page.header("content-security-policy")
            .is_some_and(|policy| policy.starts_with("default-src 'none'"))
    );
    assert!(page.text().unwrap().contains("Admin token"));
    for (path, kind) in [("/app.js", "text/javascript"), ("/app.css", "text/css")] {
        assert!(get(path).header("content-type").is_some_and(|found| found.starts_with(kind)));
    }
}

#[test]
fn metrics_open_to_the_admin_token() {
    let gateway = Gateway::start();
    gateway.post("/upstreams", &json!({"name": "gone", "url": NOWHERE, "timeout_ms": 2000}));
    let headers = [("Authorization", "Bearer the-admin-token-of-the-tests")];
    let metrics =
        || http::send(gateway.address, "GET", "/metrics", &headers, "").unwrap().text().unwrap();
    let text = metrics();
    assert!(text.contains("mcpm_build_info{version="), "{text}");
    assert!(text.contains("mcpm_server_up{server=\"gone\"} 0"), "{text}");
    gateway.api("DELETE", "/upstreams/gone", &Value::Null);
    assert!(!metrics().contains("gone"), "PLT-01: series of removed servers go");
}

#[test]
fn without_a_configured_token_everything_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("mcp-manager.yaml");
    let database = folder.path().join("mcp-manager.db");
    std::fs::write(&config, format!("boot:\n  port: 0\n  db: {}\n", database.display())).unwrap();
    let mut process = Process::start(
        Command::new(env!("CARGO_BIN_EXE_mcp-manager"))
            .args(["serve", "--config"])
            .arg(&config)
            .current_dir(folder.path())
            .env_clear()
            .env("MCPM_LOG_FORMAT", "json")
            .stdin(Stdio::null())
            .stderr(Stdio::piped()),
    );
    let address = process.line("a gateway that listens", |line| {
        let line: Value = serde_json::from_str(line).ok()?;
        let fields = line.get("fields").filter(|fields| fields["message"] == "listening")?;
        fields["address"].as_str()?.parse().ok()
    });
    for path in ["/api/v1/keys", "/api/v1/no", "/metrics"] {
        for headers in [&[][..], &[("Authorization", "Bearer x")][..]] {
            assert_eq!(
                http::send(address, "GET", path, headers, "").unwrap().status,
                503,
                "{path}"
            );
        }
    }
    assert_eq!(http::send(address, "GET", "/livez", &[], "").unwrap().status, 200);
}
