//! Ends the local servers when the manager is killed (STD-03).
//!
//! A process that gets KILL cannot clean up behind itself, so a second, tiny one does: the
//! manager's own program, started beside the first local server. It is told over a pipe which
//! process groups live; when the pipe ends without the manager's doing, so do they.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, Write as _};
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::process::{Child, Command};
use tokio::runtime::Handle;

/// Time between asking a group to end and ending it.
const GRACE: Duration = Duration::from_millis(500);

/// A second process that lives for less than this has not worked.
const SHORT: Duration = Duration::from_secs(5);

/// Such short lives, one after the other, until it is given up.
const ATTEMPTS: u8 = 3;

/// The side of the manager.
#[derive(Debug, Default)]
pub struct Warden {
    /// Program and arguments; empty where there is none, as in tests.
    command: Vec<OsString>,
    watched: Mutex<Watched>,
}

#[derive(Debug, Default)]
struct Watched {
    groups: BTreeSet<i32>,
    /// What it is told goes through here; `None` while there is none.
    pipe: Option<File>,
    /// Whether one runs; there is never a second: it would end what the first lets go of.
    running: bool,
    short_lives: u8,
    /// It could not be started, or does not stay; said once.
    failed: bool,
}

/// A group that is watched until this is dropped.
#[derive(Debug)]
pub(crate) struct Watch {
    warden: Arc<Warden>,
    group: i32,
}

impl Warden {
    /// Starts nothing yet. `command` runs [`stand_guard`] on its standard input.
    pub fn new(command: Vec<OsString>) -> Arc<Self> {
        Arc::new(Self { command, watched: Mutex::default() })
    }

    /// Has a process group ended if the manager is.
    pub(crate) fn watch(self: &Arc<Self>, group: Pid) -> Watch {
        let group = group.as_raw();
        self.tell(group, true);
        Watch { warden: self.clone(), group }
    }

    fn tell(self: &Arc<Self>, group: i32, lives: bool) {
        let mut watched = self.watched();
        match lives {
            true => watched.groups.insert(group),
            false => watched.groups.remove(&group),
        };
        let watched = &mut *watched;
        if let Some(pipe) = &mut watched.pipe {
            let line = format!("{}{group}\n", if lives { '+' } else { '-' });
            if pipe.write_all(line.as_bytes()).is_err() {
                // It has ended; who waits for that starts another.
                watched.pipe = None;
            }
        } else if lives && !watched.running {
            self.start(watched);
        }
    }

    /// Starts the second process, tells it of every group, and waits for its end beside.
    fn start(self: &Arc<Self>, watched: &mut Watched) {
        // At the very end of the manager there is no runtime any more, and nothing to watch.
        let (Some((program, arguments)), Ok(runtime)) =
            (self.command.split_first(), Handle::try_current())
        else {
            return;
        };
        if watched.failed || watched.groups.is_empty() {
            return;
        }
        match started(program, arguments, &watched.groups) {
            Ok((process, pipe)) => {
                (watched.pipe, watched.running) = (Some(pipe), true);
                runtime.spawn(replace(Arc::downgrade(self), process));
            }
            Err(error) => {
                watched.failed = true;
                tracing::error!(%error, "local servers would outlive a manager that is killed");
            }
        }
    }

    fn watched(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for the end of the second process, and starts another at once if the manager did not
/// bring it about.
async fn replace(warden: Weak<Warden>, mut process: Child) {
    let since = Instant::now();
    let ended = process.wait().await;
    let Some(warden) = warden.upgrade() else { return };
    let mut watched = warden.watched();
    (watched.pipe, watched.running) = (None, false);
    let short = since.elapsed() < SHORT;
    watched.short_lives = if short { watched.short_lives + 1 } else { 0 };
    if watched.short_lives >= ATTEMPTS {
        watched.failed = true;
        tracing::error!(
            ?ended,
            "the warden does not stay; local servers would outlive a manager that is killed"
        );
        return;
    }
    tracing::warn!(?ended, "the warden of local servers has ended; starting another");
    warden.start(&mut watched);
}

/// A second process that knows these groups, and the pipe to it.
fn started(
    program: &OsString,
    arguments: &[OsString],
    groups: &BTreeSet<i32>,
) -> io::Result<(Child, File)> {
    // In a group of its own, so that Ctrl-C at a terminal does not reach it.
    let mut process = Command::new(program)
        .args(arguments)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()?;
    let pipe = process.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
    // Lines of some bytes, which the pipe always has room for: nobody waits for it.
    let mut pipe = File::from(pipe.into_owned_fd()?);
    let lines: String = groups.iter().map(|group| format!("+{group}\n")).collect();
    pipe.write_all(lines.as_bytes())?;
    Ok((process, pipe))
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
