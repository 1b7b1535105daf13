//! All conversations of legacy clients, by their session ids.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use catalog::{Caller, KeyId};
use protocol::Version;

use crate::conversation::{Conversation, now};
use crate::memory::{Memories, Memory};
use crate::seal::{Sealed, Sealer};
use crate::shelf::Shelf;

/// A session first used later than this after it was opened may have been in use before.
const SURE_SECONDS: i64 = 60;

/// All running conversations.
pub struct Conversations {
    sealer: Sealer,
    /// Seconds since the Unix epoch.
    started: i64,
    /// How many ended ones are remembered.
    most_ended: usize,
    /// Read with each request, written when a conversation comes or goes.
    running: RwLock<Running>,
    memories: Memories,
}

#[derive(Default)]
struct Running {
    by_id: HashMap<String, Arc<Conversation>>,
    ended: Ended,
    /// The room that each key's kept streams have.
    shelves: HashMap<Option<KeyId>, Arc<Shelf>>,
}

impl Running {
    fn shelf(&mut self, caller: Caller) -> Arc<Shelf> {
        self.shelves.entry(caller.key).or_default().clone()
    }
}

/// Sessions that their clients ended, by nonce: their ids are answered with 404.
#[derive(Default)]
struct Ended {
    all: HashSet<u64>,
    /// Oldest first.
    order: VecDeque<u64>,
}

impl Ended {
    /// Notes one, and forgets the oldest of more than `most`.
    fn add(&mut self, nonce: u64, most: usize) {
        if self.all.insert(nonce) {
            self.order.push_back(nonce);
        }
        while self.order.len() > most {
            if let Some(oldest) = self.order.pop_front() {
                self.all.remove(&oldest);
            }
        }
    }
}

impl std::fmt::Debug for Conversations {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Conversations").field("count", &self.count()).finish_non_exhaustive()
    }
}

impl Conversations {
    /// None yet. Ids are sealed with `key`; those sealed with it before are opened, but for
    /// those of the sessions that [`Conversations::end`] named before: `ended`, oldest first, of
    /// which at most `most_ended` are remembered.
    pub fn new(key: &[u8; 32], ended: Vec<u64>, most_ended: usize) -> Self {
        let mut running = Running::default();
        for nonce in ended {
            running.ended.add(nonce, most_ended);
        }
        let running = RwLock::new(running);
        let (sealer, memories) = (Sealer::new(key), Memories::default());
        Self { sealer, started: now(), most_ended, running, memories }
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

    /// What the caller's client of that name used and was told.
    pub fn memory(&self, caller: Caller, client: &str) -> Arc<Memory> {
        self.memories.of(caller, client)
    }

    /// Opens a session for the caller's client of that name. `None` when the system has no
    /// random numbers to give.
    pub fn open(
        &self,
        caller: Caller,
        version: Version,
        client: &str,
    ) -> Option<Arc<Conversation>> {
        let nonce = getrandom::u64().ok()?;
        let sealed = Sealed { caller, version, nonce, opened_at: now() };
        // Kept from its first request on: what is opened and left costs nothing (SEC-04).
        let id = self.sealer.seal(&sealed);
        let memory = self.memory(caller, client);
        Some(Conversation::new(id, &sealed, false, self.change().shelf(caller), memory))
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
        conversation.memory.touch();
        Some(conversation)
    }

    /// Takes a conversation into memory by what its id says.
    fn restore(&self, id: &str, caller: Caller) -> Option<Arc<Conversation>> {
        let sealed = self.sealer.open(id)?;
        if !is_own(&sealed.caller, &caller) {
            return None;
        }
        let mut running = self.change();
        if running.ended.all.contains(&sealed.nonce) {
            return None;
        }
        // After so long it may have been swept: whether it read a list is not known any more.
        let restored = sealed.opened_at < self.started || now() - sealed.opened_at > SURE_SECONDS;
        let shelf = running.shelf(caller);
        let sealed = Sealed { caller, ..sealed };
        // Which client it is, its id does not say.
        let memory = self.memory(caller, "");
        let fresh = || Conversation::new(id.to_owned(), &sealed, restored, shelf, memory);
        Some(running.by_id.entry(id.to_owned()).or_insert_with(fresh).clone())
    }

    /// Ends a conversation at its client's wish. What is answered tells its id from all others,
    /// and is to be remembered over a restart (F24).
    pub fn end(&self, conversation: &Conversation) -> Option<u64> {
        let sealed = self.sealer.open(&conversation.id)?;
        let mut running = self.change();
        running.ended.add(sealed.nonce, self.most_ended);
        running.by_id.remove(&conversation.id);
        conversation.ended.cancel();
        Some(sealed.nonce)
    }

    /// Forgets conversations without a request or an open stream for `idle`, and the longest
    /// unused of a key that has more than `most`; their ids stay good (SEC-04).
    pub fn sweep(&self, idle: Duration, most: usize) {
        self.memories.sweep();
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
        running.shelves.retain(|_, shelf| Arc::strong_count(shelf) > 1);
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

#[cfg(test)]
mod tests {
    use catalog::{Caller, GroupId};
    use protocol::Version;

    use super::Conversations;

    #[test]
    fn f24_an_ended_session_stays_ended_and_the_oldest_are_forgotten_first() {
        let caller = Caller::keyless(GroupId(1));
        let before = Conversations::new(&[1; 32], Vec::new(), 2);
        let ids: Vec<String> = (0..3)
            .filter_map(|_| Some(before.open(caller, Version::V2025_11_25, "")?.id.clone()))
            .collect();
        let ended: Vec<u64> =
            ids.iter().filter_map(|id| before.end(&*before.find(id, caller)?)).collect();
        assert_eq!(ended.len(), 3);
        let after = Conversations::new(&[1; 32], ended, 2);
        for all in [&before, &after] {
            let found: Vec<bool> = ids.iter().map(|id| all.find(id, caller).is_some()).collect();
            assert_eq!(found, [true, false, false]);
        }
    }
}
