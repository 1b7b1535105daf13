//! One HTTP request to a server and the head and body of its answer: redirects followed,
//! encoded bodies decoded, connections given back.

use std::sync::LazyLock;

use bytes::{Bytes, BytesMut};
use futures::FutureExt as _;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, LOCATION};
use protocol::{Message, sse};

use crate::decode::Decoder;
use crate::endpoint::{Connection, Endpoint};
use crate::failure::Failure;
use crate::write::{self, Unsent};

/// Longest answer, JSON body or single event.
pub(crate) const MAX_ANSWER: usize = 64 << 20;

/// Redirects followed for one request.
const HOPS: u8 = 3;

/// What is read of a body that nobody wants, so that its connection can be used again.
const DRAIN: usize = 64 << 10;

/// Bytes handed over at a time of a body that is encoded.
const DECODED: usize = MAX_ANSWER;

/// What the head of an answer says about how to read the body.
pub(crate) struct Head {
    status: u16,
    decoder: Option<Box<Decoder>>,
    events: bool,
}

/// An answer whose head has been read.
pub(crate) struct Answering {
    connection: Connection,
    head: Head,
    /// The start of a body that was looked into.
    ahead: Option<Bytes>,
    /// What has been read of a body that is wanted whole.
    first: Option<Bytes>,
    whole: BytesMut,
}

/// Sends a whole request. A pooled connection that does not take all of it is replaced: what
/// did not arrive whole cannot have been run.
///
/// # Errors
/// When no connection can be had, or it breaks while the request goes out.
pub(crate) async fn send(endpoint: &Endpoint, request: &[u8]) -> Result<Connection, Failure> {
    loop {
        let mut fresh = endpoint.connect().await?;
        match write::whole(&mut fresh.stream, request).await {
            Ok(()) => return Ok(fresh.sent()),
            Err(Unsent::Lost(_)) if fresh.reused => {}
            Err(Unsent::Lost(error)) => return Err(Failure::Lost(error.to_string())),
            Err(Unsent::Answered(status @ (401 | 403))) => return Err(Failure::Auth(status)),
            Err(Unsent::Answered(status)) => return Err(Failure::Status(status)),
        }
    }
}

/// Reads the head of the answer to `request`, which was sent over `connection`. Redirects of
/// the same origin are followed with method, body and headers, and remembered (P26, UPS-03);
/// `connection` is then another.
///
/// # Errors
/// When no answer comes, or it cannot be read.
pub(crate) async fn head(
    endpoint: &Endpoint,
    request: &Bytes,
    connection: &mut Connection,
) -> Result<Head, Failure> {
    for hop in 0.. {
        let head = Head::read(connection).await?;
        if !matches!(head.status, 307 | 308) {
            return Ok(head);
        }
        let to = headers(connection).get(LOCATION).and_then(|to| to.to_str().ok());
        if hop == HOPS {
            break;
        }
        endpoint.redirected(to.unwrap_or_default())?;
        // Boxed: rare, and large.
        Box::pin(drain(connection)).await;
        let next = Box::pin(send(endpoint, &endpoint.aimed(request))).await?;
        let done = std::mem::replace(connection, next);
        done.give_back(endpoint).await;
    }
    Err(Failure::Settings(format!("the server redirects more than {HOPS} times in a row")))
}

/// Sends a request and reads its small answer whole: status, session id, body; of an event
/// stream, the first response on it.
///
/// # Errors
/// When the answer does not come or is longer than [`MAX_ANSWER`].
pub(crate) async fn ask(
    endpoint: &Endpoint,
    request: &Bytes,
) -> Result<(u16, Option<http::HeaderValue>, Bytes), Failure> {
    let mut connection = send(endpoint, &endpoint.aimed(request)).await?;
    let head = head(endpoint, request, &mut connection).await?;
    let mut answering = Answering::new(connection, head);
    let session = headers(&answering.connection).get(protocol::headers::SESSION_ID).cloned();
    let body = if answering.is_events().await? {
        answering.first_response().await?
    } else {
        answering.body().await?
    };
    let status = answering.status();
    answering.release(endpoint).await;
    Ok((status, session, body))
}

impl Head {
    async fn read(connection: &mut Connection) -> Result<Self, Failure> {
        loop {
            connection.http.read_response().await.map_err(lost)?;
            let Some(header) = connection.http.resp_header() else {
                return Err(Failure::Lost("no answer".into()));
            };
            let status = header.status.as_u16();
            if (100..200).contains(&status) {
                continue;
            }
            let events = header.headers.get(CONTENT_TYPE).is_some_and(is_events);
            let decoder = match header.headers.get(CONTENT_ENCODING) {
                None => None,
                Some(encoding) => {
                    let encoding = String::from_utf8_lossy(encoding.as_bytes());
                    Decoder::of(&encoding, DECODED)?.map(Box::new)
                }
            };
            return Ok(Self { status, decoder, events });
        }
    }
}

impl Answering {
    /// The answer that goes on after `head`.
    pub(crate) fn new(connection: Connection, head: Head) -> Self {
        Self { connection, head, ahead: None, first: None, whole: BytesMut::new() }
    }

    /// HTTP status.
    pub(crate) fn status(&self) -> u16 {
        self.head.status
    }

    /// Whether the body is an event stream: by its media type, or by its first bytes when
    /// there is none (UPS-14).
    ///
    /// # Errors
    /// When those bytes cannot be read.
    pub(crate) async fn is_events(&mut self) -> Result<bool, Failure> {
        if !self.head.events
            && (200..300).contains(&self.head.status)
            && !headers(&self.connection).contains_key(CONTENT_TYPE)
            && let Some(first) = self.chunk().await?
        {
            let start = first.trim_ascii_start();
            const FIELDS: [&[u8]; 5] = [b"data:", b"event:", b"id:", b"retry:", b":"];
            self.head.events = FIELDS.iter().any(|field| start.starts_with(field));
            self.ahead = Some(first);
        }
        Ok(self.head.events)
    }

    /// The next part of the body, decoded; `None` at its end.
    ///
    /// # Errors
    /// When the connection breaks.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, Failure> {
        if let Some(ahead) = self.ahead.take() {
            return Ok(Some(ahead));
        }
        loop {
            let Some(chunk) = self.connection.http.read_body_bytes().await.map_err(lost)? else {
                return Ok(None);
            };
            let Some(decoder) = &mut self.head.decoder else { return Ok(Some(chunk)) };
            let decoded = decoder.push(&chunk)?;
            // What does not complete anything yet is no part.
            if !decoded.is_empty() {
                return Ok(Some(decoded.into()));
            }
        }
    }

    /// The whole body. Dropped half-way, it can be called again to go on.
    ///
    /// # Errors
    /// When the connection breaks, or the body is longer than [`MAX_ANSWER`].
    pub(crate) async fn body(&mut self) -> Result<Bytes, Failure> {
        while let Some(chunk) = self.chunk().await? {
            // Most bodies come in one piece, which is passed on as it is.
            if self.first.is_none() && self.whole.is_empty() {
                self.first = Some(chunk);
                continue;
            }
            if let Some(first) = self.first.take() {
                self.whole.extend_from_slice(&first);
            }
            self.whole.extend_from_slice(&chunk);
            if self.whole.len() > MAX_ANSWER {
                return Err(Failure::TooLarge(MAX_ANSWER));
            }
        }
        Ok(self.first.take().unwrap_or_else(|| std::mem::take(&mut self.whole).freeze()))
    }

    /// Gives the connection back, if the body was read to its end.
    pub(crate) async fn release(self, endpoint: &Endpoint) {
        self.connection.give_back(endpoint).await;
    }

    /// The first response among the events of a stream, as `initialize` may answer.
    async fn first_response(&mut self) -> Result<Bytes, Failure> {
        let mut reader = sse::Reader::new(MAX_ANSWER);
        let mut found = None;
        while found.is_none() {
            let Some(chunk) = self.chunk().await? else {
                return Err(Failure::Lost("the stream ended".into()));
            };
            let each = |event: sse::Event| {
                let data = Bytes::from(event.data);
                let text = std::str::from_utf8(&data).unwrap_or_default();
                if found.is_none() && matches!(Message::parse(text), Ok(Message::Response { .. })) {
                    found = Some(data);
                }
            };
            reader.push(&chunk, each).map_err(|error| Failure::TooLarge(error.0))?;
        }
        // Usually the stream ends with it; then the connection can be used again.
        let _ = self.connection.http.read_body_bytes().now_or_never();
        Ok(found.unwrap_or_default())
    }
}

/// Reads a little more, so that the connection can be used again.
async fn drain(connection: &mut Connection) {
    let mut read = 0;
    while read < DRAIN {
        match connection.http.read_body_bytes().await {
            Ok(Some(chunk)) => read += chunk.len(),
            Ok(None) | Err(_) => return,
        }
    }
}

fn headers(connection: &Connection) -> &HeaderMap {
    static NONE: LazyLock<HeaderMap> = LazyLock::new(HeaderMap::new);
    connection.http.resp_header().map_or(&NONE, |header| &header.headers)
}

/// The media type alone counts, whatever its case and parameters (UPS-14).
fn is_events(kind: &http::HeaderValue) -> bool {
    let media = kind.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
    media.trim_ascii().eq_ignore_ascii_case(b"text/event-stream")
}

/// Takes what pingora's results hold, so that it fits `map_err`.
fn lost(error: impl AsRef<pingora_core::Error>) -> Failure {
    Failure::Lost(error.as_ref().root_cause().to_string())
}
