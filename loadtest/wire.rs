//! A hand-written HTTP/1.1 client: one keep-alive connection, one exchange at a time. It shares the
//! cores with what it measures, so it does no more than MCP needs and allocates nothing per call.

use std::net::{SocketAddr, ToSocketAddrs as _};

use anyhow::{Context, bail};
use bytes::{Buf as _, Bytes, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Above the number of header lines of any answer that is right.
const MAX_HEADERS: usize = 64;
const READ_AHEAD: usize = 16 * 1024;

/// Where requests go and who they come from.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    address: SocketAddr,
    authority: String,
    path: String,
    token: Option<String>,
}

/// The head of an answer, as far as MCP needs it.
#[derive(Debug, PartialEq)]
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) session: Option<String>,
    /// The body is `text/event-stream`.
    pub(crate) events: bool,
    framing: Framing,
}

#[derive(Debug, PartialEq)]
enum Framing {
    Length(usize),
    Chunked,
    UntilClose,
}

/// One connection; a method that fails or is dropped midway leaves it unusable.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    received: BytesMut,
}

impl Endpoint {
    /// Reads an `http://` URL and resolves its host once; this may block on DNS.
    ///
    /// # Errors
    /// When the URL is not plain HTTP, or its host has no address.
    pub(crate) fn new(url: &str, token: Option<String>) -> anyhow::Result<Self> {
        let parsed = url::Url::parse(url).with_context(|| format!("`{url}` is no URL"))?;
        if parsed.scheme() != "http" {
            bail!("`{url}` is not http: encrypted connections are not measured here");
        }
        let host = parsed.host_str().with_context(|| format!("`{url}` has no host"))?;
        let port = parsed.port_or_known_default().unwrap_or(80);
        let address = (host.trim_matches(['[', ']']), port)
            .to_socket_addrs()
            .with_context(|| format!("failed to resolve `{host}`"))?
            .next()
            .with_context(|| format!("`{host}` has no address"))?;
        let authority = format!("{host}:{port}");
        Ok(Self { address, authority, path: parsed.path().to_owned(), token })
    }

    /// The same on another port of the host.
    pub(crate) fn at_port(&self, port: u16) -> Self {
        let mut moved = self.clone();
        moved.address.set_port(port);
        let host = moved.authority.rsplit_once(':').map_or("", |(host, _)| host);
        moved.authority = format!("{host}:{port}");
        moved
    }

    /// A whole request as bytes. `lines` are more header lines, each ended by CRLF.
    pub(crate) fn request(&self, method: &str, lines: &str, body: &str) -> Vec<u8> {
        let Self { authority, path, .. } = self;
        let token = self.token.as_ref().map(|token| format!("authorization: Bearer {token}\r\n"));
        let token = token.unwrap_or_default();
        let length = match method {
            "GET" | "DELETE" => String::new(),
            _ => format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len()),
        };
        format!("{method} {path} HTTP/1.1\r\nhost: {authority}\r\n{token}{lines}{length}\r\n{body}")
            .into_bytes()
    }
}

impl Connection {
    /// Connects, with Nagle's algorithm off.
    pub(crate) async fn open(endpoint: &Endpoint) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(endpoint.address)
            .await
            .with_context(|| format!("failed to connect to {}", endpoint.address))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, received: BytesMut::with_capacity(READ_AHEAD) })
    }

    /// Sends one whole request and reads nothing.
    pub(crate) async fn only_send(&mut self, request: &[u8]) -> anyhow::Result<()> {
        self.stream.write_all(request).await.context("failed to send")
    }

    /// Sends one whole request and reads the head of its answer.
    pub(crate) async fn send(&mut self, request: &[u8]) -> anyhow::Result<Head> {
        self.stream.write_all(request).await.context("failed to send")?;
        loop {
            if let Some((head, length)) = parse_head(&self.received)? {
                self.received.advance(length);
                return Ok(head);
            }
            self.more().await?;
        }
    }

    /// Reads the whole body that follows `head`.
    pub(crate) async fn body(&mut self, head: &Head) -> anyhow::Result<Bytes> {
        match head.framing {
            Framing::Length(length) => {
                self.received.reserve(length.saturating_sub(self.received.len()));
                self.fill(length).await?;
                Ok(self.received.split_to(length).freeze())
            }
            Framing::Chunked => self.chunks().await,
            Framing::UntilClose => bail!("the answer has no length, its connection cannot go on"),
        }
    }

    async fn chunks(&mut self) -> anyhow::Result<Bytes> {
        let mut body = BytesMut::new();
        loop {
            let (line, size) = loop {
                let parsed = httparse::parse_chunk_size(&self.received);
                match parsed.map_err(|_| anyhow::anyhow!("a chunk has no valid size"))? {
                    httparse::Status::Complete(found) => break found,
                    httparse::Status::Partial => self.more().await?,
                }
            };
            self.received.advance(line);
            let size = usize::try_from(size).context("a chunk is too large")?;
            self.fill(size + 2).await?;
            if size == 0 && self.received.starts_with(b"\r\n") {
                self.received.advance(2);
                return Ok(body.freeze());
            }
            if size == 0 {
                bail!("the answer has trailers, which this client does not read");
            }
            body.extend_from_slice(&self.received[..size]);
            self.received.advance(size + 2);
        }
    }

    async fn fill(&mut self, length: usize) -> anyhow::Result<()> {
        while self.received.len() < length {
            self.more().await?;
        }
        Ok(())
    }

    async fn more(&mut self) -> anyhow::Result<()> {
        self.received.reserve(READ_AHEAD);
        match self.stream.read_buf(&mut self.received).await.context("failed to receive")? {
            0 => bail!("the connection was closed before the answer was whole"),
            _ => Ok(()),
        }
    }
}

/// The head and its length in bytes, or `None` while it is not whole.
fn parse_head(bytes: &[u8]) -> anyhow::Result<Option<(Head, usize)>> {
    let mut lines = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut lines);
    let parsed = response.parse(bytes).context("the answer is no HTTP/1.1")?;
    let httparse::Status::Complete(length) = parsed else { return Ok(None) };
    let status = response.code.context("the answer has no status")?;
    let mut head = Head { status, session: None, events: false, framing: Framing::UntilClose };
    if matches!(status, 204 | 304) {
        head.framing = Framing::Length(0);
    }
    for line in response.headers.iter() {
        let value = || std::str::from_utf8(line.value).map(str::trim).unwrap_or_default();
        if line.name.eq_ignore_ascii_case("content-length") {
            head.framing = Framing::Length(value().parse().context("bad content-length")?);
        } else if line.name.eq_ignore_ascii_case("transfer-encoding") {
            head.framing = Framing::Chunked;
        } else if line.name.eq_ignore_ascii_case("content-type") {
            head.events = value().starts_with("text/event-stream");
        } else if line.name.eq_ignore_ascii_case("mcp-session-id") {
            head.session = Some(value().to_owned());
        }
    }
    Ok(Some((head, length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn exchange(answer: &'static str) -> anyhow::Result<(Head, Bytes)> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/mcp", listener.local_addr()?);
        let server = async move {
            let (mut stream, _) = listener.accept().await?;
            // Unread bytes would turn the close into a reset.
            stream.readable().await?;
            stream.read_buf(&mut BytesMut::with_capacity(READ_AHEAD)).await?;
            // One byte at a time: every boundary falls between two reads.
            for byte in answer.as_bytes() {
                stream.write_all(&[*byte]).await?;
                tokio::task::yield_now().await;
            }
            anyhow::Ok(())
        };
        let endpoint = Endpoint::new(&url, Some("secret".to_owned()))?;
        let client = async {
            let mut connection = Connection::open(&endpoint).await?;
            let head = connection.send(&endpoint.request("POST", "", "{}")).await?;
            let body = connection.body(&head).await?;
            anyhow::Ok((head, body))
        };
        let (sent, received) = tokio::join!(server, client);
        // The client first: when it gives up, the server fails only for that.
        let answer = received?;
        sent?;
        Ok(answer)
    }

    #[tokio::test]
    async fn bodies_are_read_by_length_and_by_chunk() {
        let sized = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nMcp-Session-Id: s1\r\n\r\n{}";
        let (head, body) = exchange(sized).await.unwrap();
        assert_eq!((head.status, head.session.as_deref()), (200, Some("s1")));
        assert_eq!(&body[..], b"{}");
        let chunked = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                       transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
        let (head, body) = exchange(chunked).await.unwrap();
        assert!(head.events);
        assert_eq!(&body[..], b"abcde");
    }

    #[tokio::test]
    async fn an_answer_that_ends_early_is_an_error() {
        let cut = exchange("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf").await;
        assert!(cut.unwrap_err().to_string().contains("closed before"));
        let endless = exchange("HTTP/1.1 200 OK\r\n\r\n{}").await;
        assert!(endless.unwrap_err().to_string().contains("no length"));
    }

    #[test]
    fn a_request_carries_key_and_length() {
        let endpoint = Endpoint::new("http://127.0.0.1:8/mcp", Some("k".to_owned())).unwrap();
        let request = String::from_utf8(endpoint.request("POST", "a: b\r\n", "{}")).unwrap();
        assert!(request.starts_with("POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:8\r\n"));
        assert!(request.contains("authorization: Bearer k\r\na: b\r\n"));
        assert!(request.ends_with("content-length: 2\r\n\r\n{}"));
        assert!(Endpoint::new("https://127.0.0.1/mcp", None).is_err());
    }
}
