//! Idle connections to one server.
//!
//! Pingora's own pool watches each idle connection with a task of its own, which is started
//! and ended with every call. Here a connection is looked at when it is taken, which costs
//! no system call, and all of them every few seconds. One is used again only on the runtime
//! that made it, which is the one whose thread hears of what arrives on it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use pingora_core::protocols::Stream;
use tokio::io::AsyncReadExt as _;
use tokio::runtime::{self, Handle};
use tokio::time::Instant;

/// How long a connection may wait for its next request.
const IDLE: Duration = Duration::from_secs(55);

/// Time between two looks at all of them.
const SWEEP: Duration = Duration::from_secs(5);

/// Most connections kept.
const MOST: usize = 1024;

/// The latest used last, so that those a quieter time does not need grow old.
#[derive(Default)]
pub(crate) struct Pool {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    idle: Vec<Idle>,
    /// Whether a task sweeps; it ends with the last connection.
    swept: bool,
}

struct Idle {
    stream: Stream,
    since: Instant,
    runtime: runtime::Id,
}

impl Pool {
    /// A connection of this runtime that seems alive.
    pub(crate) fn take(&self) -> Option<Stream> {
        let runtime = Handle::current().id();
        loop {
            // Bound first, so that the lock is not held while a connection is looked at.
            let last = self.kept().take(runtime);
            let mut idle = last?;
            if idle.is_good(Instant::now()) {
                return Some(idle.stream);
            }
        }
    }

    /// Keeps a connection whose last answer was read to its end.
    pub(crate) fn give(self: &Arc<Self>, stream: Stream) {
        let mut kept = self.kept();
        if kept.idle.len() >= MOST {
            return;
        }
        kept.idle.push(Idle { stream, since: Instant::now(), runtime: Handle::current().id() });
        if !std::mem::replace(&mut kept.swept, true) {
            let pool = Arc::downgrade(self);
            tokio::spawn(async move {
                loop {
                    tokio::time::sleep(SWEEP).await;
                    // Gone with the session that it belonged to.
                    let Some(pool) = pool.upgrade() else { return };
                    if !pool.sweep(Instant::now()) {
                        return;
                    }
                }
            });
        }
    }

    /// Drops all of them.
    pub(crate) fn clear(&self) {
        self.kept().idle.clear();
    }

    /// Drops what is old or dead. `false` when nothing is left to sweep.
    fn sweep(&self, now: Instant) -> bool {
        let mut kept = self.kept();
        kept.idle.retain_mut(|idle| idle.is_good(now));
        kept.swept = !kept.idle.is_empty();
        kept.swept
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn take(&mut self, runtime: runtime::Id) -> Option<Idle> {
        let last = self.idle.iter().rposition(|idle| idle.runtime == runtime)?;
        Some(self.idle.remove(last))
    }
}

impl Idle {
    /// Young enough, and silent: a server says nothing before it is asked, so anything that
    /// can be read is the end, or garbage.
    fn is_good(&mut self, now: Instant) -> bool {
        let mut byte = [0];
        now.saturating_duration_since(self.since) < IDLE
            // Unconstrained: a task that used up its share would see every stream as silent.
            && tokio::task::unconstrained(self.stream.read(&mut byte)).now_or_never().is_none()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pingora_core::protocols::l4::stream::Stream as Tcp;
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::{TcpListener, TcpStream};
    use tokio::time::{Duration, Instant};

    use super::{IDLE, Pool};

    async fn pair() -> (Box<Tcp>, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let ours = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (Box::new(Tcp::from(ours)), listener.accept().await.unwrap().0)
    }

    #[tokio::test]
    async fn a_connection_closed_meanwhile_is_not_used() {
        let pool = Arc::new(Pool::default());
        let (good, _server) = pair().await;
        pool.give(good);
        let (closed, server) = pair().await;
        pool.give(closed);
        drop(server);
        let (chatty, mut server) = pair().await;
        pool.give(chatty);
        server.write_all(b"HTTP/1.1 408").await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(pool.take().is_some());
        assert!(pool.take().is_none());
    }

    /// Its thread would wake the other for each piece of an answer.
    #[test]
    fn a_connection_stays_on_the_runtime_that_made_it() {
        let runtime =
            || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (one, other) = (runtime(), runtime());
        let pool = Arc::new(Pool::default());
        let (mine, _server) = one.block_on(pair());
        one.block_on(async { pool.give(mine) });
        assert!(other.block_on(async { pool.take() }).is_none());
        assert!(one.block_on(async { pool.take() }).is_some());
    }

    #[tokio::test]
    async fn old_and_dead_connections_are_swept() {
        let pool = Arc::new(Pool::default());
        let (closed, server) = pair().await;
        pool.give(closed);
        let (good, _server) = pair().await;
        pool.give(good);
        drop(server);
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(pool.sweep(Instant::now()));
        assert_eq!(pool.kept().idle.len(), 1);
        assert!(!pool.sweep(Instant::now() + IDLE));
        assert!(pool.take().is_none());
    }
}
