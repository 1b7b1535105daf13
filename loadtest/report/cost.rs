//! What a process group has cost so far, from /proc: processor time and resident memory, summed
//! over its processes.

use std::fs;
use std::time::Duration;

use anyhow::{Context, bail};

use super::child::Group;

/// Length of a tick in /proc/PID/stat: the kernel shows 100 per second to programs on every
/// architecture this runs on, whatever its own timer does.
const TICK: Duration = Duration::from_millis(10);

/// A reading. Two of them make a measurement.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Cost {
    /// User and system time since the processes started, in steps of 10 ms.
    pub(crate) cpu: Duration,
    /// Resident memory in KiB; pages that two processes share count twice.
    pub(crate) rss_kib: u64,
}

/// Reads the cost of all processes of a group.
///
/// # Errors
/// When the group has no process any more.
pub(crate) fn of(group: Group) -> anyhow::Result<Cost> {
    let mut total = None::<Cost>;
    for entry in fs::read_dir("/proc").context("failed to read /proc")? {
        let directory = entry?.path();
        // Processes come and go while we look: one that cannot be read is not ours any more.
        let Ok(stat) = fs::read_to_string(directory.join("stat")) else { continue };
        let Some((found, cpu)) = parse_stat(&stat) else { continue };
        if found != group {
            continue;
        }
        let Ok(status) = fs::read_to_string(directory.join("status")) else { continue };
        let total = total.get_or_insert_default();
        total.cpu += cpu;
        total.rss_kib += parse_rss(&status).unwrap_or(0);
    }
    match total {
        Some(total) => Ok(total),
        None => bail!("process group {} is gone", group.0),
    }
}

/// Group and processor time. The name in parentheses may hold spaces and parentheses itself.
fn parse_stat(stat: &str) -> Option<(Group, Duration)> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at)?.parse::<u32>().ok();
    let group = fields.get(2)?.parse().ok()?;
    Some((Group(group), TICK * (ticks(11)? + ticks(12)?)))
}

fn parse_rss(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_is_read_after_the_name() {
        let stat = "42 (a) b) S 1 40 40 0 -1 4194560 100 0 0 0 150 50 0 0 20 0 3 0 9 1 2";
        assert_eq!(parse_stat(stat), Some((Group(40), Duration::from_secs(2))));
        assert_eq!(parse_stat("42 (x) S 1"), None);
    }

    #[test]
    fn resident_memory_is_found_in_the_status() {
        assert_eq!(parse_rss("Name:\tx\nVmRSS:\t   1234 kB\nThreads: 1"), Some(1234));
        assert_eq!(parse_rss("Name:\tkthread"), None);
    }

    #[test]
    fn our_own_group_costs_something() {
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
        let (group, _) = parse_stat(&stat).unwrap();
        assert!(of(group).unwrap().rss_kib > 0);
        assert!(of(Group(i32::MAX)).is_err());
    }
}
