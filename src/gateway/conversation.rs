//! One legacy client's run of work: what its session id leads to.
//!
//! The id itself says whose it is and which version was agreed on ([`crate::seal`]); what
//! is kept here is only what a running conversation needs, and comes back empty after a
//! restart.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use protocol::Version;
use tokio_util::sync::CancellationToken;

use crate::access::Caller;
use crate::core::Gateway;
use crate::seal::{Sealed, Sealer};

/// A conversation without a request or an open stream for this long leaves memory; its id
/// stays good.
const IDLE_SECONDS: i64 = 1800;

/// Ended sessions remembered, so that their ids are answered with 404.
const ENDED: usize = 100_000;

/// Digest of no list: the client has not read one.
const NONE: u64 = 0;
/// Digest that differs from every list: the client may have read one before a restart.
const UNKNOWN: u64 = u64::MAX;

/// A legacy session.
#[derive(Debug)]
pub struct Conversation {
    /// `Mcp-Session-Id`.
    pub id: String,
    /// The version that `initialize` agreed on.
    pub version: Version,
    /// Whose it is.
    pub caller: Caller,
    /// Cancelled when the session ends, for whatever reason.
    pub ended: CancellationToken,
    calls: Mutex<HashMap<String, CancellationToken>>,
    listed: AtomicU64,
    stream: Mutex<Option<CancellationToken>>,
    log_level: AtomicU8,
    used: AtomicI64,
}

/// A call of a conversation that can be cancelled by its id until this is dropped.
#[derive(Debug)]
pub struct Cancellable {
    conversation: Arc<Conversation>,
    id: String,
    /// Cancelled when the client says so.
    pub cancelled: CancellationToken,
}

/// All running conversations.
pub(crate) struct Conversations {
    sealer: Sealer,
    /// Seconds since the Unix epoch.
    started: i64,
    /// Read with each request, written when a conversation comes or goes.
    running: RwLock<Running>,
}

#[derive(Default)]
struct Running {
    by_id: HashMap<String, Arc<Conversation>>,
    /// By nonce.
    ended: HashSet<u64>,
}

impl Conversations {
    pub(crate) fn new(sealer: Sealer) -> Self {
        Self { sealer, started: now(), running: RwLock::default() }
    }

    /// Ends conversations whose caller does not pass.
    pub(crate) fn retain(&self, keep: impl Fn(&Caller) -> bool) {
        self.change().by_id.retain(|_, conversation| {
            let keep = keep(&conversation.caller);
            if !keep {
                conversation.ended.cancel();
            }
            keep
        });
    }

    /// How many are in memory.
    pub(crate) fn count(&self) -> usize {
        self.read().by_id.len()
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Running> {
        self.running.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self) -> std::sync::RwLockWriteGuard<'_, Running> {
        self.running.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gateway {
    /// Opens a conversation. `None` when the system has no random numbers to give.
    pub fn open_conversation(&self, caller: Caller, version: Version) -> Option<Arc<Conversation>> {
        let nonce = getrandom::u64().ok()?;
        let sealed = Sealed { caller, version, nonce, opened_at: now() };
        // Kept from its first request on: what is opened and left costs nothing (SEC-04).
        Some(Conversation::new(self.conversations.sealer.seal(&sealed), &sealed, false))
    }

    /// The caller's conversation of that id; `None` for an id that is unknown, over, or
    /// somebody else's (SES-02, SEC-01).
    pub fn conversation(&self, id: &str, caller: Caller) -> Option<Arc<Conversation>> {
        let known = self.conversations.read().by_id.get(id).cloned();
        let conversation = match known {
            Some(known) => is_own(&known.caller, &caller).then_some(known)?,
            None => self.restore(id, caller)?,
        };
        conversation.used.store(now(), Ordering::Relaxed);
        Some(conversation)
    }

    /// Takes a conversation into memory by what its id says.
    fn restore(&self, id: &str, caller: Caller) -> Option<Arc<Conversation>> {
        let sealed = self.conversations.sealer.open(id)?;
        if !is_own(&sealed.caller, &caller) {
            return None;
        }
        let mut running = self.conversations.change();
        if running.ended.contains(&sealed.nonce) {
            return None;
        }
        let restored = sealed.opened_at < self.conversations.started;
        let fresh = || Conversation::new(id.to_owned(), &Sealed { caller, ..sealed }, restored);
        Some(running.by_id.entry(id.to_owned()).or_insert_with(fresh).clone())
    }

    /// Ends a conversation at its client's wish.
    pub fn end_conversation(&self, conversation: &Conversation) {
        let Some(sealed) = self.conversations.sealer.open(&conversation.id) else { return };
        let mut running = self.conversations.change();
        if running.ended.len() >= ENDED {
            running.ended.clear();
        }
        running.ended.insert(sealed.nonce);
        running.by_id.remove(&conversation.id);
        conversation.ended.cancel();
    }

    /// Forgets conversations that nobody uses; their ids stay good.
    pub(crate) fn sweep_conversations(&self) {
        let oldest = now() - IDLE_SECONDS;
        self.conversations.change().by_id.retain(|_, conversation| {
            conversation.used.load(Ordering::Relaxed) >= oldest
                || Arc::strong_count(conversation) > 1
        });
    }
}

impl Conversation {
    fn new(id: String, sealed: &Sealed, restored: bool) -> Arc<Self> {
        Arc::new(Self {
            id,
            version: sealed.version,
            caller: sealed.caller,
            ended: CancellationToken::new(),
            calls: Mutex::default(),
            listed: AtomicU64::new(if restored { UNKNOWN } else { NONE }),
            stream: Mutex::default(),
            log_level: AtomicU8::new(0),
            used: AtomicI64::new(now()),
        })
    }

    /// Notes a call, so that the client can cancel it by its raw id.
    pub fn begin(self: &Arc<Self>, id: &str) -> Cancellable {
        let cancelled = self.ended.child_token();
        self.calls().insert(id.to_owned(), cancelled.clone());
        Cancellable { conversation: self.clone(), id: id.to_owned(), cancelled }
    }

    /// Cancels the call of that raw id, if it is under way (F39).
    pub fn cancel(&self, id: &str) {
        if let Some(call) = self.calls().get(id) {
            call.cancel();
        }
    }

    /// Notes the digest of the list that the client read.
    pub fn listed(&self, digest: u64) {
        self.listed.store(digest, Ordering::Relaxed);
    }

    /// The digest of the list that the client last read; `None` when it read none. After a
    /// restart of the manager it is one that no list has, since nobody knows any more.
    pub fn last_listed(&self) -> Option<u64> {
        Some(self.listed.load(Ordering::Relaxed)).filter(|digest| *digest != NONE)
    }

    /// Takes the place of the session's stream; an older one ends, so that each message goes
    /// out once (F27).
    pub fn take_stream(&self) -> CancellationToken {
        let token = self.ended.child_token();
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(older) = stream.replace(token.clone()) {
            older.cancel();
        }
        token
    }

    /// Sets the lowest severity of log messages that the client wants.
    pub fn set_log_level(&self, severity: u8) {
        self.log_level.store(severity, Ordering::Relaxed);
    }

    /// The lowest severity of log messages that the client wants; 0 (all) at first.
    pub fn log_level(&self) -> u8 {
        self.log_level.load(Ordering::Relaxed)
    }

    fn calls(&self) -> std::sync::MutexGuard<'_, HashMap<String, CancellationToken>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Cancellable {
    fn drop(&mut self) {
        self.conversation.calls().remove(&self.id);
    }
}

/// Whether a conversation of `owner` may be used by `caller`: its key counts, which may
/// have moved to another group meanwhile.
fn is_own(owner: &Caller, caller: &Caller) -> bool {
    let own = owner.key == caller.key;
    if !own {
        tracing::warn!("a session id was used with another key than its own");
    }
    own
}

fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}
