//! The listener: one port, plain or TLS, HTTP/1.1 and h2, on pingora.

use std::net::{SocketAddr, TcpListener};
use std::os::fd::IntoRawFd as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use async_trait::async_trait;
use parking_lot::Mutex;
use pingora_core::apps::{HttpServerOptions, ServerApp};
use pingora_core::listeners::{ListenerConfig, Listeners};
use pingora_core::protocols::l4::stream::{L4BufferSettings, Stream as Tcp};
use pingora_core::protocols::{ALPN, Peek as _, Stream};
use pingora_core::server::configuration::ServerConf;
use pingora_core::server::{Fds, ListenFds, ShutdownWatch};
use pingora_core::services::Service as _;
use pingora_core::services::listening::Service;
use pingora_proxy::HttpProxy;
use tokio::sync::Semaphore;

use crate::Limits;
use filters::Hosts;

use crate::certificate::Tls;
use crate::front::Front;
use crate::{line, turned_away};

/// Time for a TLS handshake, from the first byte.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// The first byte of a TLS connection: a handshake record.
const TLS_HANDSHAKE: u8 = 0x16;

/// Connections beyond the limit that are told so at one time; more are closed unheard.
const TURNED_AWAY: usize = 64;

/// Read and write buffer of a connection, in bytes. Small, since thousands may be open and idle:
/// larger reads and writes go past them. Pingora's own would be 64 KiB each.
const BUFFERS: (usize, usize) = (2 << 10, 1460);

/// A bound socket. Bound before anything else is touched, so that a port in use is told
/// plainly; pingora would go on without it.
#[derive(Debug)]
pub struct Listener {
    address: SocketAddr,
    socket: TcpListener,
}

impl Listener {
    /// Binds the address; port 0 takes any free one.
    ///
    /// # Errors
    /// Says which address and what to do.
    pub fn bind(address: SocketAddr) -> anyhow::Result<Self> {
        let socket = TcpListener::bind(address).with_context(|| {
            format!("failed to listen on {address}; is it in use? set `boot.port` or MCPM_PORT")
        })?;
        socket.set_nonblocking(true)?;
        Ok(Self { address: socket.local_addr()?, socket })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Accepts connections until told to stop, within `limits`.
pub async fn serve(
    listener: Listener,
    front: Front,
    tls: Option<Arc<Tls>>,
    limits: Limits,
    stopped: ShutdownWatch,
) {
    let conf = Arc::new(ServerConf::default());
    let hosts = front.hosts();
    let mut http = pingora_proxy::http_proxy(&conf, front);
    let mut options = HttpServerOptions::default();
    options.h2_idle_timeout = Some(limits.idle);
    http.server_options = Some(options);
    let app = App {
        http: Arc::new(http),
        tls,
        hosts,
        idle: limits.idle,
        room: Arc::new(Semaphore::new(limits.connections)),
        beyond: Arc::new(Semaphore::new(TURNED_AWAY)),
    };
    let address = listener.address.to_string();
    let mut sockets = Fds::new();
    sockets.add(address.clone(), listener.socket.into_raw_fd());
    let sockets: ListenFds = Arc::new(Mutex::new(sockets));
    let mut listeners = Listeners::new();
    let buffers = L4BufferSettings::new(BUFFERS.0, BUFFERS.1);
    listeners.add_listener(ListenerConfig::tcp(&address).l4_buffer(buffers));
    let mut service = Service::with_listeners("mcp-manager".to_owned(), listeners, app);
    service.start_service(Some(sockets), stopped, 1).await;
}

/// Tells TLS from plain connections by their first byte, then lets pingora serve HTTP.
struct App {
    http: Arc<HttpProxy<Front>>,
    tls: Option<Arc<Tls>>,
    hosts: Arc<Hosts>,
    /// How long a connection may say nothing.
    idle: Duration,
    /// A permit for each open connection.
    room: Arc<Semaphore>,
    beyond: Arc<Semaphore>,
}

impl App {
    /// The connection past its handshake; `None` when there is nothing more to do for it.
    async fn shake(&self, stream: Stream) -> Option<Stream> {
        let Some(tls) = &self.tls else { return Some(stream) };
        let mut plain: Box<Tcp> = stream.into_any().downcast().ok()?;
        let mut first = [0];
        let peeked =
            tokio::time::timeout(HANDSHAKE, plain.try_peek(&mut first)).await.ok()?.ok()?;
        if !peeked || first[0] != TLS_HANDSHAKE {
            let hosts = self.hosts.clone();
            line::bounded(plain, self.idle, None, |plain| turned_away::to_https(plain, &hosts))
                .await;
            return None;
        }
        match tokio::time::timeout(HANDSHAKE, tls.acceptor.tls_handshake(*plain)).await {
            Ok(Ok(stream)) => Some(Box::new(stream)),
            Ok(Err(error)) => {
                tracing::debug!(%error, "a TLS handshake failed");
                None
            }
            Err(_) => None,
        }
    }
}

#[async_trait]
impl ServerApp for App {
    async fn process_new(
        self: &Arc<Self>,
        stream: Stream,
        shutdown: &ShutdownWatch,
    ) -> Option<Stream> {
        let Ok(place) = self.room.clone().try_acquire_owned() else {
            let place = self.beyond.clone().try_acquire_owned().ok()?;
            let stream = self.shake(stream).await?;
            line::bounded(stream, self.idle, Some(place), turned_away::full).await;
            return None;
        };
        let stream = self.shake(stream).await?;
        if matches!(stream.selected_alpn_proto(), Some(ALPN::H2)) {
            let _place = place;
            let stream = line::prefaced(stream, self.idle);
            return self.http.process_new(stream, shutdown).await;
        }
        let serve = |stream| self.http.process_new(stream, shutdown);
        line::bounded(stream, self.idle, Some(place), serve).await
    }

    /// Without this, HttpProxy would not hear of a shutdown.
    async fn cleanup(&self) {
        ServerApp::cleanup(&*self.http).await;
    }
}
