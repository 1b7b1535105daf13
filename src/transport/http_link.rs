//! One session over streamable HTTP: how it is opened, and what all its requests carry.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http::header::{HeaderName, HeaderValue};
use protocol::json::Members;
use protocol::{Era, Version, headers, message};
use tokio::sync::Semaphore;

use crate::endpoint::Endpoint;
use crate::exchange::Answer;
use crate::failure::Failure;
use crate::head::Head;
use crate::hop;
use crate::session::{self, Repeat, Request};
use crate::wire;

/// The standing part of every request of one HTTP session.
pub(crate) struct HttpLink {
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) era: Era,
    pub(crate) has_session: bool,
    head: Head,
    /// Room for messages that are sent beside calls.
    beside: Arc<Semaphore>,
}

/// Messages under way beside calls; a server that asks for more is not answered.
const BESIDE: usize = 16;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

const VERSION: HeaderName = HeaderName::from_static(headers::PROTOCOL_VERSION);

/// How long a server has to take a notification, a reply or the end of its session.
const ASIDE: Duration = Duration::from_secs(5);

impl HttpLink {
    /// A POST carrying `request`; `id` is raw JSON.
    pub(crate) fn post(&self, id: &str, request: &Request) -> Bytes {
        let body = message::request(id, request.method, Some(&request.params));
        let mut more = Vec::new();
        if self.era == Era::Modern {
            let mut add = |name: HeaderName, value: &str| {
                if let Ok(value) = HeaderValue::from_str(value) {
                    more.push((name, value));
                }
            };
            add(HeaderName::from_static(headers::METHOD), request.method);
            if let Some(name) = &request.name {
                add(HeaderName::from_static(headers::NAME), &headers::encode(name));
            }
            for (name, value) in &request.headers {
                if let Ok(name) = HeaderName::from_bytes(name.as_bytes()) {
                    add(name, value);
                }
            }
        }
        self.head.request(&Method::POST, &more, &body)
    }

    /// A GET that opens the session's stream, or the rest of one that broke after an event.
    pub(crate) fn get(&self, last_event: Option<&str>) -> Bytes {
        let last = last_event.and_then(|id| HeaderValue::from_str(id).ok());
        let more: Vec<_> = last.map(|id| (LAST_EVENT_ID, id)).into_iter().collect();
        self.head.request(&Method::GET, &more, "")
    }

    /// Sends a message beside a call and does not wait: the server may need it before it
    /// goes on. What finds no room is not sent.
    pub(crate) fn reply(self: &Arc<Self>, body: String) {
        let Ok(room) = self.beside.clone().try_acquire_owned() else { return };
        let link = self.clone();
        tokio::spawn(async move {
            link.aside(&Method::POST, &body).await;
            drop(room);
        });
    }

    /// Sends something whose answer does not matter, and waits for it a little.
    async fn aside(&self, method: &Method, body: &str) {
        let request = self.head.request(method, &[], body);
        let answered = wire::ask(&self.endpoint, &request);
        match tokio::time::timeout(ASIDE, answered).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::debug!(%error, "a message did not reach the server"),
            Err(_) => tracing::debug!("the server did not take a message in time"),
        }
    }

    /// Ends the session on the server.
    pub(crate) async fn end(&self) {
        if self.has_session {
            self.aside(&Method::DELETE, "").await;
        }
    }
}

/// Agrees on an era: modern unless the server turns out, or is known, to be legacy (U19).
///
/// # Errors
/// Why the server cannot be used now.
pub(crate) async fn open(
    endpoint: Arc<Endpoint>,
    known: Option<Era>,
) -> Result<(Arc<HttpLink>, Era, String), Failure> {
    if known != Some(Era::Legacy) {
        match discover(&endpoint).await {
            Ok((link, hello)) => return Ok((link, Era::Modern, hello)),
            Err(failure @ (Failure::Unreachable(_) | Failure::Auth(_) | Failure::Settings(_))) => {
                return Err(failure);
            }
            Err(failure) if known == Some(Era::Modern) || session::is_modern(&failure) => {
                return Err(failure);
            }
            Err(_) => {}
        }
    }
    let (link, hello) = initialize(&endpoint).await?;
    Ok((link, Era::Legacy, hello))
}

async fn discover(endpoint: &Arc<Endpoint>) -> Result<(Arc<HttpLink>, String), Failure> {
    let mut head = endpoint.head();
    head.insert(VERSION, HeaderValue::from_static(Version::V2026_07_28.as_str()));
    let beside = Arc::new(Semaphore::new(BESIDE));
    let link =
        HttpLink { endpoint: endpoint.clone(), era: Era::Modern, has_session: false, head, beside };
    let request = Request {
        method: "server/discover",
        params: session::modern(Members::default()),
        name: None,
        headers: Vec::new(),
        repeat: Repeat::ReadOnly,
    };
    let id = session::next_id();
    let request = link.post(&id, &request);
    // A legacy server that holds a request which it does not know must not hold us for long.
    let probe = Duration::from_secs(5);
    let (status, _, body) = tokio::time::timeout(probe, wire::ask(endpoint, &request))
        .await
        .map_err(|_| Failure::Timeout(probe))??;
    refused(status)?;
    let answer = Answer::read(body, &id)?.ok_or_else(|| Failure::Garbage("no response".into()))?;
    let answer = answer.into_result()?;
    session::speaks_modern(answer.text())?;
    Ok((Arc::new(link), answer.text().to_owned()))
}

/// What the status of an answer rules out, whatever the body says.
fn refused(status: u16) -> Result<(), Failure> {
    match status {
        401 | 403 => Err(Failure::Auth(status)),
        hop::LOOP => Err(Failure::Settings(
            "`url` leads back to this manager, which cannot be its own server".into(),
        )),
        _ => Ok(()),
    }
}

async fn initialize(endpoint: &Arc<Endpoint>) -> Result<(Arc<HttpLink>, String), Failure> {
    let id = session::next_id();
    let body = message::request(&id, "initialize", Some(&session::initialize_params()));
    let mut head = endpoint.head();
    let (status, session, body) =
        wire::ask(endpoint, &head.request(&Method::POST, &[], &body)).await?;
    refused(status)?;
    let answer = match Answer::read(body, &id) {
        Ok(Some(answer)) => answer.into_result()?,
        _ if !(200..300).contains(&status) => return Err(Failure::Status(status)),
        Ok(None) => return Err(Failure::Garbage("no response to `initialize`".into())),
        Err(failure) => return Err(failure),
    };
    let version = session::agreed(answer.text())?;
    if version >= Version::V2025_06_18 {
        head.insert(VERSION, HeaderValue::from_static(version.as_str()));
    }
    let has_session = session.is_some();
    if let Some(session) = session {
        head.insert(HeaderName::from_static(headers::SESSION_ID), session);
    }
    let (endpoint, beside) = (endpoint.clone(), Arc::new(Semaphore::new(BESIDE)));
    let link = HttpLink { endpoint, era: Era::Legacy, has_session, head, beside };
    let note = message::notification("notifications/initialized", None);
    link.aside(&Method::POST, &note).await;
    Ok((Arc::new(link), answer.text().to_owned()))
}
