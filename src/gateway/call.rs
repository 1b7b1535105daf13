//! One tool call, start to end: on whose session it runs, what is passed on under way, what
//! stands beside its answer, and how it is booked.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use catalog::Caller;
use coach::note::{self, blocked};
use conversation::Memory;
use metrics::Phase;
use protocol::json::{self, Members};
use protocol::meta::{self, RequestMeta};
use protocol::{Era, bridge, message};
use store::{Behind, Outcome};
use upstream::{Answer, Call, Event, Failure, Notice, Owner, Recipe, State};

use crate::access::Seat;
use crate::beside::Went;
use crate::core::Gateway;
use crate::find::{Found, Target};
use crate::recipe::ToolCall;
use crate::words;

/// A call as a client asked for it.
#[derive(Debug)]
pub struct Asked<'a> {
    /// Who asks.
    pub caller: Caller,
    /// The client's era.
    pub era: Era,
    /// What [`Gateway::find`] found.
    pub found: Found,
    /// What the conversation used and was told.
    pub memory: Arc<Memory>,
    /// The request's `params`.
    pub params: &'a Members<'a>,
    /// Read from `params._meta`.
    pub meta: &'a RequestMeta<'a>,
    /// Lowest severity of log messages to pass on; `None` passes none.
    pub log_level: Option<u8>,
}

/// How a call ended, for the client.
#[derive(Debug, Clone)]
pub enum Reply {
    /// Raw result, already in the form of the client's era.
    Result(Bytes),
    /// Raw error object, likewise.
    Error(String),
}

impl Reply {
    /// The whole JSON-RPC message; `id` is raw.
    pub fn message(&self, id: &str) -> Vec<u8> {
        match self {
            Self::Result(raw) => {
                let [head, tail] = message::around_result(id);
                [head.as_bytes(), raw, tail.as_bytes()].concat()
            }
            Self::Error(error) => message::failure(Some(id), error).into_bytes(),
        }
    }
}

/// What comes next of a running call.
#[derive(Debug)]
pub enum Step {
    /// A notification for the client, complete.
    Notice(String),
    /// The end.
    Done(Reply),
}

/// A call under way. Dropped before its end, it is booked as cancelled.
pub struct Running {
    gateway: Arc<Gateway>,
    call: Option<Call>,
    caller: Caller,
    era: Era,
    target: Arc<Target>,
    /// `None` once nobody is there who could be told anything.
    memory: Option<Arc<Memory>>,
    /// The client's own progress token, raw; without one no progress is passed on (BID-01).
    progress_token: Option<String>,
    log_level: Option<u8>,
    started: Instant,
    /// When the request had gone out, after `started`.
    sent_after: Duration,
    booked: bool,
    _seat: Seat,
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").field("tool", &self.target.exposed).finish_non_exhaustive()
    }
}

impl Gateway {
    /// Starts a call, or answers it at once: one of the manager's own tools, or why it could
    /// not be started. Cancel-safe: dropped before its end, nothing was sent, or the server is
    /// told to stop. It needs nothing of what was asked any more, so that it can go on when the
    /// client is gone.
    ///
    /// # Errors
    /// The answer for the client.
    pub fn call(
        self: &Arc<Self>,
        asked: &Asked<'_>,
        seat: Seat,
    ) -> impl Future<Output = Result<Running, Reply>> + Send + use<> {
        let (gateway, era) = (self.clone(), asked.era);
        let started = match &asked.found {
            Found::Tool(target) => Ok((self.running(asked, target, seat), recipe(asked, target))),
            Found::Own(call) => Err((call.clone(), seat)),
        };
        async move {
            let (mut running, recipe) = match started {
                Ok(started) => started,
                Err((call, _seat)) => {
                    let result = Box::pin(gateway.own(&call)).await;
                    let result = bridge::own_result(&result, era, gateway.own_info());
                    return Err(Reply::Result(result.into()));
                }
            };
            match running.begin(Arc::new(recipe)).await {
                Ok(call) => {
                    running.call = Some(call);
                    Ok(running)
                }
                Err((went, text)) => Err(running.end(Outcome::Failed, went, &text)),
            }
        }
    }

    fn running(self: &Arc<Self>, asked: &Asked<'_>, target: &Arc<Target>, seat: Seat) -> Running {
        Running {
            gateway: self.clone(),
            call: None,
            caller: asked.caller,
            era: asked.era,
            target: target.clone(),
            memory: Some(asked.memory.clone()),
            progress_token: asked.meta.progress_token.map(str::to_owned),
            log_level: asked.log_level,
            started: Instant::now(),
            sent_after: Duration::ZERO,
            booked: false,
            _seat: seat,
        }
    }

    /// Counts a call that is refused before it is one; `name` is what the client called it.
    pub fn refused(&self, name: &str) {
        self.metrics.refused(name);
    }
}

/// How the call is put to its server.
fn recipe(asked: &Asked<'_>, target: &Target) -> ToolCall {
    let tool = target.tool.clone();
    let instead = target.arguments.as_deref();
    let mut params = asked.params.clone();
    if let Some(arguments) = instead {
        params.set("arguments", arguments);
    }
    let arguments = params.get("arguments").filter(|_| !tool.header_params.is_empty());
    ToolCall {
        call: bridge::Call::new(&params, &tool.name, asked.meta.rest.as_deref()),
        arguments: arguments.map(str::to_owned),
        log_level: asked.log_level.and_then(meta::level),
        wants_progress: asked.meta.progress_token.is_some(),
        tool,
    }
}

impl Running {
    /// Waits for what comes next. Dropped half-way, it can be called again to go on.
    pub async fn next(&mut self) -> Step {
        loop {
            let Some(call) = &mut self.call else {
                return Step::Done(self.end(Outcome::Failed, Went::Wrong, "no call"));
            };
            match call.next().await {
                Ok(Event::Notice(notice)) => {
                    if let Some(notice) = self.pass_on(&notice) {
                        return Step::Notice(notice);
                    }
                }
                Ok(Event::Answer(answer)) => return Step::Done(self.answered(&answer)),
                Err(failure) => return Step::Done(self.failed(&failure)),
            }
        }
    }

    /// Ends the call at the client's wish; the server is told.
    pub fn cancel(mut self) {
        if let Some(call) = self.call.take() {
            self.book(Outcome::Cancelled);
            call.cancel();
        }
    }

    /// The client is gone: what is told once is kept for when it is back.
    pub(crate) fn alone(&mut self) {
        self.memory = None;
    }

    async fn begin(&mut self, recipe: Arc<dyn Recipe>) -> Result<Call, (Went, String)> {
        let target = self.target.clone();
        let Target { server, tool, .. } = &*target;
        let name = &server.name;
        let Some(upstream) = self.gateway.upstreams.get(server.id) else {
            return Err((Went::Wrong, format!("Server `{name}` was removed; nothing was run.")));
        };
        // Just after the start, or after it was added, a server deserves a moment.
        if upstream.is_new() {
            Box::pin(upstream.settled()).await;
        }
        if !matches!(upstream.state(), State::Connected | State::Silent) {
            upstream.wanted();
            return Err((Went::Down, words::down(name, &upstream.status())));
        }
        let owner = match self.caller.key {
            Some(key) if !server.shared => Owner::Key(key),
            _ => Owner::Group(self.caller.group),
        };
        let call = upstream.call(owner, recipe).await;
        self.sent_after = self.started.elapsed();
        self.gateway.metrics.phase(&target.exposed, Phase::Session, self.sent_after);
        call.map_err(|failure| {
            let gone = matches!(failure, Failure::Unreachable(_));
            let went = if gone { Went::Down } else { Went::Wrong };
            (went, words::failed(tool, name, &failure))
        })
    }

    fn answered(&mut self, answer: &Answer) -> Reply {
        let from = self.call.as_ref().map_or(Era::Legacy, Call::era);
        if let Some(why) = answer.malformed() {
            let Target { server, tool, .. } = &*self.target;
            tracing::warn!(server = server.name, tool = tool.name, why, "a malformed answer");
            let text = words::malformed(tool, &server.name, why);
            return self.end(Outcome::Failed, Went::Wrong, &text);
        }
        if answer.is_error {
            self.book(Outcome::Failed);
            let error = bridge::error(answer.text(), self.era);
            return Reply::Error(error.unwrap_or_else(|| answer.text().to_owned()));
        }
        let failed = answer.says_error();
        self.book(if failed { Outcome::ToolError } else { Outcome::Ok });
        let changed = bridge::result(answer.text(), from, self.era, self.gateway.own_info());
        let text = changed.as_deref().unwrap_or(answer.text());
        let went = match self.target.tool.reads_pages() && blocked(text, failed) {
            true => Went::Blocked,
            false => Went::Answered,
        };
        if let Some(noted) = note::beside(text, &self.notes(went)) {
            return Reply::Result(noted.into());
        }
        Reply::Result(changed.map_or_else(|| answer.bytes(), Bytes::from))
    }

    /// What is told beside the answer, if somebody is there to be told.
    fn notes(&self, went: Went) -> Vec<String> {
        let memory = self.memory.as_ref();
        memory.map_or_else(Vec::new, |memory| self.gateway.notes(&self.target, memory, went))
    }

    fn failed(&mut self, failure: &Failure) -> Reply {
        let Target { server, tool, .. } = &*self.target;
        tracing::info!(server = server.name, tool = tool.name, %failure, "call failed");
        let outcome = match failure {
            Failure::Timeout(_) => Outcome::Timeout,
            _ => Outcome::Failed,
        };
        let text = words::failed(tool, &server.name, failure);
        let reply = self.end(outcome, Went::Wrong, &text);
        if let (Failure::Timeout(_) | Failure::Closed, Some(call)) = (failure, self.call.take()) {
            call.cancel();
        }
        reply
    }

    /// A notification of the server as the client should see it, if it should.
    fn pass_on(&self, notice: &Notice) -> Option<String> {
        match notice.method.as_str() {
            "notifications/progress" => {
                let token = self.progress_token.as_deref()?;
                let params = bridge::progress(notice.params.as_deref()?, token)?;
                Some(message::notification("notifications/progress", Some(&params)))
            }
            "notifications/message" => {
                let params = notice.params.as_deref()?;
                let members = Members::parse(params).ok()?;
                let level = members.get("level").and_then(json::string)?;
                (meta::severity(&level)? >= self.log_level?)
                    .then(|| message::notification("notifications/message", Some(params)))
            }
            "notifications/tools/list_changed" => {
                if let Some(upstream) = self.gateway.upstreams.get(self.target.server.id) {
                    upstream.changed();
                }
                None
            }
            _ => None,
        }
    }

    /// The answer that says what went wrong.
    fn end(&mut self, outcome: Outcome, went: Went, text: &str) -> Reply {
        self.book(outcome);
        let result = words::error_result(text);
        let result = note::beside(&result, &self.notes(went)).unwrap_or(result);
        Reply::Result(bridge::own_result(&result, self.era, self.gateway.own_info()).into())
    }

    fn book(&mut self, outcome: Outcome) {
        if std::mem::replace(&mut self.booked, true) {
            return;
        }
        let latency: Duration = self.started.elapsed();
        self.gateway.metrics.call(&self.target.exposed, outcome, latency);
        let upstream = latency.saturating_sub(self.sent_after);
        self.gateway.metrics.phase(&self.target.exposed, Phase::Upstream, upstream);
        let at_ms = jiff::Timestamp::now().as_millisecond();
        if let (Some(key), Outcome::Ok | Outcome::ToolError) = (self.caller.key, outcome) {
            let (server, tool) = (self.target.server.id, self.target.tool.name.clone());
            self.gateway.learned.note((key, (server, tool), at_ms));
        }
        self.gateway.store.behind(Behind::Usage {
            key: self.caller.key,
            server: self.target.server.id,
            tool: self.target.tool.name.clone(),
            outcome,
            latency,
            at_ms,
        });
    }
}

/// Whoever lets go of a call without an end has stopped waiting: the server is told.
impl Drop for Running {
    fn drop(&mut self) {
        if !self.booked
            && let Some(call) = self.call.take()
        {
            call.cancel();
        }
        self.book(Outcome::Cancelled);
    }
}
