//! HTTP/1.1 by hand, one connection per request: what a test sees is what was on the wire. Knows
//! fixed lengths, chunks and server-sent events, and nothing else.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::SOON;

pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    socket: TcpStream,
    body: BufReader<Body>,
}

/// One server-sent event. The specification's rules for `data` over several lines are kept.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) id: Option<String>,
    pub(crate) data: String,
}

/// Sends one request and reads the head of the answer; the body stays on the socket.
pub(crate) fn send(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> io::Result<Reply> {
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if !body.is_empty() || method == "POST" {
        head.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    raw(address, &format!("{head}\r\n{body}"))
}

/// Sends these bytes as they are and reads the head of the answer.
pub(crate) fn raw(address: SocketAddr, request: &str) -> io::Result<Reply> {
    raw_bytes(address, request.as_bytes())
}

/// The same for bytes that are no text.
pub(crate) fn raw_bytes(address: SocketAddr, request: &[u8]) -> io::Result<Reply> {
    let mut socket = TcpStream::connect_timeout(&address, SOON)?;
    socket.set_read_timeout(Some(SOON))?;
    socket.write_all(request)?;
    let method = request.split(|byte| *byte == b' ').next().unwrap_or_default();
    let method = std::str::from_utf8(method).unwrap_or_default();

    let mut reader = BufReader::new(socket.try_clone()?);
    let status_line = line(&mut reader)?;
    let status = status_line.split(' ').nth(1).and_then(|code| code.parse().ok());
    let status = status.ok_or_else(|| invalid(&format!("a status line like `{status_line}`")))?;
    let mut headers = Vec::new();
    loop {
        let text = line(&mut reader)?;
        let Some((name, value)) = text.split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let framing = framing(method, status, &headers)?;
    Ok(Reply { status, headers, socket, body: BufReader::new(Body { reader, framing }) })
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(header, _)| header == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn is_event_stream(&self) -> bool {
        self.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"))
    }

    pub(crate) fn text(&mut self) -> io::Result<String> {
        let mut text = String::new();
        self.body.read_to_string(&mut text)?;
        Ok(text)
    }

    /// The next line of the body as it is, without its end.
    pub(crate) fn line(&mut self) -> io::Result<String> {
        line(&mut self.body)
    }

    /// The next event, or `None` at the proper end of the stream.
    pub(crate) fn event(&mut self) -> io::Result<Option<Event>> {
        let mut event = Event::default();
        let mut data: Vec<String> = Vec::new();
        loop {
            let mut text = String::new();
            if self.body.read_line(&mut text)? == 0 {
                return Ok(None);
            }
            let text = text.trim_end_matches(['\r', '\n']);
            if text.is_empty() {
                event.data = data.join("\n");
                // Without data it is none: a comment, or one that only gives an id.
                if event.data.is_empty() {
                    event = Event::default();
                    data.clear();
                    continue;
                }
                return Ok(Some(event));
            }
            let (field, value) = text.split_once(':').unwrap_or((text, ""));
            let value = value.strip_prefix(' ').unwrap_or(value).to_owned();
            match field {
                "data" => data.push(value),
                "event" => event.name = value,
                "id" => event.id = Some(value),
                _ => {}
            }
        }
    }

    /// Whether the stream ends within this time, whatever it still brings until then.
    pub(crate) fn ends_within(&mut self, within: Duration) -> bool {
        let started = Instant::now();
        while let Some(left) = within.checked_sub(started.elapsed()).filter(|left| !left.is_zero())
        {
            self.socket.set_read_timeout(Some(left)).unwrap();
            match self.event() {
                Ok(Some(_)) => {}
                Ok(None) => return true,
                Err(error) => {
                    return !matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
                    );
                }
            }
        }
        false
    }
}

enum Framing {
    Length(u64),
    /// What is left of the chunk at hand; `None` after the last one.
    Chunked(Option<u64>),
    UntilClose,
}

struct Body {
    reader: BufReader<TcpStream>,
    framing: Framing,
}

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Framing::Chunked(Some(0)) = self.framing {
            let size = line(&mut self.reader)?;
            let size = size.split(';').next().unwrap_or_default().trim();
            let size = u64::from_str_radix(size, 16).map_err(|_| invalid("a chunk's size"))?;
            if size == 0 {
                line(&mut self.reader)?;
            }
            self.framing = Framing::Chunked((size > 0).then_some(size));
        }
        let left = match self.framing {
            Framing::Length(left) | Framing::Chunked(Some(left)) => left,
            Framing::Chunked(None) => 0,
            Framing::UntilClose => u64::MAX,
        };
        let count = (&mut self.reader).take(left).read(buffer)?;
        if count == 0 && left > 0 && !buffer.is_empty() && left != u64::MAX {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the body was cut off"));
        }
        match &mut self.framing {
            Framing::Length(left) => *left -= count as u64,
            Framing::Chunked(Some(left)) => {
                *left -= count as u64;
                if *left == 0 {
                    line(&mut self.reader)?;
                }
            }
            Framing::Chunked(None) | Framing::UntilClose => {}
        }
        Ok(count)
    }
}

fn framing(method: &str, status: u16, headers: &[(String, String)]) -> io::Result<Framing> {
    let header = |name: &str| headers.iter().find(|(header, _)| header == name);
    if method == "HEAD" || status == 204 || status == 304 {
        Ok(Framing::Length(0))
    } else if header("transfer-encoding").is_some_and(|(_, coding)| coding == "chunked") {
        Ok(Framing::Chunked(Some(0)))
    } else if let Some((_, length)) = header("content-length") {
        length.parse().map(Framing::Length).map_err(|_| invalid("a content length"))
    } else {
        Ok(Framing::UntilClose)
    }
}

fn line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut text = String::new();
    if reader.read_line(&mut text)? == 0 {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the connection was closed"));
    }
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("not {what}"))
}
