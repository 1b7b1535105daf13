//! MCP as text: requests are written and answers are kept as the JSON they are, so that two peers'
//! answers can be compared byte by byte.

use std::io;
use std::net::SocketAddr;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::http::{self, Reply};

pub(crate) const LEGACY: &str = "2025-11-25";
pub(crate) const MODERN: &str = "2026-07-28";

/// One answer, as it came.
#[derive(Debug)]
pub(crate) struct Message(pub(crate) String);

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

impl Message {
    pub(crate) fn id(&self) -> Option<Value> {
        self.value().get_mut("id").map(Value::take)
    }

    /// The text of `result`.
    pub(crate) fn result(&self) -> &str {
        let envelope: Envelope = serde_json::from_str(&self.0).unwrap();
        envelope.result.unwrap_or_else(|| panic!("no result in {}", self.0)).get()
    }

    /// The value of `error`.
    pub(crate) fn error(&self) -> Option<Value> {
        let envelope: Envelope = serde_json::from_str(&self.0).unwrap();
        envelope.error.map(|error| serde_json::from_str(error.get()).unwrap())
    }

    /// All texts of a tool's result, one under the other.
    pub(crate) fn text(&self) -> String {
        let result: Value = serde_json::from_str(self.result()).unwrap();
        let blocks = result["content"].as_array().cloned().unwrap_or_default();
        let texts: Vec<_> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
        texts.join("\n")
    }

    /// Whether a call was refused, either way: as an error, or as a result that says so.
    pub(crate) fn is_refusal(&self) -> bool {
        self.error().is_some() || self.value()["result"]["isError"] == json!(true)
    }

    fn value(&self) -> Value {
        serde_json::from_str(&self.0).unwrap_or_else(|error| panic!("{error} in {}", self.0))
    }
}

/// A tool as it is listed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// Anything that answers MCP requests: a server over stdio, a server over HTTP, the gateway.
pub(crate) trait Peer {
    /// `params` is JSON text and is sent as it stands.
    fn request(&mut self, method: &str, params: &str) -> Message;

    fn call(&mut self, tool: &str, arguments: &str) -> Message {
        let name = serde_json::to_string(tool).unwrap();
        self.request("tools/call", &format!(r#"{{"name":{name},"arguments":{arguments}}}"#))
    }

    /// All pages of `tools/list`.
    fn tools(&mut self) -> Vec<Tool> {
        let mut tools = Vec::new();
        let mut params = "{}".to_owned();
        loop {
            let answer = self.request("tools/list", &params);
            let page: ToolPage = serde_json::from_str(answer.result()).unwrap();
            tools.extend(page.tools.iter().map(|tool| {
                let value: Value = serde_json::from_str(tool.get()).unwrap();
                let name = value["name"].as_str().unwrap().to_owned();
                Tool { name, text: tool.get().to_owned() }
            }));
            let Some(cursor) = page.next_cursor else { return tools };
            params = json!({ "cursor": cursor }).to_string();
        }
    }

    fn tool_names(&mut self) -> Vec<String> {
        self.tools().into_iter().map(|tool| tool.name).collect()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolPage<'a> {
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
    next_cursor: Option<String>,
}

/// `initialize`, with no capability that would make a server ask back.
pub(crate) fn initialize_params() -> String {
    json!({
        "protocolVersion": LEGACY,
        "capabilities": {},
        "clientInfo": {"name": "mcpm-tests", "version": "1"},
    })
    .to_string()
}

/// A legacy session over streamable HTTP.
#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) address: SocketAddr,
    key: String,
    id: Option<String>,
    requests: u64,
}

impl Session {
    /// Opens a session at `/mcp`. The key may be empty.
    pub(crate) fn open(address: SocketAddr, key: &str) -> Self {
        let mut session = Self { address, key: key.to_owned(), id: None, requests: 0 };
        session.request("initialize", &initialize_params());
        let reply = session.post(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        assert_eq!(reply.status, 202, "notifications/initialized");
        session
    }

    /// The id that the other side gave it.
    pub(crate) fn id(&self) -> &str {
        self.id.as_deref().unwrap_or_default()
    }

    /// Posts one message and gives the whole answer, whatever its status.
    pub(crate) fn post(&self, message: &str) -> Reply {
        self.post_with(&[("Accept", "application/json, text/event-stream")], message)
    }

    /// The same with these headers in place of `Accept`.
    pub(crate) fn post_with(&self, more: &[(&str, &str)], message: &str) -> Reply {
        let mut headers = self.headers();
        headers.extend(more);
        headers.push(("Content-Type", "application/json"));
        http::send(self.address, "POST", "/mcp", &headers, message).unwrap()
    }

    /// The bytes of a POST of this message, to be sent by hand.
    pub(crate) fn post_raw(&self, message: &str) -> String {
        let mut head = format!("POST /mcp HTTP/1.1\r\nHost: {}\r\n", self.address);
        for (name, value) in self.headers() {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let length = message.len();
        format!("{head}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{message}")
    }

    /// A call whose answer may not come: as plain JSON, with nothing before it.
    ///
    /// # Errors
    /// When there is no answer, or no good status.
    pub(crate) fn try_call(&self, id: &str, tool: &str, arguments: &str) -> io::Result<Message> {
        let mut headers = self.headers();
        headers.extend([("Accept", "application/json"), ("Content-Type", "application/json")]);
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":"{id}","method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
        );
        let mut reply = http::send(self.address, "POST", "/mcp", &headers, &body)?;
        let text = reply.text()?;
        match reply.status {
            200 => Ok(Message(text)),
            status => Err(io::Error::other(format!("{status}: {text}"))),
        }
    }

    /// Opens the stream on which a server speaks unasked.
    pub(crate) fn listen(&self) -> Reply {
        let mut headers = self.headers();
        headers.push(("Accept", "text/event-stream"));
        let reply = http::send(self.address, "GET", "/mcp", &headers, "").unwrap();
        assert_eq!(reply.status, 200, "GET /mcp");
        reply
    }

    /// What each of its requests carries.
    pub(crate) fn headers(&self) -> Vec<(&str, &str)> {
        let mut headers = vec![("Authorization", self.key.as_str())];
        if let Some(id) = &self.id {
            headers.push(("Mcp-Session-Id", id));
            headers.push(("MCP-Protocol-Version", LEGACY));
        }
        headers
    }
}

impl Peer for Session {
    fn request(&mut self, method: &str, params: &str) -> Message {
        self.requests += 1;
        let mut reply = self.post(&format!(
            r#"{{"jsonrpc":"2.0","id":{},"method":"{method}","params":{params}}}"#,
            self.requests
        ));
        if method == "initialize" {
            self.id = reply.header("mcp-session-id").map(str::to_owned);
        }
        answer(&mut reply, &json!(self.requests))
    }
}

/// One request as a client of 2026-07-28 sends it: no session, everything in the request itself.
pub(crate) fn modern(address: SocketAddr, key: &str, method: &str, mut params: Value) -> Message {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "mcpm-tests", "version": "1"},
    });
    let name = params["name"].as_str().unwrap_or_default().to_owned();
    let body = json!({"jsonrpc": "2.0", "id": "m-1", "method": method, "params": params});
    let headers = [
        ("Authorization", key),
        ("Accept", "application/json, text/event-stream"),
        ("Content-Type", "application/json"),
        ("MCP-Protocol-Version", MODERN),
        ("Mcp-Method", method),
        ("Mcp-Name", &name),
    ];
    let headers = if name.is_empty() { &headers[..5] } else { &headers[..] };
    let mut reply = http::send(address, "POST", "/mcp", headers, &body.to_string()).unwrap();
    answer(&mut reply, &json!("m-1"))
}

/// The answer with this id, from a body of either kind; what comes before it is passed over.
fn answer(reply: &mut Reply, id: &Value) -> Message {
    if !reply.is_event_stream() {
        let text = reply.text().unwrap();
        assert_eq!(reply.status, 200, "{text}");
        return Message(text);
    }
    while let Some(event) = reply.event().unwrap() {
        if event.data.is_empty() {
            continue;
        }
        let message = Message(event.data);
        if message.id().as_ref() == Some(id) {
            return message;
        }
    }
    panic!("the stream ended without an answer to {id}");
}
