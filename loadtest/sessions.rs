//! What a client does with a connection: open an MCP session of version 2025-11-25, then exchange
//! one kind of request over and over, checking each answer; or hold a GET stream open.

use std::time::Duration;

use anyhow::{Context, bail};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::wire::{Connection, Endpoint, Head};

/// Ids all have seven digits, so a request is patched in place and answers of equal content have
/// equal length.
const FIRST_ID: u32 = 1_000_000;
const LAST_ID: u32 = 9_999_999;
const ID_DIGITS: usize = 7;

/// No answer takes this long, so a hung server fails the run instead of hanging it.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is asked over and over.
#[derive(Debug, Clone)]
pub(crate) enum Work {
    /// `tools/call`.
    Call {
        /// Name of the tool.
        tool: String,
        /// The arguments, as JSON text.
        arguments: String,
        /// Text that each answer must contain.
        expect: Option<String>,
    },
    /// `tools/list`.
    List {
        /// How many tools the answer must have at least.
        at_least: usize,
    },
}

/// An open session on its own connection.
#[derive(Debug)]
pub(crate) struct Session {
    connection: Connection,
    lines: String,
}

impl Session {
    /// Connects and goes through `initialize` and `notifications/initialized`.
    pub(crate) async fn open(endpoint: &Endpoint) -> anyhow::Result<Self> {
        tokio::time::timeout(PATIENCE, Self::handshake(endpoint))
            .await
            .context("no session was opened in time")?
    }

    async fn handshake(endpoint: &Endpoint) -> anyhow::Result<Self> {
        let accept = "accept: application/json, text/event-stream\r\n";
        let mut connection = Connection::open(endpoint).await?;
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"loadtest","version":"1.0.0"}}}"#;
        let head = connection.send(&endpoint.request("POST", accept, body)).await?;
        let answer = connection.body(&head).await?;
        check_status(&head, 200, &answer).context("failed to initialize")?;
        verify(message(&answer, head.events, 1)?, 1, None)?;
        let session = head.session.map(|id| format!("mcp-session-id: {id}\r\n"));
        let session = session.unwrap_or_default();
        let lines = format!("{accept}mcp-protocol-version: 2025-11-25\r\n{session}");
        let body = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let head = connection.send(&endpoint.request("POST", &lines, body)).await?;
        let answer = connection.body(&head).await?;
        check_status(&head, 202, &answer).context("failed to confirm the session")?;
        Ok(Self { connection, lines })
    }

    /// Header lines of its requests.
    pub(crate) fn lines(&self) -> &str {
        &self.lines
    }

    /// Opens the GET stream and leaves it open; it lives as long as the returned session.
    pub(crate) async fn listen(mut self, endpoint: &Endpoint) -> anyhow::Result<Self> {
        let request = endpoint.request("GET", &self.lines, "");
        let head = tokio::time::timeout(PATIENCE, self.connection.send(&request))
            .await
            .context("the stream was not opened in time")??;
        check_status(&head, 200, b"").context("failed to open a stream")?;
        if !head.events {
            bail!("a GET was answered with something else than an event stream");
        }
        Ok(self)
    }
}

/// A session that repeats one request.
#[derive(Debug)]
pub(crate) struct Exchange {
    session: Session,
    request: Vec<u8>,
    id_at: usize,
    id: u32,
    work: Work,
    known: Option<Known>,
}

/// An answer that was read in full and found right, and where its id stands in it.
#[derive(Debug)]
struct Known {
    text: Vec<u8>,
    id_at: usize,
}

impl Exchange {
    /// Prepares the request.
    pub(crate) fn new(session: Session, endpoint: &Endpoint, work: Work) -> Self {
        let tail = match &work {
            Work::Call { tool, arguments, .. } => format!(
                r#""method":"tools/call","params":{{"name":{},"arguments":{arguments}}}}}"#,
                serde_json::Value::from(tool.as_str())
            ),
            Work::List { .. } => r#""method":"tools/list","params":{}}"#.to_owned(),
        };
        let before_id = r#"{"jsonrpc":"2.0","id":"#;
        let body = format!("{before_id}{FIRST_ID},{tail}");
        let request = endpoint.request("POST", &session.lines, &body);
        let id_at = request.len() - body.len() + before_id.len();
        Self { session, request, id_at, id: FIRST_ID, work, known: None }
    }

    /// Sends the request once more, with a new id, and checks the answer.
    ///
    /// # Errors
    /// When there is no answer in time, or it is not the right one. The connection is then unusable.
    pub(crate) async fn once(&mut self) -> anyhow::Result<()> {
        self.id = if self.id == LAST_ID { FIRST_ID } else { self.id + 1 };
        write_id(&mut self.request[self.id_at..], self.id);
        let connection = &mut self.session.connection;
        let (head, body) = tokio::time::timeout(PATIENCE, async {
            let head = connection.send(&self.request).await?;
            let body = connection.body(&head).await?;
            anyhow::Ok((head, body))
        })
        .await
        .context("no answer came in time")??;
        check_status(&head, 200, &body)?;
        self.check(&head, &body)
    }

    fn check(&mut self, head: &Head, body: &Bytes) -> anyhow::Result<()> {
        let text = message(body, head.events, self.id)?;
        if self.known.as_ref().is_some_and(|known| known.equals(text, self.id)) {
            return Ok(());
        }
        verify(text, self.id, Some(&self.work))?;
        self.known = Known::new(text, self.id);
        Ok(())
    }
}

impl Known {
    fn new(text: &[u8], id: u32) -> Option<Self> {
        let id_at = find(text, id.to_string().as_bytes())?;
        Some(Self { text: text.to_vec(), id_at })
    }

    /// Whether `text` is this answer again, under another id.
    fn equals(&self, text: &[u8], id: u32) -> bool {
        let after = self.id_at + ID_DIGITS;
        let mut digits = [0; ID_DIGITS];
        write_id(&mut digits, id);
        text.len() == self.text.len()
            && text[self.id_at..after] == digits
            && text[..self.id_at] == self.text[..self.id_at]
            && text[after..] == self.text[after..]
    }
}

#[derive(Deserialize)]
struct Answer<'a> {
    id: Option<u32>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Called {
    #[serde(default, rename = "isError")]
    is_error: bool,
}

#[derive(Deserialize)]
struct Listed<'a> {
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
}

/// The JSON-RPC message of the answer: the body itself, or the event that may well carry `id`.
fn message(body: &Bytes, events: bool, id: u32) -> anyhow::Result<&[u8]> {
    if !events {
        return Ok(body);
    }
    let digits = id.to_string();
    // The id stands near one of the ends; a list in between may be long.
    let near = |text: &[u8]| {
        let near = text.len().min(64);
        [&text[..near], &text[text.len() - near..]]
            .iter()
            .any(|part| find(part, digits.as_bytes()).is_some())
    };
    body.split(|byte| *byte == b'\n')
        .filter_map(|line| line.strip_prefix(b"data:"))
        .map(<[u8]>::trim_ascii)
        .find(|text| near(text))
        .ok_or_else(|| wrong(body, "has no event with our id"))
}

/// Reads the answer in full: a result for `id`, no tool error, and what the work expects.
fn verify(text: &[u8], id: u32, work: Option<&Work>) -> anyhow::Result<()> {
    let answer: Answer<'_> =
        serde_json::from_slice(text).map_err(|_| wrong(text, "is no JSON-RPC response"))?;
    if answer.id != Some(id) {
        return Err(wrong(text, "has another id"));
    }
    let result = answer.result.ok_or_else(|| wrong(text, "has no result"))?;
    let result = result.get();
    match work {
        Some(Work::Call { expect, .. }) => {
            let called: Called = serde_json::from_str(result)?;
            if called.is_error {
                return Err(wrong(text, "is a tool error"));
            }
            if expect.as_ref().is_some_and(|expect| !result.contains(expect.as_str())) {
                return Err(wrong(text, "lacks the expected text"));
            }
        }
        Some(Work::List { at_least }) => {
            let listed: Listed<'_> = serde_json::from_str(result)?;
            let tools = listed.tools.len();
            if tools < *at_least {
                return Err(wrong(text, &format!("has {tools} tools, not {at_least}")));
            }
        }
        None => {}
    }
    Ok(())
}

fn check_status(head: &Head, status: u16, body: &[u8]) -> anyhow::Result<()> {
    if head.status == status {
        return Ok(());
    }
    Err(wrong(body, &format!("has status {} instead of {status}", head.status)))
}

fn wrong(body: &[u8], how: &str) -> anyhow::Error {
    let shown = &body[..body.len().min(300)];
    anyhow::anyhow!("an answer {how}: {}", String::from_utf8_lossy(shown))
}

fn write_id(digits: &mut [u8], mut id: u32) {
    for digit in digits.iter_mut().take(ID_DIGITS).rev() {
        *digit = b'0' + u8::try_from(id % 10).unwrap_or(0);
        id /= 10;
    }
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(expect: &str) -> Work {
        let expect = Some(expect.to_owned());
        Work::Call { tool: "echo".to_owned(), arguments: "{}".to_owned(), expect }
    }

    #[test]
    fn a_wrong_answer_is_told_from_a_right_one() {
        let check = |text: &str, work: &Work| verify(text.as_bytes(), 1, Some(work)).is_ok();
        let right = r#"{"id":1,"result":{"content":[{"type":"text","text":"hello"}]}}"#;
        assert!(check(right, &call("hello")));
        assert!(!check(right, &call("other")));
        assert!(verify(right.as_bytes(), 2, Some(&call("hello"))).is_err());
        assert!(!check(r#"{"id":1,"error":{"code":1,"message":"hello"}}"#, &call("hello")));
        assert!(!check(r#"{"id":1,"result":{"isError": true,"x":"hello"}}"#, &call("hello")));
        assert!(!check(right, &Work::List { at_least: 1 }));
        assert!(!check("<html>", &call("hello")));
    }

    #[test]
    fn a_known_answer_is_recognised_under_another_id_only() {
        let text = |id: u32| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
        let known = Known::new(text(1_000_001).as_bytes(), 1_000_001).unwrap();
        assert!(known.equals(text(1_234_567).as_bytes(), 1_234_567));
        assert!(!known.equals(text(1_234_567).as_bytes(), 1_234_568));
        assert!(!known.equals(br#"{"jsonrpc":"2.0","id":1234567,"result":[]}"#, 1_234_567));
    }

    #[test]
    fn the_event_with_our_id_is_found() {
        let body = Bytes::from_static(
            b"id: 1\ndata:\n\nevent: message\ndata: {\"method\":\"x\"}\n\ndata: {\"id\":1000007}\r\n\n",
        );
        let found = message(&body, true, 1_000_007).unwrap();
        assert_eq!(found, b"{\"id\":1000007}");
        assert!(message(&body, true, 1_000_008).is_err());
    }
}
