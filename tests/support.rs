//! What the tests stand on: a gateway of their own, the real servers, and clients so plain that
//! every byte can be seen.

pub(crate) mod gateway;
pub(crate) mod http;
pub(crate) mod mcp;
pub(crate) mod odd;
pub(crate) mod peers;
pub(crate) mod process;
pub(crate) mod stdio;
pub(crate) mod tls;

use std::time::{Duration, Instant};

/// The longest that a test waits for something that should come at once.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// Asks again and again until the answer is there, and gives up with `what` in its message.
pub(crate) fn eventually<T>(
    what: &str,
    within: Duration,
    mut probe: impl FnMut() -> Option<T>,
) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = probe() {
            return found;
        }
        assert!(started.elapsed() < within, "waited {within:?} in vain: {what}");
        std::thread::park_timeout(Duration::from_millis(25));
    }
}
