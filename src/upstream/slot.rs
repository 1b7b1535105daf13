//! The place of one owner's session on a server.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use catalog::{GroupId, KeyId};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use transport::{Failure, Session};

use crate::aside::Aside;

/// Whose session a call uses (P23).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Owner {
    /// One app.
    Key(KeyId),
    /// Every app of a group, on a server shared per group; and callers without a key.
    Group(GroupId),
}

/// Opened once, by a task of its own, for all who wait.
pub(crate) struct Slot {
    /// Cancelled when the operator takes the session away, and with it the calls on it.
    pub(crate) taken: CancellationToken,
    opened: watch::Sender<Option<Result<Arc<Session>, Failure>>>,
    /// Nobody will use it any more; whoever opens it closes it.
    dropped: AtomicBool,
    /// The session's own stream, where there is one to listen to.
    pub(crate) aside: OnceLock<Arc<Aside>>,
    /// Milliseconds after the upstream's start.
    pub(crate) used: AtomicU64,
}

impl Slot {
    /// A place whose session is being opened.
    pub(crate) fn new(now: u64) -> Arc<Self> {
        Arc::new(Self {
            taken: CancellationToken::new(),
            opened: watch::Sender::new(None),
            dropped: AtomicBool::new(false),
            aside: OnceLock::new(),
            used: AtomicU64::new(now),
        })
    }

    /// Whether a call may go on with it: open and alive, or being opened.
    pub(crate) fn is_usable(&self) -> bool {
        match &*self.opened.borrow() {
            None => true,
            Some(Ok(session)) => !session.is_dead(),
            Some(Err(_)) => false,
        }
    }

    /// Whether there is a session.
    pub(crate) fn is_open(&self) -> bool {
        matches!(&*self.opened.borrow(), Some(Ok(_)))
    }

    /// Waits until the session is open; all who wait hear of the same failure.
    pub(crate) async fn session(&self) -> Result<Arc<Session>, Failure> {
        if let Some(opened) = &*self.opened.borrow() {
            return opened.clone();
        }
        let mut watch = self.opened.subscribe();
        let opened = watch.wait_for(Option::is_some).await;
        opened.ok().and_then(|opened| opened.clone()).unwrap_or(Err(Failure::Closed))
    }

    /// Gives the place its session, or the failure. Returns the session when nobody wants it
    /// any more, to be closed.
    pub(crate) fn fill(&self, opened: Result<Arc<Session>, Failure>) -> Option<Arc<Session>> {
        let session = opened.clone().ok();
        self.opened.send_replace(Some(opened));
        // Told first, looked at second; `give_up` does it the other way round, so one of the
        // two closes the session.
        session.filter(|_| self.dropped.load(Ordering::SeqCst))
    }

    /// Nobody wants the place any more. Returns the session, if it is open, to be closed.
    pub(crate) fn give_up(&self) -> Option<Arc<Session>> {
        self.dropped.store(true, Ordering::SeqCst);
        self.opened.borrow().clone()?.ok()
    }
}
