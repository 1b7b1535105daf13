//! The listener: one port, plain or TLS, HTTP/1.1 and h2, on pingora.

use std::net::{SocketAddr, TcpListener};
use std::os::fd::IntoRawFd as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use async_trait::async_trait;
use parking_lot::Mutex;
use pingora_core::apps::ServerApp;
use pingora_core::listeners::tls::Acceptor;
use pingora_core::protocols::Stream;
use pingora_core::protocols::l4::stream::Stream as Tcp;
use pingora_core::server::configuration::ServerConf;
use pingora_core::server::{Fds, ListenFds, ShutdownWatch};
use pingora_core::services::Service as _;
use pingora_core::services::listening::Service;
use pingora_proxy::HttpProxy;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::front::Front;

/// Time for a TLS handshake, from the first byte.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// The first byte of a TLS connection: a handshake record.
const TLS_HANDSHAKE: u8 = 0x16;

/// A bound socket. Bound before anything else is touched, so that a port in use is told
/// plainly; pingora would go on without it.
pub(crate) struct Listener {
    address: SocketAddr,
    socket: TcpListener,
}

/// A certificate to serve with.
pub(crate) struct Tls {
    acceptor: Acceptor,
    /// When the certificate ends, in seconds since the Unix epoch.
    pub(crate) not_after: i64,
}

impl Listener {
    /// Binds the address; port 0 takes any free one.
    ///
    /// # Errors
    /// Says which address and what to do.
    pub(crate) fn bind(address: SocketAddr) -> anyhow::Result<Self> {
        let socket = TcpListener::bind(address).with_context(|| {
            format!("failed to listen on {address}; is it in use? set `boot.port` or MCPM_PORT")
        })?;
        socket.set_nonblocking(true)?;
        Ok(Self { address: socket.local_addr()?, socket })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Reads a certificate chain and its key.
///
/// # Errors
/// Names the file and what is wrong with it.
pub(crate) fn tls(cert: &Path, key: &Path) -> anyhow::Result<Tls> {
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(cert)
        .and_then(Iterator::collect)
        .with_context(|| format!("failed to read the certificate {}", cert.display()))?;
    let leaf = chain.first().with_context(|| format!("{} holds no certificate", cert.display()))?;
    let not_after = not_after(leaf)
        .with_context(|| format!("{} does not start with a certificate", cert.display()))?;
    let key_der = PrivateKeyDer::from_pem_file(key)
        .with_context(|| format!("failed to read the private key {}", key.display()))?;
    let mut config = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, key_der)
        .with_context(|| format!("{} and {} do not fit", cert.display(), key.display()))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Tls { acceptor: Acceptor::from_server_config(Arc::new(config)), not_after })
}

/// Accepts connections until told to stop.
pub(crate) async fn serve(
    listener: Listener,
    front: Front,
    tls: Option<Tls>,
    stopped: ShutdownWatch,
) {
    let conf = Arc::new(ServerConf::default());
    let http = Arc::new(pingora_proxy::http_proxy(&conf, front));
    let app = App { http, tls: tls.map(|tls| tls.acceptor) };
    let address = listener.address.to_string();
    let mut sockets = Fds::new();
    sockets.add(address.clone(), listener.socket.into_raw_fd());
    let sockets: ListenFds = Arc::new(Mutex::new(sockets));
    let mut service = Service::new("mcp-manager".to_owned(), app);
    service.add_tcp(&address);
    service.start_service(Some(sockets), stopped, 1).await;
}

/// Tells TLS from plain connections by their first byte, then lets pingora serve HTTP.
struct App {
    http: Arc<HttpProxy<Front>>,
    tls: Option<Acceptor>,
}

#[async_trait]
impl ServerApp for App {
    async fn process_new(
        self: &Arc<Self>,
        stream: Stream,
        shutdown: &ShutdownWatch,
    ) -> Option<Stream> {
        let Some(acceptor) = &self.tls else {
            return self.http.process_new(stream, shutdown).await;
        };
        // A connection that comes back for its next request is past its handshake.
        if stream.get_ssl_digest().is_some() {
            return self.http.process_new(stream, shutdown).await;
        }
        let mut plain: Box<Tcp> = stream.into_any().downcast().ok()?;
        let mut first = [0];
        let peek = pingora_core::protocols::Peek::try_peek(&mut *plain, &mut first);
        let peeked = tokio::time::timeout(HANDSHAKE, peek).await.ok()?.ok()?;
        if !peeked || first[0] != TLS_HANDSHAKE {
            // Plain HTTP on a TLS port.
            return None;
        }
        match tokio::time::timeout(HANDSHAKE, acceptor.tls_handshake(*plain)).await {
            Ok(Ok(stream)) => self.http.process_new(Box::new(stream), shutdown).await,
            Ok(Err(error)) => {
                tracing::debug!(%error, "a TLS handshake failed");
                None
            }
            Err(_) => None,
        }
    }

    /// Without this, HttpProxy would not hear of a shutdown.
    async fn cleanup(&self) {
        ServerApp::cleanup(&*self.http).await;
    }
}

fn not_after(certificate: &CertificateDer<'_>) -> Option<i64> {
    // pingora's own parser panics on what is no certificate, so look first.
    rustls::server::ParsedCertificate::try_from(certificate).ok()?;
    let parsed = pingora_core::utils::tls::parse_x509(certificate);
    Some(parsed.validity().not_after.timestamp())
}
