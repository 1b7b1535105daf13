//! The odd server's side of a connection: requests are read, and answers are written byte by byte
//! where a script wants that.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::State;
use crate::support::SOON;

/// One request as it came in. The body is `null` where there was none.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Value,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(header, _)| header == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The MCP method; empty for a response, a GET and a DELETE.
    pub(crate) fn rpc(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }

    pub(crate) fn id(&self) -> &Value {
        &self.body["id"]
    }

    /// The tool that a `tools/call` names.
    pub(crate) fn tool(&self) -> Option<&str> {
        self.body["params"]["name"].as_str().filter(|_| self.rpc() == "tools/call")
    }

    pub(crate) fn arguments(&self) -> &Value {
        &self.body["params"]["arguments"]
    }

    /// The progress token, as JSON text.
    pub(crate) fn token(&self) -> String {
        self.body["params"]["_meta"]["progressToken"].to_string()
    }

    fn length(&self) -> usize {
        self.header("content-length").and_then(|length| length.parse().ok()).unwrap_or_default()
    }
}

/// A whole answer, framed by its length.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new() }
    }

    pub(crate) fn json(body: &str) -> Self {
        Self { body: body.into(), ..Self::empty(200) }
            .with_header("Content-Type", "application/json")
    }

    /// `result` is JSON text and is sent as it stands.
    pub(crate) fn result(request: &Request, result: &str) -> Self {
        Self::json(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, request.id()))
    }

    /// A tool's result that is this text.
    pub(crate) fn text(request: &Request, text: &str) -> Self {
        let text = Value::from(text);
        Self::result(request, &format!(r#"{{"content":[{{"type":"text","text":{text}}}]}}"#))
    }

    /// `error` is JSON text and is sent as it stands.
    pub(crate) fn error(request: &Request, error: &str) -> Self {
        Self::json(&format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, request.id()))
    }

    pub(crate) fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// Replaces the header; an empty value takes it away.
    pub(crate) fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(header, _)| !header.eq_ignore_ascii_case(name));
        if !value.is_empty() {
            self.headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    /// The body as text.
    pub(crate) fn message(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }
}

/// What to do about a request.
pub(crate) enum Action {
    /// What a plain server does.
    Usual,
    Answer(Answer),
    /// Closes the connection without a word.
    Close,
    /// Says nothing until the other side is gone.
    Hang,
    /// Writes what it likes, and says whether the connection is kept.
    Talk(Box<dyn FnOnce(&mut Wire) -> bool + Send>),
}

impl Action {
    pub(crate) fn talk(talk: impl FnOnce(&mut Wire) -> bool + Send + 'static) -> Self {
        Self::Talk(Box::new(talk))
    }

    /// An event stream that ends with `talk`.
    pub(crate) fn events(talk: impl FnOnce(&mut Wire) + Send + 'static) -> Self {
        Self::events_with(&[], talk)
    }

    /// An event stream with more headers.
    pub(crate) fn events_with(
        headers: &[(&str, &str)],
        talk: impl FnOnce(&mut Wire) + Send + 'static,
    ) -> Self {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let headers: Vec<_> = headers.iter().map(owned).collect();
        Self::talk(move |wire| {
            wire.head(200, "text/event-stream", &headers);
            talk(wire);
            wire.end();
            true
        })
    }
}

impl From<Answer> for Action {
    fn from(answer: Answer) -> Self {
        Self::Answer(answer)
    }
}

trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// One connection. What cannot be written is let go: the other side may leave at any time.
pub(crate) struct Wire {
    stream: BufReader<Box<dyn Stream>>,
    /// The socket below, to look at without reading from it.
    socket: TcpStream,
    pub(crate) state: Arc<State>,
}

/// Serves a connection to its end.
pub(super) fn serve(state: &Arc<State>, socket: TcpStream) {
    let number = state.next.fetch_add(1, Ordering::SeqCst);
    let (Ok(kept), Ok(below)) = (socket.try_clone(), socket.try_clone()) else { return };
    state.sockets.lock().unwrap().insert(number, kept);
    let _best_effort = socket.set_nodelay(true);
    let tls = state.tls.lock().unwrap().clone();
    let stream: Box<dyn Stream> = match tls {
        None => Box::new(socket),
        Some(config) => {
            let connection = rustls::ServerConnection::new(config).unwrap();
            Box::new(rustls::StreamOwned::new(connection, socket))
        }
    };
    let mut wire = Wire { stream: BufReader::new(stream), socket: below, state: Arc::clone(state) };
    while wire.turn().unwrap_or(false) {}
    state.sockets.lock().unwrap().remove(&number);
}

impl Wire {
    /// One request and what is done about it; whether the connection is kept.
    fn turn(&mut self) -> Option<bool> {
        let mut request = self.request()?;
        let state = Arc::clone(&self.state);
        let early = state.early.as_ref().map_or(Action::Usual, |early| early(&request, &state));
        if !matches!(early, Action::Usual) {
            let length = request.length();
            state.seen().push(request.clone());
            let kept = self.act(&request, early);
            return Some(kept && self.body(length).is_some());
        }
        let body = self.body(request.length())?;
        request.body = serde_json::from_slice(&body).unwrap_or_default();
        state.seen().push(request.clone());
        let action = (state.script)(&request, &state);
        Some(self.act(&request, action))
    }

    fn request(&mut self) -> Option<Request> {
        let first = self.line()?;
        let mut words = first.split(' ').map(str::to_owned);
        let (method, path) = (words.next()?, words.next()?);
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        Some(Request { method, path, headers, body: Value::Null })
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let count = self.stream.read_line(&mut line).ok()?;
        (count > 0).then(|| line.trim_end().to_owned())
    }

    fn body(&mut self, length: usize) -> Option<Vec<u8>> {
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).ok().map(|()| body)
    }

    fn act(&mut self, request: &Request, action: Action) -> bool {
        match action {
            Action::Usual if request.method == "GET" && self.state.with_stream => self.said(),
            Action::Usual => {
                let answer = self.state.usual(request);
                self.answer(&answer);
                true
            }
            Action::Answer(answer) => {
                self.answer(&answer);
                true
            }
            Action::Close => false,
            Action::Hang => {
                self.hold();
                false
            }
            Action::Talk(talk) => talk(self),
        }
    }

    /// Sends what is said from now on, until the other side is gone.
    fn said(&mut self) -> bool {
        let mut next = self.state.said.lock().unwrap().len();
        self.head(200, "text/event-stream", &[]);
        while self.is_open() {
            let ready = self.state.said.lock().unwrap()[next..].to_vec();
            next += ready.len();
            ready.iter().for_each(|message| self.event(message));
        }
        false
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        let stream = self.stream.get_mut();
        let _gone = stream.write_all(bytes).and_then(|()| stream.flush());
    }

    pub(crate) fn answer(&mut self, answer: &Answer) {
        let mut head = format!("HTTP/1.1 {} Odd\r\n", answer.status);
        for (name, value) in &answer.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("Content-Length: {}\r\n\r\n", answer.body.len()));
        let mut whole = head.into_bytes();
        whole.extend_from_slice(&answer.body);
        self.write(&whole);
    }

    /// The head of an answer in chunks.
    pub(crate) fn head(&mut self, status: u16, kind: &str, headers: &[(String, String)]) {
        let mut head = format!("HTTP/1.1 {status} Odd\r\nTransfer-Encoding: chunked\r\n");
        if !kind.is_empty() {
            head.push_str(&format!("Content-Type: {kind}\r\n"));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        self.write(format!("{head}\r\n").as_bytes());
    }

    pub(crate) fn chunk(&mut self, bytes: &[u8]) {
        let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
        chunk.extend_from_slice(bytes);
        chunk.extend_from_slice(b"\r\n");
        self.write(&chunk);
    }

    /// One event that carries a message.
    pub(crate) fn event(&mut self, message: &str) {
        self.chunk(format!("event: message\ndata: {message}\n\n").as_bytes());
    }

    /// The end of an answer in chunks.
    pub(crate) fn end(&mut self) {
        self.write(b"0\r\n\r\n");
    }

    /// Waits for a condition; `false` when the other side goes first, or it takes too long.
    pub(crate) fn until(&mut self, condition: impl Fn() -> bool) -> bool {
        let started = Instant::now();
        while !condition() {
            if !self.is_open() || started.elapsed() > SOON {
                return false;
            }
        }
        true
    }

    /// Waits until the other side is gone.
    pub(crate) fn hold(&mut self) {
        while self.is_open() {}
    }

    /// Looks for a moment whether the other side is still there.
    fn is_open(&mut self) -> bool {
        let _best_effort = self.socket.set_read_timeout(Some(Duration::from_millis(10)));
        let looked = self.socket.peek(&mut [0]);
        let _best_effort = self.socket.set_read_timeout(None);
        let open = match looked {
            Ok(0) => false,
            // More than was asked for: the other side speaks, so it is there.
            Ok(_) => {
                std::thread::park_timeout(Duration::from_millis(10));
                true
            }
            Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
        };
        open && !self.state.ended.load(Ordering::SeqCst)
    }
}
