//! The room that the kept streams of one key have together, over all its sessions: what is
//! finished makes way for what is new, oldest first.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};

use crate::resume::Kept;

/// Bytes of messages kept for one key.
const MOST: usize = 32 << 20;

/// See the module.
#[derive(Debug)]
pub(crate) struct Shelf {
    most: usize,
    bytes: AtomicUsize,
    /// Streams whose last message has come, in that order.
    finished: Mutex<VecDeque<Weak<Kept>>>,
}

impl Default for Shelf {
    fn default() -> Self {
        Self::of(MOST)
    }
}

impl Shelf {
    pub(crate) fn of(most: usize) -> Self {
        Self { most, bytes: AtomicUsize::new(0), finished: Mutex::default() }
    }

    /// Counts what is kept.
    pub(crate) fn take(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts what is no longer kept.
    pub(crate) fn give_back(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Notes a stream that may be dropped from now on.
    pub(crate) fn finished(&self, stream: Weak<Kept>) {
        let mut finished = self.queue();
        // Now and then, so that what was forgotten elsewhere does not pile up here.
        if finished.len().is_power_of_two() {
            finished.retain(|stream| stream.strong_count() > 0);
        }
        finished.push_back(stream);
    }

    /// Drops finished streams until there is room again; `false` when there still is none.
    pub(crate) fn make_room(&self) -> bool {
        while self.bytes.load(Ordering::Relaxed) > self.most {
            // Not under the lock: a dropped stream gives back what it took.
            let oldest = self.queue().pop_front();
            match oldest {
                Some(oldest) => {
                    if let Some(oldest) = oldest.upgrade() {
                        oldest.drop_messages();
                    }
                }
                None => return false,
            }
        }
        true
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<Weak<Kept>>> {
        self.finished.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
