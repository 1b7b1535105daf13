//! A process of the comparison. It leads a process group of its own, so that what it starts is
//! measured with it and ends with it: dropping a [`Child`] kills the whole group.

use std::ffi::OsStr;
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

const PATIENCE: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(20);
const GRACE: Duration = Duration::from_secs(2);

/// A running process and its log file.
#[derive(Debug)]
pub(crate) struct Child {
    name: String,
    process: std::process::Child,
    log: PathBuf,
    stop: Signal,
}

/// The process group of a child.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Group(pub(crate) i32);

impl Child {
    /// Starts `command` with its output in `directory`. A log file rather than a pipe: nobody has
    /// to read it while the measurement runs.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub(crate) fn start(
        name: &str,
        command: &mut Command,
        directory: &Path,
    ) -> anyhow::Result<Self> {
        let log = directory.join(format!("{name}.log"));
        let file = File::create(&log).with_context(|| format!("failed to create {log:?}"))?;
        let process = command
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .process_group(0)
            .spawn()
            .with_context(|| format!("failed to start {name} ({:?})", command.get_program()))?;
        Ok(Self { name: name.to_owned(), process, log, stop: Signal::SIGKILL })
    }

    /// Starts this very program with other arguments.
    ///
    /// # Errors
    /// As [`Child::start`].
    pub(crate) fn ourselves<I, S>(name: &str, args: I, directory: &Path) -> anyhow::Result<Self>
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let program = std::env::current_exe().context("failed to find this program")?;
        Self::start(name, Command::new(program).args(args), directory)
    }

    /// For a process that must be asked to end, because it has to bury its own children. It is
    /// killed nevertheless if it does not end soon.
    pub(crate) fn ask_to_stop(mut self) -> Self {
        self.stop = Signal::SIGTERM;
        self
    }

    /// Its process group.
    pub(crate) fn group(&self) -> Group {
        Group(i32::try_from(self.process.id()).unwrap_or(i32::MAX))
    }

    /// Waits until `found` sees what it looks for in the log.
    ///
    /// # Errors
    /// When the process ends first or it takes too long; shows the end of the log.
    pub(crate) async fn wait_for_log<T>(
        &mut self,
        found: impl Fn(&str) -> Option<T>,
    ) -> anyhow::Result<T> {
        let log = self.log.clone();
        self.wait_until(|| found(&std::fs::read_to_string(&log).unwrap_or_default())).await
    }

    /// Waits until the process accepts connections.
    ///
    /// # Errors
    /// As [`Child::wait_for_log`].
    pub(crate) async fn wait_for_port(&mut self, port: u16) -> anyhow::Result<()> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        self.wait_until(|| std::net::TcpStream::connect(address).ok().map(drop)).await
    }

    async fn wait_until<T>(&mut self, done: impl Fn() -> Option<T>) -> anyhow::Result<T> {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            if let Some(found) = done() {
                return Ok(found);
            }
            if let Some(status) = self.process.try_wait()? {
                bail!("{} ended ({status}):\n{}", self.name, self.log_tail());
            }
            if tokio::time::Instant::now() > deadline {
                bail!("{} is not ready after {PATIENCE:?}:\n{}", self.name, self.log_tail());
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// The last lines of the log, for an error.
    pub(crate) fn log_tail(&self) -> String {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }
}

impl Drop for Child {
    #[expect(clippy::disallowed_methods, reason = "a drop cannot await, and nothing else runs")]
    fn drop(&mut self) {
        let group = Pid::from_raw(self.group().0);
        let _ = killpg(group, self.stop);
        if self.stop != Signal::SIGKILL {
            let deadline = Instant::now() + GRACE;
            while matches!(self.process.try_wait(), Ok(None)) && Instant::now() < deadline {
                std::thread::sleep(POLL);
            }
            let _ = killpg(group, Signal::SIGKILL);
        }
        let _ = self.process.wait();
    }
}

/// Ports on 127.0.0.1 that were free just now. All are held until all are found, so they differ.
///
/// # Errors
/// When the system gives no port.
pub(crate) fn free_ports<const N: usize>() -> anyhow::Result<[u16; N]> {
    let mut ports = [0; N];
    let mut held = Vec::with_capacity(N);
    for port in &mut ports {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port")?;
        *port = listener.local_addr()?.port();
        held.push(listener);
    }
    Ok(ports)
}
