//! The messages of a call's stream, for a client that loses its connection before the end:
//! it may ask for what followed the last event that it saw (F29 to F32).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;

use crate::conversation::{Conversation, now};

/// Bytes of notifications kept for one stream; older ones are dropped first. The answer is
/// kept whatever its size.
const MOST: usize = 1 << 20;

/// Bytes of a stream that was written to its end and is kept all the same: what was written
/// may not have arrived.
const DELIVERED: usize = 256 << 10;

/// Streams kept for one conversation.
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
}

impl Kept {
    /// Event id of the priming event, before any message.
    pub fn first_id(&self) -> String {
        format!("{}-0", self.stream)
    }

    /// Keeps a message and says its event id.
    pub fn push(&self, message: Bytes) -> String {
        let mut state = self.state();
        state.last += 1;
        state.bytes += message.len();
        let number = state.last;
        state.events.push_back((number, message));
        while state.bytes > MOST && state.events.len() > 1 {
            state.bytes -= state.events.pop_front().map_or(0, |(_, message)| message.len());
        }
        drop(state);
        self.more.notify_waiters();
        format!("{}-{number}", self.stream)
    }

    /// Says that no message follows.
    pub fn end(&self) {
        self.state().ended = Some(now());
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
        (!found.is_empty() || state.ended.is_some()).then_some(found)
    }

    fn is_over(&self) -> bool {
        self.state().ended.is_some_and(|at| now() - at > KEPT)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
        let fresh = Arc::new(Kept { stream, state: Mutex::default(), more: Notify::new() });
        if kept.1.len() >= STREAMS {
            kept.1.remove(0);
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
        Some((kept.1.iter().find(|kept| kept.stream == stream)?.clone(), seen))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Kept, MOST, Mutex, Notify};

    fn kept() -> Kept {
        Kept { stream: 7, state: Mutex::default(), more: Notify::new() }
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
        let kept = Arc::new(kept());
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
