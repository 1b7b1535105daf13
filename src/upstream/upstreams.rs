//! All servers, and what they have to tell.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use catalog::{Known, Server, ServerId};
use tokio::sync::{mpsc, oneshot};
use transport::{Context, Failure, Session, Surroundings};

use crate::listing;
use crate::slot::Owner;
use crate::upstream::Upstream;

/// How long servers have to end at shutdown; longer than a process gets.
const LAST: Duration = Duration::from_secs(8);

/// What a link tells the keeper of the catalog.
#[derive(Debug)]
pub enum News {
    /// The server's tools, read anew.
    Listed {
        /// Which.
        server: ServerId,
        /// What it said.
        known: Known,
        /// Answered once requests see these tools.
        taken: oneshot::Sender<()>,
    },
    /// The link is connected again.
    Reopened(ServerId),
}

/// What a connection test found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tested {
    /// Usable tools.
    pub tools: usize,
    /// `serverInfo.name`, or empty.
    pub name: String,
}

/// Every configured server's connections.
pub struct Upstreams {
    context: Arc<Context>,
    map: ArcSwap<HashMap<ServerId, Arc<Upstream>>>,
    news: mpsc::UnboundedSender<News>,
    idle: Duration,
    turns: Arc<AtomicU64>,
    /// Whether links are made at all; the command line only looks and changes.
    linked: bool,
}

impl std::fmt::Debug for Upstreams {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upstreams").field("servers", &self.map.load().len()).finish_non_exhaustive()
    }
}

impl Upstreams {
    /// No servers yet. Sessions of apps close after `idle` without a call. Call within a
    /// runtime: links are tasks.
    pub fn new(
        idle: Duration,
        surroundings: Surroundings,
    ) -> (Self, mpsc::UnboundedReceiver<News>) {
        let (news, received) = mpsc::unbounded_channel();
        let context = Context::new(surroundings);
        let map = ArcSwap::default();
        let turns = Arc::default();
        (Self { context, map, news, idle, turns, linked: true }, received)
    }

    /// Makes no links; servers can only be tested.
    pub fn unlinked(surroundings: Surroundings) -> Self {
        Self { linked: false, ..Self::new(Duration::ZERO, surroundings).0 }
    }

    /// The server of that id.
    pub fn get(&self, id: ServerId) -> Option<Arc<Upstream>> {
        self.map.load().get(&id).cloned()
    }

    /// Counts up whenever a server comes, goes, or stands in another way than before.
    pub fn turns(&self) -> u64 {
        self.turns.load(Ordering::Relaxed)
    }

    /// Makes the links fit the settings: starts, replaces and ends them. A link that a
    /// change does not touch goes on. Calls must not overlap; the gateway's one refresh at
    /// a time sees to that.
    pub fn reconcile(&self, servers: &[Server]) {
        if !self.linked {
            return;
        }
        let before = self.map.load_full();
        let mut after = HashMap::with_capacity(servers.len());
        for server in servers {
            let kept = before.get(&server.id).filter(|known| {
                let settings = known.settings();
                settings.same_connection(server)
            });
            let upstream = match kept {
                Some(upstream) => {
                    upstream.update(server.clone());
                    upstream.clone()
                }
                None => Upstream::start(
                    server.clone(),
                    self.context.clone(),
                    self.news.clone(),
                    self.idle,
                    self.turns.clone(),
                ),
            };
            after.insert(server.id, upstream);
        }
        self.map.store(Arc::new(after));
        self.turns.fetch_add(1, Ordering::Relaxed);
        let now = self.map.load();
        for (id, upstream) in before.iter() {
            if !now.get(id).is_some_and(|kept| Arc::ptr_eq(kept, upstream)) {
                upstream.close();
            }
        }
    }

    /// Closes the sessions that may not be any longer.
    pub fn retain(&self, keep: impl Fn(ServerId, Owner) -> bool) {
        for (id, upstream) in self.map.load().iter() {
            upstream.retain(|owner| keep(*id, owner));
        }
    }

    /// Connects to a server that is not registered, lists its tools, and closes.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub async fn test(&self, server: &Server) -> Result<Tested, Failure> {
        let session = Session::open(server, &self.context, None, &Arc::default()).await?;
        let known = listing::read(&session, &server.name, server.timeout).await;
        session.close().await;
        let known = known?;
        Ok(Tested { tools: known.tools.len(), name: known.name.unwrap_or_default() })
    }

    /// Ends every link, session and process, and waits until they are gone.
    pub async fn shutdown(&self) {
        for upstream in self.map.swap(Arc::default()).values() {
            upstream.close();
        }
        self.context.tasks.close();
        if tokio::time::timeout(LAST, self.context.tasks.wait()).await.is_err() {
            tracing::warn!("some servers did not end in time");
        }
    }
}
