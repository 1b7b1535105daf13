//! PLT-01: labels of metrics.

use serde_json::{Value, json};

use crate::support::gateway::{ADMIN_TOKEN, Gateway};
use crate::support::http;
use crate::support::mcp::{Peer, modern};
use crate::support::odd::Odd;

/// The series that there are, without their values.
fn series(gateway: &Gateway) -> Vec<String> {
    let bearer = format!("Bearer {ADMIN_TOKEN}");
    let headers = [("Authorization", bearer.as_str())];
    let mut reply = http::send(gateway.address, "GET", "/metrics", &headers, "").unwrap();
    let text = reply.text().unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.rsplit_once(' ')).map(|(name, _)| name.to_owned()).collect()
}

/// One of everything that a client can make up, `number` times.
fn make_up(gateway: &Gateway, key: &str, numbers: std::ops::Range<u32>) {
    let mut session = crate::support::mcp::Session::open(gateway.address, key);
    for number in numbers {
        session.call(&format!("tool-{number}"), "{}");
        session.request(&format!("method/{number}"), "{}");
        session.post(&format!(r#"{{"jsonrpc":"2.0","method":"notifications/n{number}"}}"#));
        modern(gateway.address, key, "tools/call", json!({"name": format!("made-{number}")}));
        let agent = format!("agent/{number}");
        let version = format!("2025-01-{number}");
        let headers = [
            ("Authorization", key),
            ("User-Agent", agent.as_str()),
            ("MCP-Protocol-Version", version.as_str()),
            ("Mcp-Session-Id", agent.as_str()),
            ("Content-Type", "application/json"),
        ];
        let method = format!("VERB{number}");
        let path = format!("/path/{number}");
        for (method, path) in [("POST", "/mcp"), (method.as_str(), "/mcp"), ("GET", path.as_str())]
        {
            http::send(gateway.address, method, path, &headers, "").unwrap();
        }
        drop(crate::support::mcp::Session::open(gateway.address, key));
    }
}

#[test]
fn plt_01_what_clients_make_up_adds_no_series() {
    let odd = Odd::of(&["t", "u"]).start();
    let gateway = Gateway::start();
    gateway.add_server(&odd.registration("odd"));
    let key = gateway.add_key("full").bearer();
    let mut session = crate::support::mcp::Session::open(gateway.address, &key);
    assert_eq!(session.call("t", "{}").text(), "t");
    make_up(&gateway, &key, 0..3);
    let few = series(&gateway);
    make_up(&gateway, &key, 3..250);
    let many = series(&gateway);
    let new: Vec<_> = many.iter().filter(|name| !few.contains(name)).collect();
    assert!(new.is_empty(), "{new:?}");
    for made_up in ["tool-", "made-", "method/", "agent", "VERB", "/path", "2025-01"] {
        assert!(!many.iter().any(|name| name.contains(made_up)), "{made_up}: {many:?}");
    }
    // The real one is told apart; what is made up counts together.
    assert!(many.iter().any(|name| name.contains(r#"tool="t""#)), "{many:?}");
    assert!(many.iter().any(|name| name.contains(r#"method="other""#)), "{many:?}");

    assert!(many.iter().any(|name| name.contains(r#"server="odd""#)));
    gateway.api("DELETE", "/upstreams/odd", &Value::Null);
    let left = series(&gateway);
    assert!(!left.iter().any(|name| name.contains(r#"="odd""#)), "{left:?}");
    assert!(!left.iter().any(|name| name.contains(r#"tool="t""#)), "{left:?}");
}
