//! Streamable HTTP towards a server: one POST or GET, its answer as JSON or as events.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::FutureExt as _;
use http::header::CONTENT_TYPE;
use protocol::{Era, Message, sse};
use tokio::io::AsyncWriteExt as _;

use crate::endpoint::{Connection, Endpoint};
use crate::exchange::{Answer, Event, Notice};
use crate::failure::Failure;
use crate::http_link::HttpLink;

/// Longest answer, JSON body or single event.
pub(crate) const MAX_ANSWER: usize = 64 << 20;

/// How long a server may hold a stream open after its answer before it is cut (UPS-08).
const GRACE: Duration = Duration::from_secs(1);

/// A request on the wire and what has come back so far.
pub(crate) struct HttpExchange {
    link: Arc<HttpLink>,
    id: String,
    connection: Option<Connection>,
    state: State,
    /// What to send once more when a pooled connection turns out to be dead; only for
    /// requests that may run twice.
    again: Option<Bytes>,
    repeatable: bool,
}

enum State {
    /// The request is out, nothing has come back.
    Sent,
    /// An event stream is open.
    Events {
        reader: sse::Reader,
        ready: VecDeque<Bytes>,
    },
    Done,
}

/// The parts of an HTTP answer that decide how to read it.
struct Head {
    status: u16,
    /// Whether it is an event stream.
    events: bool,
}

/// Sends a whole request. A pooled connection that does not take all of it is replaced: what
/// did not arrive whole cannot have been run.
///
/// # Errors
/// When no connection can be had, or it breaks while the request goes out.
pub(crate) async fn send(endpoint: &Endpoint, request: Bytes) -> Result<Connection, Failure> {
    loop {
        let mut fresh = endpoint.connect().await?;
        let written = async {
            fresh.stream.write_all(&request).await?;
            fresh.stream.flush().await
        };
        match written.await {
            Ok(()) => return Ok(fresh.sent()),
            Err(_) if fresh.reused => {}
            Err(error) => return Err(Failure::Lost(error.to_string())),
        }
    }
}

/// Reads a small answer whole and gives the connection back: status, session id, body.
///
/// # Errors
/// When the answer does not come or is longer than [`MAX_ANSWER`].
pub(crate) async fn small(
    endpoint: &Endpoint,
    mut connection: Connection,
) -> Result<(u16, Option<http::HeaderValue>, Bytes), Failure> {
    let head = read_head(&mut connection).await?;
    let session = connection
        .http
        .resp_header()
        .and_then(|header| header.headers.get(protocol::headers::SESSION_ID).cloned());
    let body = if head.events {
        first_event(&mut connection).await?
    } else {
        read_body(&mut connection).await?
    };
    if connection.http.is_body_done() {
        endpoint.release(connection).await;
    }
    Ok((head.status, session, body))
}

impl HttpExchange {
    /// Sends a complete request over `link`.
    ///
    /// # Errors
    /// When it could not be sent.
    pub(crate) async fn start(
        link: Arc<HttpLink>,
        id: String,
        request: Bytes,
        repeatable: bool,
    ) -> Result<Self, Failure> {
        let connection = send(&link.endpoint, request.clone()).await?;
        let again = (repeatable && connection.reused).then_some(request);
        Ok(Self { link, id, connection: Some(connection), state: State::Sent, again, repeatable })
    }

    pub(crate) async fn next(&mut self) -> Result<Event, Failure> {
        loop {
            match &mut self.state {
                State::Done => return Err(Failure::Closed),
                State::Sent => {
                    if let Some(answer) = self.open().await? {
                        return Ok(Event::Answer(answer));
                    }
                }
                State::Events { ready, .. } => {
                    if let Some(data) = ready.pop_front() {
                        if let Some(event) = self.message(data).await? {
                            return Ok(event);
                        }
                    } else {
                        self.read_events().await?;
                    }
                }
            }
        }
    }

    /// Does not wait for the server.
    pub(crate) fn cancel(mut self: Box<Self>) {
        if self.link.era == Era::Legacy && !matches!(self.state, State::Done) {
            let params = format!(r#"{{"requestId":{}}}"#, self.id);
            let note = protocol::message::notification("notifications/cancelled", Some(&params));
            self.link.reply(note);
        }
        // The stream closes with the connection; for the modern era that is the notice.
        self.connection.take();
    }

    /// Reads the head of the answer, and the answer itself unless a stream begins.
    async fn open(&mut self) -> Result<Option<Answer>, Failure> {
        let head = match read_head(self.connection()?).await {
            Err(Failure::Lost(_)) if self.again.is_some() => {
                let request = self.again.take().expect("just looked");
                self.connection = Some(Box::pin(send(&self.link.endpoint, request)).await?);
                read_head(self.connection()?).await?
            }
            head => head?,
        };
        self.again = None;
        if head.events && (200..300).contains(&head.status) {
            let reader = sse::Reader::new(MAX_ANSWER);
            self.state = State::Events { reader, ready: VecDeque::new() };
            return Ok(None);
        }
        let body = read_body(self.connection()?).await?;
        self.state = State::Done;
        if let Some(connection) = self.connection.take() {
            self.link.endpoint.release(connection).await;
        }
        self.judge(head.status, body).map(Some)
    }

    /// What an answer that is no stream means.
    fn judge(&self, status: u16, body: Bytes) -> Result<Answer, Failure> {
        let looks_like_rpc = || {
            body.is_empty()
                || protocol::json::Members::from_slice(&body)
                    .is_ok_and(|members| members.get("jsonrpc").is_some())
        };
        let names_session = || String::from_utf8_lossy(&body).to_lowercase().contains("session");
        match status {
            401 | 403 => Err(Failure::Auth(status)),
            404 if self.link.has_session && (self.repeatable || looks_like_rpc()) => {
                Err(Failure::SessionLost)
            }
            400 | 503 if self.link.has_session && self.repeatable && names_session() => {
                Err(Failure::SessionLost)
            }
            200..300 => Answer::read(body, &self.id)?
                .ok_or_else(|| Failure::Garbage("a message that is no response to ours".into())),
            _ => match Answer::read(body, &self.id) {
                Ok(Some(answer)) if answer.is_error => Ok(answer),
                _ => Err(Failure::Status(status)),
            },
        }
    }

    async fn read_events(&mut self) -> Result<(), Failure> {
        let chunk = self.connection()?.http.read_body_bytes().await.map_err(lost)?;
        let State::Events { reader, ready } = &mut self.state else { return Ok(()) };
        match chunk {
            Some(chunk) => reader
                .push(&chunk, |event| ready.push_back(Bytes::from(event.data)))
                .map_err(|error| Failure::TooLarge(error.0)),
            None => {
                self.state = State::Done;
                Err(Failure::Lost("the stream ended".into()))
            }
        }
    }

    /// One message of the stream: the answer, a notice, or a request that is answered here.
    async fn message(&mut self, data: Bytes) -> Result<Option<Event>, Failure> {
        let text = std::str::from_utf8(&data).map_err(|e| Failure::Garbage(e.to_string()))?;
        match Message::parse(text) {
            Ok(Message::Notification { method, params }) => {
                let (method, params) = (method.into_owned(), params.map(str::to_owned));
                Ok(Some(Event::Notice(Notice { method, params })))
            }
            Ok(Message::Request { id, method, .. }) => {
                self.link.reply(crate::session::reply(id, &method));
                Ok(None)
            }
            Ok(Message::Response { .. }) => {
                let answer = Answer::read(data, &self.id)?;
                if answer.is_some() {
                    self.finish().await;
                }
                Ok(answer.map(Event::Answer))
            }
            Err(error) => {
                tracing::debug!(%error, "skipped an event that is no message");
                Ok(None)
            }
        }
    }

    /// Gives the connection back when the stream has ended with the answer, as it should;
    /// otherwise lets it end within a grace, off the path of the call.
    async fn finish(&mut self) {
        self.state = State::Done;
        let Some(mut connection) = self.connection.take() else { return };
        match connection.http.read_body_bytes().now_or_never() {
            Some(Ok(None)) => self.link.endpoint.release(connection).await,
            Some(Err(_)) => {}
            _ => {
                let endpoint = self.link.endpoint.clone();
                tokio::spawn(async move {
                    let rest = async {
                        while let Ok(Some(_)) = connection.http.read_body_bytes().await {}
                    };
                    if tokio::time::timeout(GRACE, rest).await.is_ok() {
                        endpoint.release(connection).await;
                    }
                });
            }
        }
    }

    fn connection(&mut self) -> Result<&mut Connection, Failure> {
        self.connection.as_mut().ok_or(Failure::Closed)
    }
}

async fn read_head(connection: &mut Connection) -> Result<Head, Failure> {
    loop {
        connection.http.read_response().await.map_err(lost)?;
        let Some(header) = connection.http.resp_header() else {
            return Err(Failure::Lost("no answer".into()));
        };
        let status = header.status.as_u16();
        if (100..200).contains(&status) {
            continue;
        }
        let kind = header.headers.get(CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
        return Ok(Head { status, events: is_events(kind) });
    }
}

/// The media type alone counts, whatever its case and parameters (UPS-14).
fn is_events(kind: &[u8]) -> bool {
    let media = kind.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    media.eq_ignore_ascii_case(b"text/event-stream")
}

async fn read_body(connection: &mut Connection) -> Result<Bytes, Failure> {
    let Some(first) = connection.http.read_body_bytes().await.map_err(lost)? else {
        return Ok(Bytes::new());
    };
    let Some(second) = connection.http.read_body_bytes().await.map_err(lost)? else {
        return Ok(first);
    };
    let mut whole = BytesMut::from(first);
    whole.extend_from_slice(&second);
    while let Some(chunk) = connection.http.read_body_bytes().await.map_err(lost)? {
        whole.extend_from_slice(&chunk);
        if whole.len() > MAX_ANSWER {
            return Err(Failure::TooLarge(MAX_ANSWER));
        }
    }
    Ok(whole.freeze())
}

/// The first response among the events of a stream, as `initialize` may answer.
async fn first_event(connection: &mut Connection) -> Result<Bytes, Failure> {
    let mut reader = sse::Reader::new(MAX_ANSWER);
    let mut found = None;
    while found.is_none() {
        let Some(chunk) = connection.http.read_body_bytes().await.map_err(lost)? else {
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
    let _ = connection.http.read_body_bytes().now_or_never();
    Ok(found.unwrap_or_default())
}

/// Takes what pingora's results hold, so that it fits `map_err`.
fn lost(error: impl AsRef<pingora_core::Error>) -> Failure {
    Failure::Lost(error.as_ref().root_cause().to_string())
}
