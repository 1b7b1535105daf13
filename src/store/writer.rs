//! The writer thread: the one owner of the connection. It answers requests in order, and
//! twice a second writes what was queued behind and looks for writes of other processes.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use catalog::{Known, ServerId};
use rusqlite::{Connection, TransactionBehavior, params};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::MissedTickBehavior;

use crate::change::{self, Fault};
use crate::error::Error;
use crate::model::{AuditLine, Behind, Change, PastCall, State, StoredVector};
use crate::{read, usage};

/// Time between two flushes; half of what may be lost at a power cut (P95).
const TICK: Duration = Duration::from_millis(500);

/// Items written in one transaction; also what is kept in memory while writing fails.
const BATCH: usize = 4096;

/// How long one successful write answers for the next [`Request::Ping`].
const FRESH: Duration = Duration::from_secs(5);

/// Where an answer goes. The asker may have gone away.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, Error>>;

/// All that the thread is asked to do.
#[derive(Debug)]
pub(crate) enum Request {
    Load(Reply<State>),
    Known(Reply<Vec<(ServerId, Known)>>),
    EndedSessions(Reply<Vec<u64>>),
    Vectors(Reply<Vec<StoredVector>>),
    PastCalls(u32, Reply<Vec<PastCall>>),
    Apply(Vec<Change>, Reply<Vec<i64>>),
    Audit(u32, Reply<Vec<AuditLine>>),
    SealingKey(Reply<[u8; 32]>),
    Ping(Reply<()>),
    Close(Reply<()>),
}

/// What the thread owns.
#[derive(Debug)]
pub(crate) struct Writer {
    path: PathBuf,
    connection: Connection,
    queue: mpsc::Receiver<Behind>,
    /// Taken from the queue and not yet written; at most [`BATCH`].
    batch: Vec<Behind>,
    dropped: Arc<AtomicU64>,
    foreign: watch::Sender<u64>,
    data_version: i64,
    last_write: Option<Instant>,
    /// Written since the log was last brought to disk.
    dirty: bool,
    /// Flushing fails; said once, not twice a second.
    failing: bool,
}

/// Starts the thread.
pub(crate) fn start(writer: Writer, requests: mpsc::Receiver<Request>) -> Result<(), Error> {
    let path = writer.path.clone();
    let failed = |error: std::io::Error| Error::Other { path, message: error.to_string() };
    // A runtime of its own, for nothing but waiting on two things at once: whatever else it
    // does blocks, and blocks nobody.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let spawned = runtime.and_then(|runtime| {
        let work = move || runtime.block_on(run(writer, requests));
        std::thread::Builder::new().name("store".to_owned()).spawn(work)
    });
    spawned.map(drop).map_err(failed)
}

async fn run(mut writer: Writer, mut requests: mpsc::Receiver<Request>) {
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let closing = loop {
        tokio::select! {
            request = requests.recv() => match request {
                Some(Request::Close(reply)) => break Some(reply),
                Some(request) => writer.answer(request),
                None => break None,
            },
            _ = ticks.tick() => {
                writer.flush();
                writer.watch();
            }
        }
    };
    // Closed first, so that whoever asks from here on is told, not left waiting.
    requests.close();
    writer.finish();
    drop(requests);
    if let Some(reply) = closing {
        let _ = reply.send(Ok(()));
    }
}

impl Writer {
    pub(crate) fn new(
        path: PathBuf,
        connection: Connection,
        queue: mpsc::Receiver<Behind>,
        dropped: Arc<AtomicU64>,
        foreign: watch::Sender<u64>,
    ) -> Result<Self, Error> {
        let data_version = data_version(&connection).map_err(|error| Error::of(&path, &error))?;
        Ok(Self {
            path,
            connection,
            queue,
            batch: Vec::new(),
            dropped,
            foreign,
            data_version,
            last_write: None,
            dirty: false,
            failing: false,
        })
    }

    fn answer(&mut self, request: Request) {
        // Whoever asked may be gone, and with them the need for an answer.
        match request {
            Request::Load(reply) => drop(reply.send(self.read(read::state))),
            Request::Known(reply) => drop(reply.send(self.read(read::known))),
            Request::EndedSessions(reply) => {
                drop(reply.send(self.read(read::ended_sessions)));
            }
            Request::Vectors(reply) => drop(reply.send(self.read(read::vectors))),
            Request::PastCalls(most, reply) => {
                drop(reply.send(self.read(|connection| read::past_calls(connection, most))));
            }
            Request::Apply(changes, reply) => {
                let applied = self.write(|connection| change::apply(connection, &changes));
                drop(reply.send(applied));
            }
            Request::Audit(limit, reply) => {
                drop(reply.send(self.read(|connection| read::audit(connection, limit))));
            }
            Request::SealingKey(reply) => drop(reply.send(self.write(sealing_key))),
            Request::Ping(reply) => drop(reply.send(self.ping())),
            Request::Close(reply) => drop(reply.send(Err(Error::Closed))),
        }
    }

    fn read<T>(&mut self, read: impl FnOnce(&Connection) -> Result<T, Fault>) -> Result<T, Error> {
        let result = self
            .connection
            .transaction()
            .map_err(Fault::from)
            .and_then(|transaction| read(&transaction));
        result.map_err(|fault| self.told(fault))
    }

    /// Runs `work` in a transaction that takes the write lock at once: one that only reads
    /// first cannot wait for another writer later (PLT-02).
    fn write<T>(&mut self, work: impl FnOnce(&Connection) -> Result<T, Fault>) -> Result<T, Error> {
        let begun = self.connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let result = begun.map_err(Fault::from).and_then(|transaction| {
            let value = work(&transaction)?;
            transaction.commit()?;
            Ok(value)
        });
        match result {
            Ok(value) => {
                self.last_write = Some(Instant::now());
                self.dirty = true;
                Ok(value)
            }
            Err(fault) => {
                let error = self.told(fault);
                if error.is_trouble() {
                    self.last_write = None;
                }
                Err(error)
            }
        }
    }

    fn told(&self, fault: Fault) -> Error {
        match fault {
            Fault::Told(error) => error,
            Fault::Sqlite(error) => Error::of(&self.path, &error),
        }
    }

    fn ping(&mut self) -> Result<(), Error> {
        if self.last_write.is_some_and(|at| at.elapsed() < FRESH) {
            return Ok(());
        }
        // Only a commit that changes a page meets a full disk.
        self.write(|connection| {
            let sql = "INSERT INTO meta (name, value) VALUES ('ping', 0)
                ON CONFLICT DO UPDATE SET value = value + 1";
            connection.execute(sql, [])?;
            Ok(())
        })
    }

    /// Writes what is queued, and brings the log to disk: with `synchronous=NORMAL` a commit
    /// alone would survive a crash of the program but not a power cut.
    fn flush(&mut self) {
        while self.gather() && self.write_batch() {}
        if self.dirty {
            let sql = "PRAGMA wal_checkpoint(PASSIVE)";
            match self.connection.query_row(sql, [], |_| Ok(())) {
                Ok(()) => self.dirty = false,
                Err(error) => tracing::debug!(%error, "checkpoint put off"),
            }
        }
    }

    /// Fills the batch from the queue; false when there is nothing to write.
    fn gather(&mut self) -> bool {
        while self.batch.len() < BATCH {
            match self.queue.try_recv() {
                Ok(item) => self.batch.push(item),
                Err(_) => break,
            }
        }
        !self.batch.is_empty()
    }

    /// Writes the batch, or keeps it for the next try: the queue then fills up behind it.
    fn write_batch(&mut self) -> bool {
        let batch = std::mem::take(&mut self.batch);
        let written = self.write(|connection| Ok(usage::write(connection, &batch)?));
        match written {
            Ok(()) => {
                if std::mem::take(&mut self.failing) {
                    let lost = self.dropped.load(Ordering::Relaxed);
                    tracing::info!(lost, "usage is written again");
                }
                true
            }
            Err(error) => {
                if !std::mem::replace(&mut self.failing, true) {
                    tracing::warn!(%error, "usage cannot be written; it is kept for later");
                }
                self.batch = batch;
                false
            }
        }
    }

    fn watch(&mut self) {
        match data_version(&self.connection) {
            Ok(found) if found != self.data_version => {
                self.data_version = found;
                self.foreign.send_modify(|count| *count += 1);
            }
            Ok(_) => {}
            Err(error) => tracing::debug!(%error, "cannot look for writes of other processes"),
        }
    }

    fn finish(&mut self) {
        self.queue.close();
        self.flush();
        let mut lost = self.batch.len() as u64;
        while self.queue.try_recv().is_ok() {
            lost += 1;
        }
        if lost > 0 {
            self.dropped.fetch_add(lost, Ordering::Relaxed);
            tracing::warn!(lost, "usage was lost at the end");
        }
        if let Err(error) = self.connection.execute_batch("PRAGMA optimize") {
            tracing::debug!(%error, "database left without fresh statistics");
        }
    }
}

/// Changes when another connection has committed, never by our own commits.
fn data_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "data_version", |row| row.get(0))
}

fn sealing_key(connection: &Connection) -> Result<[u8; 32], Fault> {
    let mut fresh = [0; 32];
    getrandom::fill(&mut fresh)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
    let sql = "INSERT OR IGNORE INTO meta (name, value) VALUES ('sealing_key', ?1)";
    connection.execute(sql, params![fresh])?;
    let sql = "SELECT value FROM meta WHERE name = 'sealing_key'";
    Ok(connection.query_row(sql, [], |row| row.get(0))?)
}

#[cfg(test)]
mod tests {
    use super::{Arc, Change, Duration, Error, Writer, change, mpsc, watch};
    use crate::error::Trouble;
    use crate::model::AuditKind;
    use crate::schema;

    #[test]
    fn p95_a_full_disk_is_told_and_gone_when_there_is_room() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let connection = schema::open(&path, Duration::ZERO).unwrap();
        let pages: i64 = connection.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
        connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())).unwrap();
        let (_behind, queue) = mpsc::channel(1);
        let foreign = watch::channel(0).0;
        let mut writer =
            Writer::new(path.clone(), connection, queue, Arc::default(), foreign).unwrap();

        let message = "long ".repeat(20_000);
        let large = [Change::Audit { kind: AuditKind::Edit, message, at: 1 }];
        let full = writer.write(|connection| change::apply(connection, &large));
        assert_eq!(full, Err(Error::Unwritable { path, trouble: Trouble::Full }));

        let more = pages + 60;
        writer
            .connection
            .pragma_update_and_check(None, "max_page_count", more, |_| Ok(()))
            .unwrap();
        assert_eq!(writer.write(|connection| change::apply(connection, &large)), Ok(vec![1]));
        assert_eq!(writer.ping(), Ok(()));
    }
}
