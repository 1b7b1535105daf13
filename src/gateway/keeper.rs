//! Background tasks of the gateway: what links tell, what another process changed in the
//! database, what nobody uses any more.

use std::sync::Arc;
use std::time::Duration;

use catalog::{Catalog, Known, ServerId};
use store::Change;
use tokio::sync::mpsc;
use upstream::News;

use crate::core::Gateway;
use crate::manage;

/// How often unused conversations are looked for.
const SWEEP: Duration = Duration::from_secs(60);

/// Calls of before the start that habits are learned from.
const PAST_CALLS: u32 = 100_000;

/// Takes what links tell, one after the other.
pub(crate) async fn run(gateway: Arc<Gateway>, mut news: mpsc::UnboundedReceiver<News>) {
    while let Some(news) = news.recv().await {
        match news {
            News::Listed { server, known, taken } => {
                if let Err(error) = gateway.learn(server, known).await {
                    tracing::error!(%error, "what a server lists could not be kept");
                }
                let _ = taken.send(());
            }
            News::Reopened(server) => {
                if let Some(listed) = gateway.catalog().server_by_id(server) {
                    gateway.metrics.reconnect(&listed.server.name, "lost");
                }
            }
        }
    }
}

/// Shows what the command line, or another manager on the same database, changed.
pub(crate) async fn follow_database(gateway: Arc<Gateway>) {
    let mut changes = gateway.store.foreign_changes();
    while changes.changed().await.is_ok() {
        let shown = async {
            let _turn = gateway.writes.wait().await;
            gateway.refresh().await
        };
        if let Err(error) = shown.await {
            tracing::error!(%error, "the database changed but could not be read");
        }
    }
}

/// Forgets unused conversations.
pub(crate) async fn sweep(gateway: Arc<Gateway>) {
    let (idle, most) = (gateway.options.client_idle, gateway.options.sessions_per_key);
    let mut tick = tokio::time::interval(SWEEP.min(idle));
    loop {
        tick.tick().await;
        gateway.conversations.sweep(idle, most);
    }
}

/// Reads what apps did before the start. Nothing waits for it: lists without it are good ones.
pub(crate) async fn remember(gateway: Arc<Gateway>) {
    match gateway.store.past_calls(PAST_CALLS).await {
        Ok(past) => gateway
            .learned
            .begin(past.into_iter().map(|call| (call.key, (call.server, call.tool), call.at_ms))),
        Err(error) => {
            tracing::warn!(%error, "what apps did before is not known; habits begin anew");
            gateway.learned.begin([]);
        }
    }
}

impl Gateway {
    /// Takes up what a server now lists: kept for the next start, renames audited, defaults
    /// following (P31), all shown at once.
    async fn learn(&self, server: ServerId, known: Known) -> Result<(), store::Error> {
        let _turn = self.writes.wait().await;
        if self.known().get(&server) == Some(&known) {
            return Ok(());
        }
        let before = self.catalog();
        if before.server_by_id(server).is_none() {
            return Ok(());
        }
        let mut all = self.known().clone();
        all.insert(server, known.clone());
        let state = self.store.load().await?;
        let after = Catalog::build(state.servers, Vec::new(), Vec::new(), &[], &all);
        let now = jiff::Timestamp::now().as_second();
        let mut changes = vec![Change::SetKnown(server, known)];
        changes.extend(manage::follow(&before, &after, &state.groups, now));
        *self.known() = all;
        if let Err(error) = self.store.apply(changes).await {
            // Serving goes on with what is known; the next start will not know it.
            tracing::warn!(%error, "a server's tools are not kept for the next start");
        }
        self.refresh().await?;
        self.metrics.list_changed("server");
        Ok(())
    }
}
