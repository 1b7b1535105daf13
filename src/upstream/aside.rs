//! What a server says beside its answers, on the stream of the session itself (U6): many SDKs
//! tie log messages to no request, and send them there.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use protocol::Era;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};
use transport::{Event, Exchange, Failure, Notice, Session};

/// How long the first call of a session waits for its stream to be there, so that nothing
/// is missed that is said while it runs.
const OPENING: Duration = Duration::from_millis(250);

/// Pause before a stream that ended is opened again.
const AGAIN: Duration = Duration::from_secs(1);

/// Streams that end without a word, one after the other, until the server is believed to
/// mean it.
const ATTEMPTS: u8 = 5;

/// Notices that wait for a call which does not keep up; more are dropped.
const ROOM: usize = 64;

/// The stream of one session, and the calls that may hear what is said on it.
pub(crate) struct Aside {
    calls: Mutex<Vec<(u64, mpsc::Sender<Notice>)>>,
    next: AtomicU64,
    _stop: DropGuard,
}

/// A call's ear, open until it is dropped.
pub(crate) struct Hearing {
    aside: Arc<Aside>,
    id: u64,
    notices: mpsc::Receiver<Notice>,
    /// Whether anything was heard.
    pub(crate) heard: bool,
}

impl Aside {
    /// Opens the stream of a session with a server that logs; `None` for any other. A local
    /// process and a modern server say everything where the call is.
    pub(crate) async fn of(session: &Arc<Session>) -> Option<Arc<Self>> {
        if session.era != Era::Legacy || session.is_local() || !session.offers("logging") {
            return None;
        }
        let mut stream = session.listen().await.ok()?;
        if let Ok(Err(_)) = tokio::time::timeout(OPENING, stream.opened()).await {
            return None;
        }
        let stop = CancellationToken::new();
        let aside = Arc::new(Self {
            calls: Mutex::default(),
            next: AtomicU64::new(0),
            _stop: stop.clone().drop_guard(),
        });
        let (session, told) = (session.clone(), Arc::downgrade(&aside));
        tokio::spawn(async move {
            tokio::select! {
                () = listen(&session, stream, told) => {}
                () = stop.cancelled() => {}
            }
        });
        Some(aside)
    }

    /// Lets a call hear what is said from now on.
    pub(crate) fn hear(self: &Arc<Self>) -> Hearing {
        let (sender, notices) = mpsc::channel(ROOM);
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        self.calls().push((id, sender));
        Hearing { aside: self.clone(), id, notices, heard: false }
    }

    /// A message goes to the call that runs alone, since nothing says which of several it is
    /// about, and they may be different apps' (BID-05).
    fn tell(&self, notice: Notice) {
        if let [(_, only)] = &self.calls()[..] {
            let _ = only.try_send(notice);
        }
    }

    fn calls(&self) -> MutexGuard<'_, Vec<(u64, mpsc::Sender<Notice>)>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hearing {
    /// The next notice. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Notice {
        match self.notices.recv().await {
            Some(notice) => {
                self.heard = true;
                notice
            }
            None => std::future::pending().await,
        }
    }
}

impl Drop for Hearing {
    fn drop(&mut self) {
        self.aside.calls().retain(|(id, _)| *id != self.id);
    }
}

/// Until the server does not want the stream.
async fn listen(session: &Session, mut stream: Exchange, to: Weak<Aside>) {
    let mut silent = 0;
    while silent < ATTEMPTS {
        silent += 1;
        loop {
            match stream.next().await {
                Ok(Event::Notice(notice)) => {
                    silent = 0;
                    let Some(to) = to.upgrade() else { return };
                    to.tell(notice);
                }
                Ok(Event::Answer(_))
                | Err(Failure::Status(_) | Failure::Auth(_) | Failure::SessionLost) => return,
                Err(_) => break,
            }
        }
        tokio::time::sleep(AGAIN).await;
        match session.listen().await {
            Ok(again) => stream = again,
            Err(_) => return,
        }
    }
}
