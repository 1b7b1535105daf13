//! Lanes: threads with a runtime of their own, one for each core.
//!
//! A connection stays on its lane from the first byte to the last, with the connections to
//! servers that its calls use. Threads that took each other's work, as tokio's usual runtime
//! does it, would spend about a fifth more on each call (README, "Speed").

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio_util::sync::{CancellationToken, DropGuard};

/// All lanes. They end with it, and so does what still runs on them.
#[derive(Debug)]
pub struct Lanes {
    lanes: Vec<Lane>,
    _end: DropGuard,
}

#[derive(Debug)]
struct Lane {
    handle: Handle,
    /// Connections that it has.
    load: Arc<AtomicUsize>,
}

/// A connection's share of its lane; given back when dropped.
#[derive(Debug)]
pub(crate) struct Share(Arc<AtomicUsize>);

impl Lanes {
    /// Starts a lane for each core.
    ///
    /// # Errors
    /// When the system gives no thread or no runtime.
    pub fn start() -> io::Result<Self> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let end = CancellationToken::new();
        let lanes: io::Result<_> = (0..cores).map(|number| Lane::start(number, &end)).collect();
        Ok(Self { lanes: lanes?, _end: end.drop_guard() })
    }

    /// Runs what `work` makes, with its share, on the lane that has the fewest connections.
    pub(crate) fn run<F>(&self, work: impl FnOnce(Share) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let quietest = self.lanes.iter().min_by_key(|lane| lane.load.load(Ordering::Relaxed));
        if let Some(lane) = quietest {
            lane.load.fetch_add(1, Ordering::Relaxed);
            lane.handle.spawn(work(Share(lane.load.clone())));
        }
    }
}

impl Lane {
    fn start(number: usize, end: &CancellationToken) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (handle, end) = (runtime.handle().clone(), end.clone());
        thread::Builder::new().name(format!("lane-{number}")).spawn(move || {
            runtime.block_on(end.cancelled());
            runtime.shutdown_background();
        })?;
        Ok(Self { handle, load: Arc::new(AtomicUsize::new(0)) })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;
    use std::sync::mpsc;

    use super::Lanes;

    #[test]
    fn connections_are_spread_evenly_and_stay_where_they_are() {
        let lanes = Lanes::start().unwrap();
        let (tell, told) = mpsc::channel();
        let (keep, kept) = tokio::sync::watch::channel(());
        let count = lanes.lanes.len() * 3;
        for _ in 0..count {
            let (tell, mut kept) = (tell.clone(), kept.clone());
            lanes.run(|share| async move {
                let before = std::thread::current().id();
                tokio::task::yield_now().await;
                tell.send(before == std::thread::current().id()).unwrap();
                let _ = kept.changed().await;
                drop(share);
                tell.send(true).unwrap();
            });
        }
        assert!(told.iter().take(count).all(|stayed| stayed));
        let loads = || lanes.lanes.iter().map(|lane| lane.load.load(Ordering::Relaxed));
        assert!(loads().all(|load| load == 3), "{:?}", loads().collect::<Vec<_>>());
        drop(keep);
        assert_eq!(told.iter().take(count).count(), count);
        assert!(loads().all(|load| load == 0), "{:?}", loads().collect::<Vec<_>>());
    }
}
