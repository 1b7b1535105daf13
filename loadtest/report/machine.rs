//! The machine and the moment, without which figures mean nothing.

use std::fs;

/// Processor cores this program may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Processor, cores and kernel in one line.
pub(crate) fn describe() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map_or("unknown processor", |(_, model)| model.trim());
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    // What follows the version names a build, not a kernel.
    let version = kernel.trim().split('-').next().unwrap_or_default();
    format!("{model}, {} cores, Linux {version}", cores())
}

/// The load average over the last minute, as the kernel writes it.
pub(crate) fn load_average() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split_whitespace().next().unwrap_or("unknown").to_owned()
}

/// Now, in UTC and whole seconds.
pub(crate) fn now() -> String {
    format!("{:.0}", jiff::Timestamp::now())
}
