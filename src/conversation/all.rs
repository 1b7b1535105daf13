//! All conversations of legacy clients, by their session ids.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use catalog::{Caller, KeyId};
use protocol::Version;

use crate::conversation::{Conversation, now};
use crate::seal::{Sealed, Sealer};

/// Ended sessions remembered, so that their ids are answered with 404.
const ENDED: usize = 100_000;

/// A session first used later than this after it was opened may have been in use before.
const SURE_SECONDS: i64 = 60;

/// All running conversations.
pub struct Conversations {
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

impl std::fmt::Debug for Conversations {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Conversations").field("count", &self.count()).finish_non_exhaustive()
    }
}

impl Conversations {
    /// None yet. Ids are sealed with `key`; those sealed with it before are opened.
    pub fn new(key: &[u8; 32]) -> Self {
        Self { sealer: Sealer::new(key), started: now(), running: RwLock::default() }
    }

    /// Ends conversations whose caller does not pass.
    pub fn retain(&self, keep: impl Fn(&Caller) -> bool) {
        self.change().by_id.retain(|_, conversation| {
            let keep = keep(&conversation.caller);
            if !keep {
                conversation.ended.cancel();
            }
            keep
        });
    }

    /// How many are in memory.
    pub fn count(&self) -> usize {
        self.read().by_id.len()
    }

    /// Opens a conversation. `None` when the system has no random numbers to give.
    pub fn open(&self, caller: Caller, version: Version) -> Option<Arc<Conversation>> {
        let nonce = getrandom::u64().ok()?;
        let sealed = Sealed { caller, version, nonce, opened_at: now() };
        // Kept from its first request on: what is opened and left costs nothing (SEC-04).
        Some(Conversation::new(self.sealer.seal(&sealed), &sealed, false))
    }

    /// The caller's conversation of that id; `None` for an id that is unknown, over, or
    /// somebody else's (SES-02, SEC-01).
    pub fn find(&self, id: &str, caller: Caller) -> Option<Arc<Conversation>> {
        let known = self.read().by_id.get(id).cloned();
        let conversation = match known {
            Some(known) => is_own(&known.caller, &caller).then_some(known)?,
            None => self.restore(id, caller)?,
        };
        conversation.touch();
        Some(conversation)
    }

    /// Takes a conversation into memory by what its id says.
    fn restore(&self, id: &str, caller: Caller) -> Option<Arc<Conversation>> {
        let sealed = self.sealer.open(id)?;
        if !is_own(&sealed.caller, &caller) {
            return None;
        }
        let mut running = self.change();
        if running.ended.contains(&sealed.nonce) {
            return None;
        }
        // After so long it may have been swept: whether it read a list is not known any more.
        let restored = sealed.opened_at < self.started || now() - sealed.opened_at > SURE_SECONDS;
        let fresh = || Conversation::new(id.to_owned(), &Sealed { caller, ..sealed }, restored);
        Some(running.by_id.entry(id.to_owned()).or_insert_with(fresh).clone())
    }

    /// Ends a conversation at its client's wish.
    pub fn end(&self, conversation: &Conversation) {
        let Some(sealed) = self.sealer.open(&conversation.id) else { return };
        let mut running = self.change();
        if running.ended.len() >= ENDED {
            running.ended.clear();
        }
        running.ended.insert(sealed.nonce);
        running.by_id.remove(&conversation.id);
        conversation.ended.cancel();
    }

    /// Forgets conversations without a request or an open stream for `idle`, and the longest
    /// unused of a key that has more than `most`; their ids stay good (SEC-04).
    pub fn sweep(&self, idle: Duration, most: usize) {
        let idle = i64::try_from(idle.as_secs()).unwrap_or(i64::MAX);
        let oldest = now().saturating_sub(idle);
        let mut running = self.change();
        let mut kept: HashMap<Option<KeyId>, Vec<i64>> = HashMap::new();
        running.by_id.retain(|_, conversation| {
            let used = conversation.used();
            let keep = used >= oldest || conversation.is_held();
            if keep {
                kept.entry(conversation.caller.key).or_default().push(used);
            }
            keep
        });
        for (key, mut used) in kept {
            let Some(beyond) = used.len().checked_sub(most) else {
                continue;
            };
            used.sort_unstable();
            let Some(oldest) = beyond.checked_sub(1).and_then(|last| used.get(last)) else {
                continue;
            };
            let mut left = beyond;
            running.by_id.retain(|_, conversation| {
                let drop = left > 0
                    && conversation.caller.key == key
                    && conversation.used() <= *oldest
                    && !conversation.is_held();
                left -= usize::from(drop);
                !drop
            });
        }
        let room = running.by_id.len() * 2;
        running.by_id.shrink_to(room);
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Running> {
        self.running.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self) -> std::sync::RwLockWriteGuard<'_, Running> {
        self.running.write().unwrap_or_else(PoisonError::into_inner)
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
