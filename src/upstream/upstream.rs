//! One server: its link, and a session for each app that uses it.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use catalog::{GroupId, KeyId, Server, ServerId};
use protocol::Era;
use tokio::sync::{OnceCell, mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::exchange::{Answer, Event, Exchange};
use crate::failure::Failure;
use crate::link::{self, Command, Standing, State, Status};
use crate::session::{self, Recipe, Session, Wants};
use crate::upstreams::{Context, News};

/// Whose session a call uses (P23).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Owner {
    /// One app.
    Key(KeyId),
    /// Every app of a group, on a server shared per group; and callers without a key.
    Group(GroupId),
}

/// One server and all connections to it.
pub struct Upstream {
    pub(crate) id: ServerId,
    pub(crate) context: Arc<Context>,
    pub(crate) closed: CancellationToken,
    settings: ArcSwap<Server>,
    era: Mutex<Option<Era>>,
    standing: watch::Sender<Standing>,
    commands: mpsc::UnboundedSender<Command>,
    news: mpsc::UnboundedSender<News>,
    sessions: RwLock<HashMap<Owner, Arc<Slot>>>,
    stderr: Mutex<VecDeque<String>>,
    started: Instant,
}

/// The place of one owner's session: opened once, by whoever comes first.
#[derive(Default)]
struct Slot {
    session: OnceCell<Arc<Session>>,
    /// Milliseconds after the upstream's start.
    used: AtomicU64,
}

/// A call in flight on a session, with the one retry that a forgotten session allows.
pub struct Call {
    upstream: Arc<Upstream>,
    owner: Owner,
    slot: Arc<Slot>,
    recipe: Arc<dyn Recipe>,
    exchange: Exchange,
    era: Era,
    retried: bool,
}

impl std::fmt::Debug for Upstream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upstream").field("id", &self.id).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call").field("owner", &self.owner).finish_non_exhaustive()
    }
}

impl Upstream {
    /// Starts the link, unless the server is disabled.
    pub(crate) fn start(
        server: Server,
        context: Arc<Context>,
        news: mpsc::UnboundedSender<News>,
        idle: Duration,
    ) -> Arc<Self> {
        let (commands, received) = mpsc::unbounded_channel();
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
            commands,
            news,
            sessions: RwLock::default(),
            stderr: Mutex::default(),
            started: Instant::now(),
        });
        if enabled {
            let tasks = &upstream.context.tasks;
            tasks.spawn(link::run(upstream.clone(), received));
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
        let (slot, exchange, era) = self.begin(owner, &*recipe).await?;
        Ok(Call { upstream: self.clone(), owner, slot, recipe, exchange, era, retried: false })
    }

    /// Where the link stands.
    pub fn status(&self) -> Status {
        let standing = self.standing.borrow().clone();
        let now = Instant::now();
        let down = matches!(standing.state, State::Down | State::Auth);
        Status {
            state: standing.state,
            error: standing.failure.as_ref().map(ToString::to_string),
            down_for: standing.down_since.filter(|_| down).map(|since| now - since),
            retry_in: standing.retry_at.map(|at| at.saturating_duration_since(now)),
            sessions: self.read().values().filter(|slot| slot.session.initialized()).count(),
            stderr: self
                .stderr
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .iter()
                .cloned()
                .collect(),
        }
    }

    /// Why the link is down, if it is.
    pub fn failure(&self) -> Option<Failure> {
        self.standing.borrow().failure.clone()
    }

    /// Drops the link's and every app's session, and waits for the new attempt to end.
    pub async fn reconnect(&self) {
        if self.standing.borrow().state == State::Disabled {
            return;
        }
        self.stand(State::Connecting, None, None);
        self.retain(|_| false);
        let _ = self.commands.send(Command::Reconnect);
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
        let _ = self.commands.send(Command::Changed);
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
            self.end(slot);
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

    pub(crate) fn keep_stderr(&self, lines: Vec<String>) {
        if !lines.is_empty() {
            *self.stderr.lock().unwrap_or_else(PoisonError::into_inner) = lines.into();
        }
    }

    pub(crate) fn stand(&self, state: State, failure: Option<Failure>, retry_at: Option<Instant>) {
        if matches!(state, State::Down | State::Auth) {
            // The next server of this address may be of another era (U21).
            *self.era.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        self.standing.send_modify(|standing| {
            let down_since = match state {
                State::Connected | State::Disabled => None,
                State::Down | State::Auth => standing.down_since.or_else(|| Some(Instant::now())),
                State::Connecting => standing.down_since,
            };
            *standing = Standing { state, failure, down_since, retry_at };
        });
    }

    async fn begin(
        &self,
        owner: Owner,
        recipe: &dyn Recipe,
    ) -> Result<(Arc<Slot>, Exchange, Era), Failure> {
        let slot = self.slot(owner);
        slot.used.store(self.now(), Ordering::Relaxed);
        let opened = slot.session.get_or_try_init(|| self.open()).await;
        let session = match opened {
            Ok(session) => session.clone(),
            Err(failure) => return Err(self.met(failure)),
        };
        let id = session::next_id();
        let wants = Wants { era: session.era, token: format!("\"m{id}\"") };
        match session.start(id, recipe.make(&wants)).await {
            Ok(exchange) => Ok((slot, exchange, session.era)),
            Err(failure) => {
                if session.is_dead() {
                    self.forget(owner, &slot);
                }
                Err(self.met(failure))
            }
        }
    }

    async fn open(&self) -> Result<Arc<Session>, Failure> {
        let server = self.settings();
        let session = Session::open(&server, &self.context, self.era()).await?;
        self.remember(session.era);
        Ok(Arc::new(session))
    }

    fn slot(&self, owner: Owner) -> Arc<Slot> {
        let usable = |slot: &Arc<Slot>| slot.session.get().is_none_or(|s| !s.is_dead());
        if let Some(slot) = self.read().get(&owner).filter(|slot| usable(slot)) {
            return slot.clone();
        }
        let mut sessions = self.write();
        match sessions.get(&owner).filter(|slot| usable(slot)) {
            Some(slot) => slot.clone(),
            None => {
                let slot = Arc::new(Slot::default());
                if let Some(dead) = sessions.insert(owner, slot.clone()) {
                    self.end(dead);
                }
                slot
            }
        }
    }

    fn forget(&self, owner: Owner, slot: &Arc<Slot>) {
        let mut sessions = self.write();
        if sessions.get(&owner).is_some_and(|known| Arc::ptr_eq(known, slot)) {
            sessions.remove(&owner);
        }
    }

    /// Has the link look at the server when a call met trouble with it.
    fn met(&self, failure: Failure) -> Failure {
        if failure.suspicious() {
            let _ = self.commands.send(Command::Check);
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
            dropped.into_iter().for_each(|slot| self.end(slot));
        }
    }

    fn end(&self, slot: Arc<Slot>) {
        if let Some(session) = slot.session.get().cloned() {
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

impl Call {
    /// The era of the server that answers.
    pub fn era(&self) -> Era {
        self.era
    }

    /// Waits for what comes next. Not cancel-safe: keep the future until it is done.
    ///
    /// # Errors
    /// How the call failed. A forgotten session is opened anew and the call sent again,
    /// once, since it was not run (P28).
    pub async fn next(&mut self) -> Result<Event, Failure> {
        loop {
            match self.exchange.next().await {
                Err(Failure::SessionLost) if !self.retried => {
                    self.retried = true;
                    self.upstream.forget(self.owner, &self.slot);
                    let (slot, exchange, era) =
                        self.upstream.begin(self.owner, &*self.recipe).await?;
                    (self.slot, self.exchange, self.era) = (slot, exchange, era);
                }
                Err(failure) => {
                    if matches!(failure, Failure::SessionLost | Failure::Lost(_)) {
                        self.upstream.forget(self.owner, &self.slot);
                    }
                    return Err(self.upstream.met(failure));
                }
                event => return event,
            }
        }
    }

    /// Waits for the answer, whatever comes on the way.
    ///
    /// # Errors
    /// As [`Call::next`].
    pub async fn answer(&mut self) -> Result<Answer, Failure> {
        loop {
            if let Event::Answer(answer) = self.next().await? {
                return Ok(answer);
            }
        }
    }

    /// Tells the server that nobody waits any more.
    pub async fn cancel(self) {
        self.exchange.cancel().await;
    }
}
