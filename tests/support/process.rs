//! A child process in a process group of its own that never outlives its owner, with the lines
//! that it prints.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use super::{SOON, eventually};

pub(crate) struct Process {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Process {
    /// Starts `command` and collects what it prints on the pipe that it was given: its standard
    /// error if that is one, else its standard output.
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let lines = Arc::new(Mutex::new(Vec::new()));
        if let Some(pipe) = child.stderr.take() {
            collect(pipe, Arc::clone(&lines));
        } else if let Some(pipe) = child.stdout.take() {
            collect(pipe, Arc::clone(&lines));
        }
        Self { child, lines }
    }

    /// Waits for a line from which `read` takes something.
    pub(crate) fn line<T>(&mut self, what: &str, read: impl Fn(&str) -> Option<T>) -> T {
        eventually(what, SOON, || {
            let found = self.lines.lock().unwrap().iter().find_map(|line| read(line));
            if found.is_none()
                && let Some(status) = self.child.try_wait().unwrap()
            {
                panic!("ended ({status}) before it came to this: {what}\n{}", self.tail());
            }
            found
        })
    }

    pub(crate) fn all(&self) -> String {
        self.lines.lock().unwrap().join("\n")
    }

    pub(crate) fn tail(&self) -> String {
        let lines = self.lines.lock().unwrap();
        lines[lines.len().saturating_sub(60)..].join("\n")
    }

    /// SIGTERM, and the status it ended with.
    pub(crate) fn stop(&mut self) -> ExitStatus {
        let _already_gone = kill(self.pid(), Signal::SIGTERM);
        eventually("the end of a process after SIGTERM", SOON, || self.child.try_wait().unwrap())
    }

    /// SIGKILL to the process alone: what it started itself is left to end by its own means.
    pub(crate) fn kill9(&mut self) {
        let _already_gone = kill(self.pid(), Signal::SIGKILL);
        self.child.wait().unwrap();
    }

    pub(crate) fn id(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).unwrap();
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.id())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let group = self.pid();
        if matches!(self.child.try_wait(), Ok(None)) {
            // Time to end its own children, which live in groups of their own.
            let _already_gone = kill(group, Signal::SIGTERM);
            for _ in 0..200 {
                if !matches!(self.child.try_wait(), Ok(None)) {
                    break;
                }
                std::thread::park_timeout(Duration::from_millis(25));
            }
        }
        let _already_gone = killpg(group, Signal::SIGKILL);
        let _already_gone = self.child.wait();
    }
}

/// Whether a process with this id is alive (a zombie is not).
pub(crate) fn is_alive(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or("").trim_start().starts_with('Z'))
}

/// Living processes that have this word on their command line.
pub(crate) fn with_word(word: &str) -> Vec<i32> {
    let running = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let ids = running.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(|id| {
        let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|part| part == word.as_bytes()) && is_alive(*id)
    })
    .collect()
}

/// Living children of this process that have this word on their command line.
pub(crate) fn children_with_word(parent: i32, word: &str) -> Vec<i32> {
    let of_parent = |id: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let rest = stat.rsplit(')').next().unwrap_or_default();
        rest.split_whitespace().nth(1).and_then(|id| id.parse().ok()) == Some(parent)
    };
    with_word(word).into_iter().filter(of_parent).collect()
}

/// Children of this process that have ended and that it has not asked about.
pub(crate) fn zombies_of(parent: i32) -> usize {
    let running = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let stats = running.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    let start = format!(" Z {parent} ");
    stats.filter(|stat| stat.rsplit(')').next().unwrap_or_default().starts_with(&start)).count()
}

/// Open files and sockets of a process.
pub(crate) fn open_files(pid: i32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

/// Its open files and sockets once their number has stayed the same for a while: connections
/// of a moment ago are closed by then.
pub(crate) fn settled_files(pid: i32) -> usize {
    let (mut last, mut same) = (0, 0);
    eventually("a number of open files that stays", SOON, || {
        let now = open_files(pid);
        same = if now == last { same + 1 } else { 0 };
        last = now;
        (same >= 8).then_some(now)
    })
}

/// Memory that a process has in use, in KiB.
pub(crate) fn memory(pid: i32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn collect(pipe: impl Read + Send + 'static, lines: Arc<Mutex<Vec<String>>>) {
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            lines.lock().unwrap().push(line);
        }
    });
}
