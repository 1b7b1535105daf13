//! STD: local programs as servers.

mod ends;
mod output;
mod starts;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::support::gateway::Gateway;
use crate::support::mcp::Session;
use crate::support::peers::Local;
use crate::support::process::with_word;
use crate::support::{SOON, eventually};

/// A gateway with the rough server behind it, and a session of an app.
fn rough(words: &[&str]) -> (Gateway, Session) {
    let gateway = Gateway::start();
    gateway.add_server(&Local::rough(words).registration());
    let session = gateway.session(&gateway.add_key("full"));
    (gateway, session)
}

/// A word that stands on no other process's command line.
fn own_word(about: &str) -> String {
    format!("{about}-{}-{:?}", std::process::id(), std::thread::current().id())
}

/// Ends what is left of the processes with this word when a test fails.
struct Swept<'a>(&'a str);

impl Drop for Swept<'_> {
    fn drop(&mut self) {
        for process in with_word(self.0) {
            let _already_gone = kill(Pid::from_raw(process), Signal::SIGKILL);
        }
    }
}

/// Waits until so many processes with this word are alive.
fn settle(word: &str, count: usize) {
    let what = format!("{count} living processes");
    eventually(&what, SOON, || (with_word(word).len() == count).then_some(()));
}

/// What the API shows of a server's standard error.
fn said(gateway: &Gateway, server: &str) -> Vec<String> {
    let lines = gateway.server(server)["stderr"].clone();
    let lines = lines.as_array().cloned().unwrap_or_default();
    lines.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}
