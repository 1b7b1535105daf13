//! The way out: everything that is written to an app goes through [`Client`].

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gateway::{Conversation, Kept};
use http::{HeaderMap, HeaderValue, Version, header};
use pingora_core::Result;
use pingora_core::protocols::http::server::Session;
use pingora_http::ResponseHeader;
use protocol::{Era, sse};

use crate::body;
use crate::lone::{Lone, Rest};
use crate::refusal::Refusal;
use crate::rpc;

/// Up to this many bytes, one write of a copy is cheaper than a write for each part.
const SMALL: usize = 16 << 10;

/// How long a client may take nothing of what is being written to it.
pub const STALLED: Duration = Duration::from_secs(60);

/// When a client whose stream broke should ask again, in milliseconds.
const RETRY_MS: u32 = 1000;

/// What the access log and the metrics say about a request.
#[derive(Debug, Default)]
pub struct Report {
    /// MCP method, or a word for the kind of request; from a closed set.
    pub method: &'static str,
    /// `legacy`, `modern`, or `none`.
    pub era: &'static str,
    /// HTTP status that was sent; 0 when none was.
    pub status: u16,
    /// Id of the key.
    pub key: Option<i64>,
    /// Exposed name of the tool that was called.
    pub tool: Option<String>,
    /// A stream that outlives its request; whoever has the report runs it.
    pub rest: Option<Rest>,
}

/// The client of one request.
pub struct Client<'a> {
    /// The request, and the way to the client.
    pub http: &'a mut Session,
    /// For the log.
    pub report: &'a mut Report,
    origin: Option<HeaderValue>,
    /// How long its connection may wait for another request.
    idle: Duration,
    streaming: bool,
    /// Whether the client takes event streams alone (HTTP-09).
    pub(crate) events_only: bool,
    /// Where what is sent on a stream is kept, for a client that may resume it.
    resumable: Option<Arc<Conversation>>,
    /// The open stream's messages.
    kept: Option<Arc<Kept>>,
}

impl std::fmt::Debug for Client<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("streaming", &self.streaming).finish_non_exhaustive()
    }
}

impl<'a> Client<'a> {
    /// A client that has been answered nothing yet.
    /// `idle` is how long its connection may wait for another request.
    pub fn new(http: &'a mut Session, report: &'a mut Report, idle: Duration) -> Self {
        let origin = http.get_header(header::ORIGIN).cloned();
        let (resumable, kept) = (None, None);
        Self { http, report, origin, idle, streaming: false, events_only: false, resumable, kept }
    }

    /// The request's headers.
    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.http.req_header().headers
    }

    /// A header's value as text; absent when it is not text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers().get(name)?.to_str().ok()
    }

    /// Does not let pages of the request's origin read the answer.
    pub(crate) fn without_cors(mut self) -> Self {
        self.origin = None;
        self
    }

    /// Answers with JSON; with the one event that holds it, for a client that takes nothing
    /// else. `parts` are written one after the other.
    pub(crate) async fn json(&mut self, status: u16, parts: &[Bytes]) -> Result<()> {
        self.json_with(status, &[], parts).await
    }

    /// As [`Client::json`], with more headers.
    pub(crate) async fn json_with(
        &mut self,
        status: u16,
        more: &[(&'static str, &str)],
        parts: &[Bytes],
    ) -> Result<()> {
        let mut event = Vec::new();
        if status == 200 && self.events_only {
            sse::write_event(&parts.concat(), &mut event);
        }
        let event = [Bytes::from(event)];
        let (kind, parts) = match event[0].is_empty() {
            true => ("application/json", parts),
            false => ("text/event-stream", &event[..]),
        };
        let length: usize = parts.iter().map(Bytes::len).sum();
        let mut head = self.head(status, 6 + more.len())?;
        head.insert_header(header::CONTENT_TYPE, kind)?;
        head.insert_header(header::CONTENT_LENGTH, length)?;
        for (name, value) in more {
            head.insert_header(*name, *value)?;
        }
        self.http.write_response_header(Box::new(head)).await?;
        if length <= SMALL {
            return self.http.write_response_body(Bytes::from(parts.concat()), true).await;
        }
        for part in parts {
            self.http.write_response_body(part.clone(), false).await?;
        }
        self.http.write_response_body(Bytes::new(), true).await
    }

    /// Answers without a body.
    pub(crate) async fn empty(&mut self, status: u16, more: &[(&'static str, &str)]) -> Result<()> {
        let mut head = self.head(status, 4 + more.len())?;
        if status != 204 {
            head.insert_header(header::CONTENT_LENGTH, 0)?;
        }
        for (name, value) in more {
            head.insert_header(*name, *value)?;
        }
        self.http.write_response_header(Box::new(head)).await?;
        self.http.write_response_body(Bytes::new(), true).await
    }

    /// Answers a refusal, after reading what the client is still sending.
    pub async fn refuse(&mut self, refusal: &Refusal) -> Result<()> {
        body::drain(self.http).await;
        let modern = self.report.era == "modern" || rpc::is_modern(self);
        let era = if modern { Era::Modern } else { Era::Legacy };
        let body = Bytes::from(refusal.body_for(era));
        match refusal {
            Refusal::Key(_) => {
                self.json_with(refusal.status(), &[("www-authenticate", "Bearer")], &[body]).await
            }
            Refusal::HttpMethod { allow } => {
                self.json_with(refusal.status(), &[("allow", allow)], &[body]).await
            }
            _ => self.json(refusal.status(), &[body]).await,
        }
    }

    /// Opens the answer as an event stream, unless it is one already. The first bytes go
    /// out at once, so that the client sees its headers.
    pub(crate) async fn open_stream(&mut self) -> Result<()> {
        if self.streaming {
            return Ok(());
        }
        self.streaming = true;
        let mut head = self.head(200, 8)?;
        head.insert_header(header::CONTENT_TYPE, "text/event-stream")?;
        head.insert_header(header::CACHE_CONTROL, "no-cache")?;
        head.insert_header("x-accel-buffering", "no")?;
        match self.http.req_header().version {
            Version::HTTP_2 => {}
            // The end of the connection is the end of the stream; chunks are not known yet.
            Version::HTTP_10 | Version::HTTP_09 => self.http.set_keepalive(None),
            _ => head.insert_header(header::TRANSFER_ENCODING, "chunked")?,
        }
        self.http.write_response_header(Box::new(head)).await?;
        let Some(conversation) = &self.resumable else { return Ok(()) };
        let kept = self.kept.insert(conversation.keep());
        let mut out = Vec::new();
        sse::write_priming(&kept.first_id(), RETRY_MS, &mut out);
        self.http.write_response_body(Bytes::from(out), false).await
    }

    /// Lets the client resume the stream, should the answer become one.
    pub(crate) fn resumable(&mut self, conversation: Arc<Conversation>) {
        self.resumable = Some(conversation);
    }

    /// Whether it could resume a stream, and has none yet.
    pub(crate) fn waits_to_be_resumable(&self) -> bool {
        self.resumable.is_some() && !self.streaming
    }

    /// What the client can resume by, for whoever goes on writing it: nothing before a stream
    /// was opened, since the client has no event id then.
    pub(crate) fn take_kept(&mut self) -> Option<Arc<Kept>> {
        self.kept.take()
    }

    /// Whether the answer is an event stream by now.
    pub(crate) fn is_streaming(&self) -> bool {
        self.streaming
    }

    /// Sends one message on the stream.
    pub(crate) async fn event(&mut self, json: Vec<u8>) -> Result<()> {
        let json = Bytes::from(json);
        let mut out = Vec::new();
        match &self.kept {
            Some(kept) => sse::write_event_with_id(&kept.push(json.clone()), &json, &mut out),
            None => sse::write_event(&json, &mut out),
        }
        self.http.write_response_body(Bytes::from(out), false).await
    }

    /// Sends a message once more, with the event id that it had.
    pub(crate) async fn again(&mut self, event_id: &str, json: &[u8]) -> Result<()> {
        let mut out = Vec::new();
        sse::write_event_with_id(event_id, json, &mut out);
        self.http.write_response_body(Bytes::from(out), false).await
    }

    /// Sends a sign of life on the stream.
    pub(crate) async fn comment(&mut self) -> Result<()> {
        self.http.write_response_body(Bytes::from_static(sse::COMMENT), false).await
    }

    /// Ends the stream.
    pub(crate) async fn end_stream(&mut self) -> Result<()> {
        self.http.write_response_body(Bytes::new(), true).await?;
        if let (Some(conversation), Some(kept)) = (&self.resumable, self.kept.take()) {
            conversation.written(&kept);
        }
        Ok(())
    }

    /// Takes the connection out of a request whose answer is a stream by now, with its peer.
    /// `None` where it has to stay.
    pub(crate) async fn leave(&mut self) -> Result<Option<(Lone, Option<String>)>> {
        let peer = self.http.client_addr().map(ToString::to_string);
        Ok(Lone::take(self.http).await?.map(|lone| (lone, peer)))
    }

    /// Waits until the client is gone. To be used beside whatever the client waits for.
    pub(crate) async fn gone(&mut self) {
        // Bytes of a request sent too early are kept for their turn; a client that sent some is
        // not noticed any more when it leaves.
        let _ = self.http.read_body_or_idle(true).await;
    }

    /// Answers a CORS preflight; no key is needed, since the browser cannot send one yet.
    pub(crate) async fn preflight(&mut self) -> Result<()> {
        const USUAL: &str = "authorization, content-type, accept, mcp-session-id, \
             mcp-protocol-version, last-event-id, mcp-method, mcp-name";
        let asked = self.header("access-control-request-headers").unwrap_or(USUAL).to_owned();
        let more = [
            ("access-control-allow-methods", "GET, POST, DELETE, OPTIONS"),
            ("access-control-allow-headers", asked.as_str()),
            ("access-control-max-age", "600"),
        ];
        self.empty(204, &more).await
    }

    fn head(&mut self, status: u16, room: usize) -> Result<ResponseHeader> {
        self.report.status = status;
        stay_open(self.http, self.idle);
        // Who asks and does not read must not hold an answer for ever.
        self.http.set_write_timeout(Some(STALLED));
        // Names go out in lower case: keeping their case costs a second map.
        let mut head = ResponseHeader::build_no_case(status, Some(room))?;
        if let Some(origin) = &self.origin {
            head.insert_header(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone())?;
            head.insert_header(header::VARY, "Origin")?;
            head.insert_header(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED)?;
        }
        Ok(head)
    }
}

/// A client may come back for a stream that broke off; nothing is added to it any more.
impl Drop for Client<'_> {
    fn drop(&mut self) {
        if let Some(kept) = self.kept.take() {
            kept.end();
        }
    }
}

/// Lets the connection wait `idle` for another request. To be said with each answer: pingora
/// would keep it for ever after its first one. A connection that is to end, such as one on which
/// a request had two lengths (RFC 9112, section 6.1), ends all the same.
pub fn stay_open(http: &mut Session, idle: Duration) {
    if http.get_keepalive().is_some() {
        http.set_keepalive(Some(idle.as_secs()));
    }
}

/// Has pingora drop a connection whose client is gone, or no longer let in.
pub(crate) fn broken() -> pingora_core::BError {
    pingora_core::Error::explain(pingora_core::ErrorType::ConnectionClosed, "the client is gone")
}

const EXPOSED: &str = "Mcp-Session-Id, WWW-Authenticate";
