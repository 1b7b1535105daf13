//! Structured logs on standard error: readable on a terminal, JSON elsewhere or when asked.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::settings::{Format, Log};

/// Starts logging; pingora's own lines come through the `log` crate and join in.
///
/// # Errors
/// When the level cannot be read.
pub(crate) fn start(log: &Log) -> anyhow::Result<()> {
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
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    if json {
        registry.with(lines.json()).try_init()?;
    } else {
        registry.with(lines.with_ansi(std::io::stderr().is_terminal())).try_init()?;
    }
    Ok(())
}
