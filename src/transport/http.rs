//! A request over streamable HTTP in flight: its answer as JSON or as events.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use protocol::{Era, Message, sse};

use crate::endpoint::{Connection, Endpoint};
use crate::exchange::{Answer, Event, Notice};
use crate::failure::Failure;
use crate::http_link::HttpLink;
use crate::session::Repeat;
use crate::wire::{self, Answering, MAX_ANSWER};

/// How long a server may hold a stream open after its answer before it is cut (UPS-08).
const GRACE: Duration = Duration::from_secs(1);

/// Wait before a broken stream is asked for again, unless the server said another (U7).
const RESUME: Duration = Duration::from_secs(1);

/// The shortest wait that a server may ask for.
const RESUME_LEAST: Duration = Duration::from_millis(100);

/// The longest wait that a server may ask for.
const RESUME_MOST: Duration = Duration::from_secs(30);

/// A stream that breaks this many times without a word in between is given up.
const RESUMES: u8 = 5;

/// A request on the wire and what has come back so far.
pub(crate) struct HttpExchange {
    link: Arc<HttpLink>,
    id: String,
    request: Bytes,
    repeat: Repeat,
    /// The request is out, nothing has come back.
    sent: Option<Connection>,
    /// The head of the answer has been read, and some of its body.
    reading: Option<Answering>,
    /// The answer is an event stream. With none of these there is nothing more to come.
    events: Option<Box<Events>>,
}

struct Events {
    answering: Answering,
    reader: sse::Reader,
    ready: VecDeque<Bytes>,
    /// How often it broke since the last event.
    broken: u8,
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
        repeat: Repeat,
    ) -> Result<Self, Failure> {
        let connection = wire::send(&link.endpoint, &link.endpoint.aimed(&request)).await?;
        Ok(Self { link, id, request, repeat, sent: Some(connection), reading: None, events: None })
    }

    /// What was read stays read when this is dropped half-way; call it again to go on.
    pub(crate) async fn next(&mut self) -> Result<Event, Failure> {
        loop {
            let Some(events) = &mut self.events else {
                if self.sent.is_none() && self.reading.is_none() {
                    return Err(Failure::Closed);
                }
                if let Some(answer) = self.open().await? {
                    return Ok(Event::Answer(answer));
                }
                continue;
            };
            if let Some(data) = events.ready.pop_front() {
                if let Some(event) = self.message(data).await? {
                    return Ok(event);
                }
            } else if let Err(failure) = events.read().await {
                // Boxed: rare, and large.
                Box::pin(self.resume(failure)).await?;
            }
        }
    }

    /// Waits for the head of an answer that is to be a stream.
    pub(crate) async fn opened(&mut self) -> Result<(), Failure> {
        match self.open().await? {
            None => Ok(()),
            Some(_) => Err(Failure::Garbage("a message where a stream was asked for".into())),
        }
    }

    /// Does not wait for the server.
    pub(crate) fn cancel(mut self: Box<Self>) {
        if self.link.era == Era::Legacy
            && (self.sent.is_some() || self.reading.is_some() || self.events.is_some())
        {
            let params = format!(r#"{{"requestId":{}}}"#, self.id);
            let note = protocol::message::notification("notifications/cancelled", Some(&params));
            self.link.reply(note);
        }
        // The stream closes with the connection; for the modern era that is the notice.
        (self.sent, self.reading, self.events) = (None, None, None);
    }

    /// Reads the head of the answer, and the answer itself unless a stream begins.
    async fn open(&mut self) -> Result<Option<Answer>, Failure> {
        let endpoint = self.link.endpoint.clone();
        if self.reading.is_none() {
            self.read_head(&endpoint).await?;
        }
        let Some(answering) = &mut self.reading else { return Ok(None) };
        let status = answering.status();
        if answering.is_events().await? && (200..300).contains(&status) {
            let Some(answering) = self.reading.take() else { return Ok(None) };
            let reader = sse::Reader::new(MAX_ANSWER);
            let events = Events { answering, reader, ready: VecDeque::new(), broken: 0 };
            self.events = Some(Box::new(events));
            return Ok(None);
        }
        let body = answering.body().await?;
        if let Some(answering) = self.reading.take() {
            answering.release(&endpoint).await;
        }
        self.judge(status, body).map(Some)
    }

    async fn read_head(&mut self, endpoint: &Endpoint) -> Result<(), Failure> {
        let Some(connection) = &mut self.sent else { return Ok(()) };
        let head = match wire::head(endpoint, &self.request, connection).await {
            // A pooled connection may turn out to be dead; only what may run twice is sent
            // again, since nobody knows how much of it arrived.
            Err(Failure::Lost(_)) if connection.reused && self.repeat != Repeat::Never => {
                let request = endpoint.aimed(&self.request);
                *connection = Box::pin(wire::send(endpoint, &request)).await?;
                wire::head(endpoint, &self.request, connection).await?
            }
            head => head?,
        };
        if let Some(connection) = self.sent.take() {
            self.reading = Some(Answering::new(connection, head));
        }
        Ok(())
    }

    /// What an answer that is no stream means.
    fn judge(&self, status: u16, body: Bytes) -> Result<Answer, Failure> {
        let looks_like_rpc = || {
            body.is_empty()
                || protocol::json::Members::from_slice(&body)
                    .is_ok_and(|members| members.get("jsonrpc").is_some())
        };
        let names_session = || String::from_utf8_lossy(&body).to_lowercase().contains("session");
        let read_only = self.repeat == Repeat::ReadOnly;
        match status {
            401 | 403 => Err(Failure::Auth(status)),
            // The server's own 404 proves that nothing was run; a middle box proves nothing,
            // so then only what changes nothing is sent again (P28).
            404 if self.link.has_session && looks_like_rpc() => Err(Failure::SessionLost),
            404 if self.link.has_session && read_only => Err(Failure::SessionDoubted(status)),
            400 | 503 if self.link.has_session && read_only && names_session() => {
                Err(Failure::SessionDoubted(status))
            }
            200..300 => Answer::read(body, &self.id)?
                .ok_or_else(|| Failure::Garbage("a message that is no response to ours".into())),
            _ => match Answer::read(body, &self.id) {
                Ok(Some(answer)) if answer.is_error => Ok(answer),
                _ => Err(Failure::Status(status)),
            },
        }
    }

    /// Asks for the rest of a stream that broke off after an event that can be gone on from
    /// (U7). The call itself is not sent again.
    async fn resume(&mut self, failure: Failure) -> Result<(), Failure> {
        let Some(events) = &mut self.events else { return Err(failure) };
        loop {
            let Some(last) = events.reader.last_id.clone() else { return Err(failure) };
            if self.link.era == Era::Modern || events.broken >= RESUMES {
                return Err(failure);
            }
            let asked = events.reader.retry_ms.map(Duration::from_millis).unwrap_or(RESUME);
            tokio::time::sleep(asked.clamp(RESUME_LEAST, RESUME_MOST)).await;
            events.broken += 1;
            let endpoint = &self.link.endpoint;
            let request = self.link.get(Some(&last));
            let answered = async {
                let mut connection = wire::send(endpoint, &endpoint.aimed(&request)).await?;
                let head = wire::head(endpoint, &request, &mut connection).await?;
                let mut answering = Answering::new(connection, head);
                Ok::<_, Failure>((answering.is_events().await?, answering))
            };
            match answered.await {
                Ok((true, answering)) if answering.status() == 200 => {
                    events.reader.restart();
                    events.answering = answering;
                    return Ok(());
                }
                Ok(_) => return Err(failure),
                Err(Failure::Lost(_) | Failure::Unreachable(_)) => {}
                Err(other) => return Err(other),
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
        let Some(events) = self.events.take() else { return };
        let mut answering = events.answering;
        let endpoint = self.link.endpoint.clone();
        match answering.chunk().now_or_never() {
            Some(Ok(None)) => answering.release(&endpoint).await,
            Some(Err(_)) => {}
            _ => {
                tokio::spawn(async move {
                    let rest = async { while let Ok(Some(_)) = answering.chunk().await {} };
                    if tokio::time::timeout(GRACE, rest).await.is_ok() {
                        answering.release(&endpoint).await;
                    }
                });
            }
        }
    }
}

impl Events {
    /// Reads until there is at least one event, or the stream ends.
    async fn read(&mut self) -> Result<(), Failure> {
        while self.ready.is_empty() {
            let Some(chunk) = self.answering.chunk().await? else {
                // Cut short, it is no message, and skipped as such.
                match self.reader.finish() {
                    Some(event) if self.reader.last_id.is_none() => {
                        self.ready.push_back(Bytes::from(event.data))
                    }
                    _ => return Err(Failure::Lost("the stream ended".into())),
                }
                break;
            };
            let ready = &mut self.ready;
            self.reader
                .push(&chunk, |event| ready.push_back(Bytes::from(event.data)))
                .map_err(|error| Failure::TooLarge(error.0))?;
        }
        self.broken = 0;
        Ok(())
    }
}
