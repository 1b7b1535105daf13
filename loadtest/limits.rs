//! The process's limit of open files: each idle session holds a socket here and one or two in the
//! process under test, which inherits the limit.

use anyhow::Context;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Files that are no sessions: listeners, logs, database, runtime.
const SPARE: u64 = 256;

/// Raises the soft limit to the hard one and returns it. Children started later inherit it.
///
/// # Errors
/// When the system refuses to tell or to raise the limit.
pub(crate) fn raise_open_files() -> anyhow::Result<u64> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).context("failed to read the file limit")?;
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).context("failed to raise the file limit")?;
    Ok(hard)
}

/// How many sessions fit when each takes `per_session` files in one process.
pub(crate) fn sessions_that_fit(open_files: u64, per_session: u64) -> usize {
    usize::try_from(open_files.saturating_sub(SPARE) / per_session.max(1)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::sessions_that_fit;

    #[test]
    fn sessions_leave_room_for_other_files() {
        assert_eq!(sessions_that_fit(20_256, 2), 10_000);
        assert_eq!(sessions_that_fit(100, 2), 0);
    }
}
