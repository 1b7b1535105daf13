//! SEC: who may use what, and what is left of those who are gone.

mod keys;
mod left;
mod secrets;

use serde_json::Value;

use crate::support::gateway::Gateway;
use crate::support::http;
use crate::support::mcp::LEGACY;

/// The status of a request to `/mcp` with this `Authorization` and this session.
fn status(gateway: &Gateway, method: &str, authorization: &str, session: &str) -> u16 {
    let body = match method {
        "POST" => r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
        _ => "",
    };
    let headers = [
        ("Authorization", authorization),
        ("Mcp-Session-Id", session),
        ("MCP-Protocol-Version", LEGACY),
        ("Accept", "application/json, text/event-stream"),
        ("Content-Type", "application/json"),
    ];
    http::send(gateway.address, method, "/mcp", &headers, body).unwrap().status
}

/// The metrics as text.
fn metrics(gateway: &Gateway) -> String {
    let bearer = format!("Bearer {}", crate::support::gateway::ADMIN_TOKEN);
    let headers = [("Authorization", bearer.as_str())];
    http::send(gateway.address, "GET", "/metrics", &headers, "").unwrap().text().unwrap()
}

/// The value of a metric without its labels' order mattering: the line begins with this.
fn metric(gateway: &Gateway, start: &str) -> Option<u64> {
    let text = metrics(gateway);
    let line = text.lines().find_map(|line| line.strip_prefix(start))?;
    line.trim().parse().ok()
}

/// What the audit holds, as text.
fn audit(gateway: &Gateway) -> String {
    let audit: Value = gateway.get("/audit");
    audit.to_string()
}
