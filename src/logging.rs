//! Structured logs on standard error: readable on a terminal, JSON elsewhere or when asked.

use std::io::IsTerminal as _;

use std::time::Duration;

use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::settings::{Format, Log};

/// Lines that may wait to be written. Whoever reads standard error may have stopped doing so,
/// and requests must go on: what finds no room is dropped and counted.
const WAITING: usize = 16_384;

/// Time between two looks at the count.
const WATCH: Duration = Duration::from_secs(10);

/// Keeps the log going; what waits is written when this is dropped.
pub(crate) struct Logging {
    dropped: ErrorCounter,
    _guard: WorkerGuard,
}

/// Starts logging; pingora's own lines come through the `log` crate and join in.
///
/// # Errors
/// When the level cannot be read.
pub(crate) fn start(log: &Log) -> anyhow::Result<Logging> {
    let filter = EnvFilter::try_new(&log.level.0)
        .map_err(|error| anyhow::anyhow!("`log.level` {:?} cannot be read: {error}", log.level.0))?
        // Every broken client connection is an error to pingora; ours tell of them better.
        .add_directive("pingora_proxy=off".parse()?)
        .add_directive("pingora_core=warn".parse()?);
    let json = match log.format {
        Format::Json => true,
        Format::Text => false,
        Format::Auto => !std::io::stderr().is_terminal(),
    };
    let registry = tracing_subscriber::registry().with(filter);
    let (writer, guard) = NonBlockingBuilder::default()
        .lossy(true)
        .buffered_lines_limit(WAITING)
        .finish(std::io::stderr());
    let dropped = writer.error_counter();
    let lines = tracing_subscriber::fmt::layer().with_writer(writer);
    if json {
        registry.with(lines.json()).try_init()?;
    } else {
        registry.with(lines.with_ansi(std::io::stderr().is_terminal())).try_init()?;
    }
    Ok(Logging { dropped, _guard: guard })
}

impl Logging {
    /// Says now and then how many lines found no room.
    pub(crate) async fn watch(&self) {
        let mut said = 0;
        loop {
            tokio::time::sleep(WATCH).await;
            let lost = self.dropped.dropped_lines();
            if lost > said {
                tracing::warn!(
                    lines = lost - said,
                    "log lines were lost: nobody read them in time"
                );
            }
            said = lost;
        }
    }
}
