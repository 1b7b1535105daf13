//! The tool `countdown`: a call that takes its time and tells the client so, by progress
//! notifications (when the client gave a token) and log messages (when it wants them).
#![expect(deprecated, reason = "clients of every version before 2026-07-28 still use logging")]

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken,
};
use rmcp::service::RequestContext;
use serde_json::json;

const MAX_STEPS: u32 = 3600;
const DEFAULT_INTERVAL_MS: u64 = 500;
const MAX_INTERVAL_MS: u64 = 60_000;

/// Arguments of `countdown`.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
pub(crate) struct Countdown {
    /// The number to start from.
    #[schemars(range(min = 1, max = 3600))]
    from: u32,
    /// Milliseconds between two steps. 500 when left out.
    #[schemars(range(min = 0, max = 60_000))]
    interval_ms: Option<u64>,
}

/// Answer of `countdown`.
#[derive(Debug, serde::Serialize, schemars::JsonSchema)]
pub(crate) struct CountdownDone {
    /// How many steps were counted.
    steps: u32,
    /// How long it took, in milliseconds.
    took_ms: u64,
    /// What was counted, for people.
    message: String,
}

/// From which severity on a session wants log messages; `Info` until it says otherwise.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Level(LoggingLevel);

impl Default for Level {
    fn default() -> Self {
        Self(LoggingLevel::Info)
    }
}

impl From<LoggingLevel> for Level {
    fn from(level: LoggingLevel) -> Self {
        Self(level)
    }
}

impl Level {
    /// All of ours are informational: they pass at `debug` and `info`.
    fn lets_info_through(self) -> bool {
        matches!(self.0, LoggingLevel::Debug | LoggingLevel::Info)
    }
}

/// Who hears of the steps of one call.
pub(crate) struct Listener {
    context: RequestContext<RoleServer>,
    token: Option<ProgressToken>,
    logs: bool,
}

impl Listener {
    /// `session` is the level that a client of an older version chose by `logging/setLevel`. One
    /// of version 2026-07-28 names its level in each request, and without it hears nothing.
    pub(crate) fn new(context: RequestContext<RoleServer>, session: Level) -> Self {
        let logs = if context.meta.protocol_version().is_some() {
            context.meta.log_level().is_some_and(|level| Level(level).lets_info_through())
        } else {
            session.lets_info_through()
        };
        let token = context.meta.get_progress_token();
        Self { context, token, logs }
    }

    /// A client that is gone cannot hear; the count goes on until the call is cancelled.
    async fn hear(&self, done: u32, steps: u32) {
        let left = steps - done;
        if let Some(token) = &self.token {
            let progress = ProgressNotificationParam::new(token.clone(), f64::from(done))
                .with_total(f64::from(steps))
                .with_message(said(left));
            let _ = self.context.peer.notify_progress(progress).await;
        }
        if self.logs {
            let data = json!({ "message": said(left), "left": left });
            let message = LoggingMessageNotificationParam::new(LoggingLevel::Info, data)
                .with_logger("countdown");
            let _ = self.context.peer.notify_logging_message(message).await;
        }
    }
}

/// Counts down and reports each step to `listener`. Ends early when the client cancels the call.
///
/// # Errors
/// A sentence for the model, when the arguments are out of range or the call was cancelled.
pub(crate) async fn run(ask: Countdown, listener: Listener) -> Result<CountdownDone, String> {
    let (steps, interval) = checked(&ask)?;
    let start = tokio::time::Instant::now();
    for done in 1..=steps {
        tokio::select! {
            () = listener.context.ct.cancelled() => {
                return Err(format!("Cancelled with {} to go.", steps - done + 1));
            }
            () = tokio::time::sleep(interval) => {}
        }
        listener.hear(done, steps).await;
    }
    let took_ms = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(CountdownDone { steps, took_ms, message: format!("Counted from {steps} to zero.") })
}

fn checked(ask: &Countdown) -> Result<(u32, Duration), String> {
    if ask.from == 0 || ask.from > MAX_STEPS {
        return Err(format!("`from` is {}; send a number from 1 to {MAX_STEPS}.", ask.from));
    }
    let interval_ms = ask.interval_ms.unwrap_or(DEFAULT_INTERVAL_MS);
    if interval_ms > MAX_INTERVAL_MS {
        return Err(format!(
            "`interval_ms` is {interval_ms}; send at most {MAX_INTERVAL_MS} (one minute)."
        ));
    }
    Ok((ask.from, Duration::from_millis(interval_ms)))
}

fn said(left: u32) -> String {
    if left == 0 { "lift-off".to_owned() } else { format!("{left} to go") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_have_defaults_and_bounds() {
        let check = |from, interval_ms| checked(&Countdown { from, interval_ms });
        assert_eq!(check(3, None), Ok((3, Duration::from_millis(500))));
        assert_eq!(check(1, Some(0)), Ok((1, Duration::ZERO)));
        assert!(check(0, None).unwrap_err().contains("1 to 3600"));
        assert!(check(5, Some(60_001)).unwrap_err().contains("one minute"));
    }

    #[test]
    fn a_session_hears_info_unless_it_asked_for_less() {
        assert!(Level::default().lets_info_through());
        assert!(Level(LoggingLevel::Debug).lets_info_through());
        assert!(!Level(LoggingLevel::Warning).lets_info_through());
    }

    #[test]
    fn each_step_reads_well() {
        assert_eq!((said(2).as_str(), said(0).as_str()), ("2 to go", "lift-off"));
    }
}
