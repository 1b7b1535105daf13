//! The use cases without serving: the command line works on the database, and a manager
//! that is serving sees the change within a second.

use std::sync::Arc;

use gateway::Gateway;

use crate::boot;
use crate::settings::Settings;

/// Runs `command` with the use cases, then writes what is to be written.
pub(super) async fn with<T>(
    settings: &Settings,
    command: impl AsyncFnOnce(&Gateway) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let store = boot::open_store(settings).await?;
    let gateway: Arc<Gateway> =
        Gateway::unlinked(store, boot::options(settings), boot::surroundings(settings)).await?;
    let done = command(&gateway).await;
    gateway.shutdown().await;
    done
}
