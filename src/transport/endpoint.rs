//! Where an HTTP server is and what every request to it carries.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use catalog::{Server, Transport};
use http::header::{HeaderName, HeaderValue};
use pingora_core::protocols::http::v1::client::HttpSession;
use pingora_core::protocols::{Stream, TcpKeepalive};
use pingora_core::upstreams::peer::HttpPeer;
use pingora_core::utils::tls::WrappedX509;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use crate::context::Context;
use crate::failure::{Failure, expand};
use crate::head::Head;
use crate::hop;
use crate::pool::Pool;

/// A host that vanished is noticed by the system within some ten seconds, also while a call
/// waits and nothing is sent.
const KEEPALIVE: TcpKeepalive = TcpKeepalive {
    idle: Duration::from_secs(5),
    interval: Duration::from_secs(2),
    count: 3,
    #[cfg(target_os = "linux")]
    user_timeout: Duration::ZERO,
};

/// One server's address and standing headers, resolved once per connection of its link.
pub(crate) struct Endpoint {
    context: Arc<Context>,
    host: String,
    port: u16,
    tls: bool,
    ca: Option<Arc<[WrappedX509]>>,
    connect_timeout: Duration,
    /// The address that last worked.
    peer: ArcSwapOption<HttpPeer>,
    base: Head,
    /// Where the configured URL's path was redirected to.
    learnt: ArcSwapOption<String>,
    url: url::Url,
    pool: Arc<Pool>,
}

/// A connection that nothing was written to yet.
pub(crate) struct Fresh {
    pub(crate) stream: Stream,
    /// Whether it comes from the pool, where the server may have closed it meanwhile.
    pub(crate) reused: bool,
}

/// A connection with a request on it, and what is needed to give it back.
pub(crate) struct Connection {
    pub(crate) http: HttpSession,
    pub(crate) reused: bool,
}

impl Fresh {
    /// The connection, now that a request was written to it.
    pub(crate) fn sent(self) -> Connection {
        let Self { stream, reused } = self;
        Connection { http: HttpSession::new(stream), reused }
    }
}

impl Connection {
    /// Gives it back for the next request, if its answer was read to the end.
    pub(crate) async fn give_back(mut self, endpoint: &Endpoint) {
        if self.http.is_body_done() {
            endpoint.release(self).await;
        }
    }
}

impl Endpoint {
    /// Reads a server's settings.
    ///
    /// # Errors
    /// When the URL, a header, the CA file or an environment reference cannot be used.
    pub(crate) fn new(server: &Server, context: &Arc<Context>) -> Result<Self, Failure> {
        let Transport::Http { url, headers, ca_file } = &server.transport else {
            return Err(Failure::Settings("the server has no URL".into()));
        };
        let url = expand([url.as_str()], &*context.lookup)?.remove(0);
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
        let (context, pool) = (context.clone(), Arc::default());
        let (peer, learnt) = (None.into(), None.into());
        Ok(Self {
            context,
            host,
            port,
            tls,
            ca,
            connect_timeout,
            peer,
            base,
            learnt,
            url: parsed,
            pool,
        })
    }

    /// The standing head of every request.
    pub(crate) fn head(&self) -> Head {
        self.base.clone()
    }

    /// Closes the connections that lie idle.
    pub(crate) fn forget_idle(&self) {
        self.pool.clear();
    }

    /// A pooled or new connection.
    ///
    /// # Errors
    /// [`Failure::Unreachable`], with every address's reason.
    pub(crate) async fn connect(&self) -> Result<Fresh, Failure> {
        if let Some(stream) = self.pool.take() {
            return Ok(Fresh { stream, reused: true });
        }
        // Boxed: making a connection is rare, and its future is large.
        Box::pin(self.connect_anew()).await
    }

    /// A new connection: to the address that last worked, else to each that the name has.
    async fn connect_anew(&self) -> Result<Fresh, Failure> {
        if let Some(peer) = self.peer.load_full() {
            if let Ok(stream) = self.context.connector.new_stream(&*peer).await {
                return Ok(Fresh { stream, reused: false });
            }
            self.peer.store(None);
        }
        let mut reasons = Vec::new();
        for address in self.addresses().await? {
            let peer = Arc::new(self.peer_at(address));
            match self.context.connector.new_stream(&*peer).await {
                Ok(stream) => {
                    self.peer.store(Some(peer));
                    return Ok(Fresh { stream, reused: false });
                }
                Err(error) => reasons.push(format!("{address}: {}", reason(&error))),
            }
        }
        Err(Failure::Unreachable(reasons.join("; ")))
    }

    /// Gives a connection back whose answer was read to its end.
    async fn release(&self, connection: Connection) {
        let Connection { mut http, .. } = connection;
        http.respect_keepalive();
        if let Some(stream) = http.reuse().await {
            self.pool.give(stream);
        }
    }

    /// The request, to the place where the server wants it by now.
    pub(crate) fn aimed(&self, request: &Bytes) -> Bytes {
        let Some(path) = self.learnt.load_full() else { return request.clone() };
        let mut parts = request.splitn(3, |byte| *byte == b' ');
        let (Some(method), Some(_), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
            return request.clone();
        };
        [method, path.as_bytes(), rest].join(&b' ').into()
    }

    /// Notes where the server redirects to.
    ///
    /// # Errors
    /// For another origin: credentials go to the configured one only (P26).
    pub(crate) fn redirected(&self, location: &str) -> Result<(), Failure> {
        let base = match &*self.learnt.load() {
            Some(path) => self.url.join(path),
            None => Ok(self.url.clone()),
        };
        let to = base.and_then(|base| base.join(location)).map_err(|error| {
            Failure::Settings(format!("the server redirects to what is no address: {error}"))
        })?;
        if to.origin() != self.url.origin() {
            let origin = to.origin().ascii_serialization();
            return Err(Failure::Settings(format!(
                "the server redirects to another origin, {origin}; set `url` to where it is now"
            )));
        }
        let query = to.query().map_or_else(String::new, |query| format!("?{query}"));
        self.learnt.store(Some(Arc::new(format!("{}{query}", to.path()))));
        Ok(())
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
        peer.options.ca = self.ca.clone();
        peer.options.connection_timeout = Some(self.connect_timeout);
        peer.options.total_connection_timeout = Some(self.connect_timeout);
        peer.options.tcp_keepalive = Some(KEEPALIVE);
        peer
    }
}

/// Path, query and headers as configured; they go out byte for byte (UPS-12).
fn base_request(
    url: &str,
    headers: &[(String, catalog::Secret)],
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Result<Head, Failure> {
    let invalid = |what: &str| Failure::Settings(format!("{what} cannot be sent over HTTP"));
    let after_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    let split = after_scheme.find(['/', '?', '#']).unwrap_or(after_scheme.len());
    let (authority, path) = after_scheme.split_at(split);
    let path = path.split('#').next().unwrap_or_default();
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    if !path.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(invalid("`url`"));
    }
    let host = authority.rsplit('@').next().unwrap_or(authority);
    let mut head = Head::new(path);
    let mut insert = |name: &str, value: &str| -> Result<(), Failure> {
        let name: HeaderName =
            name.parse().map_err(|_| invalid(&format!("the header name `{name}`")))?;
        let value = HeaderValue::from_str(value)
            .map_err(|_| invalid(&format!("the value of header `{name}`")))?;
        head.insert(name, value);
        Ok(())
    };
    insert("host", host)?;
    insert("user-agent", concat!("mcp-manager/", env!("CARGO_PKG_VERSION")))?;
    let values = headers.iter().map(|(_, value)| value.reveal());
    let values = expand(values, lookup)?;
    for ((name, _), value) in headers.iter().zip(&values) {
        insert(name, value)?;
    }
    head.insert(hop::NAME, hop::own());
    Ok(head)
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

/// The cause in words; pingora's own text repeats the address and names its types.
fn reason(error: &pingora_core::Error) -> String {
    let mut innermost = error;
    let mut cause = None;
    while let Some(next) = &innermost.cause {
        match next.downcast_ref::<pingora_core::BError>() {
            Some(deeper) => innermost = deeper,
            None => {
                cause = Some(next.to_string());
                break;
            }
        }
    }
    // Below a failed handshake pingora notes only which address of ours it was tried from.
    match (cause.filter(|cause| !cause.starts_with("local address")), &innermost.context) {
        (Some(cause), _) => cause,
        (None, Some(context)) => without_names(context.as_str()).to_owned(),
        (None, None) => innermost.etype.as_str().to_owned(),
    }
}

/// What the TLS library said, without the function and the host that pingora puts around it.
fn without_names(context: &str) -> &str {
    let said = context.strip_prefix("TLS connect() failed: ").unwrap_or(context);
    said.split(", SNI: ").next().unwrap_or(said)
}
