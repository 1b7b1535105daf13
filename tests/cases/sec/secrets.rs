//! SEC-05: what logs, the audit and the metrics hold of requests.

use serde_json::json;

use super::{audit, metrics};
use crate::api::NOWHERE;
use crate::cases::call;
use crate::support::gateway::{ADMIN_TOKEN, Gateway};
use crate::support::http;
use crate::support::mcp::Peer;
use crate::support::odd::{Action, Answer, Odd};
use crate::support::{SOON, eventually};

#[test]
fn sec_05_no_secret_and_nothing_forged_is_written_down() {
    let odd = Odd::of(&["t", "fails"])
        .script(|request, _| match request.tool() {
            Some("fails") => Answer::json("nonsense with S3-answer").into(),
            _ => Action::Usual,
        })
        .start();
    let gateway = Gateway::start_with(&[("MCPM_LOG_LEVEL", "debug"), ("S3_ENV", "S3-expanded")]);
    let mut registration = odd.registration("odd");
    registration["url"] = json!(odd.url("/mcp?token=S3-query"));
    registration["headers"] = json!({"X-Api-Key": "S3-header", "X-Other": "${S3_ENV}"});
    gateway.add_server(&registration);
    let gone = json!({"name": "gone", "url": format!("{NOWHERE}?token=S3-gone"), "headers": {"Authorization": "Bearer S3-bearer"}, "timeout_ms": 2000});
    gateway.post("/upstreams", &gone);
    let key = gateway.add_key("full");
    let mut session = gateway.session(&key);
    session.call("t", r#"{"password":"S3-argument"}"#);
    session.call("fails", r#"{"password":"S3-argument"}"#);
    session.call("S3-made-up", "{}");

    let bearer = key.bearer();
    let body = call("1", "t", r#"{"password":"S3-argument"}"#);
    let send = |path: &str, authorization: &str, host: &str| {
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: {authorization}\r\nMcp-Session-Id: {}\r\n\
             X-Forwarded-For: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\nX-Real-IP: 6.6.6.6\r\nCookie: S3-cookie\r\n\
             User-Agent: S3-agent\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            session.id(),
            body.len()
        );
        http::raw(gateway.address, &request).unwrap().status
    };
    assert_eq!(send("/mcp?key=S3-path", &bearer, "localhost"), 200);
    assert_eq!(send("/mcp?key=S3-path", "Bearer S3-wrong", "localhost"), 401);
    assert_eq!(send("/mcp?key=S3-path", &bearer, "s3-evil.example"), 403);
    gateway.api("PATCH", "/upstreams/odd", &json!({"headers": {"X-Api-Key": "S3-changed"}}));
    gateway.post(&format!("/keys/{}/reissue", key.id), &json!(null));

    let log = eventually("the last request in the log", SOON, || {
        Some(gateway.whole_log()).filter(|log| log.contains("/reissue"))
    });
    assert!(log.contains(r#""peer":"127.0.0.1:"#), "our own view of who asks is there");
    for (what, text) in [("log", log), ("audit", audit(&gateway)), ("metrics", metrics(&gateway))] {
        let text = text.to_lowercase();
        let secrets = ["s3-", "6.6.6.6", &key.secret.to_lowercase(), ADMIN_TOKEN];
        // A tool's name is no secret.
        let lines = text.lines().map(|line| line.replace("s3-made-up", ""));
        let found: Vec<_> = lines.filter(|line| secrets.iter().any(|s| line.contains(s))).collect();
        assert!(found.is_empty(), "{what}: {}", found.join("\n"));
    }
}
