//! What every connection is made with.

use std::sync::Arc;

use std::ffi::OsString;

use catalog::Lookup;
use pingora_core::connectors::{ConnectorOptions, TransportConnector};
use tokio_util::task::TaskTracker;

use process::Warden;

/// What the process around gives.
#[derive(Clone)]
pub struct Surroundings {
    /// Values for `${NAME}` in settings.
    pub lookup: Lookup,
    /// The command that runs [`crate::stand_guard`] on its standard input; empty for none.
    pub warden: Vec<OsString>,
}

impl std::fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Surroundings").field("warden", &self.warden).finish_non_exhaustive()
    }
}

/// Shared by the connections to all servers.
pub struct Context {
    /// Makes connections; idle ones are kept by each [`crate::endpoint::Endpoint`].
    pub(crate) connector: TransportConnector,
    /// Values for `${NAME}` in settings.
    pub lookup: Lookup,
    pub(crate) warden: Arc<Warden>,
    /// Links, and sessions being closed.
    pub tasks: TaskTracker,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("tasks", &self.tasks.len()).finish_non_exhaustive()
    }
}

impl Context {
    /// Nothing is connected yet.
    pub fn new(surroundings: Surroundings) -> Arc<Self> {
        let Surroundings { lookup, warden } = surroundings;
        let connector = TransportConnector::new(Some(ConnectorOptions::new(0)));
        let warden = Warden::new(warden);
        Arc::new(Self { connector, lookup, warden, tasks: TaskTracker::new() })
    }
}
