//! The supervisor of one server: lists its tools, watches for changes, checks its health,
//! and reconnects for ever (P22). One task per server; no server holds up another.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use catalog::Known;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;
use transport::{Event, Exchange, Failure, Session};

use crate::backoff::Backoff;
use crate::listing;
use crate::probe::{Probes, at};
use crate::upstream::Upstream;
use crate::upstreams::News;

/// How often an idle server is asked whether it lives.
const HEALTH: Duration = Duration::from_secs(10);

/// A connection that lasted this long was healthy: the pace of attempts starts anew.
const HEALTHY: Duration = Duration::from_secs(5);

/// Changes that arrive together are read together.
const COALESCE: Duration = Duration::from_millis(100);

/// Least time between two lists of one server.
const APART: Duration = Duration::from_secs(1);

/// The longest wait for the next attempt once an app has called a server that is down.
const WANTED: Duration = Duration::from_secs(2);

/// Wait before a lost change stream is opened again.
const REOPEN: Duration = Duration::from_secs(5);

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
    async fn next(&self) -> Order {
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
enum Ended {
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
                let ended = watch(&upstream, &session).await;
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

/// Follows a connection until it ends.
async fn watch(upstream: &Upstream, session: &Arc<Session>) -> Ended {
    tokio::select! {
        ended = follow(upstream, session) => ended,
        () = upstream.closed.cancelled() => Ended::Closed,
    }
}

async fn follow(upstream: &Upstream, session: &Arc<Session>) -> Ended {
    let (mut stream, mut reopen) = listen(session).await;
    let mut dirty: Option<Instant> = None;
    let mut listed_at = Instant::now();
    let mut health = tokio::time::interval_at(Instant::now() + HEALTH, HEALTH);
    let mut probes = Probes::new(upstream, session);
    loop {
        let check = tokio::select! {
            order = upstream.orders.next() => match order {
                Order::Reconnect => return Ended::Asked,
                Order::Check => true,
                Order::List => {
                    dirty.get_or_insert_with(|| due(listed_at));
                    false
                }
            },
            event = next(&mut stream) => match event {
                Ok(true) => {
                    dirty.get_or_insert_with(|| due(listed_at));
                    false
                }
                Ok(false) => false,
                Err(failure) => {
                    stream = None;
                    reopen = later(&failure);
                    matches!(failure, Failure::Lost(_))
                }
            },
            () = at(reopen) => {
                (stream, reopen) = listen(session).await;
                // What changed while nobody listened is read now.
                dirty.get_or_insert_with(|| due(listed_at));
                false
            }
            () = at(dirty) => {
                let server = upstream.settings();
                match listing::read(session, &server.name, server.timeout).await {
                    Ok(known) => listed(upstream, known).await,
                    Err(failure) => return ended(failure),
                }
                (dirty, listed_at) = (None, Instant::now());
                false
            }
            failure = probes.failed() => return ended(failure),
            _ = health.tick() => true,
        };
        if check {
            probes.start();
        }
    }
}

/// When to read the tools again: soon, so that changes that come together are read together,
/// but never close upon the last time, however many changes a server tells of.
fn due(listed_at: Instant) -> Instant {
    (Instant::now() + COALESCE).max(listed_at + APART)
}

/// Opens the change stream, or says when to try again.
async fn listen(session: &Session) -> (Option<Exchange>, Option<Instant>) {
    match session.listen().await {
        Ok(stream) => (Some(stream), None),
        Err(failure) => (None, later(&failure)),
    }
}

/// When to open the change stream again: never, where the server says that it offers none.
fn later(failure: &Failure) -> Option<Instant> {
    let none = matches!(failure, Failure::Status(400 | 404 | 405 | 501) | Failure::Refused { .. });
    (!none).then(|| Instant::now() + REOPEN)
}

/// Hands the tools over and waits until requests see them, so that who waited for the
/// connection finds them.
async fn listed(upstream: &Upstream, known: Known) {
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

fn ended(failure: Failure) -> Ended {
    match failure {
        Failure::SessionLost => Ended::Forgotten,
        failure => Ended::Lost(failure),
    }
}

/// Whether the next event of the stream says that the tools changed.
async fn next(stream: &mut Option<Exchange>) -> Result<bool, Failure> {
    match stream {
        None => std::future::pending().await,
        Some(stream) => match stream.next().await? {
            Event::Notice(notice) => Ok(notice.method == "notifications/tools/list_changed"),
            // An error means that the server offers no such stream; a result, that it ended.
            Event::Answer(answer) => {
                answer.into_result().and(Err(Failure::Lost("the stream ended".into())))
            }
        },
    }
}

fn random() -> u32 {
    getrandom::u32().unwrap_or_default()
}
