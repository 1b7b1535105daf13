//! How long to wait before the next attempt: 2 s, doubling to 60 s, with jitter (P22).

use std::time::Duration;

const FIRST: Duration = Duration::from_secs(2);
const LAST: Duration = Duration::from_secs(60);

/// Attempts never stop; a healthy connection resets the pace.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// The wait before the next attempt. `jitter` is any random number.
    pub(crate) fn next(&mut self, jitter: u32) -> Duration {
        let wait = (FIRST * 2u32.saturating_pow(self.failures.min(5))).min(LAST);
        self.failures = self.failures.saturating_add(1);
        spread(wait, jitter)
    }

    /// The slow pace, for a server that refuses our credentials.
    pub(crate) fn slow(&mut self, jitter: u32) -> Duration {
        self.failures = self.failures.saturating_add(1);
        spread(LAST, jitter)
    }

    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }
}

/// 80–100 % of `wait`, so that many servers do not return in step.
fn spread(wait: Duration, jitter: u32) -> Duration {
    wait.mul_f64(0.8 + 0.2 * f64::from(jitter) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::Backoff;

    #[test]
    fn ses_05_doubles_to_a_minute_and_resets() {
        let mut backoff = Backoff::default();
        let waits: Vec<u64> = (0..8).map(|_| backoff.next(u32::MAX).as_secs()).collect();
        assert_eq!(waits, [2, 4, 8, 16, 32, 60, 60, 60]);
        backoff.reset();
        assert_eq!(backoff.next(0).as_millis(), 1600);
    }
}
