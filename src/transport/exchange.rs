//! One request in flight: notices, then one answer.

use std::ops::Range;
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use protocol::json::{self, Members};
use protocol::{Message, Outcome, codes};
use tokio::time::Instant;

use crate::failure::Failure;
use crate::http::HttpExchange;
use crate::stdio::StdioExchange;

/// Some frameworks begin every answer with it.
const BOM: &[u8] = "\u{feff}".as_bytes();

/// What a server said about a request.
#[derive(Debug)]
pub enum Event {
    /// On the way: progress, a log message, or another notification.
    Notice(Notice),
    /// The end.
    Answer(Answer),
}

/// A notification from a server.
#[derive(Debug, Clone)]
pub struct Notice {
    /// Such as `notifications/progress`.
    pub method: String,
    /// Raw JSON object.
    pub params: Option<String>,
}

/// The result or error of a request, as the server's own bytes.
#[derive(Debug, Clone)]
pub struct Answer {
    body: Bytes,
    range: Range<usize>,
    /// Whether this is a JSON-RPC error object rather than a result.
    pub is_error: bool,
}

impl Answer {
    /// Reads a response out of a body. `None` when the body is another kind of message.
    ///
    /// # Errors
    /// When the body is no message at all.
    pub(crate) fn read(mut body: Bytes, id: &str) -> Result<Option<Self>, Failure> {
        if body.starts_with(BOM) {
            body.advance(BOM.len());
        }
        let garbage = |why: &dyn std::fmt::Display| Failure::Garbage(why.to_string());
        let text = std::str::from_utf8(&body).map_err(|error| garbage(&error))?;
        let message = Message::parse(text).map_err(|error| garbage(&error))?;
        let Message::Response { id: answered, outcome } = message else { return Ok(None) };
        // An error about an unreadable request has no id; on a stream of one request it
        // can mean only that one.
        let matches = match answered {
            Some(answered) => protocol::message::same_id(id, answered),
            None => matches!(outcome, Outcome::Error(_)),
        };
        if !matches {
            return Ok(None);
        }
        let (raw, is_error) = match outcome {
            Outcome::Result(raw) => (raw, false),
            Outcome::Error(raw) => (raw, true),
        };
        let start = raw.as_ptr() as usize - text.as_ptr() as usize;
        let range = start..start + raw.len();
        Ok(Some(Self { body, range, is_error }))
    }

    /// What no client could read about it. The usual start of a result is enough to know that it
    /// is in order.
    pub fn malformed(&self) -> Option<&'static str> {
        let text = self.text();
        if text.starts_with("{\"content\":[") {
            return None;
        }
        let Ok(members) = Members::parse(text) else {
            return Some(if self.is_error { "its error" } else { "its result" });
        };
        let number = |raw: &str| raw.parse::<i64>().is_ok();
        match self.is_error {
            true if !members.get("code").is_some_and(number) => Some("the `code` of its error"),
            true if members.get("message").and_then(json::string).is_none() => {
                Some("the `message` of its error")
            }
            true => None,
            false => members
                .get("content")
                .is_some_and(|content| !content.starts_with('['))
                .then_some("the `content` of its result"),
        }
    }

    /// Whether it is a result that says `isError: true`. Looked for in the text first, so that
    /// the many results that do not are not read again.
    pub fn says_error(&self) -> bool {
        let text = self.text();
        text.contains("\"isError\"")
            && Members::parse(text).is_ok_and(|result| result.get("isError") == Some("true"))
    }

    /// The raw result or error object.
    pub fn bytes(&self) -> Bytes {
        self.body.slice(self.range.clone())
    }

    /// As text.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body[self.range.clone()]).expect("checked when it was read")
    }

    /// A failure, when the answer is an error object.
    ///
    /// # Errors
    /// [`Failure::Refused`], or [`Failure::Versions`].
    pub fn into_result(self) -> Result<Self, Failure> {
        if !self.is_error {
            return Ok(self);
        }
        let code = codes::code_of(self.text());
        if code == i64::from(codes::UNSUPPORTED_VERSION)
            && let Some(supported) = codes::supported_of(self.text())
        {
            return Err(Failure::Versions(supported));
        }
        Err(Failure::Refused { code, message: codes::message_of(self.text()) })
    }
}

/// A request in flight. Dropping it abandons the answer; [`Exchange::cancel`] also tells
/// the server.
pub struct Exchange {
    kind: Kind,
    each: Duration,
    deadline: Instant,
    hard: Instant,
}

pub(crate) enum Kind {
    Http(Box<HttpExchange>),
    Stdio(StdioExchange),
}

impl std::fmt::Debug for Exchange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exchange").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}

impl Exchange {
    /// `each` is the time allowed without progress; six times that is the hard end (U16).
    pub(crate) fn new(kind: Kind, each: Duration) -> Self {
        let now = Instant::now();
        Self { kind, each, deadline: now + each, hard: now + each * 6 }
    }

    /// Waits for what comes next. After an answer or a failure there is nothing more.
    ///
    /// # Errors
    /// How the exchange failed. Dropped half-way, it can be called again to go on.
    pub async fn next(&mut self) -> Result<Event, Failure> {
        let next = async {
            match &mut self.kind {
                Kind::Http(exchange) => exchange.next().await,
                Kind::Stdio(exchange) => exchange.next().await,
            }
        };
        match tokio::time::timeout_at(self.deadline, next).await {
            Ok(Ok(Event::Notice(notice))) => {
                if notice.method == "notifications/progress" {
                    self.deadline = (Instant::now() + self.each).min(self.hard);
                }
                Ok(Event::Notice(notice))
            }
            Ok(event) => event,
            Err(_) => Err(Failure::Timeout(self.each)),
        }
    }

    /// Waits until the server has begun to answer.
    ///
    /// # Errors
    /// When it does not.
    pub async fn opened(&mut self) -> Result<(), Failure> {
        match &mut self.kind {
            Kind::Http(exchange) => exchange.opened().await,
            Kind::Stdio(_) => Ok(()),
        }
    }

    /// Waits for the answer, whatever comes on the way.
    ///
    /// # Errors
    /// As [`Exchange::next`].
    pub async fn answer(&mut self) -> Result<Answer, Failure> {
        loop {
            if let Event::Answer(answer) = self.next().await? {
                return Ok(answer);
            }
        }
    }

    /// Tells the server that nobody waits any more, in the way of its era and transport
    /// (U15): a notification, or a closed stream.
    /// Does not wait for it.
    pub fn cancel(self) {
        match self.kind {
            Kind::Http(exchange) => exchange.cancel(),
            Kind::Stdio(exchange) => exchange.cancel(),
        }
    }
}
