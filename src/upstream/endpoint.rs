//! Where an HTTP server is and what every request to it carries.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use catalog::{Server, Transport};
use http::header::{HeaderName, HeaderValue};
use pingora_core::connectors::http::v1::Connector;
use pingora_core::protocols::http::client::HttpSession;
use pingora_core::upstreams::peer::HttpPeer;
use pingora_core::utils::tls::WrappedX509;
use pingora_http::RequestHeader;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use crate::environment;
use crate::failure::Failure;
use crate::upstreams::Context;

/// How long an idle connection may wait in the pool.
const POOL_IDLE: Duration = Duration::from_secs(55);

/// One server's address and standing headers, resolved once per connection of its link.
pub(crate) struct Endpoint {
    connector: Arc<Connector>,
    host: String,
    port: u16,
    tls: bool,
    ca: Option<Arc<[WrappedX509]>>,
    connect_timeout: Duration,
    /// The address that last worked.
    peer: ArcSwapOption<HttpPeer>,
    base: RequestHeader,
    /// Keeps connections of servers apart that share an address but not their trust.
    pool: u64,
}

/// A connection in use, with what is needed to give it back.
pub(crate) struct Connection {
    pub(crate) http: HttpSession,
    pub(crate) reused: bool,
    peer: Arc<HttpPeer>,
}

impl Endpoint {
    /// Reads a server's settings.
    ///
    /// # Errors
    /// When the URL, a header, the CA file or an environment reference cannot be used.
    pub(crate) fn new(server: &Server, context: &Context) -> Result<Self, Failure> {
        let Transport::Http { url, headers, ca_file } = &server.transport else {
            return Err(Failure::Settings("the server has no URL".into()));
        };
        let url = environment::expand([url.as_str()], &*context.lookup)?.remove(0);
        let parsed = url::Url::parse(&url)
            .map_err(|error| Failure::Settings(format!("`url` cannot be read: {error}")))?;
        let tls = match parsed.scheme() {
            "http" => false,
            "https" => true,
            other => {
                return Err(Failure::Settings(format!(
                    "`url` must start with http:// or https://, not {other}://"
                )));
            }
        };
        let host = parsed.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let port = parsed.port_or_known_default().unwrap_or(80);
        let base = base_request(&url, headers, &*context.lookup)?;
        let ca = ca_file.as_deref().map(read_ca).transpose()?;
        let connect_timeout = server.timeout;
        let connector = context.connector.clone();
        let pool = server.id.0.unsigned_abs();
        Ok(Self { connector, host, port, tls, ca, connect_timeout, peer: None.into(), base, pool })
    }

    /// A request with the standing headers, to be completed.
    pub(crate) fn request(&self, method: &http::Method) -> RequestHeader {
        let mut request = self.base.clone();
        request.set_method(method.clone());
        request
    }

    /// A pooled or new connection.
    ///
    /// # Errors
    /// [`Failure::Unreachable`], with every address's reason.
    pub(crate) async fn connect(&self) -> Result<Connection, Failure> {
        if let Some(peer) = self.peer.load_full()
            && let Some(http) = self.connector.reused_http_session(&*peer).await
        {
            return Ok(Connection { http: HttpSession::H1(http), reused: true, peer });
        }
        // Boxed: making a connection is rare, and its future is large.
        Box::pin(self.connect_anew()).await
    }

    /// A new connection: to the address that last worked, else to each that the name has.
    ///
    /// # Errors
    /// As [`Endpoint::connect`].
    async fn connect_anew(&self) -> Result<Connection, Failure> {
        if let Some(peer) = self.peer.load_full() {
            if let Ok((http, reused)) = self.connector.get_http_session(&*peer).await {
                return Ok(Connection { http: HttpSession::H1(http), reused, peer });
            }
            self.peer.store(None);
        }
        let mut reasons = Vec::new();
        for address in self.addresses().await? {
            let peer = Arc::new(self.peer_at(address));
            match self.connector.get_http_session(&*peer).await {
                Ok((http, reused)) => {
                    self.peer.store(Some(peer.clone()));
                    return Ok(Connection { http: HttpSession::H1(http), reused, peer });
                }
                Err(error) => reasons.push(format!("{address}: {}", reason(&error))),
            }
        }
        Err(Failure::Unreachable(reasons.join("; ")))
    }

    /// Gives a connection back whose answer was read to its end.
    pub(crate) async fn release(&self, connection: Connection) {
        if let Connection { http: HttpSession::H1(http), peer, .. } = connection {
            self.connector.release_http_session(http, &*peer, Some(POOL_IDLE)).await;
        }
    }

    async fn addresses(&self) -> Result<Vec<SocketAddr>, Failure> {
        let lookup = tokio::net::lookup_host((self.host.as_str(), self.port));
        match tokio::time::timeout(self.connect_timeout, lookup).await {
            Ok(Ok(found)) => Ok(found.collect()),
            Ok(Err(error)) => {
                Err(Failure::Unreachable(format!("`{}` has no address: {error}", self.host)))
            }
            Err(_) => {
                Err(Failure::Unreachable(format!("looking up `{}` took too long", self.host)))
            }
        }
    }

    fn peer_at(&self, address: SocketAddr) -> HttpPeer {
        // The name must not be empty even for an address: without it certificates are not
        // checked at all.
        let mut peer = HttpPeer::new(address, self.tls, self.host.clone());
        peer.group_key = self.pool;
        peer.options.ca = self.ca.clone();
        peer.options.connection_timeout = Some(self.connect_timeout);
        peer.options.total_connection_timeout = Some(self.connect_timeout);
        peer
    }
}

/// The request line and headers as configured; path and query go out byte for byte (UPS-12).
fn base_request(
    url: &str,
    headers: &[(String, catalog::Secret)],
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Result<RequestHeader, Failure> {
    let invalid = |what: &str| Failure::Settings(format!("{what} cannot be sent over HTTP"));
    let after_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    let split = after_scheme.find(['/', '?', '#']).unwrap_or(after_scheme.len());
    let (authority, path) = after_scheme.split_at(split);
    let path = path.split('#').next().unwrap_or_default();
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    let host = authority.rsplit('@').next().unwrap_or(authority);
    let mut request = RequestHeader::build_no_case("POST", path.as_bytes(), Some(12))
        .map_err(|_| invalid("`url`"))?;
    let mut insert = |name: &str, value: &str| -> Result<(), Failure> {
        let name: HeaderName =
            name.parse().map_err(|_| invalid(&format!("the header name `{name}`")))?;
        let value = HeaderValue::from_str(value)
            .map_err(|_| invalid(&format!("the value of header `{name}`")))?;
        request.insert_header(name, value).map_err(|_| invalid("a header"))
    };
    insert("Host", host)?;
    insert("User-Agent", concat!("mcp-manager/", env!("CARGO_PKG_VERSION")))?;
    insert("Content-Type", "application/json")?;
    insert("Accept", "application/json, text/event-stream")?;
    let values = headers.iter().map(|(_, value)| value.reveal());
    let values = environment::expand(values, lookup)?;
    for ((name, _), value) in headers.iter().zip(&values) {
        insert(name, value)?;
    }
    Ok(request)
}

/// The system's roots and those of the file together (UPS-15): a server with a private CA
/// may move to a public certificate without a change here.
fn read_ca(path: &str) -> Result<Arc<[WrappedX509]>, Failure> {
    let unusable = |why: String| Failure::Settings(format!("`ca_file` {path}: {why}"));
    let own: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|error| unusable(error.to_string()))?;
    if own.is_empty() {
        return Err(unusable("it holds no certificate in PEM form".into()));
    }
    let system = rustls_native_certs::load_native_certs().certs;
    let mut all = Vec::new();
    for certificate in own.into_iter().chain(system) {
        let der = certificate.to_vec();
        // pingora's parser panics on what is no certificate, so look first.
        if webpki_accepts(&der) {
            all.push(WrappedX509::new(der, pingora_core::utils::tls::parse_x509));
        }
    }
    if all.is_empty() { Err(unusable("no usable certificate".into())) } else { Ok(all.into()) }
}

fn webpki_accepts(der: &[u8]) -> bool {
    rustls::RootCertStore::empty().add(CertificateDer::from(der.to_vec())).is_ok()
}

/// The root cause in words; pingora's own text names types and retry flags too.
fn reason(error: &pingora_core::Error) -> String {
    let text = error.root_cause().to_string();
    match error.context.as_ref().map(|context| context.as_str()) {
        Some(context) if !context.is_empty() && !text.contains(context) => {
            format!("{} ({context})", text.trim())
        }
        _ => text.trim().to_owned(),
    }
}
