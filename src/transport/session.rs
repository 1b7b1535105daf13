//! One conversation with a server, over HTTP or stdio, of either era.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use catalog::{Pinned, Server, Transport};
use protocol::json::{self, Members};
use protocol::{Era, Version, codes, message, meta};

use crate::context::Context;
use crate::endpoint::Endpoint;
use crate::exchange::{Answer, Exchange, Kind};
use crate::failure::Failure;
use crate::http::HttpExchange;
use crate::http_link::{self, HttpLink};
use crate::stdio::StdioLink;
use process::Stderr;

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
    pub repeat: Repeat,
}

/// Whether a request may be sent again when nobody knows whether it was run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// It has effects each time.
    Never,
    /// A second run changes nothing more.
    Idempotent,
    /// It changes nothing.
    ReadOnly,
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
pub struct Session {
    /// What was agreed on.
    pub era: Era,
    /// What the server said of itself: raw `initialize` or `server/discover` result.
    pub hello: String,
    kind: SessionKind,
}

enum SessionKind {
    Http(Arc<HttpLink>),
    Stdio(Arc<StdioLink>),
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("era", &self.era).finish_non_exhaustive()
    }
}

impl Session {
    /// Connects and agrees on an era. `known` is what an earlier connection found out; `stderr`
    /// takes what a local process writes there.
    ///
    /// # Errors
    /// Why the server cannot be used now.
    pub async fn open(
        server: &Server,
        context: &Arc<Context>,
        known: Option<Era>,
        stderr: &Arc<Stderr>,
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
                    http_link::open(endpoint, known)
                        .await
                        .map(|(link, era, hello)| (SessionKind::Http(link), era, hello))
                }
                Transport::Stdio { .. } => {
                    let (link, era, hello) =
                        StdioLink::open(server, context, known, stderr).await?;
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
    pub async fn ask(
        &self,
        method: &'static str,
        params: Members<'_>,
        within: Duration,
    ) -> Result<Answer, Failure> {
        let params = match self.era {
            Era::Modern => modern(params),
            Era::Legacy => params.to_text(),
        };
        let request =
            Request { method, params, name: None, headers: Vec::new(), repeat: Repeat::ReadOnly };
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
    pub async fn listen(&self) -> Result<Exchange, Failure> {
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
                    repeat: Repeat::ReadOnly,
                };
                return self.start(next_id(), request, FOR_EVER).await;
            }
            SessionKind::Http(link) => {
                let exchange = HttpExchange::start(
                    link.clone(),
                    "null".into(),
                    link.get(None),
                    Repeat::ReadOnly,
                );
                Kind::Http(Box::new(exchange.await?))
            }
        };
        Ok(Exchange::new(kind, FOR_EVER))
    }

    /// Whether this is a process of ours.
    pub fn is_local(&self) -> bool {
        matches!(self.kind, SessionKind::Stdio(_))
    }

    /// Whether the server declared that capability.
    pub fn offers(&self, capability: &str) -> bool {
        Members::parse(&self.hello).is_ok_and(|hello| {
            let offered = hello.get("capabilities").and_then(|raw| Members::parse(raw).ok());
            offered.is_some_and(|offered| offered.get(capability).is_some())
        })
    }

    /// Whether the other side is known to be gone.
    pub fn is_dead(&self) -> bool {
        match &self.kind {
            SessionKind::Http(_) => false,
            SessionKind::Stdio(link) => link.is_dead(),
        }
    }

    /// Leaves connections that lie idle: they may be dead without anybody having said so.
    pub fn reconnect(&self) {
        if let SessionKind::Http(link) = &self.kind {
            link.endpoint.forget_idle();
        }
    }

    /// Ends the conversation: DELETE, or the end of the process.
    pub async fn close(&self) {
        match &self.kind {
            SessionKind::Http(link) => link.end().await,
            SessionKind::Stdio(link) => link.stop().await,
        }
    }

    /// Sends a request. `id` is raw JSON; `each` is the time allowed without progress.
    ///
    /// # Errors
    /// When it could not be sent.
    pub async fn start(
        &self,
        id: String,
        request: Request,
        each: Duration,
    ) -> Result<Exchange, Failure> {
        let kind = match &self.kind {
            SessionKind::Http(link) => {
                let whole = link.post(&id, &request);
                let exchange = HttpExchange::start(link.clone(), id, whole, request.repeat);
                // A server that reads nothing holds up what does not fit the system's buffers.
                let started = tokio::time::timeout(each, exchange).await;
                Kind::Http(Box::new(started.map_err(|_| Failure::Timeout(each))??))
            }
            SessionKind::Stdio(link) => {
                Kind::Stdio(link.start(id, request.method, &request.params)?)
            }
        };
        Ok(Exchange::new(kind, each))
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
pub fn next_id() -> String {
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

/// Whether a refusal of `server/discover` can come from a modern server alone, which is then not
/// asked for `initialize` (U19, U20). One that names a version with sessions can be.
pub(crate) fn is_modern(refusal: &Failure) -> bool {
    const MODERN: [i32; 3] =
        [codes::HEADER_MISMATCH, codes::MISSING_CAPABILITY, codes::UNSUPPORTED_VERSION];
    match refusal {
        Failure::Versions(supported) => {
            let known = |version: &String| Version::parse(version).map(Version::era);
            !supported.iter().any(|version| known(version) == Some(Era::Legacy))
        }
        Failure::Refused { code, .. } => MODERN.iter().any(|modern| i64::from(*modern) == *code),
        _ => false,
    }
}

/// Whether a server that answered `server/discover` speaks the version that was asked for.
///
/// # Errors
/// When it does not say so.
pub(crate) fn speaks_modern(hello: &str) -> Result<(), Failure> {
    let members = Members::parse(hello).map_err(|e| Failure::Garbage(e.to_string()))?;
    let versions = members.get("supportedVersions").and_then(|raw| json::elements(raw).ok());
    let newest = Version::NEWEST.as_str();
    match versions {
        Some(list) if list.iter().any(|raw| json::string(raw).is_some_and(|v| v == newest)) => {
            Ok(())
        }
        _ => Err(Failure::Garbage(format!("its `supportedVersions` do not name {newest}"))),
    }
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
