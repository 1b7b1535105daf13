//! Whether a server lives: asked now and then, and whenever a call has reason to doubt it.

use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use protocol::Era;
use protocol::json::Members;
use tokio::time::Instant;
use transport::{Failure, Session};

use crate::link::State;
use crate::upstream::Upstream;

/// A probe that is not answered within this says that the server is silent.
pub(crate) const LATE: Duration = Duration::from_millis(1500);

/// Questions whether the server lives; one at a time, until one is late.
pub(crate) struct Probes<'a> {
    upstream: &'a Upstream,
    session: &'a Session,
    running: FuturesUnordered<BoxFuture<'a, Result<(), Failure>>>,
    late: Option<Instant>,
}

impl<'a> Probes<'a> {
    pub(crate) fn new(upstream: &'a Upstream, session: &'a Session) -> Self {
        Self { upstream, session, running: FuturesUnordered::new(), late: None }
    }

    pub(crate) fn start(&mut self) {
        if self.running.is_empty() {
            self.running.push(alive(self.upstream, self.session).boxed());
            self.late = Some(Instant::now() + LATE);
        }
    }

    /// Ends when the server has not answered. Cancel-safe.
    pub(crate) async fn failed(&mut self) -> Failure {
        loop {
            tokio::select! {
                Some(result) = self.running.next() => match result {
                    Ok(()) => {
                        self.running.clear();
                        self.late = None;
                        self.upstream.heard();
                    }
                    // None of those that came after it was answered either.
                    Err(failure @ Failure::Timeout(_)) => return failure,
                    // Another is under way, over a connection of its own.
                    Err(_) if !self.running.is_empty() => {}
                    Err(failure) => return failure,
                },
                () = at(self.late) => {
                    // Asked again and again: a connection may swallow what is sent over it, also
                    // when the server is back.
                    self.late = Some(Instant::now() + LATE);
                    self.upstream.stand(State::Silent, Some(Failure::Timeout(LATE)), None);
                    self.session.reconnect();
                    self.running.push(alive(self.upstream, self.session).boxed());
                }
            }
        }
    }
}

/// Any well-formed answer proves life, an error too (SES-09).
async fn alive(upstream: &Upstream, session: &Session) -> Result<(), Failure> {
    if session.is_dead() {
        return Err(Failure::Lost("the process ended".into()));
    }
    let probe = match session.era {
        Era::Modern => "server/discover",
        Era::Legacy => "ping",
    };
    let within = upstream.settings().timeout;
    match session.ask(probe, Members::default(), within).await {
        Ok(_) | Err(Failure::Refused { .. }) => Ok(()),
        // Some answer what they do not know with an HTTP status alone; they can still list.
        Err(failure @ (Failure::Status(_) | Failure::Garbage(_))) => {
            match session.ask("tools/list", Members::default(), within).await {
                Ok(_) | Err(Failure::Refused { .. }) => Ok(()),
                Err(_) => Err(failure),
            }
        }
        Err(failure) => Err(failure),
    }
}

/// Ends at that time, if there is one.
pub(crate) async fn at(when: Option<Instant>) {
    match when {
        Some(when) => tokio::time::sleep_until(when).await,
        None => std::future::pending().await,
    }
}
