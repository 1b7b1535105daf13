//! What every connection is made with.

use std::sync::Arc;

use catalog::Lookup;
use pingora_core::connectors::{ConnectorOptions, TransportConnector};
use tokio_util::task::TaskTracker;

/// Shared by the connections to all servers.
pub struct Context {
    /// Makes connections; idle ones are kept by each [`crate::endpoint::Endpoint`].
    pub(crate) connector: TransportConnector,
    /// Values for `${NAME}` in settings.
    pub lookup: Lookup,
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
    pub fn new(lookup: Lookup) -> Arc<Self> {
        let connector = TransportConnector::new(Some(ConnectorOptions::new(0)));
        Arc::new(Self { connector, lookup, tasks: TaskTracker::new() })
    }
}
