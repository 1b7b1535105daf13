//! Background tasks of the gateway: what links tell, what another process changed in the
//! database, what nobody uses any more.

use std::sync::Arc;
use std::time::Duration;

use catalog::{Known, ServerId};
use store::Change;
use tokio::sync::mpsc;
use upstream::News;

use crate::core::Gateway;
use crate::manage;

/// How often unused conversations are looked for.
const SWEEP: Duration = Duration::from_secs(60);

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
            News::Changed(server) => {
                if let Some(listed) = gateway.catalog().server_by_id(server) {
                    gateway.metrics.reconnect(&listed.server.name, "down");
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
    let mut tick = tokio::time::interval(SWEEP);
    loop {
        tick.tick().await;
        gateway.sweep_conversations();
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
        self.known().insert(server, known.clone());
        // Alone: a server that was removed by another process must not undo the rest.
        if let Err(error) = self.store.apply(vec![Change::SetKnown(server, known)]).await {
            tracing::warn!(%error, "a server's tools are not kept for the next start");
        }
        self.refresh().await?;
        let state = self.store.load().await?;
        let now = jiff::Timestamp::now().as_second();
        let after = self.catalog();
        let follow = manage::follow(&before, &after, &state.groups, now);
        if !follow.is_empty() {
            self.store.apply(follow).await?;
            self.refresh().await?;
        }
        self.metrics.list_changed("server");
        Ok(())
    }
}
