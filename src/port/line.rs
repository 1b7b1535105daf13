//! One client connection, with bounds on how long it may say nothing and how long a request's
//! head may take.
//!
//! Pingora's own bound holds for each read, so a client that drips a byte every few seconds
//! would hold a connection for ever. The bound here starts with the first byte of a head and
//! ends when [`passed`] is called; [`rest`] makes the connection wait for the next head.
//! A connection over h2 has one bound only: until its preface is there.

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
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, BufWriter, ReadBuf};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Sleep;

use crate::lanes::Share;

/// Time for the whole head of a request, however slowly it drips (P6).
const HEAD: Duration = Duration::from_secs(15);

/// Length of what a client of h2 sends first (RFC 9113, section 3.4).
const PREFACE: usize = 24;

/// What a client gets whose head took longer.
const TOO_SLOW: &[u8] = b"HTTP/1.1 408 Request Timeout\r\ncontent-type: application/json\r\n\
content-length: 54\r\nconnection: close\r\n\r\n\
{\"error\":\"the request's head took longer than 15 s\"}\r\n";

/// What a client gets whose head is no HTTP/1.1, in place of pingora's own empty answer.
const UNREADABLE: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n\
content-length: 55\r\nconnection: close\r\n\r\n\
{\"error\":\"the request's head cannot be read as HTTP\"}\r\n";

/// What is gathered before it is written, in bytes: a head and a small body go out together.
/// Larger writes go past it. Small, since thousands of connections may be open and idle.
const GATHERED: usize = 1460;

const RESTING: u8 = 0;
const HEARING: u8 = 1;
const SERVING: u8 = 2;
/// Nothing has been heard yet.
const NEW: u8 = 3;

tokio::task_local! {
    static CONNECTION: Connection;
}

/// A connection's place among all of them; given back when dropped.
pub(crate) struct Place {
    _permit: OwnedSemaphorePermit,
    _share: Share,
}

impl Place {
    pub(crate) fn new(permit: OwnedSemaphorePermit, share: Share) -> Self {
        Self { _permit: permit, _share: share }
    }
}

/// What belongs to the connection that a task serves.
struct Connection {
    phase: Arc<AtomicU8>,
    place: Cell<Option<Place>>,
}

/// The connection's stream.
#[derive(Debug)]
struct Line {
    stream: BufWriter<Stream>,
    phase: Arc<AtomicU8>,
    limit: Option<Pin<Box<Sleep>>>,
    /// Bytes of h2's preface that are still to come.
    preface: usize,
}

/// Runs `work` on a stream that may say nothing for `silent` and whose heads are bounded;
/// `place` is held meanwhile.
pub(crate) async fn bounded<F: Future>(
    stream: Stream,
    silent: Duration,
    place: Option<Place>,
    work: impl FnOnce(Stream) -> F,
) -> F::Output {
    let phase = Arc::new(AtomicU8::new(NEW));
    let line = Line::new(stream, phase.clone(), silent, 0);
    let connection = Connection { phase, place: Cell::new(place) };
    CONNECTION.scope(connection, work(Box::new(line))).await
}

/// A stream of h2 whose preface must be there within [`HEAD`], or within `silent` if that is
/// shorter. What follows is bounded by pingora.
pub(crate) fn prefaced(stream: Stream, silent: Duration) -> Stream {
    let phase = Arc::new(AtomicU8::new(NEW));
    Box::new(Line::new(stream, phase, silent.min(HEAD), PREFACE))
}

/// The connection's place, for a stream that goes on after [`bounded`] has ended.
pub(crate) fn take_place() -> Option<Place> {
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

impl Line {
    fn new(stream: Stream, phase: Arc<AtomicU8>, silent: Duration, preface: usize) -> Self {
        let stream = BufWriter::with_capacity(GATHERED, stream);
        Self { stream, phase, limit: Some(Box::pin(tokio::time::sleep(silent))), preface }
    }

    /// The first bytes of a new connection are here.
    fn begun(&mut self, heard: usize) {
        if self.preface > heard {
            self.preface -= heard;
            return;
        }
        let next = if self.preface > 0 { SERVING } else { HEARING };
        self.limit = None;
        self.phase.store(next, Ordering::Relaxed);
    }

    /// Whether the running bound is over; its task is woken when it will be.
    fn is_due(&mut self, cx: &mut Context<'_>) -> bool {
        self.limit.as_mut().is_some_and(|limit| limit.as_mut().poll(cx).is_ready())
    }

    /// What is to be written in place of `buf`, if anything. While a head is being heard,
    /// nobody but pingora answers, and only to say that it cannot read it.
    fn instead(&self, buf: &[u8]) -> Option<&'static [u8]> {
        let refused =
            self.phase.load(Ordering::Relaxed) == HEARING && buf.starts_with(b"HTTP/1.1 4");
        refused.then_some(UNREADABLE)
    }
}

impl AsyncRead for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        let heard = buf.filled().len() - before;
        match self.phase.load(Ordering::Relaxed) {
            SERVING => self.limit = None,
            NEW if heard > 0 => self.begun(heard),
            NEW if self.is_due(cx) => {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            RESTING => {
                // Of the request before, if that was served without a read.
                self.limit = None;
                if heard > 0 {
                    self.phase.store(HEARING, Ordering::Relaxed);
                }
            }
            HEARING => {
                self.limit.get_or_insert_with(|| Box::pin(tokio::time::sleep(HEAD)));
                if self.is_due(cx) {
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
        if let Some(ours) = self.instead(buf) {
            // Goes out whole or, to a client that reads nothing, not at all.
            return Pin::new(&mut self.stream).poll_write(cx, ours).map_ok(|_| buf.len());
        }
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
        // The peer may be gone; then there is nobody to write the rest to.
        let _ = self.stream.flush().await;
        Shutdown::shutdown(&mut **self.stream.get_mut()).await;
    }
}

impl UniqueID for Line {
    fn id(&self) -> UniqueIDType {
        self.stream.get_ref().id()
    }
}

impl Ssl for Line {
    fn get_ssl_digest(&self) -> Option<Arc<SslDigest>> {
        self.stream.get_ref().get_ssl_digest()
    }

    fn selected_alpn_proto(&self) -> Option<ALPN> {
        self.stream.get_ref().selected_alpn_proto()
    }
}

impl GetTimingDigest for Line {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        self.stream.get_ref().get_timing_digest()
    }
}

impl GetProxyDigest for Line {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        self.stream.get_ref().get_proxy_digest()
    }
}

impl GetSocketDigest for Line {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        self.stream.get_ref().get_socket_digest()
    }
}

impl Peek for Line {}
