//! The messages of a call's stream, for a client that loses its connection before the end:
//! it may ask for what followed the last event that it saw (F29 to F32).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;

use crate::conversation::{Conversation, now};
use crate::shelf::Shelf;

/// Bytes of notifications kept for one stream; older ones are dropped first. The answer is
/// kept whatever its size.
const MOST: usize = 1 << 20;

/// Bytes of a stream that was written to its end and is kept all the same: what was written
/// may not have arrived.
const DELIVERED: usize = 256 << 10;

/// Streams kept for one conversation; of more, those that have ended go first.
const STREAMS: usize = 32;

/// How long the end of a stream can be asked for, in seconds.
const KEPT: i64 = 300;

/// One stream.
#[derive(Debug)]
pub struct Kept {
    /// Unique in its conversation.
    stream: u64,
    state: Mutex<State>,
    more: Notify,
    /// The room of its key.
    shelf: Arc<Shelf>,
}

#[derive(Debug, Default)]
struct State {
    /// Number of the event, and its message.
    events: VecDeque<(u64, Bytes)>,
    bytes: usize,
    /// Number of the last event; 0 is the priming one.
    last: u64,
    /// When the last message came, seconds since the Unix epoch.
    ended: Option<i64>,
    /// Its messages had to make way, and nobody can ask for them any more.
    gone: bool,
}

impl State {
    /// Drops the oldest message, unless it is the only one. Its size.
    fn drop_oldest(&mut self) -> Option<usize> {
        if self.events.len() <= 1 {
            return None;
        }
        let size = self.events.pop_front()?.1.len();
        self.bytes -= size;
        Some(size)
    }
}

impl Kept {
    fn new(stream: u64, shelf: Arc<Shelf>) -> Self {
        Self { stream, state: Mutex::default(), more: Notify::new(), shelf }
    }

    /// Event id of the priming event, before any message.
    pub fn first_id(&self) -> String {
        format!("{}-0", self.stream)
    }

    /// Keeps a message and says its event id.
    pub fn push(&self, message: Bytes) -> String {
        let mut state = self.state();
        state.last += 1;
        let number = state.last;
        if state.gone {
            return format!("{}-{number}", self.stream);
        }
        state.bytes += message.len();
        self.shelf.take(message.len());
        state.events.push_back((number, message));
        while state.bytes > MOST
            && let Some(size) = state.drop_oldest()
        {
            self.shelf.give_back(size);
        }
        drop(state);
        self.more.notify_waiters();
        // What is running makes room in itself once nothing finished is left.
        while !self.shelf.make_room()
            && let Some(size) = self.state().drop_oldest()
        {
            self.shelf.give_back(size);
        }
        format!("{}-{number}", self.stream)
    }

    /// Says that no message follows. From here on it makes way for others when its key keeps
    /// too much.
    pub fn end(self: &Arc<Self>) {
        let before = self.state().ended.replace(now());
        self.more.notify_waiters();
        if before.is_none() {
            self.shelf.finished(Arc::downgrade(self));
            self.shelf.make_room();
        }
    }

    /// Makes way.
    pub(crate) fn drop_messages(&self) {
        let mut state = self.state();
        self.shelf.give_back(std::mem::take(&mut state.bytes));
        state.events.clear();
        state.gone = true;
        drop(state);
        self.more.notify_waiters();
    }

    /// The messages after event `seen` with their event ids and numbers; waits until there
    /// are some. Empty means that the stream has ended.
    pub async fn after(&self, seen: u64) -> Vec<(u64, String, Bytes)> {
        loop {
            let mut more = std::pin::pin!(self.more.notified());
            // From here on nothing is missed.
            more.as_mut().enable();
            if let Some(found) = self.present(seen) {
                return found;
            }
            more.await;
        }
    }

    /// The messages after event `seen`, unless there are none yet.
    fn present(&self, seen: u64) -> Option<Vec<(u64, String, Bytes)>> {
        let state = self.state();
        let found: Vec<_> = state
            .events
            .iter()
            .filter(|(number, _)| *number > seen)
            .map(|(number, text)| (*number, format!("{}-{number}", self.stream), text.clone()))
            .collect();
        (!found.is_empty() || state.ended.is_some() || state.gone).then_some(found)
    }

    fn is_over(&self) -> bool {
        let state = self.state();
        state.gone || state.ended.is_some_and(|at| now() - at > KEPT)
    }

    fn is_ended(&self) -> bool {
        self.state().ended.is_some()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.shelf.give_back(self.state().bytes);
    }
}

/// The streams of a conversation that may be asked for.
#[derive(Debug)]
pub(crate) struct Streams {
    kept: Mutex<(u64, Vec<Arc<Kept>>)>,
}

/// Numbers start anywhere, so that an event id of before a restart leads nowhere, and not to
/// another call's answer.
impl Default for Streams {
    fn default() -> Self {
        let start = u64::from(getrandom::u32().unwrap_or_default());
        Self { kept: Mutex::new((start, Vec::new())) }
    }
}

impl Streams {
    /// Forgets what is too old. `true` when nothing is left.
    pub(crate) fn sweep(&self) -> bool {
        let mut kept = self.kept();
        kept.1.retain(|stream| !stream.is_over());
        kept.1.is_empty()
    }

    fn kept(&self) -> MutexGuard<'_, (u64, Vec<Arc<Kept>>)> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Conversation {
    /// Opens a stream whose messages are kept for a while after its end.
    pub fn keep(&self) -> Arc<Kept> {
        let mut kept = self.streams.kept();
        kept.0 += 1;
        let stream = kept.0;
        let fresh = Arc::new(Kept::new(stream, self.shelf.clone()));
        if kept.1.len() >= STREAMS {
            let finished = kept.1.iter().position(|stream| stream.is_ended());
            kept.1.remove(finished.unwrap_or(0));
        }
        kept.1.push(fresh.clone());
        fresh
    }

    /// The stream was written to its end. It stays for the client that has not read it, unless
    /// it is large.
    pub fn written(&self, stream: &Arc<Kept>) {
        stream.end();
        if stream.state().bytes > DELIVERED {
            self.streams.kept().1.retain(|kept| !Arc::ptr_eq(kept, stream));
        }
    }

    /// The stream that an event id is of, and the number of the event.
    pub fn resume(&self, event_id: &str) -> Option<(Arc<Kept>, u64)> {
        let (stream, seen) = event_id.split_once('-')?;
        let (stream, seen) = (stream.parse::<u64>().ok()?, seen.parse().ok()?);
        let kept = self.streams.kept();
        let found = kept.1.iter().find(|kept| kept.stream == stream)?;
        (!found.state().gone).then(|| (found.clone(), seen))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use catalog::{Caller, GroupId};
    use protocol::Version;

    use super::{Kept, MOST, STREAMS};
    use crate::conversation::Conversation;
    use crate::seal::Sealed;
    use crate::shelf::Shelf;

    fn kept() -> Arc<Kept> {
        Arc::new(Kept::new(7, Arc::default()))
    }

    fn conversation(shelf: &Arc<Shelf>) -> Arc<Conversation> {
        let caller = Caller::keyless(GroupId(1));
        let sealed = Sealed { caller, version: Version::V2025_11_25, nonce: 1, opened_at: 1 };
        Conversation::new("id".to_owned(), &sealed, false, shelf.clone(), Arc::default())
    }

    #[test]
    fn m4_what_runs_is_kept_before_what_is_finished() {
        let conversation = conversation(&Arc::default());
        let running = conversation.keep();
        let finished = conversation.keep();
        finished.end();
        for _ in 0..STREAMS {
            conversation.keep().end();
        }
        assert!(conversation.resume(&running.first_id()).is_some());
        assert!(conversation.resume(&finished.first_id()).is_none());
    }

    #[tokio::test]
    async fn m4_a_key_keeps_so_much_in_all_its_sessions_and_no_more() {
        let shelf = Arc::new(Shelf::of(100));
        let sessions = [conversation(&shelf), conversation(&shelf)];
        let running = sessions[0].keep();
        running.push("r".repeat(40).into());
        let streams: Vec<_> = (0..3).map(|n| sessions[n % 2].keep()).collect();
        for stream in &streams {
            stream.push("x".repeat(30).into());
            stream.end();
        }
        let found: Vec<bool> =
            (0..3).map(|n| sessions[n % 2].resume(&streams[n].first_id()).is_some()).collect();
        assert_eq!(found, [false, true, true], "the oldest made way");
        assert!(sessions[0].resume(&running.first_id()).is_some());
        assert!(streams[0].after(0).await.is_empty(), "who waits for it is not left waiting");

        // An answer that is too large for the whole room is not kept, nor does it stay counted.
        let large = sessions[1].keep();
        large.push("l".repeat(200).into());
        large.end();
        assert!(sessions[1].resume(&large.first_id()).is_none());
        assert!(sessions[0].resume(&running.first_id()).is_some());
        running.push("r".repeat(50).into());
        assert_eq!(running.after(0).await.len(), 2);
        running.push("r".repeat(50).into());
        assert_eq!(running.after(0).await.len(), 2, "its own oldest makes way");
    }

    #[tokio::test]
    async fn f30_what_followed_is_read_again_and_only_that() {
        let kept = kept();
        assert_eq!(kept.first_id(), "7-0");
        assert_eq!(kept.push("a".into()), "7-1");
        assert_eq!(kept.push("b".into()), "7-2");
        assert_eq!(kept.after(1).await, [(2, "7-2".to_owned(), "b".into())]);
        kept.end();
        assert!(kept.after(2).await.is_empty());
    }

    #[tokio::test]
    async fn who_waits_is_woken() {
        let kept = kept();
        let waiting = tokio::spawn({
            let kept = kept.clone();
            async move { kept.after(0).await.len() }
        });
        tokio::task::yield_now().await;
        kept.push("a".into());
        assert_eq!(waiting.await.expect("the task ends"), 1);
    }

    #[tokio::test]
    async fn notifications_have_a_limit_and_the_answer_has_none() {
        let kept = kept();
        for _ in 0..3 {
            kept.push(vec![b' '; MOST / 2].into());
        }
        let large = vec![b'x'; 2 * MOST];
        kept.push(large.clone().into());
        let found = kept.after(0).await;
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].2, large);
    }
}
