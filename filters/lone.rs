//! A stream of its own: what is left of a request once its answer is an event stream that may
//! stay silent for hours. Pingora's session, its buffers and the futures around it are some
//! 50 KiB; thousands of idle apps should not cost that each, so the connection is taken out of
//! them and the events are written here, as chunks of HTTP/1.1 (RFC 9112, section 7.1).

use std::pin::Pin;

use http::Version;
use pingora_core::protocols::Stream;
use pingora_core::protocols::http::server::Session;
use pingora_core::protocols::l4::stream::Stream as Socket;
use pingora_core::{Error, ErrorType, Result};
use protocol::sse;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use crate::reply::{Client, STALLED, broken};

/// What goes on after a request has been handed back to pingora: whoever owns the connection
/// runs it. Says whether the client broke off.
pub struct Rest {
    /// The client's address.
    pub peer: Option<String>,
    /// The request's path.
    pub path: String,
    /// Until the stream ends.
    pub run: Pin<Box<dyn Future<Output = Result<()>> + Send + Sync>>,
}

impl std::fmt::Debug for Rest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rest").field("peer", &self.peer).finish_non_exhaustive()
    }
}

/// Where events go: the answer of a request, or a connection taken out of one.
pub(crate) trait Ear: Send {
    /// Sends one message.
    fn event(&mut self, json: Vec<u8>) -> impl Future<Output = Result<()>> + Send;
    /// Sends a sign of life.
    fn comment(&mut self) -> impl Future<Output = Result<()>> + Send;
    /// Waits until the client is gone.
    fn gone(&mut self) -> impl Future<Output = ()> + Send;
}

/// A connection whose answer is a stream, and that is all that is left of the request.
pub(crate) struct Lone {
    stream: Stream,
}

impl Lone {
    /// Takes the connection out of a request whose answer has begun as chunks. `None` where
    /// there is no connection to take, as for a stream of HTTP/2.
    pub(crate) async fn take(http: &mut Session) -> Result<Option<Self>> {
        if !matches!(http, Session::H1(_)) || http.req_header().version != Version::HTTP_11 {
            return Ok(None);
        }
        let spare = spare().await?;
        let Session::H1(session) = std::mem::replace(http, spare) else { return Ok(None) };
        Ok(Some(Self { stream: session.into_inner() }))
    }

    /// Ends the stream and the connection.
    pub(crate) async fn end(mut self) -> Result<()> {
        self.write(b"0\r\n\r\n").await?;
        // A client that is gone already needs no goodbye.
        let _ = self.stream.shutdown().await;
        Ok(())
    }

    async fn chunk(&mut self, data: &[u8]) -> Result<()> {
        let mut out = format!("{:x}\r\n", data.len()).into_bytes();
        out.extend_from_slice(data);
        out.extend_from_slice(b"\r\n");
        self.write(&out).await
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let written = async {
            self.stream.write_all(bytes).await?;
            self.stream.flush().await
        };
        match tokio::time::timeout(STALLED, written).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(broken()),
        }
    }
}

impl Ear for Lone {
    async fn event(&mut self, json: Vec<u8>) -> Result<()> {
        let mut out = Vec::new();
        sse::write_event(&json, &mut out);
        self.chunk(&out).await
    }

    async fn comment(&mut self) -> Result<()> {
        self.chunk(sse::COMMENT).await
    }

    /// Nothing more is expected on the connection: whatever comes is its end.
    async fn gone(&mut self) {
        let _ = self.stream.read(&mut [0]).await;
    }
}

impl Ear for Client<'_> {
    fn event(&mut self, json: Vec<u8>) -> impl Future<Output = Result<()>> + Send {
        Client::event(self, json)
    }

    fn comment(&mut self) -> impl Future<Output = Result<()>> + Send {
        Client::comment(self)
    }

    fn gone(&mut self) -> impl Future<Output = ()> + Send {
        Client::gone(self)
    }
}

/// A request that pingora can end in the place of the one that was taken from it.
async fn spare() -> Result<Session> {
    let failed = |error: std::io::Error| Error::because(ErrorType::InternalError, "a spare", error);
    let (near, mut far) = UnixStream::pair().map_err(failed)?;
    far.write_all(b"GET / HTTP/1.0\r\n\r\n").await.map_err(failed)?;
    let mut session = Session::new_http1(Box::new(Socket::from(near)));
    session.read_request().await?;
    session.set_keepalive(None);
    Ok(session)
}
