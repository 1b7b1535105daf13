//! The process of a stdio server: its group, its pipes, its end.

use std::collections::VecDeque;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use catalog::{Lookup, Server, Transport};
use memchr::memchr;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::warden::{Warden, Watch};

/// Longest line of output; what is longer has no end, and the process is ended for it (STD-05).
pub const MAX_LINE: usize = 64 << 20;

/// What a process gets of our environment; secrets of the manager and of other servers are
/// not among it (STD-06).
const INHERITED: [&str; 10] =
    ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR", "TERM"];

/// Time to end by itself after its input closed, and again after TERM (U22).
const GRACE: Duration = Duration::from_secs(2);

/// Time to read what is left of its standard error after its end; a grandchild may hold it
/// open.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// Lines of standard error that are kept.
const STDERR_LINES: usize = 50;

/// Longest line of standard error that is kept; the rest of a longer one starts a new line.
const STDERR_LINE: usize = 2048;

/// The last lines that a server's processes wrote to their standard error.
#[derive(Debug, Default)]
pub struct Stderr(Mutex<VecDeque<String>>);

impl Stderr {
    /// Oldest first.
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Adds a line that is to be seen among them.
    pub fn push(&self, line: &[u8]) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == STDERR_LINES {
            lines.pop_front();
        }
        lines.push_back(String::from_utf8_lossy(line).into_owned());
    }
}

/// Why a process could not be started.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is a server over HTTP.
    #[error("the server has no command")]
    NoCommand,
    /// Its variables refer to environment variables that are not set.
    #[error("environment variables not set: {}", .0.join(", "))]
    MissingEnv(Vec<String>),
    /// The system does not start it.
    #[error("cannot start `{0}`: {1}")]
    Start(String, std::io::Error),
}

/// A started process.
pub struct Child {
    stderr: Arc<Stderr>,
    name: String,
    process: tokio::process::Child,
    group: Option<Pid>,
    /// Until the group is gone.
    watch: Option<Watch>,
    stdin: ChildStdin,
    stdout: ChildStdout,
    errors: ChildStderr,
}

impl std::fmt::Debug for Child {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Child").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Child {
    /// Starts the server's command in a process group of its own. Call within a runtime.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn spawn(
        server: &Server,
        lookup: &Lookup,
        warden: &Arc<Warden>,
        stderr: &Arc<Stderr>,
    ) -> Result<Self, Error> {
        let Transport::Stdio { command, args, env, cwd } = &server.transport else {
            return Err(Error::NoCommand);
        };
        let values = env.iter().map(|(_, value)| value.reveal());
        let values = catalog::reference::expand(values, &**lookup).map_err(Error::MissingEnv)?;
        let mut prepared = Command::new(command);
        prepared
            .args(args)
            .env_clear()
            .envs(INHERITED.iter().filter_map(|name| Some((name, std::env::var_os(name)?))))
            .envs(env.iter().map(|(name, _)| name).zip(values))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        if let Some(cwd) = cwd {
            prepared.current_dir(cwd);
        }
        let mut process = prepared.spawn().map_err(|error| Error::Start(command.clone(), error))?;
        let group = process.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
        let missing = || Error::Start(command.clone(), std::io::ErrorKind::BrokenPipe.into());
        Ok(Self {
            stderr: stderr.clone(),
            name: server.name.clone(),
            watch: group.map(|group| warden.watch(group)),
            group,
            stdin: process.stdin.take().ok_or_else(missing)?,
            stdout: process.stdout.take().ok_or_else(missing)?,
            errors: process.stderr.take().ok_or_else(missing)?,
            process,
        })
    }

    /// Moves lines both ways until the process ends or `stop` is called, then makes sure
    /// that its whole group is gone.
    pub async fn run(
        self,
        mut input: mpsc::Receiver<String>,
        stop: CancellationToken,
        each: impl FnMut(Bytes) + Send + 'static,
    ) {
        let Self { stderr, name, mut process, group, watch, mut stdin, stdout, errors } = self;
        let mut drain = tokio::spawn(keep_stderr(name.clone(), errors, stderr));
        let writer = tokio::spawn(async move {
            while let Some(mut line) = input.recv().await {
                line.push('\n');
                if stdin.write_all(line.as_bytes()).await.is_err() || stdin.flush().await.is_err() {
                    return;
                }
            }
        });
        let mut reader = tokio::spawn(read_lines(name.clone(), stdout, each));
        tokio::select! {
            _ = &mut reader => {}
            _ = process.wait() => {}
            () = stop.cancelled() => {}
        }
        // Closing its input asks the process to end.
        writer.abort();
        let _ = writer.await;
        if tokio::time::timeout(GRACE, process.wait()).await.is_err() {
            signal(group, Signal::SIGTERM);
            let _ = tokio::time::timeout(GRACE, process.wait()).await;
        }
        // What the process left behind in its group ends with it (STD-03).
        signal(group, Signal::SIGKILL);
        drop(watch);
        let _ = process.wait().await;
        // Answers that were written before the end still count. A task that has ended must
        // not be waited for again.
        if !reader.is_finished() {
            let _ = tokio::time::timeout(GRACE, &mut reader).await;
            reader.abort();
        }
        // What it said last is what explains its end.
        let _ = tokio::time::timeout(LAST_WORDS, &mut drain).await;
        drain.abort();
        tracing::debug!(server = name, "process ended");
    }
}

fn signal(group: Option<Pid>, signal: Signal) {
    if let Some(group) = group {
        // The group may be gone already, which is what is wanted.
        let _ = killpg(group, signal);
    }
}

async fn read_lines(name: String, mut stdout: ChildStdout, mut each: impl FnMut(Bytes) + Send) {
    let mut buffer = BytesMut::with_capacity(16 * 1024);
    let mut searched = 0;
    loop {
        while let Some(end) = memchr(b'\n', &buffer[searched..]) {
            let line = buffer.split_to(searched + end + 1).freeze();
            searched = 0;
            let line = line.slice(..line.len() - 1);
            if !line.trim_ascii().is_empty() {
                each(line);
            }
        }
        searched = buffer.len();
        if searched > MAX_LINE {
            tracing::warn!(server = name, limit = MAX_LINE, "a line has no end; closing");
            // Longer than any line that is one: who takes it knows what that means.
            each(buffer.freeze());
            return;
        }
        buffer.reserve(16 * 1024);
        match stdout.read_buf(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
}

/// Standard error is always read, so that a talkative process never stalls (STD-02).
async fn keep_stderr(name: String, mut errors: ChildStderr, kept: Arc<Stderr>) {
    let mut line = Vec::new();
    let mut chunk = vec![0; 4096];
    loop {
        let read = match errors.read(&mut chunk).await {
            Ok(0) | Err(_) => break,
            Ok(read) => read,
        };
        for byte in &chunk[..read] {
            if *byte == b'\n' || line.len() >= STDERR_LINE {
                tracing::debug!(server = name, line = %String::from_utf8_lossy(&line), "stderr");
                kept.push(&line);
                line.clear();
            }
            if *byte != b'\n' && *byte != b'\r' {
                line.push(*byte);
            }
        }
    }
    if !line.is_empty() {
        kept.push(&line);
    }
}
