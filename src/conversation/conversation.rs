//! One legacy client's run of work: what its session id leads to.
//!
//! The id itself says whose it is and which version was agreed on ([`crate::seal`]); what
//! is kept here is only what a running conversation needs, and comes back empty after a
//! restart.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use catalog::Caller;
use protocol::Version;
use tokio_util::sync::CancellationToken;

use crate::memory::Memory;
use crate::resume::Streams;
use crate::seal::Sealed;
use crate::shelf::Shelf;

/// Digest of no list: the client has not read one.
const NONE: u64 = 0;
/// Digest that differs from every list: the client may have read one before a restart.
const UNKNOWN: u64 = u64::MAX;

/// What a client hears that said nothing of log levels: the server's choice (`logging/setLevel`
/// is optional), but not what is for those who look for faults.
const INFO: u8 = 1;

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
    calls: Mutex<HashMap<String, Call>>,
    listed: AtomicU64,
    stream: Mutex<Option<CancellationToken>>,
    log_level: AtomicU8,
    /// Seconds since the Unix epoch.
    used: AtomicI64,
    pub(crate) streams: Streams,
    /// The room that its key has for them.
    pub(crate) shelf: Arc<Shelf>,
    /// Cancelled when the client has said that it is ready.
    ready: CancellationToken,
    /// What the client used and was told, in this session and those before it.
    pub memory: Arc<Memory>,
}

/// Running calls of one id.
#[derive(Debug)]
struct Call {
    cancelled: CancellationToken,
    running: usize,
}

/// A call of a conversation that can be cancelled by its id until this is dropped.
#[derive(Debug)]
pub struct Cancellable {
    conversation: Arc<Conversation>,
    id: String,
    /// Cancelled when the client says so.
    pub cancelled: CancellationToken,
}

impl Conversation {
    pub(crate) fn new(
        id: String,
        sealed: &Sealed,
        restored: bool,
        shelf: Arc<Shelf>,
        memory: Arc<Memory>,
    ) -> Arc<Self> {
        let ready = CancellationToken::new();
        if restored {
            ready.cancel();
        }
        Arc::new(Self {
            id,
            version: sealed.version,
            caller: sealed.caller,
            ended: CancellationToken::new(),
            calls: Mutex::default(),
            listed: AtomicU64::new(if restored { UNKNOWN } else { NONE }),
            stream: Mutex::default(),
            log_level: AtomicU8::new(INFO),
            used: AtomicI64::new(now()),
            streams: Streams::default(),
            shelf,
            ready,
            memory,
        })
    }

    /// Whether a request or a stream has it, or a client may come back for one.
    pub(crate) fn is_held(self: &Arc<Self>) -> bool {
        !self.streams.sweep() || Arc::strong_count(self) > 1
    }

    /// Notes that it was used.
    pub(crate) fn touch(&self) {
        self.used.store(now(), Ordering::Relaxed);
    }

    /// When it was used last, seconds since the Unix epoch.
    pub(crate) fn used(&self) -> i64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Notes that the client is ready for more than the answers that it asked for (F40).
    pub fn initialized(&self) {
        self.ready.cancel();
    }

    /// Cancelled once the client is ready, as it was before a restart.
    pub fn ready(&self) -> &CancellationToken {
        &self.ready
    }

    /// Notes a call, so that the client can cancel it by its raw id. Calls of one id at the same
    /// time are against the protocol and still told apart, since each is answered on its own
    /// connection; a cancellation reaches all of them.
    pub fn begin(self: &Arc<Self>, id: &str) -> Cancellable {
        let mut calls = self.calls();
        let call = calls
            .entry(id.to_owned())
            .or_insert_with(|| Call { cancelled: self.ended.child_token(), running: 0 });
        call.running += 1;
        let cancelled = call.cancelled.clone();
        Cancellable { conversation: self.clone(), id: id.to_owned(), cancelled }
    }

    /// Cancels the call of that raw id, if it is under way (F39).
    pub fn cancel(&self, id: &str) {
        if let Some(call) = self.calls().get(id) {
            call.cancelled.cancel();
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

    /// The lowest severity of log messages that the client wants; 1 (`info`) at first.
    pub fn log_level(&self) -> u8 {
        self.log_level.load(Ordering::Relaxed)
    }

    fn calls(&self) -> std::sync::MutexGuard<'_, HashMap<String, Call>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Cancellable {
    fn drop(&mut self) {
        let mut calls = self.conversation.calls();
        if let Some(call) = calls.get_mut(&self.id) {
            call.running -= 1;
            if call.running == 0 {
                calls.remove(&self.id);
            }
        }
    }
}

pub(crate) fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}
