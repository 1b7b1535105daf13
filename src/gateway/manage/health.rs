//! How the manager itself fares: readiness, and the figures that Prometheus collects.

use std::time::Duration;

use metrics::MetricFamily;
use upstream::State;

use crate::Gateway;

/// How long a probe waits for the database.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whether the manager does its work, in words that may be shown to anyone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ready {
    /// Why the database takes no writes; serving goes on from memory (P95).
    pub database: Option<String>,
}

impl Gateway {
    /// Whether everything works. Cheap enough for a probe each second.
    pub async fn ready(&self) -> Ready {
        // The store may be waiting for another process; a probe must not.
        let Ok(ping) = tokio::time::timeout(PATIENCE, self.store.ping()).await else {
            return Ready { database: Some("is waiting for another process".to_owned()) };
        };
        let database = match ping {
            Ok(()) => None,
            // The whole error names a path, which is for the operator alone.
            Err(store::Error::Unwritable { trouble, .. }) => Some(trouble.to_string()),
            Err(store::Error::Closed) => Some("is closed".to_owned()),
            Err(_) => Some("fails; the log says how".to_owned()),
        };
        Ready { database }
    }

    /// Every metric at this moment. The state of servers is read when it is asked for, so it
    /// is never stale.
    pub fn gather(&self) -> Vec<MetricFamily> {
        for listed in self.catalog().servers() {
            let status = self.upstreams.get(listed.server.id).map(|upstream| upstream.status());
            let up = status.as_ref().is_some_and(|status| status.state == State::Connected);
            let sessions = status.map_or(0, |status| status.sessions);
            self.metrics.server(&listed.server.name, up, sessions);
        }
        self.metrics.client_sessions("legacy", self.conversations.count());
        self.metrics.gather()
    }
}
