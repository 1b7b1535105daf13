//! The supervisor of one server: connects, lists its tools, and reconnects for ever (P22). One
//! task per server; no server holds up another. What it does while connected is in
//! [`crate::follow`].

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use catalog::Known;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;
use transport::{Failure, Session};

use crate::backoff::Backoff;
use crate::follow::follow;
use crate::listing;
use crate::probe::at;
use crate::upstream::Upstream;
use crate::upstreams::News;

/// A connection that lasted this long was healthy: the pace of attempts starts anew.
const HEALTHY: Duration = Duration::from_secs(5);

/// The longest wait for the next attempt once an app has called a server that is down.
const WANTED: Duration = Duration::from_secs(2);

/// Where a link stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The tools are listed and the server answers.
    Connected,
    /// It takes connections but does not answer: busy, or frozen. Calls still go to it.
    Silent,
    /// An attempt is under way.
    Connecting,
    /// The last attempt failed; another follows.
    Down,
    /// The server refuses our credentials; attempts go on at the slow pace.
    Auth,
    /// Turned off by the operator.
    Disabled,
}

/// A link as operators see it.
#[derive(Debug, Clone)]
pub struct Status {
    /// Where it stands.
    pub state: State,
    /// Why it is down; in words for operators by `Display`, for apps by [`Failure::told`].
    pub failure: Option<Failure>,
    /// How long it has been down.
    pub down_for: Option<Duration>,
    /// When the next attempt is due.
    pub retry_in: Option<Duration>,
    /// Open sessions of apps.
    pub sessions: usize,
    /// The last lines of a local process's standard error, oldest first.
    pub stderr: Vec<String>,
}

/// The state that the task keeps and others read.
#[derive(Debug, Clone)]
pub(crate) struct Standing {
    pub(crate) state: State,
    pub(crate) failure: Option<Failure>,
    pub(crate) down_since: Option<Instant>,
    pub(crate) retry_at: Option<Instant>,
}

impl Standing {
    /// An app wants the server now: the next attempt is made soon, not after the whole pause.
    /// Whether that changes anything.
    pub(crate) fn hasten(&mut self) -> bool {
        let soon = Instant::now() + WANTED;
        let late = self.state == State::Down && self.retry_at.is_some_and(|at| at > soon);
        if late {
            self.retry_at = Some(soon);
        }
        late
    }
}

/// What others may ask of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Drop the connection and make a new one now.
    Reconnect,
    /// A call met trouble: look at once whether the server lives.
    Check,
    /// The server said during a call that its tools changed.
    List,
}

/// Orders not yet carried out. The same order given many times is one order, however busy
/// the link is.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    given: AtomicU8,
    woken: Notify,
}

impl Orders {
    const ALL: [Order; 3] = [Order::Reconnect, Order::Check, Order::List];

    pub(crate) fn give(&self, order: Order) {
        self.given.fetch_or(1 << order as u8, Ordering::AcqRel);
        self.woken.notify_one();
    }

    /// The most urgent order, once there is one. Cancel-safe.
    pub(crate) async fn next(&self) -> Order {
        loop {
            let given = self.given.load(Ordering::Acquire);
            let next = Self::ALL.into_iter().find(|order| given & 1 << *order as u8 != 0);
            if let Some(order) = next {
                self.given.fetch_and(!(1 << order as u8), Ordering::AcqRel);
                return order;
            }
            self.woken.notified().await;
        }
    }
}

/// Why a connection ended.
pub(crate) enum Ended {
    Closed,
    Asked,
    /// The server forgot our session: a new one can be opened at once.
    Forgotten,
    Lost(Failure),
}

/// Runs until the upstream is closed.
pub(crate) async fn run(upstream: Arc<Upstream>) {
    let mut backoff = Backoff::default();
    let mut quick = true;
    let mut again = false;
    loop {
        upstream.stand(State::Connecting, None, None);
        let attempt = tokio::select! {
            attempt = connect(&upstream) => attempt,
            () = upstream.closed.cancelled() => return,
        };
        let failure = match attempt {
            Ok((session, known)) => {
                listed(&upstream, known).await;
                upstream.stand(State::Connected, None, None);
                if std::mem::replace(&mut again, true) {
                    upstream.tell(News::Reopened(upstream.id));
                }
                let since = Instant::now();
                let ended = tokio::select! {
                    ended = follow(&upstream, &session) => ended,
                    () = upstream.closed.cancelled() => Ended::Closed,
                };
                if since.elapsed() >= HEALTHY {
                    backoff.reset();
                    quick = true;
                }
                // Before the next attempt: two processes of one server may not get along.
                session.close().await;
                match ended {
                    Ended::Closed => return,
                    Ended::Asked => continue,
                    // Once per healthy spell; a server that forgets each session at once
                    // is paced like one that is down (SES-07).
                    Ended::Forgotten if std::mem::take(&mut quick) => {
                        upstream.forgot.fetch_add(1, Ordering::Relaxed);
                        continue;
                    }
                    Ended::Forgotten => Failure::SessionLost,
                    Ended::Lost(failure) => failure,
                }
            }
            Err(failure) => failure,
        };
        let wait = match failure {
            Failure::Auth(_) => backoff.slow(random()),
            _ => backoff.next(random()),
        };
        let state = if matches!(failure, Failure::Auth(_)) { State::Auth } else { State::Down };
        tracing::info!(server = upstream.name(), %failure, retry_in_s = wait.as_secs(), "down");
        upstream.stand(state, Some(failure), Some(Instant::now() + wait));
        if !pause(&upstream).await {
            return;
        }
    }
}

/// Waits for the next attempt; `false` when the upstream is closed meanwhile.
async fn pause(upstream: &Upstream) -> bool {
    let mut standing = upstream.standing.subscribe();
    loop {
        let until = standing.borrow_and_update().retry_at;
        tokio::select! {
            () = at(until) => return true,
            () = upstream.closed.cancelled() => return false,
            // An app wants the server: the time has changed.
            Ok(()) = standing.changed() => {}
            order = upstream.orders.next() => if order == Order::Reconnect {
                return true;
            },
        }
    }
}

/// One attempt: connect, agree on an era, list.
async fn connect(upstream: &Upstream) -> Result<(Arc<Session>, Known), Failure> {
    let server = upstream.settings();
    let opened = Session::open(&server, &upstream.context, upstream.era(), &upstream.stderr);
    let session = Arc::new(opened.await?);
    upstream.remember(session.era);
    match listing::read(&session, &server.name, server.timeout).await {
        Ok(known) => Ok((session, known)),
        Err(failure) => {
            session.close().await;
            Err(failure)
        }
    }
}

/// Hands the tools over and waits until requests see them, so that who waited for the
/// connection finds them.
pub(crate) async fn listed(upstream: &Upstream, known: Known) {
    let (taken, seen) = oneshot::channel();
    // A server that was replaced meanwhile must not speak for its successor.
    if upstream.closed.is_cancelled() {
        return;
    }
    upstream.tell(News::Listed { server: upstream.id, known, taken });
    tokio::select! {
        _ = seen => {}
        () = upstream.closed.cancelled() => {}
    }
}

fn random() -> u32 {
    getrandom::u32().unwrap_or_default()
}
