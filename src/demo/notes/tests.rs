//! `notes` over a real socket, by hand-written HTTP: what a client of each era gets to see.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_util::sync::CancellationToken;

struct Server {
    address: SocketAddr,
    shutdown: CancellationToken,
    task: tokio::task::JoinHandle<anyhow::Result<()>>,
}

async fn serve() -> Server {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    let task = tokio::spawn(super::serve_http(listener, shutdown.clone()));
    Server { address, shutdown, task }
}

impl Server {
    /// Posts one message on a connection of its own and returns the whole answer as text.
    async fn post(&self, lines: &str, message: &Value) -> String {
        let mut stream = tokio::net::TcpStream::connect(self.address).await.unwrap();
        let (body, host) = (message.to_string(), self.address);
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{lines}\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    /// Calls a tool as a client of version 2026-07-28 and returns the messages of the answer.
    async fn call(&self, tool: &str, arguments: Value, more_meta: &Value) -> Vec<Value> {
        let mut meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"}
        });
        meta.as_object_mut().unwrap().extend(more_meta.as_object().unwrap().clone());
        let lines = format!(
            "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n"
        );
        let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let answer = self.post(&lines, &message).await;
        let messages = answer.lines().filter_map(|line| {
            serde_json::from_str(line.strip_prefix("data:").unwrap_or(line).trim()).ok()
        });
        let messages: Vec<Value> = messages.filter(Value::is_object).collect();
        assert!(!messages.is_empty(), "{answer}");
        messages
    }
}

#[tokio::test]
async fn a_legacy_client_gets_a_session() {
    let server = serve().await;
    let params = json!({
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}
    });
    let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    let answer = server.post("", &message).await;
    assert!(answer.to_lowercase().contains("mcp-session-id:"), "{answer}");
    assert!(answer.contains(r#""name":"notes""#), "{answer}");
    assert!(answer.contains(r#""logging":{}"#), "{answer}");
}

#[tokio::test]
async fn notes_are_shared_and_errors_are_for_the_model() {
    let server = serve().await;
    let none = json!({});
    let added = server.call("add_note", json!({"title": "Milk", "tags": ["Food"]}), &none).await;
    assert_eq!(added[0]["result"]["structuredContent"]["id"], 1);
    let found = server.call("search_notes", json!({"query": "food"}), &none).await;
    assert_eq!(found[0]["result"]["structuredContent"]["notes"][0]["title"], "Milk");
    let missing = server.call("delete_note", json!({"id": 9}), &none).await;
    assert_eq!(missing[0]["result"]["isError"], true);
    let text = missing[0]["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("list_notes"), "{text}");
}

#[tokio::test]
async fn a_countdown_reports_only_what_was_asked_for() {
    let server = serve().await;
    let arguments = json!({"from": 2, "interval_ms": 1});
    let quiet = server.call("countdown", arguments.clone(), &json!({})).await;
    assert_eq!(quiet.len(), 1, "{quiet:?}");
    let asked = json!({"progressToken": "p1", "io.modelcontextprotocol/logLevel": "info"});
    let loud = server.call("countdown", arguments, &asked).await;
    let methods: Vec<&str> = loud.iter().filter_map(|one| one["method"].as_str()).collect();
    assert_eq!(
        methods,
        [
            "notifications/progress",
            "notifications/message",
            "notifications/progress",
            "notifications/message"
        ]
    );
    assert_eq!(loud[2]["params"]["progress"], json!(2.0));
    assert_eq!(loud[4]["result"]["structuredContent"]["steps"], 2);
}

#[tokio::test]
async fn a_shutdown_ends_the_server() {
    let server = serve().await;
    server.shutdown.cancel();
    server.task.await.unwrap().unwrap();
}
