//! Sessions of 2025-03-26 and 2025-06-18 from end to end. The conformance suite opens its sessions
//! with 2025-11-25 whatever version it is asked for, so these two are tested here.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::support::gateway::Gateway;
use crate::support::http::{self, Reply};
use crate::support::odd::Odd;
use crate::support::{SOON, eventually};

/// A client of one version, which sends what that version asks for and nothing else.
struct Client {
    address: SocketAddr,
    bearer: String,
    version: &'static str,
    session: String,
}

impl Client {
    fn open(gateway: &Gateway, version: &'static str) -> Self {
        let (address, bearer) = (gateway.address, gateway.add_key("full").bearer());
        let mut client = Self { address, bearer, version, session: String::new() };
        let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}});
        let mut opened = client.post(&request(1, "initialize", &params));
        client.session = opened.header("mcp-session-id").expect("a session").to_owned();
        let hello: Value = serde_json::from_str(&opened.text().unwrap()).unwrap();
        assert_eq!(hello["result"]["protocolVersion"], version, "{hello}");
        assert_eq!(hello["result"]["capabilities"]["tools"]["listChanged"], true, "{hello}");
        let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(client.post(&note).status, 202);
        client
    }

    fn send(&self, method: &str, body: &str) -> Reply {
        let mut headers = vec![
            ("Authorization", self.bearer.as_str()),
            (
                "Accept",
                if method == "GET" {
                    "text/event-stream"
                } else {
                    "application/json, text/event-stream"
                },
            ),
        ];
        if method == "POST" {
            headers.push(("Content-Type", "application/json"));
        }
        if !self.session.is_empty() {
            headers.push(("Mcp-Session-Id", &self.session));
            // The header came with 2025-06-18.
            if self.version >= "2025-06-18" {
                headers.push(("MCP-Protocol-Version", self.version));
            }
        }
        http::send(self.address, method, "/mcp", &headers, body).unwrap()
    }

    fn post(&self, message: &Value) -> Reply {
        self.send("POST", &message.to_string())
    }

    fn ask(&self, message: &Value) -> Value {
        serde_json::from_str(&self.post(message).text().unwrap()).unwrap()
    }
}

fn request(id: u32, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn call(id: u32, tool: &str) -> Value {
    request(id, "tools/call", &json!({"name": tool, "arguments": {}}))
}

/// What both versions have: lists, calls, the stream of changes, the end.
fn a_session_from_end_to_end(version: &'static str) -> (Gateway, Odd, Client) {
    let odd = Odd::of(&["one", "two"]).with_stream().start();
    let gateway = Gateway::start();
    gateway.add_server(&odd.registration("odd"));
    let client = Client::open(&gateway, version);
    let listed = client.ask(&request(2, "tools/list", &json!({})));
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 2, "{listed}");
    assert!(listed["result"].get("resultType").is_none(), "a word of 2026-07-28: {listed}");
    let called = client.ask(&call(3, "one"));
    assert_eq!(called["result"]["content"][0]["text"], "one", "{called}");
    let unknown = client.ask(&call(4, "nowhere"));
    assert_eq!(unknown["result"]["isError"], true, "{unknown}");
    assert_eq!(client.ask(&request(5, "ping", &json!({})))["result"], json!({}));

    let mut stream = client.send("GET", "");
    assert_eq!((stream.status, stream.is_event_stream()), (200, true));
    odd.set_tools(&["one", "two", "three"]);
    odd.say(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    let event = stream.event().unwrap().expect("a change");
    assert!(event.data.contains("notifications/tools/list_changed"), "{event:?}");
    eventually("the third tool", SOON, || {
        let listed = client.ask(&request(6, "tools/list", &json!({})));
        (listed["result"]["tools"].as_array()?.len() == 3).then_some(())
    });
    (gateway, odd, client)
}

fn ends(client: &Client) {
    assert_eq!(client.send("DELETE", "").status, 204);
    assert_eq!(client.post(&request(9, "ping", &json!({}))).status, 404);
}

#[test]
fn a_session_of_2025_06_18() {
    let (_gateway, _odd, client) = a_session_from_end_to_end("2025-06-18");
    // This version took batches away again.
    let batch = json!([request(7, "ping", &json!({})), request(8, "ping", &json!({}))]);
    assert_eq!(client.post(&batch).status, 400);
    ends(&client);
}

#[test]
fn a_session_of_2025_03_26() {
    let (_gateway, odd, client) = a_session_from_end_to_end("2025-03-26");
    let runs = odd.ran("two");
    let note =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}});
    let answers = client.ask(&json!([call(7, "two"), note, request(8, "ping", &json!({}))]));
    let mut ids: Vec<_> =
        answers.as_array().unwrap().iter().map(|one| one["id"].as_u64()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [Some(7), Some(8)], "an answer for each request: {answers}");
    assert_eq!(odd.ran("two"), runs + 1);
    assert_eq!(client.post(&json!([note])).status, 202);
    ends(&client);
}
