//! Servers that are processes of their own (`tests/servers/ledger.py`), killed and frozen.

use std::path::PathBuf;
use std::time::Instant;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

use super::{Runs, Victim};
use crate::support::gateway::Gateway;
use crate::support::peers::{HttpServer, Local};
use crate::support::process::is_alive;

/// What is done to the process.
#[derive(Clone, Copy)]
pub(crate) enum Blow {
    Kill,
    Freeze,
}

/// The file in which the servers note each run.
struct Ledger(TempDir);

impl Ledger {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("runs")
    }

    fn beside(&self, end: &str) -> PathBuf {
        self.file().with_extension(end)
    }

    fn runs(&self) -> Runs {
        let mut runs = Runs::new();
        for id in std::fs::read_to_string(self.file()).unwrap_or_default().lines() {
            *runs.entry(id.to_owned()).or_default() += 1;
        }
        runs
    }
}

struct Http {
    // Dropped first: it writes into the other's folder.
    server: HttpServer,
    ledger: Ledger,
    blow: Blow,
}

/// A server over HTTP, restarted by whoever runs it.
pub(crate) fn http(blow: Blow) -> Box<dyn Victim> {
    let ledger = Ledger::new();
    Box::new(Http { server: HttpServer::ledger("server", &ledger.file()), ledger, blow })
}

impl Victim for Http {
    fn registration(&self) -> Value {
        self.server.registration()
    }

    fn runs(&self) -> Runs {
        self.ledger.runs()
    }

    fn strike(&mut self) {
        match self.blow {
            Blow::Kill => self.server.kill(),
            Blow::Freeze => self.server.freeze(),
        }
    }

    fn heal(&mut self, _: &Gateway) -> Instant {
        match self.blow {
            Blow::Kill => self.server.start_again(),
            Blow::Freeze => self.server.thaw(),
        }
        Instant::now()
    }
}

struct Stdio {
    ledger: Ledger,
    blow: Blow,
}

/// A local process, which the manager starts itself: one for the link and one for each app. All
/// are struck, and while the fault lasts no killed one can be started again.
pub(crate) fn stdio(blow: Blow) -> Box<dyn Victim> {
    Box::new(Stdio { ledger: Ledger::new(), blow })
}

impl Stdio {
    fn signal(&self, signal: Signal) {
        let pids = std::fs::read_to_string(self.ledger.beside("pids")).unwrap();
        for pid in pids.lines().map(|pid| pid.parse().unwrap()).filter(|pid| is_alive(*pid)) {
            let _just_gone = kill(Pid::from_raw(pid), signal);
        }
    }
}

impl Victim for Stdio {
    fn registration(&self) -> Value {
        Local::ledger("server", &self.ledger.file()).registration()
    }

    fn runs(&self) -> Runs {
        self.ledger.runs()
    }

    fn strike(&mut self) {
        match self.blow {
            Blow::Kill => {
                std::fs::write(self.ledger.beside("down"), "").unwrap();
                self.signal(Signal::SIGKILL);
            }
            Blow::Freeze => self.signal(Signal::SIGSTOP),
        }
    }

    fn heal(&mut self, _: &Gateway) -> Instant {
        match self.blow {
            Blow::Kill => std::fs::remove_file(self.ledger.beside("down")).unwrap(),
            Blow::Freeze => self.signal(Signal::SIGCONT),
        }
        Instant::now()
    }
}
