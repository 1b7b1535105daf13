//! Wiring, top to bottom: settings → store → seed → gateway → front → listener, and the way
//! down again.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use catalog::ServerId;
use filters::{Bind, Hosts};
use gateway::{Gateway, LIBRARY, Options, Places, Surroundings};
use port::{Front, Lanes, Limits, Listener, Tls};
use store::{AuditKind, Change, Store};
use tokio::sync::watch;

use crate::settings::Settings;

/// How long running requests may go on after the order to stop.
const GRACE: Duration = Duration::from_secs(10);

/// The command of this program that it starts beside its first local server.
pub(crate) const WARDEN: &str = "warden";

/// A manager that serves.
pub(crate) struct Running {
    /// The use cases.
    pub(crate) gateway: Arc<Gateway>,
    /// Where it listens.
    pub(crate) address: SocketAddr,
    stop: watch::Sender<bool>,
    serving: tokio::task::JoinHandle<std::io::Result<()>>,
    /// Where requests run. Sessions on servers may live there too, so this ends last.
    lanes: Arc<Lanes>,
    requests: tokio_util::task::TaskTracker,
    tls: Option<Arc<Tls>>,
}

/// Opens the database, seeds it if it is fresh, starts the links and listens.
///
/// # Errors
/// Says what could not be opened, read or bound.
pub(crate) async fn start(settings: &Settings) -> anyhow::Result<Running> {
    // Sockets and certificates first: a second manager must not touch the database.
    let listener = Listener::bind(SocketAddr::new(settings.boot.host, settings.boot.port))?;
    let tls = settings.tls().map(|(cert, key)| Tls::read(cert, key)).transpose()?.map(Arc::new);
    let store = open_store(settings).await?;
    let gateway = Gateway::start(store, options(settings), surroundings(settings)).await?;
    let limits = limits(settings);
    let front = Front::new(gateway.clone(), hosts(settings), &limits);
    let (address, requests) = (listener.address(), front.requests());
    if let Some(tls) = &tls {
        gateway.metrics.tls_not_after(tls.not_after());
    }
    let scheme = if tls.is_some() { "https" } else { "http" };
    let (stop, stopped) = watch::channel(false);
    let lanes = Arc::new(Lanes::start().context("failed to start the threads for connections")?);
    let serving = port::serve(listener, front, tls.clone(), limits, lanes.clone(), stopped);
    let serving = tokio::spawn(serving);

    tracing::info!(address = %address, scheme, version = env!("CARGO_PKG_VERSION"), "listening");
    Ok(Running { gateway, address, stop, serving, lanes, requests, tls })
}

impl Running {
    /// Reads the certificate again, for connections made from now on. A pair that cannot be
    /// used is told in the log, and the old one kept.
    pub(crate) fn reload(&self) {
        let Some(tls) = &self.tls else {
            tracing::info!("asked to reload, but there is no certificate to read again");
            return;
        };
        match tls.reload() {
            Ok(()) => {
                self.gateway.metrics.tls_not_after(tls.not_after());
                tracing::info!("the certificate was read again");
            }
            Err(error) => {
                tracing::error!(error = format!("{error:#}"), "the old certificate is kept");
            }
        }
    }

    /// Stops accepting, ends streams, lets running requests finish, and closes everything.
    pub(crate) async fn stop(self) {
        tracing::info!("stopping");
        self.gateway.closing.cancel();
        let _ = self.stop.send(true);
        let _ = tokio::time::timeout(GRACE, self.serving).await;
        self.requests.close();
        if tokio::time::timeout(GRACE, self.requests.wait()).await.is_err() {
            tracing::warn!(requests = self.requests.len(), "some requests were cut");
        }
        self.gateway.shutdown().await;
        drop(self.lanes);
    }
}

/// Opens the database; a fresh one takes the seed of the conf file, once.
///
/// # Errors
/// When the database cannot be opened or written.
pub(crate) async fn open_store(settings: &Settings) -> anyhow::Result<Store> {
    let path = settings.boot.db.clone();
    let store = tokio::task::spawn_blocking(move || Store::open(&path))
        .await
        .context("failed to open the database")??;
    let state = store.load().await?;
    if state.seeded {
        return Ok(store);
    }
    let mut changes: Vec<Change> = Vec::new();
    let servers = settings.seed_servers();
    let names: Vec<String> = servers.iter().map(|server| server.name.clone()).collect();
    changes.extend(servers.into_iter().map(Change::AddServer));
    let id_of = |name: &str| -> Option<ServerId> {
        names.iter().position(|known| known == name).map(store::added)
    };
    for seed in settings.seed_groups() {
        let mut group = seed.to_group(id_of);
        match state.groups.iter().find(|known| known.name == group.name) {
            Some(known) => {
                group.id = known.id;
                changes.push(Change::SetGroup(group));
            }
            None => changes.push(Change::AddGroup(group)),
        }
    }
    if !names.is_empty() {
        let message =
            format!("the first start added the servers of the conf file: {}", names.join(", "));
        let at = jiff::Timestamp::now().as_second();
        changes.push(Change::Audit { kind: AuditKind::Server, message, at });
    }
    changes.push(Change::Seeded);
    store.apply(changes).await?;
    Ok(store)
}

/// What requests meet of the settings.
pub(crate) fn options(settings: &Settings) -> Options {
    Options {
        default_group: settings.boot.default_group.clone(),
        require_key: settings.boot.require_key_for_mcp,
        admin_token: settings.admin_token.clone(),
        metrics_token: settings.metrics_token.clone(),
        metrics_public: settings.metrics.public,
        allowed_origins: settings.boot.allowed_origins.clone(),
        session_idle: settings.sessions.idle,
        client_idle: settings.sessions.client_idle,
        calls_per_key: settings.limits.calls_per_key,
        sessions_per_key: settings.limits.sessions_per_key,
        search: places(settings),
        version: env!("CARGO_PKG_VERSION"),
    }
}

/// Where the model for search and its runtime are looked for.
fn places(settings: &Settings) -> Option<Places> {
    let model = settings.search.model.clone()?;
    let libraries = match &settings.search.onnxruntime {
        Some(file) => vec![file.clone()],
        None => {
            let program = std::env::current_exe().ok();
            let beside = program.as_deref().and_then(Path::parent).map(Path::to_owned);
            let data = settings.boot.db.parent().map(Path::to_owned);
            let folders = [Some(model.clone()), beside, data];
            folders.into_iter().flatten().map(|folder| folder.join(LIBRARY)).collect()
        }
    };
    Some(Places { libraries, model })
}

/// Values for `${NAME}` in servers' settings: the environment and the `.env` files. And this
/// program itself, as the warden of local servers.
pub(crate) fn surroundings(settings: &Settings) -> Surroundings {
    let env = settings.env.clone();
    let program = std::env::current_exe();
    let warden = program.map(|program| vec![program.into(), WARDEN.into()]);
    Surroundings {
        lookup: Arc::new(move |name| env.get(name).map(str::to_owned)),
        warden: warden.unwrap_or_default(),
    }
}

/// What the port meets of the settings.
fn limits(settings: &Settings) -> Limits {
    let limits = &settings.limits;
    Limits {
        body: limits.body,
        body_time: limits.body_time,
        head: limits.head,
        idle: limits.idle,
        connections: limits.connections,
    }
}

fn hosts(settings: &Settings) -> Hosts {
    let bind = if settings.boot.host.is_loopback() { Bind::Loopback } else { Bind::Network };
    Hosts::new(bind, settings.boot.allowed_hosts.clone(), settings.boot.allowed_origins.clone())
}
