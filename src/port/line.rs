//! One client connection over HTTP/1.1, with a bound on how long a request's head may take.
//!
//! Pingora's own bound holds for each read, so a client that drips a byte every few seconds
//! would hold a connection for ever. The bound here starts with the first byte of a head and
//! ends when [`passed`] is called; [`rest`] makes the connection wait for the next head.

use std::cell::Cell;
use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use pingora_core::protocols::raw_connect::ProxyDigest;
use pingora_core::protocols::tls::SslDigest;
use pingora_core::protocols::{
    ALPN, GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl,
    Stream, TimingDigest, UniqueID, UniqueIDType,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Sleep;

/// Time for the whole head of a request, however slowly it drips (P6).
const HEAD: Duration = Duration::from_secs(15);

/// What a client gets whose head took longer.
const TOO_SLOW: &[u8] = b"HTTP/1.1 408 Request Timeout\r\ncontent-type: application/json\r\n\
content-length: 54\r\nconnection: close\r\n\r\n\
{\"error\":\"the request's head took longer than 15 s\"}\r\n";

const RESTING: u8 = 0;
const HEARING: u8 = 1;
const SERVING: u8 = 2;

tokio::task_local! {
    static CONNECTION: Connection;
}

/// What belongs to the connection that a task serves.
struct Connection {
    phase: Arc<AtomicU8>,
    /// Its place among all of them.
    place: Cell<Option<OwnedSemaphorePermit>>,
}

/// The connection's stream.
#[derive(Debug)]
struct Line {
    stream: Stream,
    phase: Arc<AtomicU8>,
    limit: Option<Pin<Box<Sleep>>>,
}

/// Runs `work` on a stream whose heads are bounded; `place` is held meanwhile.
pub(crate) async fn bounded<F: Future>(
    stream: Stream,
    place: Option<OwnedSemaphorePermit>,
    work: impl FnOnce(Stream) -> F,
) -> F::Output {
    let phase = Arc::new(AtomicU8::new(RESTING));
    let line = Line { stream, phase: phase.clone(), limit: None };
    let connection = Connection { phase, place: Cell::new(place) };
    CONNECTION.scope(connection, work(Box::new(line))).await
}

/// The connection's place, for a stream that goes on after [`bounded`] has ended.
pub(crate) fn take_place() -> Option<OwnedSemaphorePermit> {
    CONNECTION.try_with(|connection| connection.place.take()).ok().flatten()
}

/// Says that a request's head has been read. Without effect outside of [`bounded`], as for
/// the streams of an h2 connection.
pub(crate) fn passed() {
    let _ = CONNECTION.try_with(|connection| connection.phase.store(SERVING, Ordering::Relaxed));
}

/// Says that the request is over.
pub(crate) fn rest() {
    let _ = CONNECTION.try_with(|connection| connection.phase.store(RESTING, Ordering::Relaxed));
}

impl AsyncRead for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        match self.phase.load(Ordering::Relaxed) {
            SERVING => self.limit = None,
            RESTING => {
                // Of the request before, if that was served without a read.
                self.limit = None;
                if buf.filled().len() > before {
                    self.phase.store(HEARING, Ordering::Relaxed);
                }
            }
            HEARING => {
                let limit = self.limit.get_or_insert_with(|| Box::pin(tokio::time::sleep(HEAD)));
                if limit.as_mut().poll(cx).is_ready() {
                    // Told as far as it goes out at once; then the connection ends.
                    let told = Pin::new(&mut self.stream).poll_write(cx, TOO_SLOW);
                    if matches!(told, Poll::Ready(Ok(_))) {
                        let _ = Pin::new(&mut self.stream).poll_flush(cx);
                    }
                    return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                }
            }
            _ => {}
        }
        read
    }
}

impl AsyncWrite for Line {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[async_trait]
impl Shutdown for Line {
    async fn shutdown(&mut self) {
        self.stream.shutdown().await;
    }
}

impl UniqueID for Line {
    fn id(&self) -> UniqueIDType {
        self.stream.id()
    }
}

impl Ssl for Line {
    fn get_ssl_digest(&self) -> Option<Arc<SslDigest>> {
        self.stream.get_ssl_digest()
    }

    fn selected_alpn_proto(&self) -> Option<ALPN> {
        self.stream.selected_alpn_proto()
    }
}

impl GetTimingDigest for Line {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        self.stream.get_timing_digest()
    }
}

impl GetProxyDigest for Line {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        self.stream.get_proxy_digest()
    }
}

impl GetSocketDigest for Line {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        self.stream.get_socket_digest()
    }
}

impl Peek for Line {}
