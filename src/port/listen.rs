//! The listener: one port, plain or TLS, HTTP/1.1 and h2. Connections are accepted here and
//! handed to a lane each ([`crate::lanes`]), where pingora serves HTTP.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use filters::Hosts;
use pingora_core::apps::{HttpServerOptions, ServerApp as _};
use pingora_core::protocols::l4::stream::Stream as Tcp;
use pingora_core::protocols::{ALPN, GetSocketDigest as _, Peek as _, SocketDigest, Stream};
use pingora_core::server::ShutdownWatch;
use pingora_core::server::configuration::ServerConf;
use pingora_proxy::HttpProxy;
use tokio::sync::Semaphore;

use crate::Limits;
use crate::certificate::Tls;
use crate::front::Front;
use crate::lanes::{Lanes, Share};
use crate::line::Place;
use crate::{line, turned_away};

/// Time for a TLS handshake, from the first byte.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// The first byte of a TLS connection: a handshake record.
const TLS_HANDSHAKE: u8 = 0x16;

/// Connections beyond the limit that are told so at one time; more are closed unheard.
const TURNED_AWAY: usize = 64;

/// Time until the next attempt after the system could give no connection, as when no files
/// are left.
const BREATH: Duration = Duration::from_millis(200);

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

/// Accepts connections until told to stop, within `limits`, and hands them to `lanes`.
///
/// # Errors
/// When the socket cannot be waited for.
pub async fn serve(
    listener: Listener,
    front: Front,
    tls: Option<Arc<Tls>>,
    limits: Limits,
    lanes: Arc<Lanes>,
    mut stopped: ShutdownWatch,
) -> io::Result<()> {
    let conf = Arc::new(ServerConf::default());
    let hosts = front.hosts();
    let mut http = pingora_proxy::http_proxy(&conf, front);
    let mut options = HttpServerOptions::default();
    options.h2_idle_timeout = Some(limits.idle);
    http.server_options = Some(options);
    let app = Arc::new(App {
        http: Arc::new(http),
        tls,
        hosts,
        idle: limits.idle,
        room: Arc::new(Semaphore::new(limits.connections)),
        beyond: Arc::new(Semaphore::new(TURNED_AWAY)),
        stopped: stopped.clone(),
    });
    let socket = tokio::net::TcpListener::from_std(listener.socket)?;
    loop {
        let accepted = tokio::select! {
            biased;
            _ = stopped.wait_for(|stop| *stop) => break,
            accepted = socket.accept() => accepted,
        };
        match accepted.and_then(|(connection, peer)| Ok((connection.into_std()?, peer))) {
            Ok((connection, peer)) => {
                let app = app.clone();
                lanes.run(|share| async move { app.connection(connection, peer, share).await });
            }
            // The client's own affair.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                tracing::error!(%error, "no connection can be accepted; trying again");
                tokio::time::sleep(BREATH).await;
            }
        }
    }
    // Nobody is let in any more; HttpProxy tells its connections.
    drop(socket);
    app.http.cleanup().await;
    Ok(())
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
    stopped: ShutdownWatch,
}

impl App {
    /// The life of a connection. Runs on the lane that it has a share of.
    async fn connection(&self, socket: TcpStream, peer: SocketAddr, share: Share) {
        // A client that is gone already needs nothing.
        let Ok(tcp) = tcp(socket, peer) else { return };
        let Ok(permit) = self.room.clone().try_acquire_owned() else {
            let Ok(permit) = self.beyond.clone().try_acquire_owned() else { return };
            let Some(stream) = self.shake(tcp).await else { return };
            let place = Some(Place::new(permit, share));
            return line::bounded(stream, self.idle, place, turned_away::full).await;
        };
        let Some(stream) = self.shake(tcp).await else { return };
        let place = Place::new(permit, share);
        if matches!(stream.selected_alpn_proto(), Some(ALPN::H2)) {
            self.serve(line::prefaced(stream, self.idle)).await;
            drop(place);
        } else {
            line::bounded(stream, self.idle, Some(place), |stream| self.serve(stream)).await;
        }
    }

    /// Serves its requests.
    async fn serve(&self, stream: Stream) {
        let mut next = self.http.process_new(stream, &self.stopped).await;
        while let Some(stream) = next {
            next = self.http.process_new(stream, &self.stopped).await;
        }
    }

    /// The connection past its handshake; `None` when there is nothing more to do for it.
    async fn shake(&self, mut plain: Box<Tcp>) -> Option<Stream> {
        let Some(tls) = &self.tls else { return Some(plain) };
        let mut first = [0];
        let peeked =
            tokio::time::timeout(HANDSHAKE, plain.try_peek(&mut first)).await.ok()?.ok()?;
        if !peeked || first[0] != TLS_HANDSHAKE {
            let hosts = self.hosts.clone();
            let answer = |plain| turned_away::to_https(plain, &hosts);
            line::bounded(plain, self.idle, None, answer).await;
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

/// The accepted socket as pingora knows it, on the lane that this runs on.
fn tcp(socket: TcpStream, peer: SocketAddr) -> io::Result<Box<Tcp>> {
    // Answers are written whole; waiting for more to send would only delay them.
    socket.set_nodelay(true)?;
    let digest = SocketDigest::from_raw_fd(socket.as_raw_fd());
    // New, so that nobody has set it.
    let _ = digest.peer_addr.set(Some(peer.into()));
    let mut stream = Tcp::from(tokio::net::TcpStream::from_std(socket)?);
    stream.set_socket_digest(digest);
    Ok(Box::new(stream))
}
