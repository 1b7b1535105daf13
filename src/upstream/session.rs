//! One conversation with a server, over HTTP or stdio, of either era.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use catalog::{Pinned, Server, Transport};
use http::header::{HeaderName, HeaderValue};
use pingora_http::RequestHeader;
use protocol::json::{self, Members};
use protocol::{Era, Version, codes, headers, message, meta};
use tokio::sync::Semaphore;

use crate::endpoint::Endpoint;
use crate::exchange::{Answer, Exchange, Kind};
use crate::failure::Failure;
use crate::http::{self as wire, HttpExchange};
use crate::stdio::StdioLink;
use crate::upstreams::Context;

/// `clientInfo` of ours towards servers.
pub const CLIENT_INFO: &str =
    concat!(r#"{"name":"mcp-manager","version":""#, env!("CARGO_PKG_VERSION"), r#""}"#);

/// A request to a server of an era that is known by now.
#[derive(Debug, Clone)]
pub struct Request {
    /// JSON-RPC method.
    pub method: &'static str,
    /// Raw JSON object.
    pub params: String,
    /// What `Mcp-Name` repeats: the tool's own name.
    pub name: Option<String>,
    /// `Mcp-Param-*` headers, complete.
    pub headers: Vec<(String, String)>,
    /// Whether it may run twice.
    pub repeatable: bool,
}

/// How to make a request, for whichever era the server turns out to be of; asked once more
/// when the session has to be opened anew.
pub trait Recipe: Send + Sync {
    /// Builds the request.
    fn make(&self, wants: &Wants) -> Request;
}

/// What the makers of requests are told: the server's era, and a fresh id which also
/// serves as progress token.
#[derive(Debug, Clone)]
pub struct Wants {
    /// Era of the server.
    pub era: Era,
    /// Raw JSON string, unique in this process (U14, U18).
    pub token: String,
}

/// An open conversation.
pub(crate) struct Session {
    pub(crate) era: Era,
    /// What the server said of itself: raw `initialize` or `server/discover` result.
    pub(crate) hello: String,
    kind: SessionKind,
}

enum SessionKind {
    Http(Arc<HttpLink>),
    Stdio(Arc<StdioLink>),
}

/// The standing part of every request of one HTTP session.
pub(crate) struct HttpLink {
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) era: Era,
    pub(crate) has_session: bool,
    template: RequestHeader,
    /// Room for messages that are sent beside calls.
    beside: Arc<Semaphore>,
}

/// Messages under way beside calls; a server that asks for more is not answered.
const BESIDE: usize = 16;

/// How long a server has to take a notification, a reply or the end of its session.
const ASIDE: Duration = Duration::from_secs(5);

impl Session {
    /// Connects and agrees on an era. `known` is what an earlier connection found out.
    ///
    /// # Errors
    /// Why the server cannot be used now.
    pub(crate) async fn open(
        server: &Server,
        context: &Context,
        known: Option<Era>,
    ) -> Result<Self, Failure> {
        let known = match server.protocol {
            Pinned::Auto => known,
            Pinned::Legacy => Some(Era::Legacy),
            Pinned::Modern => Some(Era::Modern),
        };
        let open = async {
            match &server.transport {
                Transport::Http { .. } => {
                    let endpoint = Arc::new(Endpoint::new(server, context)?);
                    open_http(endpoint, known).await
                }
                Transport::Stdio { .. } => {
                    let (link, era, hello) = StdioLink::open(server, context, known).await?;
                    Ok((SessionKind::Stdio(link), era, hello))
                }
            }
        };
        let (kind, era, hello) = tokio::time::timeout(server.timeout, open)
            .await
            .map_err(|_| Failure::Timeout(server.timeout))??;
        Ok(Self { era, hello, kind })
    }

    /// Sends a request of the manager itself and waits for its result.
    ///
    /// # Errors
    /// Any failure, an error answer included.
    pub(crate) async fn ask(
        &self,
        method: &'static str,
        params: Members<'_>,
        within: Duration,
    ) -> Result<Answer, Failure> {
        let params = match self.era {
            Era::Modern => modern(params),
            Era::Legacy => params.to_text(),
        };
        let request = Request { method, params, name: None, headers: Vec::new(), repeatable: true };
        let exchange = self.start(next_id(), request, within);
        let mut exchange = tokio::time::timeout(within, exchange)
            .await
            .map_err(|_| Failure::Timeout(within))??;
        exchange.answer().await?.into_result()
    }

    /// Opens the stream on which the server tells of changes.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub(crate) async fn listen(&self) -> Result<Exchange, Failure> {
        const FOR_EVER: Duration = Duration::from_secs(365 * 24 * 3600);
        let subscribe = || {
            let mut params = Members::default();
            params.set("notifications", r#"{"toolsListChanged":true}"#);
            modern(params)
        };
        let kind = match &self.kind {
            SessionKind::Stdio(link) => {
                let params = (self.era == Era::Modern).then(subscribe);
                Kind::Stdio(link.listen(params.as_deref()))
            }
            SessionKind::Http(link) if link.era == Era::Modern => {
                let request = Request {
                    method: "subscriptions/listen",
                    params: subscribe(),
                    name: None,
                    headers: Vec::new(),
                    repeatable: true,
                };
                return self.start(next_id(), request, FOR_EVER).await;
            }
            SessionKind::Http(link) => {
                let mut get = link.template.clone();
                get.set_method(::http::Method::GET);
                get.remove_header("content-type");
                let _ = get.insert_header("Accept", "text/event-stream");
                let exchange =
                    HttpExchange::start(link.clone(), "null".into(), get, Bytes::new(), true);
                Kind::Http(Box::new(exchange.await?))
            }
        };
        Ok(Exchange::new(kind, FOR_EVER))
    }

    /// Whether the other side is known to be gone.
    pub(crate) fn is_dead(&self) -> bool {
        match &self.kind {
            SessionKind::Http(_) => false,
            SessionKind::Stdio(link) => link.is_dead(),
        }
    }

    /// The last lines of a process's standard error.
    pub(crate) fn stderr(&self) -> Vec<String> {
        match &self.kind {
            SessionKind::Http(_) => Vec::new(),
            SessionKind::Stdio(link) => link.stderr(),
        }
    }

    /// Ends the conversation: DELETE, or the end of the process.
    pub(crate) async fn close(&self) {
        match &self.kind {
            SessionKind::Http(link) => link.end().await,
            SessionKind::Stdio(link) => link.stop().await,
        }
    }

    /// Sends a request. `id` is raw JSON; `each` is the time allowed without progress.
    ///
    /// # Errors
    /// When it could not be sent.
    pub(crate) async fn start(
        &self,
        id: String,
        request: Request,
        each: Duration,
    ) -> Result<Exchange, Failure> {
        let kind = match &self.kind {
            SessionKind::Http(link) => {
                let body = message::request(&id, request.method, Some(&request.params));
                let head = link.head(&request);
                let exchange = HttpExchange::start(
                    link.clone(),
                    id,
                    head,
                    Bytes::from(body),
                    request.repeatable,
                );
                Kind::Http(Box::new(exchange.await?))
            }
            SessionKind::Stdio(link) => {
                Kind::Stdio(link.start(id, request.method, &request.params)?)
            }
        };
        Ok(Exchange::new(kind, each))
    }
}

impl HttpLink {
    /// The head of a POST carrying `request`.
    fn head(&self, request: &Request) -> RequestHeader {
        let mut head = self.template.clone();
        if self.era == Era::Modern {
            let mut insert = |name: HeaderName, value: &str| {
                if let Ok(value) = HeaderValue::from_str(value) {
                    let _ = head.insert_header(name, value);
                }
            };
            insert(HeaderName::from_static(headers::METHOD), request.method);
            if let Some(name) = &request.name {
                insert(HeaderName::from_static(headers::NAME), &headers::encode(name));
            }
            for (name, value) in &request.headers {
                if let Ok(name) = HeaderName::from_bytes(name.as_bytes()) {
                    insert(name, value);
                }
            }
        }
        head
    }

    /// Sends a message beside a call and does not wait: the server may need it before it
    /// goes on. What finds no room is not sent.
    pub(crate) fn reply(self: &Arc<Self>, body: String) {
        let Ok(room) = self.beside.clone().try_acquire_owned() else { return };
        let link = self.clone();
        tokio::spawn(async move {
            link.aside(::http::Method::POST, body).await;
            drop(room);
        });
    }

    /// Sends something whose answer does not matter, and waits for it a little.
    async fn aside(&self, method: ::http::Method, body: String) {
        let mut head = self.template.clone();
        if method == ::http::Method::DELETE {
            head.remove_header("content-type");
        }
        head.set_method(method);
        let answered = async {
            let connection = wire::send(&self.endpoint, head, Bytes::from(body)).await?;
            wire::small(&self.endpoint, connection).await
        };
        match tokio::time::timeout(ASIDE, answered).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::debug!(%error, "a message did not reach the server"),
            Err(_) => tracing::debug!("the server did not take a message in time"),
        }
    }

    async fn end(&self) {
        if self.has_session {
            self.aside(::http::Method::DELETE, String::new()).await;
        }
    }
}

/// A session that nobody holds any more takes its process with it, also when opening or
/// listing was broken off half-way.
impl Drop for Session {
    fn drop(&mut self) {
        if let SessionKind::Stdio(link) = &self.kind {
            link.let_go();
        }
    }
}

/// The next request id, raw JSON, unique in this process.
pub(crate) fn next_id() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed).to_string()
}

/// Our answer to a request of a server: alive, but nothing else was offered (U24).
pub(crate) fn reply(id: &str, method: &str) -> String {
    if method == "ping" {
        return message::result(id, "{}");
    }
    let why = format!("the client does not support `{method}`");
    message::failure(Some(id), &codes::error(codes::METHOD_NOT_FOUND, &why, None))
}

/// Raw `params` of our `initialize`.
pub(crate) fn initialize_params() -> String {
    let version = json::quoted(Version::NEWEST_LEGACY.as_str());
    format!(
        r#"{{"protocolVersion":{version},"capabilities":{},"clientInfo":{CLIENT_INFO}}}"#,
        protocol::bridge::CAPABILITIES
    )
}

/// `params` as a request of the manager itself to a modern server carries them.
pub(crate) fn modern(mut params: Members<'_>) -> String {
    let mut members = Members::default();
    for (key, raw) in meta::modern(protocol::bridge::CAPABILITIES, CLIENT_INFO) {
        members.set(key, raw);
    }
    params.set("_meta", &members.to_text());
    params.to_text()
}

async fn open_http(
    endpoint: Arc<Endpoint>,
    known: Option<Era>,
) -> Result<(SessionKind, Era, String), Failure> {
    if known != Some(Era::Legacy) {
        match discover(&endpoint).await {
            Ok((link, hello)) => return Ok((SessionKind::Http(link), Era::Modern, hello)),
            Err(failure @ (Failure::Unreachable(_) | Failure::Auth(_) | Failure::Settings(_))) => {
                return Err(failure);
            }
            Err(failure) if known == Some(Era::Modern) => return Err(failure),
            Err(_) => {}
        }
    }
    let (link, hello) = initialize(&endpoint).await?;
    Ok((SessionKind::Http(link), Era::Legacy, hello))
}

async fn discover(endpoint: &Arc<Endpoint>) -> Result<(Arc<HttpLink>, String), Failure> {
    let mut template = endpoint.request(&::http::Method::POST);
    let version = Version::V2026_07_28.as_str();
    let _ = template.insert_header("MCP-Protocol-Version", version);
    let beside = Arc::new(Semaphore::new(BESIDE));
    let link = HttpLink {
        endpoint: endpoint.clone(),
        era: Era::Modern,
        has_session: false,
        template,
        beside,
    };
    let request = Request {
        method: "server/discover",
        params: modern(Members::default()),
        name: None,
        headers: Vec::new(),
        repeatable: true,
    };
    let id = next_id();
    let body = message::request(&id, request.method, Some(&request.params));
    let connection = wire::send(endpoint, link.head(&request), Bytes::from(body)).await?;
    // A legacy server that holds a request which it does not know must not hold us for long.
    let probe = Duration::from_secs(5);
    let (status, _, body) = tokio::time::timeout(probe, wire::small(endpoint, connection))
        .await
        .map_err(|_| Failure::Timeout(probe))??;
    if matches!(status, 401 | 403) {
        return Err(Failure::Auth(status));
    }
    let answer = Answer::read(body, &id)?.ok_or_else(|| Failure::Garbage("no response".into()))?;
    if answer.is_error {
        let code = codes::code_of(answer.text());
        let message = codes::message_of(answer.text());
        return Err(Failure::Refused { code, message });
    }
    Ok((Arc::new(link), answer.text().to_owned()))
}

async fn initialize(endpoint: &Arc<Endpoint>) -> Result<(Arc<HttpLink>, String), Failure> {
    let id = next_id();
    let body = message::request(&id, "initialize", Some(&initialize_params()));
    let template = endpoint.request(&::http::Method::POST);
    let connection = wire::send(endpoint, template.clone(), Bytes::from(body)).await?;
    let (status, session, body) = wire::small(endpoint, connection).await?;
    if matches!(status, 401 | 403) {
        return Err(Failure::Auth(status));
    }
    let answer = match Answer::read(body, &id) {
        Ok(Some(answer)) => answer.into_result()?,
        _ if !(200..300).contains(&status) => return Err(Failure::Status(status)),
        Ok(None) => return Err(Failure::Garbage("no response to `initialize`".into())),
        Err(failure) => return Err(failure),
    };
    let version = agreed(answer.text())?;
    let mut template = template;
    if version >= Version::V2025_06_18 {
        let _ = template.insert_header("MCP-Protocol-Version", version.as_str());
    }
    let has_session = session.is_some();
    if let Some(session) = session {
        let _ = template.insert_header("Mcp-Session-Id", session);
    }
    let (endpoint, beside) = (endpoint.clone(), Arc::new(Semaphore::new(BESIDE)));
    let link = HttpLink { endpoint, era: Era::Legacy, has_session, template, beside };
    let note = message::notification("notifications/initialized", None);
    link.aside(::http::Method::POST, note).await;
    Ok((Arc::new(link), answer.text().to_owned()))
}

/// The version that a server chose, when it is one that we speak (U8).
pub(crate) fn agreed(hello: &str) -> Result<Version, Failure> {
    let members = Members::parse(hello).map_err(|e| Failure::Garbage(e.to_string()))?;
    let text = members.get("protocolVersion").and_then(json::string).unwrap_or_default();
    match Version::parse(&text) {
        Some(version) if version.era() == Era::Legacy => Ok(version),
        _ => Err(Failure::Garbage(format!("it chose protocol version `{text}`"))),
    }
}
