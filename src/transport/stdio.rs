//! A local process as a server: newline-delimited JSON-RPC on its standard input and output.
//!
//! This file is the conversation; the process and its end are the business of the crate
//! `process`.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use catalog::Server;
use process::{Child, MAX_LINE, Stderr};
use protocol::json::{self, Members};
use protocol::{Era, Message, message};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::exchange::{Answer, Event, Notice};
use crate::failure::Failure;
use crate::session;

/// How long a silent server has for our modern probe before it is taken for a legacy one.
const PROBE: Duration = Duration::from_secs(5);

/// Messages waiting for a process that does not read its input.
const QUEUE: usize = 256;

/// Notices kept for one who is slow to take them.
const NOTICES: usize = 256;

/// What some runtimes put before a program's output.
const BOM: &[u8] = "\u{feff}".as_bytes();

/// Bytes of a line that is no message, to be shown.
const SHOWN: usize = 200;

/// One process in conversation.
pub(crate) struct StdioLink {
    name: String,
    input: mpsc::Sender<String>,
    stderr: Arc<Stderr>,
    /// Lines of output that were no message.
    strays: AtomicU64,
    pending: Mutex<Pending>,
    /// Asks the process to end.
    stop: CancellationToken,
    /// Cancelled when the process has ended and nothing of it is left.
    ended: CancellationToken,
}

#[derive(Default)]
struct Pending {
    /// Request id → who waits.
    calls: HashMap<String, Waiting>,
    listener: Option<mpsc::Sender<Notice>>,
    closed: bool,
    /// The process began a line beyond the limit, and is ended for it.
    overlong: bool,
}

/// Where the answer of a call goes, and what comes before it.
struct Waiting {
    answer: oneshot::Sender<Answer>,
    notices: mpsc::Sender<Notice>,
}

/// A request to a process, in flight.
pub(crate) struct StdioExchange {
    link: Arc<StdioLink>,
    id: Option<String>,
    notices: mpsc::Receiver<Notice>,
    /// `None` for the listener, and once it has come.
    answer: Option<oneshot::Receiver<Answer>>,
}

impl StdioLink {
    /// Starts the process and agrees on an era.
    ///
    /// # Errors
    /// When it cannot be started, or does not speak MCP. Nothing of it is left then.
    pub(crate) async fn open(
        server: &Server,
        context: &Context,
        known: Option<Era>,
        stderr: &Arc<Stderr>,
    ) -> Result<(Arc<Self>, Era, String), Failure> {
        let link = Self::spawn(server, context, stderr)?;
        let guard = link.stop.clone().drop_guard();
        if known != Some(Era::Legacy) {
            let within = match known {
                Some(_) => server.timeout,
                None => PROBE.min(server.timeout),
            };
            let params = session::modern(Members::default());
            let hello = link.ask("server/discover", &params, within).await;
            match hello.and_then(|hello| session::speaks_modern(&hello).map(|()| hello)) {
                Ok(hello) => {
                    guard.disarm();
                    return Ok((link, Era::Modern, hello));
                }
                Err(failure) if known == Some(Era::Modern) || session::is_modern(&failure) => {
                    return Err(failure);
                }
                // Some servers end when the first request is not `initialize` (U20).
                Err(Failure::Lost(_)) => {
                    drop(guard);
                    link.ended.cancelled().await;
                    let link = Self::spawn(server, context, stderr)?;
                    let guard = link.stop.clone().drop_guard();
                    let hello = link.initialize().await?;
                    guard.disarm();
                    return Ok((link, Era::Legacy, hello));
                }
                Err(_) => {}
            }
        }
        let hello = link.initialize().await?;
        guard.disarm();
        Ok((link, Era::Legacy, hello))
    }

    /// Sends a request.
    ///
    /// # Errors
    /// When the process is gone or does not read its input.
    pub(crate) fn start(
        self: &Arc<Self>,
        id: String,
        method: &str,
        params: &str,
    ) -> Result<StdioExchange, Failure> {
        let (notices, received) = mpsc::channel(NOTICES);
        let (answer, answered) = oneshot::channel();
        {
            let mut pending = self.pending();
            if pending.closed {
                return Err(Failure::Unreachable("the process has ended".into()));
            }
            pending.calls.insert(id.clone(), Waiting { answer, notices });
        }
        let exchange = StdioExchange {
            link: self.clone(),
            id: Some(id.clone()),
            notices: received,
            answer: Some(answered),
        };
        self.send(message::request(&id, method, Some(params)))?;
        Ok(exchange)
    }

    /// The stream of notices that belong to no request. A modern server is asked for them
    /// with `subscribe`, raw parameters of `subscriptions/listen`; its answer comes only
    /// when the subscription ends, and says nothing more.
    pub(crate) fn listen(self: &Arc<Self>, subscribe: Option<&str>) -> StdioExchange {
        if let Some(params) = subscribe {
            let id = session::next_id();
            let _ = self.send(message::request(&id, "subscriptions/listen", Some(params)));
        }
        let (tx, notices) = mpsc::channel(NOTICES);
        let mut pending = self.pending();
        if !pending.closed {
            pending.listener = Some(tx);
        }
        drop(pending);
        StdioExchange { link: self.clone(), id: None, notices, answer: None }
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.pending().closed
    }

    /// Has the process end, without waiting.
    pub(crate) fn let_go(&self) {
        self.stop.cancel();
    }

    /// Ends the process and waits until nothing of it is left.
    pub(crate) async fn stop(&self) {
        self.stop.cancel();
        self.ended.cancelled().await;
    }

    fn spawn(
        server: &Server,
        context: &Context,
        stderr: &Arc<Stderr>,
    ) -> Result<Arc<Self>, Failure> {
        let child = Child::spawn(server, &context.lookup, &context.warden, stderr)?;
        let (input, lines) = mpsc::channel(QUEUE);
        let link = Arc::new(Self {
            name: server.name.clone(),
            input,
            stderr: stderr.clone(),
            strays: AtomicU64::new(0),
            pending: Mutex::default(),
            stop: CancellationToken::new(),
            ended: CancellationToken::new(),
        });
        let (owner, stop, ended) = (link.clone(), link.stop.clone(), link.ended.clone());
        tokio::spawn(async move {
            let reader = owner.clone();
            child.run(lines, stop, move |line| reader.take(line)).await;
            owner.close();
            ended.cancel();
        });
        Ok(link)
    }

    async fn initialize(self: &Arc<Self>) -> Result<String, Failure> {
        const LONG: Duration = Duration::from_secs(3600);
        let hello = self.ask("initialize", &session::initialize_params(), LONG).await?;
        session::agreed(&hello)?;
        self.send(message::notification("notifications/initialized", None))?;
        Ok(hello)
    }

    /// A request of the handshake; the caller bounds the time of the whole.
    async fn ask(
        self: &Arc<Self>,
        method: &str,
        params: &str,
        within: Duration,
    ) -> Result<String, Failure> {
        let mut exchange = self.start(session::next_id(), method, params)?;
        let answer = async {
            loop {
                if let Event::Answer(answer) = exchange.next().await? {
                    return answer.into_result();
                }
            }
        };
        let answer = tokio::time::timeout(within, answer).await;
        Ok(answer.map_err(|_| Failure::Timeout(within))??.text().to_owned())
    }

    fn send(&self, text: String) -> Result<(), Failure> {
        let text = json::one_line(&text).into_owned();
        self.input.try_send(text).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => {
                Failure::Unreachable("the process does not read its input".into())
            }
            mpsc::error::TrySendError::Closed(_) => {
                Failure::Unreachable("the process has ended".into())
            }
        })
    }

    /// Takes one line of the process's output.
    fn take(&self, line: Bytes) {
        if line.len() > MAX_LINE {
            let mut pending = self.pending();
            pending.overlong = true;
            return pending.calls.clear();
        }
        let line = if line.starts_with(BOM) { line.slice(BOM.len()..) } else { line };
        let Ok(text) = std::str::from_utf8(&line) else { return self.stray(&line) };
        match Message::parse(text) {
            Ok(Message::Response { id: Some(id), .. }) => {
                let key = id.trim_matches('"').to_owned();
                let waiting = self.pending().calls.remove(&key);
                if let (Some(waiting), Ok(Some(answer))) =
                    (waiting, Answer::read(line.clone(), &key))
                {
                    let _ = waiting.answer.send(answer);
                }
            }
            Ok(Message::Response { id: None, outcome }) => {
                tracing::debug!(server = self.name, ?outcome, "an error without an id");
            }
            Ok(Message::Notification { method, params }) => {
                let notice =
                    Notice { method: method.into_owned(), params: params.map(str::to_owned) };
                self.route(notice);
            }
            Ok(Message::Request { id, method, .. }) => {
                let _ = self.send(session::reply(id, &method));
            }
            Err(_) => self.stray(&line),
        }
    }

    /// The first line that is no message is shown where operators look for what a process
    /// says; the others are counted (STD-01).
    fn stray(&self, line: &[u8]) {
        if !line.trim_ascii().is_empty() && self.strays.fetch_add(1, Ordering::Relaxed) == 0 {
            tracing::warn!(server = self.name, "its standard output holds what is no message");
            let line = String::from_utf8_lossy(&line[..line.len().min(SHOWN)]);
            self.stderr.push(format!("skipped on standard output: {line}").as_bytes());
        }
    }

    fn lost(&self) -> Failure {
        match self.pending().overlong {
            true => Failure::TooLarge(MAX_LINE),
            false => Failure::Lost("the process ended".into()),
        }
    }

    /// Progress goes to its call; a log message to the call that runs alone, since stdio
    /// does not say which one it is about (BID-05); the rest to the listener. Who does not
    /// keep up misses notices, never an answer.
    fn route(&self, notice: Notice) {
        let pending = self.pending();
        let to = match notice.method.as_str() {
            "notifications/progress" => {
                let token = notice.params.as_deref().and_then(progress_token);
                token.and_then(|token| pending.calls.get(&token)).map(|call| &call.notices)
            }
            "notifications/message" => {
                let mut calls = pending.calls.values();
                calls.next().filter(|_| calls.next().is_none()).map(|call| &call.notices)
            }
            _ => pending.listener.as_ref(),
        };
        if let Some(to) = to {
            let _ = to.try_send(notice);
        }
    }

    fn close(&self) {
        let strays = self.strays.load(Ordering::Relaxed);
        if strays > 0 {
            tracing::info!(server = self.name, strays, "lines of its output were no messages");
        }
        let mut pending = self.pending();
        pending.closed = true;
        // Their receivers see the end, and report the call as lost.
        pending.calls.clear();
        pending.listener = None;
    }

    fn pending(&self) -> std::sync::MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StdioExchange {
    /// Cancel-safe.
    pub(crate) async fn next(&mut self) -> Result<Event, Failure> {
        let link = self.link.clone();
        let ended = || link.lost();
        let Some(answer) = &mut self.answer else {
            return self.notices.recv().await.map(Event::Notice).ok_or_else(ended);
        };
        tokio::select! {
            biased;
            Some(notice) = self.notices.recv() => Ok(Event::Notice(notice)),
            answered = answer => {
                self.answer = None;
                answered.map(Event::Answer).map_err(|_| ended())
            }
        }
    }

    pub(crate) fn cancel(self) {
        if let (Some(id), true) = (&self.id, self.answer.is_some()) {
            let params = format!(r#"{{"requestId":{id}}}"#);
            let _ = self.link.send(message::notification("notifications/cancelled", Some(&params)));
        }
    }
}

impl Drop for StdioExchange {
    fn drop(&mut self) {
        if let Some(id) = &self.id {
            self.link.pending().calls.remove(id);
        }
    }
}

/// The request id inside a progress token of ours (see [`session::Wants`]).
fn progress_token(params: &str) -> Option<String> {
    let members = Members::parse(params).ok()?;
    let token = json::string(members.get("progressToken")?)?;
    token.strip_prefix('m').map(str::to_owned)
}

impl From<process::Error> for Failure {
    fn from(error: process::Error) -> Self {
        match error {
            process::Error::MissingEnv(names) => Self::MissingEnv(names),
            error @ process::Error::NoCommand => Self::Settings(error.to_string()),
            error @ process::Error::Start(..) => Self::Unreachable(error.to_string()),
        }
    }
}
