//! What one client's run of work has used, and what it was told (product rule "conversation").
//!
//! Older clients have sessions, newer ones have none, and both begin anew when they like. So a
//! conversation is what one key's client of one name does until it has been silent for an hour:
//! what was told once is not told again after a new `initialize`.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use catalog::{Caller, GroupId, KeyId, ServerId};
use coach::note::Turn;
use tokio::sync::watch;

use crate::conversation::now;

/// Seconds without a request after which a conversation is over, and after which a server that
/// was used leaves the list (P42).
pub(crate) const HOUR: i64 = 3600;

/// Conversations that are remembered for each key; beyond that the longest silent go.
const EACH: usize = 64;

/// Whose conversation: the key, or the group of callers without one, and the client's name.
type Whose = (Option<KeyId>, Option<GroupId>, String);

/// All conversations.
#[derive(Debug, Default)]
pub(crate) struct Memories(Mutex<HashMap<Whose, Arc<Memory>>>);

/// Longest client name that tells conversations apart, in characters.
const NAME: usize = 100;

impl Memories {
    /// The conversation of the caller's client of that name.
    pub(crate) fn of(&self, caller: Caller, client: &str) -> Arc<Memory> {
        let group = caller.key.is_none().then_some(caller.group);
        let whose = (caller.key, group, client.chars().take(NAME).collect());
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let memory = all.entry(whose).or_default();
        if memory.is_over() {
            *memory = Arc::default();
        }
        memory.touch();
        memory.clone()
    }

    /// Forgets those that are over, and the longest silent of a key that has too many.
    pub(crate) fn sweep(&self) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, memory| !memory.is_over());
        let mut used: HashMap<(Option<KeyId>, Option<GroupId>), Vec<i64>> = HashMap::new();
        for ((key, group, _), memory) in &*all {
            used.entry((*key, *group)).or_default().push(memory.inner().last);
        }
        for (whose, mut times) in used {
            times.sort_unstable_by(|one, other| other.cmp(one));
            let Some(oldest) = times.get(EACH).copied() else { continue };
            all.retain(|(key, group, _), memory| {
                (*key, *group) != whose || memory.inner().last > oldest || memory.is_followed()
            });
        }
    }
}

/// One conversation.
#[derive(Debug)]
pub struct Memory {
    inner: Mutex<Inner>,
    /// Streams on which the client hears of changes.
    followers: AtomicUsize,
    /// Counts up when what the conversation lists may have changed.
    grown: watch::Sender<u64>,
}

#[derive(Debug)]
struct Inner {
    /// Seconds since the Unix epoch.
    last: i64,
    /// Server → when it was used last.
    used: HashMap<ServerId, i64>,
    /// Servers as the conversation knows them: name, and whether they are up.
    told: Option<HashMap<ServerId, (String, bool)>>,
    /// When that was, as the caller counts.
    seen: u64,
}

impl Default for Memory {
    fn default() -> Self {
        let inner = Inner { last: now(), used: HashMap::new(), told: None, seen: 0 };
        let (grown, followers) = (watch::Sender::new(0), AtomicUsize::new(0));
        Self { inner: Mutex::new(inner), followers, grown }
    }
}

/// A stream on which a client hears of changes, until dropped.
#[derive(Debug)]
pub struct Follower(Arc<Memory>);

impl Drop for Follower {
    fn drop(&mut self) {
        self.0.followers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Memory {
    fn inner(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn touch(&self) {
        self.inner().last = now();
    }

    fn is_followed(&self) -> bool {
        self.followers.load(Ordering::Relaxed) > 0
    }

    fn is_over(&self) -> bool {
        !self.is_followed() && now() - self.inner().last > HOUR
    }

    /// Notes a use of a server; whether it is the first one of the conversation.
    pub fn used(&self, server: ServerId) -> bool {
        let at = now();
        let before = self.inner().used.insert(server, at);
        let listed = before.is_some_and(|before| at - before <= HOUR);
        if !listed {
            self.grown.send_modify(|count| *count += 1);
        }
        before.is_none()
    }

    /// Notes that the client hears of changes as long as what is answered is kept.
    pub fn follow(self: &Arc<Self>) -> Follower {
        self.followers.fetch_add(1, Ordering::Relaxed);
        Follower(self.clone())
    }

    /// The servers whose tools the conversation lists beside what its group does: those that it
    /// used within the hour, for a client that hears of changes. In one order.
    pub fn grown(&self) -> Vec<ServerId> {
        if !self.is_followed() {
            return Vec::new();
        }
        let oldest = now() - HOUR;
        let inner = self.inner();
        let recent = inner.used.iter().filter(|(_, at)| **at >= oldest);
        let mut servers: Vec<_> = recent.map(|(server, _)| *server).collect();
        servers.sort_unstable();
        servers
    }

    /// Counts up when what is answered by [`Memory::grown`] may have changed.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.grown.subscribe()
    }

    /// What became of the servers since the conversation was last told: `servers` are those
    /// within reach, and whether each is up (`None` while that is not known). Nothing at first:
    /// then the conversation learns how things are. `seen` tells one moment from another; at the
    /// same one, nothing is looked at.
    pub fn turns<'a>(
        &self,
        seen: u64,
        servers: impl Iterator<Item = (ServerId, &'a str, Option<bool>)>,
    ) -> Vec<(String, Turn)> {
        let mut inner = self.inner();
        if inner.told.is_some() && inner.seen == seen {
            return Vec::new();
        }
        inner.seen = seen;
        let mut after = HashMap::new();
        let mut turns = Vec::new();
        let before = inner.told.take();
        for (id, name, up) in servers {
            let known = before.as_ref().and_then(|before| before.get(&id));
            let was = known.map(|(_, up)| *up);
            let is = up.or(was).unwrap_or(true);
            let turn = match (before.is_some(), was) {
                (false, _) => None,
                (true, None) => Some(Turn::Added),
                (true, Some(was)) if was == is => None,
                (true, Some(_)) if is => Some(Turn::Back),
                (true, Some(_)) => Some(Turn::Down),
            };
            turns.extend(turn.map(|turn| (name.to_owned(), turn)));
            after.insert(id, (name.to_owned(), is));
        }
        let gone = before.into_iter().flatten().filter(|(id, _)| !after.contains_key(id));
        let mut gone: Vec<_> = gone.map(|(_, (name, _))| (name, Turn::Removed)).collect();
        gone.sort_by(|one, other| one.0.cmp(&other.0));
        turns.extend(gone);
        inner.told = Some(after);
        turns
    }

    /// Notes that the conversation heard how a server is in another way.
    pub fn knows(&self, server: ServerId, up: bool) {
        if let Some((_, is)) = self.inner().told.as_mut().and_then(|told| told.get_mut(&server)) {
            *is = up;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use catalog::{Caller, GroupId, KeyId, ServerId};
    use coach::note::Turn;

    use super::{EACH, Memories, Memory};

    fn told(memory: &Memory, seen: u64, servers: &[(i64, Option<bool>)]) -> Vec<(String, Turn)> {
        let names: Vec<String> = servers.iter().map(|(id, _)| format!("s{id}")).collect();
        let all = servers.iter().zip(&names);
        memory.turns(seen, all.map(|((id, up), name)| (ServerId(*id), name.as_str(), *up)))
    }

    #[test]
    fn p55_each_change_is_told_once() {
        let memory = Memory::default();
        let of = |name: &str, turn| (name.to_owned(), turn);
        assert!(told(&memory, 1, &[(1, Some(true)), (2, Some(false))]).is_empty());
        assert!(told(&memory, 2, &[(1, None), (2, None)]).is_empty(), "nobody knows yet");
        let now = [(1, Some(false)), (2, Some(true)), (3, Some(true))];
        let expect = [of("s1", Turn::Down), of("s2", Turn::Back), of("s3", Turn::Added)];
        assert_eq!(told(&memory, 3, &now), expect);
        assert!(told(&memory, 3, &now).is_empty() && told(&memory, 4, &now).is_empty());
        // An answer said so itself.
        memory.knows(ServerId(2), false);
        let down = [(1, Some(false)), (2, Some(false))];
        assert_eq!(told(&memory, 5, &down), [of("s3", Turn::Removed)]);
    }

    #[test]
    fn p42_what_was_used_is_listed_for_those_who_follow() {
        let memory = Arc::new(Memory::default());
        assert!(memory.used(ServerId(2)) && memory.used(ServerId(1)) && !memory.used(ServerId(2)));
        assert!(memory.grown().is_empty());
        let follower = memory.follow();
        assert_eq!(memory.grown(), [ServerId(1), ServerId(2)]);
        drop(follower);
        assert!(memory.grown().is_empty());
    }

    #[test]
    fn a_conversation_is_one_keys_client_of_one_name() {
        let all = Memories::default();
        let caller = |key| Caller { key: Some(KeyId(key)), group: GroupId(1), secret: 0 };
        let same = |one: &Arc<Memory>, other: &Arc<Memory>| Arc::ptr_eq(one, other);
        let first = all.of(caller(1), "a");
        assert!(same(&first, &all.of(caller(1), "a")));
        assert!(!same(&first, &all.of(caller(1), "b")) && !same(&first, &all.of(caller(2), "a")));
        let keyless = |group| all.of(Caller::keyless(GroupId(group)), "a");
        assert!(!same(&keyless(1), &keyless(2)));
        // An hour of silence ends it.
        first.inner().last -= super::HOUR + 1;
        assert!(!same(&first, &all.of(caller(1), "a")));
        for number in 0..2 * EACH as i64 {
            all.of(caller(3), &number.to_string()).inner().last -= number;
        }
        all.sweep();
        let left = all.0.lock().expect("not poisoned").len();
        assert_eq!(left, EACH + 5);
    }
}
