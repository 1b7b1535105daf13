//! Ends the local servers when the manager is killed (STD-03).
//!
//! A process that gets KILL cannot clean up behind itself, so a second, tiny one does: the
//! manager's own program, started beside the first local server. It is told over a pipe which
//! process groups live; when the pipe ends without the manager's doing, so do they.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{BufRead, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// Time between asking a group to end and ending it.
const GRACE: Duration = Duration::from_millis(500);

/// The side of the manager.
#[derive(Debug, Default)]
pub(crate) struct Warden {
    /// Program and arguments; empty where there is none, as in tests.
    command: Vec<OsString>,
    watched: Mutex<Watched>,
}

#[derive(Debug, Default)]
struct Watched {
    groups: BTreeSet<i32>,
    process: Option<Child>,
    /// It could not be started; said once.
    failed: bool,
}

/// A group that is watched until this is dropped.
#[derive(Debug)]
pub(crate) struct Watch {
    warden: Arc<Warden>,
    group: i32,
}

impl Warden {
    pub(crate) fn new(command: Vec<OsString>) -> Arc<Self> {
        Arc::new(Self { command, watched: Mutex::default() })
    }

    /// Has a process group ended if the manager is.
    pub(crate) fn watch(self: &Arc<Self>, group: Pid) -> Watch {
        let group = group.as_raw();
        self.tell(group, true);
        Watch { warden: self.clone(), group }
    }

    fn tell(&self, group: i32, lives: bool) {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        let watched = &mut *watched;
        match lives {
            true => watched.groups.insert(group),
            false => watched.groups.remove(&group),
        };
        let line = format!("{}{group}\n", if lives { '+' } else { '-' });
        let told = watched.process.as_mut().and_then(|process| process.stdin.as_mut());
        if told.is_some_and(|pipe| pipe.write_all(line.as_bytes()).is_ok()) {
            return;
        }
        // None yet, or somebody ended it.
        if let Some(mut gone) = watched.process.take() {
            let _ = gone.kill();
            let _ = gone.wait();
        }
        if !watched.groups.is_empty() && !watched.failed {
            watched.start(&self.command);
        }
    }
}

impl Watched {
    fn start(&mut self, command: &[OsString]) {
        let Some((program, arguments)) = command.split_first() else { return };
        // In a group of its own, so that Ctrl-C at a terminal does not reach it.
        let started = Command::new(program)
            .args(arguments)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
        let told = started.and_then(|mut process| {
            let lines: String = self.groups.iter().map(|group| format!("+{group}\n")).collect();
            if let Some(pipe) = &mut process.stdin {
                pipe.write_all(lines.as_bytes())?;
            }
            Ok(process)
        });
        match told {
            Ok(process) => self.process = Some(process),
            Err(error) => {
                self.failed = true;
                tracing::warn!(%error, "local servers would outlive a manager that is killed");
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.warden.tell(self.group, false);
    }
}

/// The side of the second process: reads until the manager is gone, then ends what is left.
#[expect(clippy::disallowed_methods, reason = "a process of its own that does nothing else")]
pub fn stand_guard(told: impl BufRead) {
    let mut groups = BTreeSet::new();
    for line in told.lines().map_while(Result::ok) {
        let Some((sign, group)) = line.split_at_checked(1) else { continue };
        // 0 and 1 would be our own group, and everything.
        let Some(group) = group.parse::<i32>().ok().filter(|group| *group > 1) else { continue };
        match sign {
            "+" => groups.insert(group),
            _ => groups.remove(&group),
        };
    }
    // Groups that have ended already are no concern.
    let reached = |signal| {
        groups.iter().filter(|group| killpg(Pid::from_raw(**group), signal).is_ok()).count()
    };
    if reached(Signal::SIGTERM) > 0 {
        std::thread::sleep(GRACE);
        reached(Signal::SIGKILL);
    }
}
