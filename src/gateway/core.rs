//! What there is, and the one way it changes: the store is written, then a new snapshot
//! replaces the old, links follow, streams wake.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use catalog::{Caller, Catalog, Key, Known, Secret, ServerId, View};
use conversation::{Conversations, Learned};
use finder::{Engine, Finder, Places, Vector};
use protocol::json;
use store::{Behind, ENDED_SESSIONS, Store, StoredVector};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use upstream::{Owner, Surroundings, Upstreams};

use crate::access::Apps;
use crate::keeper;
use crate::manage::Writes;
use metrics::Metrics;

/// Settings that requests meet.
#[derive(Debug, Clone)]
pub struct Options {
    /// The group of keys made without one, and of callers without a key.
    pub default_group: String,
    /// Whether `/mcp` takes only callers with a key.
    pub require_key: bool,
    /// Opens the management API; without it every call there answers 503.
    pub admin_token: Option<Secret>,
    /// Opens `/metrics` only.
    pub metrics_token: Option<Secret>,
    /// Whether `/metrics` needs no token.
    pub metrics_public: bool,
    /// Origins of other sites that may call (see the conf file); `None` is the default rule.
    pub allowed_origins: Option<Vec<String>>,
    /// Sessions on servers close after this long without a call.
    pub session_idle: Duration,
    /// Clients' sessions leave memory after this long without a request.
    pub client_idle: Duration,
    /// Calls of one key that may run at a time.
    pub calls_per_key: usize,
    /// Sessions of one key that stay in memory.
    pub sessions_per_key: usize,
    /// Where the model for search by meaning is looked for; `None` searches by words alone.
    pub search: Option<Places>,
    /// The manager's version.
    pub version: &'static str,
}

/// The use cases, shared by both edges.
pub struct Gateway {
    pub(crate) store: Store,
    pub(crate) upstreams: Upstreams,
    pub(crate) writes: Writes,
    /// Legacy clients' sessions.
    pub conversations: Conversations,
    pub(crate) apps: Apps,
    pub(crate) finder: Finder,
    pub(crate) learned: Learned,
    /// What each server last said, disabled ones too.
    pub(crate) known: Mutex<HashMap<ServerId, Known>>,
    /// Figures for Prometheus.
    pub metrics: Arc<Metrics>,
    /// Settings that requests meet.
    pub options: Options,
    /// Cancelled when the manager stops: streams end.
    pub closing: CancellationToken,
    pub(crate) catalog: ArcSwap<Catalog>,
    generation: watch::Sender<u64>,
    server_info: String,
}

/// Why the gateway cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The database cannot be read.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The default group is not there.
    #[error("`default_group` names `{0}`, but there is no such group; there are: {1}")]
    NoDefaultGroup(String, String),
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Gateway {
    /// Reads the database and starts the links. Call within a runtime.
    ///
    /// # Errors
    /// When the database cannot be read or the default group is missing.
    pub async fn start(
        store: Store,
        options: Options,
        surroundings: Surroundings,
    ) -> Result<Arc<Self>, StartError> {
        let (upstreams, news) = Upstreams::new(options.session_idle, surroundings);
        let gateway = Self::open(store, options, upstreams).await?;
        tokio::spawn(keeper::run(gateway.clone(), news));
        tokio::spawn(keeper::follow_database(gateway.clone()));
        tokio::spawn(keeper::sweep(gateway.clone()));
        tokio::spawn(keeper::remember(gateway.clone()));
        Ok(gateway)
    }

    /// Reads the database and makes no links: for looking and changing while another
    /// process may be serving, which sees the changes by itself.
    ///
    /// # Errors
    /// As [`Gateway::start`].
    pub async fn unlinked(
        store: Store,
        options: Options,
        surroundings: Surroundings,
    ) -> Result<Arc<Self>, StartError> {
        // Nobody searches here.
        let options = Options { search: None, ..options };
        Self::open(store, options, Upstreams::unlinked(surroundings)).await
    }

    async fn open(
        store: Store,
        options: Options,
        upstreams: Upstreams,
    ) -> Result<Arc<Self>, StartError> {
        let (sealing, ended) = (store.sealing_key().await?, store.ended_sessions().await?);
        let conversations = Conversations::new(&sealing, ended, ENDED_SESSIONS);
        let known = store.known().await?.into_iter().collect();
        let engine = engine(&options, &store).await?;
        let gateway = Arc::new(Self {
            store,
            upstreams,
            writes: Writes::default(),
            conversations,
            apps: Apps::default(),
            finder: Finder::new(engine),
            learned: Learned::default(),
            known: Mutex::new(known),
            metrics: Arc::new(Metrics::new(options.version)),
            server_info: format!(
                r#"{{"name":"mcp-manager","title":"MCP-Manager","version":{}}}"#,
                json::quoted(options.version)
            ),
            options,
            closing: CancellationToken::new(),
            catalog: ArcSwap::default(),
            generation: watch::Sender::new(0),
        });
        let state = gateway.store.load().await?;
        if !state.groups.iter().any(|group| group.name == gateway.options.default_group) {
            let names: Vec<_> = state.groups.iter().map(|group| group.name.as_str()).collect();
            let names = names.join(", ");
            return Err(StartError::NoDefaultGroup(gateway.options.default_group.clone(), names));
        }
        gateway.refresh().await?;
        Ok(gateway)
    }

    /// The present snapshot, to be kept.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.catalog.load_full()
    }

    /// What the caller lists and may call.
    pub fn view(&self, caller: &Caller) -> Option<Arc<View>> {
        self.catalog.load().view(caller.group).cloned()
    }

    /// Counts up with each new snapshot.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }

    /// Raw `serverInfo` of the manager.
    pub fn own_info(&self) -> &str {
        &self.server_info
    }

    /// Ends links, sessions and processes, then writes what is still to be written.
    pub async fn shutdown(&self) {
        self.upstreams.shutdown().await;
        self.store.close().await;
    }

    /// Shows what was written, whatever it takes: a revoked key must not live on because the
    /// database was busy for a moment.
    pub(crate) async fn show(&self) {
        while let Err(error) = self.refresh().await {
            tracing::error!(%error, "a change is in the database but not yet in force");
            if matches!(error, store::Error::Closed) {
                return;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// Loads the state, and shows it: new snapshot, links and sessions to fit, streams woken.
    /// Callers hold the turn to write, or are alone.
    pub(crate) async fn refresh(&self) -> Result<(), store::Error> {
        let state = self.store.load().await?;
        let known = self.known().clone();
        let servers = state.servers.clone();
        let catalog = Arc::new(Catalog::build(
            state.servers,
            state.groups,
            state.keys,
            &state.overrides,
            &known,
        ));
        // Links first: a request that sees a server in the snapshot finds its link.
        self.upstreams.reconcile(&servers);
        // And search: what is listed can be found.
        self.finder.follow(&catalog);
        let before = self.catalog.swap(catalog.clone());
        self.learned.retain(|key| catalog.key_by_id(key).is_some());
        self.metrics.reconcile(&catalog);
        self.close_what_may_not_be(&before, &catalog);
        self.generation.send_modify(|generation| *generation += 1);
        Ok(())
    }

    pub(crate) fn known(&self) -> std::sync::MutexGuard<'_, HashMap<ServerId, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes sessions of revoked or removed keys, of keys that moved to another group, and on
    /// servers out of reach (P3, P23).
    fn close_what_may_not_be(&self, before: &Catalog, catalog: &Catalog) {
        let moved = |key: &Key| before.key_by_id(key.id).is_some_and(|was| was.group != key.group);
        let mut allowed: HashSet<(ServerId, Owner)> = HashSet::new();
        let shared = |view: &View| Owner::Group(view.group.id);
        for view in catalog.views() {
            for listed in view.servers() {
                allowed.insert((listed.server.id, shared(view)));
            }
        }
        for key in catalog.keys().into_iter().filter(|key| !key.revoked && !moved(key)) {
            let reached = catalog.view(key.group).into_iter().flat_map(|view| view.servers());
            allowed.extend(reached.map(|listed| (listed.server.id, Owner::Key(key.id))));
        }
        self.upstreams.retain(|server, owner| allowed.contains(&(server, owner)));
        self.conversations.retain(|caller| self.may(catalog, caller));
    }

    /// Whether the caller is still let in.
    fn may(&self, catalog: &Catalog, caller: &Caller) -> bool {
        match caller.key {
            Some(id) => {
                catalog.key_by_id(id).is_some_and(|key| !key.revoked && Caller::of(key) == *caller)
            }
            None => !self.options.require_key && catalog.view(caller.group).is_some(),
        }
    }

    /// Whether the caller of a running stream is still let in.
    pub fn still(&self, caller: &Caller) -> bool {
        self.may(&self.catalog.load(), caller)
    }
}

/// Search with what it made of texts before the start; what it makes from now on is kept.
async fn engine(options: &Options, store: &Store) -> Result<Engine, store::Error> {
    let Some(places) = &options.search else { return Ok(Engine::lexical()) };
    let known = store.vectors().await?.into_iter();
    let known = known.map(|StoredVector { model, text, values }| Vector { model, text, values });
    let store = store.clone();
    let keep = move |Vector { model, text, values }| {
        store.behind(Behind::Vector(StoredVector { model, text, values }));
    };
    Ok(Engine::start(places.clone(), known.collect(), keep))
}
