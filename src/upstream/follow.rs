//! A link while it is connected: hears of changes, lists anew, checks the server's health. Each
//! goes on by itself: a list that does not come holds up neither the health nor the next change.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::time::Instant;
use transport::{Event, Exchange, Failure, Session};

use crate::link::{Ended, Order, listed};
use crate::listing;
use crate::probe::{LATE, Probes, at};
use crate::upstream::Upstream;

/// How often an idle server is asked whether it lives.
const HEALTH: Duration = Duration::from_secs(10);

/// Changes that arrive together are read together.
const COALESCE: Duration = Duration::from_millis(100);

/// Least time between two lists of one server.
const APART: Duration = Duration::from_secs(1);

/// Wait before a lost change stream is opened again.
const REOPEN: Duration = Duration::from_secs(5);

/// Follows a connection until it ends.
pub(crate) async fn follow(upstream: &Upstream, session: &Arc<Session>) -> Ended {
    let mut changes = Changes::of(session);
    let mut lists = Lists::of(upstream, session);
    let mut health = tokio::time::interval_at(Instant::now() + HEALTH, HEALTH);
    let mut probes = Probes::new(upstream, session);
    loop {
        let check = tokio::select! {
            order = upstream.orders.next() => match order {
                Order::Reconnect => return Ended::Asked,
                Order::Check => true,
                Order::List => {
                    lists.want();
                    false
                }
            },
            told = changes.next() => {
                if told != Told::Lost {
                    lists.want();
                }
                told == Told::Lost
            }
            done = lists.next() => match done {
                Ok(Listing::Done) => false,
                Ok(Listing::Slow) => true,
                Err(failure) => return ended(failure),
            },
            failure = probes.failed() => return ended(failure),
            _ = health.tick() => true,
        };
        if check {
            probes.start();
        }
    }
}

fn ended(failure: Failure) -> Ended {
    match failure {
        Failure::SessionLost => Ended::Forgotten,
        failure => Ended::Lost(failure),
    }
}

/// The stream on which the server tells of changes, opened again when it is lost.
struct Changes<'a> {
    session: &'a Session,
    stream: Option<Exchange>,
    opening: Option<BoxFuture<'a, Result<Exchange, Failure>>>,
    reopen: Option<Instant>,
    /// Whether there was a stream before: then something may have been missed.
    again: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    /// The tools changed.
    Changed,
    /// The stream is open again; what changed meanwhile was not told.
    Reopened,
    /// The stream broke.
    Lost,
}

impl<'a> Changes<'a> {
    fn of(session: &'a Session) -> Self {
        let opening = Some(session.listen().boxed());
        Self { session, stream: None, opening, reopen: None, again: false }
    }

    /// Cancel-safe.
    async fn next(&mut self) -> Told {
        loop {
            tokio::select! {
                opened = running(&mut self.opening) => {
                    self.opening = None;
                    match opened {
                        Ok(stream) => {
                            self.stream = Some(stream);
                            if std::mem::replace(&mut self.again, true) {
                                return Told::Reopened;
                            }
                        }
                        Err(failure) => self.lost(&failure),
                    }
                }
                changed = heard(&mut self.stream) => match changed {
                    Ok(true) => return Told::Changed,
                    Ok(false) => {}
                    Err(failure) => {
                        self.stream = None;
                        self.lost(&failure);
                        if matches!(failure, Failure::Lost(_)) {
                            return Told::Lost;
                        }
                    }
                },
                () = at(self.reopen) => {
                    self.reopen = None;
                    self.opening = Some(self.session.listen().boxed());
                }
            }
        }
    }

    /// Has the stream opened again later, unless the server says that it offers none.
    fn lost(&mut self, failure: &Failure) {
        let none =
            matches!(failure, Failure::Status(400 | 404 | 405 | 501) | Failure::Refused { .. });
        self.reopen = (!none).then(|| Instant::now() + REOPEN);
        self.again = true;
    }
}

/// Reads the tools again when they may have changed: soon, so that changes that come together are
/// read together, but never close upon the last time, however many changes a server tells of. One
/// that is told while a list is under way is read by the next.
struct Lists<'a> {
    upstream: &'a Upstream,
    session: &'a Session,
    due: Option<Instant>,
    listed_at: Instant,
    running: Option<BoxFuture<'a, Result<(), Failure>>>,
    /// When the one under way has taken so long that the server is looked at.
    slow: Option<Instant>,
}

enum Listing {
    Done,
    Slow,
}

impl<'a> Lists<'a> {
    fn of(upstream: &'a Upstream, session: &'a Session) -> Self {
        let listed_at = Instant::now();
        Self { upstream, session, due: None, listed_at, running: None, slow: None }
    }

    fn want(&mut self) {
        let soon = (Instant::now() + COALESCE).max(self.listed_at + APART);
        self.due.get_or_insert(soon);
    }

    /// Cancel-safe.
    async fn next(&mut self) -> Result<Listing, Failure> {
        loop {
            tokio::select! {
                done = running(&mut self.running) => {
                    (self.running, self.slow, self.listed_at) = (None, None, Instant::now());
                    self.due = self.due.map(|due| due.max(self.listed_at + APART));
                    return done.map(|()| Listing::Done);
                }
                () = at(self.slow) => {
                    self.slow = None;
                    return Ok(Listing::Slow);
                }
                () = at(self.due), if self.running.is_none() => {
                    (self.due, self.slow) = (None, Some(Instant::now() + LATE));
                    self.running = Some(read(self.upstream, self.session).boxed());
                }
            }
        }
    }
}

async fn read(upstream: &Upstream, session: &Session) -> Result<(), Failure> {
    let server = upstream.settings();
    let known = listing::read(session, &server.name, server.timeout).await?;
    listed(upstream, known).await;
    Ok(())
}

/// The end of what is under way, if anything is. Cancel-safe.
async fn running<T>(future: &mut Option<BoxFuture<'_, T>>) -> T {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

/// Whether the next event of the stream says that the tools changed. Cancel-safe.
async fn heard(stream: &mut Option<Exchange>) -> Result<bool, Failure> {
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
