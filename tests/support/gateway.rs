//! The real binary with a folder, a port and a database of its own.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::http;
use super::mcp::Session;
use super::process::Process;

pub(crate) const ADMIN_TOKEN: &str = "the-admin-token-of-the-tests";
const DATABASE: &str = "mcp-manager.db";

pub(crate) struct Gateway {
    // Dropped in this order: the process first, then what it works on.
    process: Process,
    folder: TempDir,
    /// More sections of its conf file.
    settings: String,
    pub(crate) address: SocketAddr,
}

/// An app's key.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) id: String,
    pub(crate) secret: String,
}

impl Key {
    /// The value of the `Authorization` header.
    pub(crate) fn bearer(&self) -> String {
        format!("Bearer {}", self.secret)
    }
}

impl Gateway {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// With more environment variables.
    pub(crate) fn start_with(environment: &[(&str, &str)]) -> Self {
        Self::start_as("", environment)
    }

    /// With more sections of the conf file, too.
    pub(crate) fn start_as(settings: &str, environment: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (process, address) = spawn(folder.path(), 0, settings, environment);
        Self { process, folder, settings: settings.to_owned(), address }
    }

    /// Stops it as an operator does and starts it on the same database and port.
    pub(crate) fn restart(&mut self) {
        let status = self.process.stop();
        assert!(status.success(), "ended with {status} after SIGTERM\n{}", self.process.tail());
        self.start_again();
    }

    /// Ends it as a power cut does.
    pub(crate) fn kill9(&mut self) {
        self.process.kill9();
    }

    /// Stops it as an operator does.
    pub(crate) fn stop(&mut self) {
        self.process.stop();
    }

    pub(crate) fn start_again(&mut self) {
        self.start_again_with(&[]);
    }

    pub(crate) fn start_again_with(&mut self, environment: &[(&str, &str)]) {
        let (folder, port) = (self.folder.path(), self.address.port());
        (self.process, self.address) = spawn(folder, port, &self.settings, environment);
    }

    pub(crate) fn pid(&self) -> i32 {
        self.process.id()
    }

    /// One request to the management API: status and body (`null` where there is none).
    pub(crate) fn api(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let bearer = format!("Bearer {ADMIN_TOKEN}");
        let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
        let path = format!("/api/v1{path}");
        let mut reply = http::send(self.address, method, &path, &headers, &body).unwrap();
        let text = reply.text().unwrap();
        let value =
            if text.is_empty() { Value::Null } else { serde_json::from_str(&text).unwrap() };
        (reply.status, value)
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        self.must("GET", path, &Value::Null)
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Value {
        self.must("POST", path, body)
    }

    /// Registers a server and expects it to be connected by the time of the answer.
    pub(crate) fn add_server(&self, registration: &Value) -> Value {
        let server = self.post("/upstreams", registration);
        assert_eq!(server["status"], "connected", "{registration} gave {server}");
        server
    }

    /// A server as the API shows it.
    pub(crate) fn server(&self, name: &str) -> Value {
        let servers = self.get("/upstreams");
        let found = servers.as_array().unwrap().iter().find(|server| server["name"] == name);
        found.unwrap_or_else(|| panic!("no server {name} in {servers}")).clone()
    }

    pub(crate) fn add_key(&self, group: &str) -> Key {
        let key = self.post("/keys", &json!({"group": group, "label": format!("a {group} app")}));
        let id = match &key["id"] {
            Value::String(id) => id.clone(),
            id => id.to_string(),
        };
        Key { id, secret: key["key"].as_str().unwrap().to_owned() }
    }

    /// A legacy session with this key.
    pub(crate) fn session(&self, key: &Key) -> Session {
        Session::open(self.address, &key.bearer())
    }

    pub(crate) fn whole_log(&self) -> String {
        self.process.all()
    }

    /// The last lines of its log.
    pub(crate) fn log(&self) -> String {
        self.process.tail()
    }

    /// Its database file.
    pub(crate) fn database(&self) -> PathBuf {
        self.folder.path().join(DATABASE)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    fn must(&self, method: &str, path: &str, body: &Value) -> Value {
        let (status, answer) = self.api(method, path, body);
        assert!((200..300).contains(&status), "{method} {path} {body} gave {status}: {answer}");
        answer
    }
}

impl Drop for Gateway {
    #[expect(clippy::print_stderr, reason = "the gateway's log belongs to a failed test's output")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("---- the end of the gateway's log\n{}\n----", self.process.tail());
        }
    }
}

/// Starts the binary in `folder`; port 0 takes a free one.
fn spawn(
    folder: &Path,
    port: u16,
    settings: &str,
    environment: &[(&str, &str)],
) -> (Process, SocketAddr) {
    let mut process = Process::start(&mut command_as(folder, port, settings, environment));
    let address = process.line("a gateway that listens", listening);
    (process, address)
}

/// The command that starts the binary in `folder`, with a pipe for its log.
pub(crate) fn command(folder: &Path, port: u16, environment: &[(&str, &str)]) -> Command {
    command_as(folder, port, "", environment)
}

fn command_as(folder: &Path, port: u16, settings: &str, environment: &[(&str, &str)]) -> Command {
    let config = folder.join("mcp-manager.yaml");
    let database = folder.join(DATABASE);
    let text = format!(
        "boot:\n  host: 127.0.0.1\n  port: {port}\n  db: {}\n  default_group: default\n  \
         require_key_for_mcp: true\n{settings}",
        database.display()
    );
    std::fs::write(&config, text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-manager"));
    command
        .args(["serve", "--config"])
        .arg(&config)
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", folder)
        .env("MCPM_ADMIN_TOKEN", ADMIN_TOKEN)
        .env("MCPM_LOG_FORMAT", "json")
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .stderr(Stdio::piped());
    command
}

/// The address in the log line that says where the gateway listens.
fn listening(line: &str) -> Option<SocketAddr> {
    let line: Value = serde_json::from_str(line).ok()?;
    let fields = line.get("fields")?;
    if fields.get("message")? != "listening" {
        return None;
    }
    let mut address: SocketAddr = fields.get("address")?.as_str()?.parse().ok()?;
    if address.ip().is_unspecified() {
        address.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    Some(address)
}
