//! One tool call, start to end: which tool is meant, on whose session it runs, what is
//! passed on under way, and how it is booked.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use catalog::{Caller, Server, Tool};
use metrics::Phase;
use protocol::json::{self, Members};
use protocol::meta::{self, RequestMeta};
use protocol::{Era, bridge, codes, message};
use store::{Behind, Outcome};
use upstream::{Answer, Call, Event, Failure, Notice, Owner, Recipe, State};

use crate::access::Seat;
use crate::answer::{malformed, says_error};
use crate::core::Gateway;
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
    /// The request's `params`.
    pub params: &'a Members<'a>,
    /// Read from `params._meta`.
    pub meta: &'a RequestMeta<'a>,
    /// Lowest severity of log messages to pass on; `None` passes none.
    pub log_level: Option<u8>,
}

/// The tool that a caller means. Looked up once, so that every check and the call itself
/// are about the same tool.
#[derive(Debug, Clone)]
pub struct Found {
    server: Arc<Server>,
    tool: Arc<Tool>,
    exposed: Arc<str>,
}

impl Found {
    /// The name that clients see.
    pub fn exposed(&self) -> &str {
        &self.exposed
    }

    /// Arguments that a modern client repeats in headers, as (property, header) (F67).
    pub fn header_params(&self) -> &[(String, String)] {
        &self.tool.header_params
    }
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
    found: Found,
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
        f.debug_struct("Running").field("tool", &self.found.exposed).finish_non_exhaustive()
    }
}

impl Gateway {
    /// The tool that a name leads the caller to; else the answer that says that there is
    /// none.
    ///
    /// # Errors
    /// That answer. A name out of reach gets the same one (P44).
    pub fn find(&self, caller: &Caller, era: Era, name: &str) -> Result<Found, Reply> {
        let view = self.view(caller).ok_or_else(|| unknown(era, name, self.own_info()))?;
        let found = view.resolve(name).ok_or_else(|| unknown(era, name, self.own_info()))?;
        let (server, tool) = (found.server.clone(), found.tool.clone());
        Ok(Found { server, tool, exposed: found.exposed.clone() })
    }

    /// Starts a call, or answers why it could not be started. Cancel-safe: dropped before
    /// its end, nothing was sent, or the server is told to stop. It needs nothing of what was
    /// asked any more, so that it can go on when the client is gone.
    ///
    /// # Errors
    /// The answer for the client: server down, not sent.
    pub fn call(
        self: &Arc<Self>,
        asked: &Asked<'_>,
        seat: Seat,
    ) -> impl Future<Output = Result<Running, Reply>> + Send + use<> {
        let found = &asked.found;
        let mut running = Running {
            gateway: self.clone(),
            call: None,
            caller: asked.caller,
            era: asked.era,
            found: found.clone(),
            progress_token: asked.meta.progress_token.map(str::to_owned),
            log_level: asked.log_level,
            started: Instant::now(),
            sent_after: Duration::ZERO,
            booked: false,
            _seat: seat,
        };
        let recipe = ToolCall {
            tool: found.tool.clone(),
            call: bridge::Call::new(asked.params, &found.tool.name, asked.meta.rest.as_deref()),
            arguments: asked
                .params
                .get("arguments")
                .filter(|_| !found.tool.header_params.is_empty())
                .map(str::to_owned),
            log_level: asked.log_level.and_then(meta::level),
            wants_progress: running.progress_token.is_some(),
        };
        async move {
            match running.begin(Arc::new(recipe)).await {
                Ok(call) => {
                    running.call = Some(call);
                    Ok(running)
                }
                Err(text) => Err(running.end(Outcome::Failed, &words::error_result(&text))),
            }
        }
    }

    /// Counts a call that is refused before it is one; `name` is what the client called it.
    pub fn refused(&self, name: &str) {
        self.metrics.refused(name);
    }
}

/// A name that leads nowhere is an error of the protocol for modern clients; older ones get a
/// result that a model can act on (P53).
fn unknown(era: Era, name: &str, own_info: &str) -> Reply {
    let text = words::unknown_tool(name);
    match era {
        Era::Modern => Reply::Error(codes::error(codes::INVALID_PARAMS, &text, None)),
        Era::Legacy => {
            Reply::Result(bridge::own_result(&words::error_result(&text), era, own_info).into())
        }
    }
}

impl Running {
    /// Waits for what comes next. Dropped half-way, it can be called again to go on.
    pub async fn next(&mut self) -> Step {
        loop {
            let Some(call) = &mut self.call else {
                return Step::Done(self.end(Outcome::Failed, &words::error_result("no call")));
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

    async fn begin(&mut self, recipe: Arc<dyn Recipe>) -> Result<Call, String> {
        let Found { server, tool, .. } = self.found.clone();
        let name = &server.name;
        let Some(upstream) = self.gateway.upstreams.get(server.id) else {
            return Err(format!("Server `{name}` was removed; nothing was run."));
        };
        // Just after the start, or after it was added, a server deserves a moment.
        if upstream.is_new() {
            Box::pin(upstream.settled()).await;
        }
        if !matches!(upstream.state(), State::Connected | State::Silent) {
            upstream.wanted();
            return Err(words::down(name, &upstream.status()));
        }
        let owner = match self.caller.key {
            Some(key) if !server.shared => Owner::Key(key),
            _ => Owner::Group(self.caller.group),
        };
        let call = upstream.call(owner, recipe).await;
        self.sent_after = self.started.elapsed();
        self.gateway.metrics.phase(&self.found.exposed, Phase::Session, self.sent_after);
        call.map_err(|failure| words::failed(&tool, name, &failure))
    }

    fn answered(&mut self, answer: &Answer) -> Reply {
        let from = self.call.as_ref().map_or(Era::Legacy, Call::era);
        if let Some(why) = malformed(answer) {
            let Found { server, tool, .. } = &self.found;
            tracing::warn!(server = server.name, tool = tool.name, why, "a malformed answer");
            let text = words::malformed(tool, &server.name, why);
            return self.end(Outcome::Failed, &words::error_result(&text));
        }
        if answer.is_error {
            self.book(Outcome::Failed);
            let error = bridge::error(answer.text(), self.era);
            return Reply::Error(error.unwrap_or_else(|| answer.text().to_owned()));
        }
        self.book(if says_error(answer) { Outcome::ToolError } else { Outcome::Ok });
        let info = self.gateway.own_info();
        match bridge::result(answer.text(), from, self.era, info) {
            Some(changed) => Reply::Result(changed.into()),
            None => Reply::Result(answer.bytes()),
        }
    }

    fn failed(&mut self, failure: &Failure) -> Reply {
        let Found { server, tool, .. } = &self.found;
        tracing::info!(server = server.name, tool = tool.name, %failure, "call failed");
        let outcome = match failure {
            Failure::Timeout(_) => Outcome::Timeout,
            _ => Outcome::Failed,
        };
        let text = words::failed(tool, &server.name, failure);
        let reply = self.end(outcome, &words::error_result(&text));
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
                if let Some(upstream) = self.gateway.upstreams.get(self.found.server.id) {
                    upstream.changed();
                }
                None
            }
            _ => None,
        }
    }

    fn end(&mut self, outcome: Outcome, result: &str) -> Reply {
        self.book(outcome);
        Reply::Result(bridge::own_result(result, self.era, self.gateway.own_info()).into())
    }

    fn book(&mut self, outcome: Outcome) {
        if std::mem::replace(&mut self.booked, true) {
            return;
        }
        let latency: Duration = self.started.elapsed();
        self.gateway.metrics.call(&self.found.exposed, outcome, latency);
        let upstream = latency.saturating_sub(self.sent_after);
        self.gateway.metrics.phase(&self.found.exposed, Phase::Upstream, upstream);
        self.gateway.store.behind(Behind::Usage {
            key: self.caller.key,
            server: self.found.server.id,
            tool: self.found.tool.name.clone(),
            outcome,
            latency,
            at_ms: jiff::Timestamp::now().as_millisecond(),
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
