//! The face of the store: a cheap handle whose calls are sent to the writer thread.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use catalog::{Known, ServerId};
use tokio::sync::{mpsc, oneshot, watch};

use crate::error::Error;
use crate::model::{AuditLine, Behind, Change, PastCall, State, StoredVector};
use crate::schema;
use crate::writer::{self, Reply, Request, Writer};

/// Calls that may wait for the writer thread; further callers wait outside.
const REQUESTS: usize = 256;

/// Items that may wait to be written behind: half a second of 32,000 calls a second.
const BEHIND: usize = 16_384;

/// How long a write waits for another process.
const BUSY: Duration = Duration::from_secs(5);

/// The store. Clones share one writer thread, which ends with [`Store::close`] or, after
/// a flush, when the last clone is dropped.
///
/// A call whose future is dropped while it waits may still be carried out.
#[derive(Debug, Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    requests: mpsc::Sender<Request>,
    behind: mpsc::Sender<Behind>,
    dropped: Arc<AtomicU64>,
    foreign: watch::Receiver<u64>,
}

impl Store {
    /// Opens or makes the database, brings it up to date and starts the writer thread.
    /// Blocks. A fresh database holds the groups `default` (hybrid) and `full` (direct).
    /// The file is readable by its owner only.
    ///
    /// # Errors
    /// [`Error::Newer`] for a database of a later release, [`Error::Unwritable`] when the
    /// place is at fault.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Self::open_with(path, BUSY)
    }

    pub(crate) fn open_with(path: &Path, busy: Duration) -> Result<Self, Error> {
        let connection = schema::open(path, busy)?;
        let (requests, received) = mpsc::channel(REQUESTS);
        let (behind, queued) = mpsc::channel(BEHIND);
        let (foreign_tx, foreign) = watch::channel(0);
        let dropped = Arc::new(AtomicU64::new(0));
        let writer =
            Writer::new(path.to_owned(), connection, queued, Arc::clone(&dropped), foreign_tx)?;
        writer::start(writer, received)?;
        Ok(Self { inner: Arc::new(Inner { requests, behind, dropped, foreign }) })
    }

    /// Groups, servers and keys at one moment.
    ///
    /// # Errors
    /// [`Error::Damaged`] for a row that does not read; else as the database fails.
    pub async fn load(&self) -> Result<State, Error> {
        self.ask(Request::Load).await
    }

    /// The last known catalog of each server that has one, in id order. One that no longer
    /// reads is left out, and logged.
    ///
    /// # Errors
    /// As the database fails.
    pub async fn known(&self) -> Result<Vec<(ServerId, Known)>, Error> {
        self.ask(Request::Known).await
    }

    /// The sessions ended before, oldest first, as [`Behind::SessionEnded`] noted them.
    ///
    /// # Errors
    /// As the database fails.
    pub async fn ended_sessions(&self) -> Result<Vec<u64>, Error> {
        self.ask(Request::EndedSessions).await
    }

    /// What search made of texts, as [`Behind::Vector`] noted it.
    ///
    /// # Errors
    /// As the database fails.
    pub async fn vectors(&self) -> Result<Vec<StoredVector>, Error> {
        self.ask(Request::Vectors).await
    }

    /// The last calls of keys that reached their tools, oldest first, at most `most`.
    ///
    /// # Errors
    /// As the database fails.
    pub async fn past_calls(&self, most: u32) -> Result<Vec<PastCall>, Error> {
        self.ask(|reply| Request::PastCalls(most, reply)).await
    }

    /// Makes all changes in one transaction, or none. Answers one row id per change: the new
    /// one of what was added, the given one of what was changed or removed (0 for
    /// [`Change::Seeded`]).
    ///
    /// # Errors
    /// [`Error::Taken`] for a name in use, [`Error::Missing`] for a row that is not there or
    /// that the change refers to, [`Error::Unwritable`] when the place is at fault.
    pub async fn apply(&self, changes: Vec<Change>) -> Result<Vec<i64>, Error> {
        self.ask(|reply| Request::Apply(changes, reply)).await
    }

    /// Queues an item to be written within a second. Never blocks: when the queue is full or
    /// the store closed, the item is dropped and counted.
    pub fn behind(&self, item: Behind) {
        if self.inner.behind.try_send(item).is_err() {
            self.inner.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many items given to [`Store::behind`] were lost since the start.
    pub fn dropped(&self) -> u64 {
        self.inner.dropped.load(Ordering::Relaxed)
    }

    /// The newest lines of the audit, newest first, at most `limit`.
    ///
    /// # Errors
    /// [`Error::Damaged`] for a row that does not read; else as the database fails.
    pub async fn audit(&self, limit: u32) -> Result<Vec<AuditLine>, Error> {
        self.ask(|reply| Request::Audit(limit, reply)).await
    }

    /// A random key, made once and kept in the database: what is sealed with it can be opened
    /// after a restart.
    ///
    /// # Errors
    /// As the database or the system's random source fails.
    pub async fn sealing_key(&self) -> Result<[u8; 32], Error> {
        self.ask(Request::SealingKey).await
    }

    /// Counts up, within about half a second, when another process or handle has written to
    /// the database. Any write counts, also one that [`Store::load`] does not show.
    pub fn foreign_changes(&self) -> watch::Receiver<u64> {
        self.inner.foreign.clone()
    }

    /// Whether the database takes writes. Answers from the last write when that is younger
    /// than five seconds, so asking often costs nothing.
    ///
    /// # Errors
    /// What keeps it from writing.
    pub async fn ping(&self) -> Result<(), Error> {
        self.ask(Request::Ping).await
    }

    /// Writes all that is queued and ends the writer thread. Later calls answer
    /// [`Error::Closed`]; closing twice is harmless.
    pub async fn close(&self) {
        // `Closed` is the only possible answer besides success, and is what was wanted.
        let _ = self.ask(Request::Close).await;
    }

    async fn ask<T>(&self, request: impl FnOnce(Reply<T>) -> Request) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        self.inner.requests.send(request(reply)).await.map_err(|_| Error::Closed)?;
        answer.await.unwrap_or(Err(Error::Closed))
    }
}

#[cfg(test)]
mod tests;
