//! One server: its link, and a session for each app that uses it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use catalog::{Server, ServerId, Transport};
use protocol::Era;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use transport::{Context, Exchange, Failure, Recipe, Repeat, Session, Stderr, Wants};

use crate::aside::{Aside, Hearing};
use crate::call::Call;
use crate::link::{self, Order, Orders, Standing, State, Status};
use crate::slot::{Owner, Slot};
use crate::upstreams::News;

/// Local processes of one server that may run at a time, one for each app (P24).
const CHILDREN: usize = 64;

/// One server and all connections to it.
pub struct Upstream {
    pub(crate) id: ServerId,
    pub(crate) context: Arc<Context>,
    pub(crate) closed: CancellationToken,
    settings: ArcSwap<Server>,
    era: Mutex<Option<Era>>,
    pub(crate) standing: watch::Sender<Standing>,
    pub(crate) orders: Orders,
    news: mpsc::UnboundedSender<News>,
    sessions: RwLock<HashMap<Owner, Arc<Slot>>>,
    /// What local processes of the server wrote to their standard error.
    pub(crate) stderr: Arc<Stderr>,
    /// Counts the times that the server turned out to have forgotten the link's session.
    pub(crate) forgot: AtomicU64,
    /// Counts the changes of how any server stands.
    turns: Arc<AtomicU64>,
    started: Instant,
}

/// A request that has gone out.
pub(crate) struct Begun {
    pub(crate) slot: Arc<Slot>,
    pub(crate) exchange: Exchange,
    pub(crate) hearing: Option<Hearing>,
    pub(crate) era: Era,
    pub(crate) repeat: Repeat,
}

impl std::fmt::Debug for Upstream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upstream").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Upstream {
    /// Starts the link, unless the server is disabled.
    pub(crate) fn start(
        server: Server,
        context: Arc<Context>,
        news: mpsc::UnboundedSender<News>,
        idle: Duration,
        turns: Arc<AtomicU64>,
    ) -> Arc<Self> {
        let enabled = server.enabled;
        let state = if enabled { State::Connecting } else { State::Disabled };
        let standing = Standing { state, failure: None, down_since: None, retry_at: None };
        let upstream = Arc::new(Self {
            id: server.id,
            context,
            closed: CancellationToken::new(),
            settings: ArcSwap::from_pointee(server),
            era: Mutex::default(),
            standing: watch::Sender::new(standing),
            orders: Orders::default(),
            news,
            sessions: RwLock::default(),
            stderr: Arc::default(),
            forgot: AtomicU64::new(0),
            turns,
            started: Instant::now(),
        });
        if enabled {
            let tasks = &upstream.context.tasks;
            tasks.spawn(link::run(upstream.clone()));
            tasks.spawn(upstream.clone().reap(idle));
        }
        upstream
    }

    /// Sends a request on the owner's session, opening it if there is none.
    ///
    /// # Errors
    /// Why the request could not be sent; it was not run.
    pub async fn call(
        self: &Arc<Self>,
        owner: Owner,
        recipe: Arc<dyn Recipe>,
    ) -> Result<Call, Failure> {
        let begun = self.begin(owner, &*recipe).await.map_err(Failure::before_sending)?;
        Ok(Call::new(self.clone(), owner, recipe, begun))
    }

    /// Where the link stands, cheaply.
    pub fn state(&self) -> State {
        self.standing.borrow().state
    }

    /// An app wants the server; one that is down is tried soon. A local one is not: it may be
    /// a program that ends at once (STD-07).
    pub fn wanted(&self) {
        let _ = !self.is_local() && self.standing.send_if_modified(Standing::hasten);
    }

    /// How long it has been certain that nobody is there: no connection is taken, or those that
    /// were open have ended.
    pub(crate) fn away_for(&self) -> Option<Duration> {
        let standing = self.standing.borrow();
        let away = matches!(standing.state, State::Down | State::Connecting)
            && matches!(standing.failure, Some(Failure::Unreachable(_) | Failure::Lost(_)));
        standing.down_since.filter(|_| away).map(|since| since.elapsed())
    }

    /// Whether an attempt is under way on a server that was not known to be down: one that
    /// has just been added, or at the start.
    pub fn is_new(&self) -> bool {
        let standing = self.standing.borrow();
        standing.state == State::Connecting && standing.down_since.is_none()
    }

    /// The whole of it.
    pub fn status(&self) -> Status {
        let standing = self.standing.borrow().clone();
        let now = Instant::now();
        let down =
            matches!(standing.state, State::Down | State::Auth | State::Connecting | State::Silent);
        Status {
            state: standing.state,
            failure: standing.failure,
            down_for: standing.down_since.filter(|_| down).map(|since| now - since),
            retry_in: standing.retry_at.map(|at| at.saturating_duration_since(now)),
            sessions: self.read().values().filter(|slot| slot.is_open()).count(),
            stderr: self.stderr.lines(),
        }
    }

    /// Drops the link's and every app's session, and waits for the new attempt to end.
    pub async fn reconnect(&self) {
        if self.standing.borrow().state == State::Disabled {
            return;
        }
        self.stand(State::Connecting, None, None);
        self.retain(|_| false);
        self.orders.give(Order::Reconnect);
        self.settled().await;
    }

    /// Waits until no attempt is under way, at most for the server's time-out and a little.
    pub async fn settled(&self) {
        let mut standing = self.standing.subscribe();
        let settled = standing.wait_for(|standing| standing.state != State::Connecting);
        let most = self.settings().timeout * 2 + Duration::from_secs(1);
        let _ = tokio::time::timeout(most, settled).await;
    }

    /// Has the link read the tools again; for a change that was told during a call.
    pub fn changed(&self) {
        self.orders.give(Order::List);
    }

    /// Closes the sessions of owners that do not pass.
    pub fn retain(&self, keep: impl Fn(Owner) -> bool) {
        let mut dropped = Vec::new();
        self.write().retain(|owner, slot| {
            let keep = keep(*owner);
            if !keep {
                dropped.push(slot.clone());
            }
            keep
        });
        for slot in dropped {
            slot.taken.cancel();
            self.end(&slot);
        }
    }

    /// The operator's settings.
    pub fn settings(&self) -> Arc<Server> {
        self.settings.load_full()
    }

    /// Takes settings that do not touch the connection.
    pub(crate) fn update(&self, server: Server) {
        let before = self.settings.swap(Arc::new(server));
        if before.shared != self.settings.load().shared {
            self.retain(|_| false);
        }
    }

    /// Ends the link and every session.
    pub(crate) fn close(&self) {
        self.closed.cancel();
        self.retain(|_| false);
        // Wakes those who wait for an attempt that nobody makes any more.
        self.stand(State::Disabled, None, None);
    }

    pub(crate) fn name(&self) -> String {
        self.settings.load().name.clone()
    }

    pub(crate) fn era(&self) -> Option<Era> {
        *self.era.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn remember(&self, era: Era) {
        *self.era.lock().unwrap_or_else(PoisonError::into_inner) = Some(era);
    }

    pub(crate) fn tell(&self, news: News) {
        let _ = self.news.send(news);
    }

    /// The link's server has answered, after it was silent or not.
    pub(crate) fn heard(&self) {
        if self.state() == State::Silent {
            self.stand(State::Connected, None, None);
        }
    }

    pub(crate) fn stand(&self, state: State, failure: Option<Failure>, retry_at: Option<Instant>) {
        if matches!(state, State::Down | State::Auth) {
            // The next server of this address may be of another era (U21).
            *self.era.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        self.standing.send_modify(|standing| {
            // While an attempt is under way, why the last one failed still holds.
            let failure = match state {
                State::Connecting => standing.failure.take(),
                _ => failure,
            };
            let down_since = match state {
                State::Connected | State::Disabled => None,
                State::Down | State::Auth | State::Silent => {
                    standing.down_since.or_else(|| Some(Instant::now()))
                }
                State::Connecting => standing.down_since,
            };
            *standing = Standing { state, failure, down_since, retry_at };
        });
        self.turns.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) async fn begin(
        self: &Arc<Self>,
        owner: Owner,
        recipe: &dyn Recipe,
    ) -> Result<Begun, Failure> {
        let slot = self.slot(owner)?;
        slot.used.store(self.now(), Ordering::Relaxed);
        let session = slot.session().await.map_err(|failure| self.met(failure))?;
        let id = transport::next_id();
        let wants = Wants { era: session.era, token: format!("\"m{id}\"") };
        let each = self.settings.load().call_timeout;
        let request = recipe.make(&wants);
        let (era, repeat) = (session.era, request.repeat);
        let hearing = slot.aside.get().map(Aside::hear);
        match session.start(id, request, each).await {
            Ok(exchange) => Ok(Begun { slot, exchange, hearing, era, repeat }),
            Err(failure) => {
                if session.is_dead() {
                    self.forget(owner, &slot);
                }
                Err(self.met(failure))
            }
        }
    }

    /// The owner's slot; a new one, being opened, where there is none to use.
    fn slot(self: &Arc<Self>, owner: Owner) -> Result<Arc<Slot>, Failure> {
        if let Some(slot) = self.read().get(&owner).filter(|slot| slot.is_usable()) {
            return Ok(slot.clone());
        }
        let mut sessions = self.write();
        // Closing takes this lock after it is marked, so nothing is added behind its back.
        if self.closed.is_cancelled() {
            return Err(Failure::Closed);
        }
        if let Some(slot) = sessions.get(&owner).filter(|slot| slot.is_usable()) {
            return Ok(slot.clone());
        }
        if self.is_local() && sessions.len() >= CHILDREN && !self.make_room(&mut sessions) {
            return Err(Failure::Full(CHILDREN));
        }
        let slot = Slot::new(self.now());
        if let Some(dead) = sessions.insert(owner, slot.clone()) {
            self.end(&dead);
        }
        self.context.tasks.spawn(self.clone().open(slot.clone()));
        Ok(slot)
    }

    /// Ends the local process that nobody has used for the longest time.
    fn make_room(&self, sessions: &mut HashMap<Owner, Arc<Slot>>) -> bool {
        let idle = sessions.iter().filter(|(_, slot)| Arc::strong_count(slot) == 1);
        let oldest = idle.min_by_key(|(_, slot)| slot.used.load(Ordering::Relaxed));
        let Some(owner) = oldest.map(|(owner, _)| *owner) else { return false };
        if let Some(slot) = sessions.remove(&owner) {
            self.end(&slot);
        }
        true
    }

    /// Whether the server is a local process, one for each session.
    pub(crate) fn is_local(&self) -> bool {
        matches!(self.settings.load().transport, Transport::Stdio { .. })
    }

    async fn open(self: Arc<Self>, slot: Arc<Slot>) {
        let server = self.settings();
        let opened = tokio::select! {
            opened = Session::open(&server, &self.context, self.era(), &self.stderr) => opened.map(Arc::new),
            () = self.closed.cancelled() => Err(Failure::Closed),
        };
        if let Ok(session) = &opened {
            self.remember(session.era);
            if let Some(aside) = Aside::of(session).await {
                let _ = slot.aside.set(aside);
            }
        }
        if let Some(unwanted) = slot.fill(opened) {
            unwanted.close().await;
        }
    }

    pub(crate) fn forget(&self, owner: Owner, slot: &Arc<Slot>) {
        let mut sessions = self.write();
        if sessions.get(&owner).is_some_and(|known| Arc::ptr_eq(known, slot)) {
            sessions.remove(&owner);
            self.end(slot);
        }
    }

    /// Has the link look at the server when a call met trouble with it.
    pub(crate) fn met(&self, failure: Failure) -> Failure {
        if failure.suspicious() {
            self.orders.give(Order::Check);
        }
        failure
    }

    /// Closes sessions that nobody used for `idle`.
    async fn reap(self: Arc<Self>, idle: Duration) {
        let mut tick = tokio::time::interval((idle / 4).max(Duration::from_secs(1)));
        loop {
            tokio::select! {
                _ = tick.tick() => {}
                () = self.closed.cancelled() => return,
            }
            let oldest = self.now().saturating_sub(idle.as_millis() as u64);
            let mut dropped = Vec::new();
            // A slot that a call holds has more than one owner and is in use.
            self.write().retain(|_, slot| {
                let keep =
                    slot.used.load(Ordering::Relaxed) >= oldest || Arc::strong_count(slot) > 1;
                if !keep {
                    dropped.push(slot.clone());
                }
                keep
            });
            dropped.iter().for_each(|slot| self.end(slot));
        }
    }

    fn end(&self, slot: &Slot) {
        if let Some(session) = slot.give_up() {
            self.context.tasks.spawn(async move { session.close().await });
        }
    }

    fn now(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, HashMap<Owner, Arc<Slot>>> {
        self.sessions.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, HashMap<Owner, Arc<Slot>>> {
        self.sessions.write().unwrap_or_else(PoisonError::into_inner)
    }
}
