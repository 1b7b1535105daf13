//! `serve`: until SIGTERM or Ctrl-C; SIGHUP reads the certificate again.

use tokio::signal::unix::{SignalKind, signal};

use crate::settings::Settings;
use crate::{boot, logging};

pub(super) async fn run(settings: &Settings) -> anyhow::Result<()> {
    let logging = logging::start(&settings.log)?;
    let running = boot::start(settings).await?;
    if settings.admin_token.is_none() {
        tracing::warn!("no MCPM_ADMIN_TOKEN is set: the management API answers 503");
    }
    let mut reload = signal(SignalKind::hangup())?;
    let stop = until_told_to_stop();
    let mut stop = std::pin::pin!(stop);
    loop {
        tokio::select! {
            told = &mut stop => break told?,
            _ = reload.recv() => running.reload(),
            () = logging.watch() => {}
        }
    }
    running.stop().await;
    Ok(())
}

/// Waits for SIGTERM or SIGINT.
pub(super) async fn until_told_to_stop() -> anyhow::Result<()> {
    let mut term = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = term.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}
