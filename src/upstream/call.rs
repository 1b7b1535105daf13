//! A request in flight on an owner's session, and what is done when it goes wrong.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use protocol::Era;
use protocol::json::Members;
use tokio::time::Instant;
use transport::{Answer, Event, Failure, Notice, Recipe, Repeat};

use crate::aside::Hearing;
use crate::link::{Order, State};
use crate::slot::Owner;
use crate::slot::Slot;
use crate::upstream::{Begun, Upstream};

/// How long a call may be silent before the link is asked whether the server lives; and
/// again after each such time.
const LOOK: Duration = Duration::from_secs(1);

/// How long a server may be away for certain before its calls are given up: one that stops in
/// order answers what it has begun.
const AWAY: Duration = Duration::from_millis(1500);

/// How long a server that was silent may be back before a call that may run twice is taken for
/// lost: it hangs on a connection that died without a word (half-open).
const BACK: Duration = Duration::from_secs(2);

/// Pause between attempts to send a call again.
const AGAIN: Duration = Duration::from_millis(250);

/// The longest such pause.
const AGAIN_MOST: Duration = Duration::from_secs(2);

/// How often a call is sent again after its server was lost.
const RERUNS: u8 = 3;

/// How long an answer waits for messages that were sent before it on another stream.
const LATE: Duration = Duration::from_millis(20);

/// A call in flight.
pub struct Call {
    upstream: Arc<Upstream>,
    owner: Owner,
    recipe: Arc<dyn Recipe>,
    begun: Begun,
    /// A call that may run twice is waited for this long in all.
    until: Instant,
    /// Whether a forgotten session was opened anew for it.
    renewed: bool,
    /// Whether it has to be sent again on a new session.
    unsent: bool,
    reruns: u8,
    /// Why it has to be sent again, as long as it has not been.
    lost: Option<Failure>,
    /// The answer, held back a moment for what is still being said beside it.
    answered: Option<(Answer, Instant)>,
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call").field("owner", &self.owner).finish_non_exhaustive()
    }
}

impl Call {
    pub(crate) fn new(
        upstream: Arc<Upstream>,
        owner: Owner,
        recipe: Arc<dyn Recipe>,
        begun: Begun,
    ) -> Self {
        let until = Instant::now() + upstream.settings().call_timeout;
        Self {
            upstream,
            owner,
            recipe,
            begun,
            until,
            renewed: false,
            unsent: false,
            reruns: 0,
            lost: None,
            answered: None,
        }
    }

    /// The era of the server that answers.
    pub fn era(&self) -> Era {
        self.begun.era
    }

    /// Waits for what comes next. Dropped half-way, it can be called again to go on.
    ///
    /// # Errors
    /// How the call failed. A forgotten session is opened anew and the call sent again, once,
    /// since it was not run (P28). What may run twice is sent again when its server was lost
    /// and is back (P25).
    pub async fn next(&mut self) -> Result<Event, Failure> {
        loop {
            // Boxed: rare, and as large as the start of the call was.
            if self.lost.is_some() {
                Box::pin(self.rerun()).await?;
            }
            if self.unsent {
                let again = self.upstream.begin(self.owner, &*self.recipe);
                self.begun = Box::pin(again).await.map_err(Failure::before_sending)?;
                self.unsent = false;
            }
            // Once: a server that is slow again and again is not asked ever more often.
            let may_hang = self.begun.repeat != Repeat::Never && self.reruns == 0;
            let Begun { slot, exchange, hearing, .. } = &mut self.begun;
            if let Some((answer, until)) = &self.answered {
                return match tokio::time::timeout_at(*until, heard(hearing)).await {
                    Ok(notice) => Ok(Event::Notice(notice)),
                    Err(_) => {
                        let answer = answer.clone();
                        self.answered = None;
                        Ok(Event::Answer(answer))
                    }
                };
            }
            let event = tokio::select! {
                biased;
                notice = heard(hearing) => return Ok(Event::Notice(notice)),
                event = exchange.next() => event,
                () = slot.taken.cancelled() => return Err(Failure::Closed),
                failure = watch_over(&self.upstream, slot, may_hang) => Err(failure),
            };
            match event {
                Err(Failure::SessionLost) if !self.renewed => {
                    (self.renewed, self.unsent) = (true, true);
                    self.upstream.forget(self.owner, &self.begun.slot);
                }
                Err(failure) => {
                    // A broken connection does not end a session over HTTP; the server
                    // says so itself, by not knowing it.
                    if matches!(failure, Failure::SessionLost) || !self.begun.slot.is_usable() {
                        self.upstream.forget(self.owner, &self.begun.slot);
                    }
                    let failure = self.upstream.met(failure);
                    if !self.may_run_again(&failure) {
                        return Err(failure);
                    }
                    self.reruns += 1;
                    self.lost = Some(failure);
                }
                Ok(Event::Answer(answer)) if hearing.as_ref().is_some_and(|h| h.heard) => {
                    self.answered = Some((answer, Instant::now() + LATE));
                }
                event => return event,
            }
        }
    }

    /// Tells the server that nobody waits any more.
    pub fn cancel(self) {
        self.begun.exchange.cancel();
    }

    fn may_run_again(&self, failure: &Failure) -> bool {
        self.begun.repeat != Repeat::Never
            && self.reruns < RERUNS
            && matches!(failure, Failure::Lost(_) | Failure::Unreachable(_))
    }

    /// Sends the call again as soon as its server can be reached, within the call's time.
    async fn rerun(&mut self) -> Result<(), Failure> {
        let mut pause = AGAIN;
        loop {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(AGAIN_MOST);
            // A local program is started by its link alone, at the link's pace (STD-07).
            if self.upstream.is_local()
                && !matches!(self.upstream.state(), State::Connected | State::Silent)
            {
                if Instant::now() < self.until {
                    continue;
                }
                return Err(self.lost.take().unwrap_or(Failure::Closed));
            }
            match self.upstream.begin(self.owner, &*self.recipe).await {
                Ok(begun) => {
                    self.begun = begun;
                    self.lost = None;
                    self.renewed = false;
                    return Ok(());
                }
                Err(Failure::Unreachable(_) | Failure::Lost(_) | Failure::SessionLost)
                    if Instant::now() < self.until => {}
                Err(failure) => return Err(self.lost.take().unwrap_or(failure)),
            }
        }
    }
}

/// What is said beside the call, on the session's own stream.
async fn heard(hearing: &mut Option<Hearing>) -> Notice {
    match hearing {
        Some(hearing) => hearing.next().await,
        None => std::future::pending().await,
    }
}

/// Ends when the server can certainly not answer any more although its connection is still
/// open: it has been away for a while, or came back without knowing the session. A server
/// that is merely silent is waited for: it may be busy with this very call. One that was silent
/// and answers others again has lost a call that `may_hang` (P25).
async fn watch_over(upstream: &Upstream, slot: &Slot, may_hang: bool) -> Failure {
    let mut forgot = upstream.forgot.load(Ordering::Relaxed);
    let mut was_silent = false;
    let mut back: Option<Instant> = None;
    loop {
        tokio::time::sleep(LOOK).await;
        upstream.orders.give(Order::Check);
        // A local process ends with its pipes; the link, whose process is another, tells
        // operators how the server fares, and no more about this call.
        if upstream.is_local() {
            continue;
        }
        if upstream.away_for().is_some_and(|away| away >= AWAY) {
            return Failure::Lost("the server is gone".into());
        }
        match upstream.state() {
            State::Silent => (was_silent, back) = (true, None),
            State::Connected if was_silent && may_hang => {
                if back.get_or_insert_with(Instant::now).elapsed() >= BACK {
                    return Failure::Lost("the connection of the call was lost".into());
                }
            }
            _ => back = None,
        }
        let now = upstream.forgot.load(Ordering::Relaxed);
        if std::mem::replace(&mut forgot, now) != now && forgotten(slot).await {
            return Failure::Lost("the server was started anew".into());
        }
    }
}

/// Whether the server does not know the call's own session any more.
async fn forgotten(slot: &Slot) -> bool {
    let Ok(session) = slot.session().await else { return true };
    if session.era == Era::Modern {
        return false;
    }
    let ping = session.ask("ping", Members::default(), LOOK * 2).await;
    matches!(ping, Err(Failure::SessionLost))
}
