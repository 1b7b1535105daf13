//! The real servers and clients that `make setup` installs, as commands, and servers over HTTP as
//! running processes.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::process::Process;

/// A path under `tests/`, which must be there.
pub(crate) fn path(below_tests: &str) -> String {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests", below_tests].iter().collect();
    assert!(path.exists(), "{} is missing: run `make setup`", path.display());
    path.to_str().unwrap().to_owned()
}

pub(crate) fn node() -> String {
    path(".cache/bin/node")
}

/// A server that is a local process.
#[derive(Debug, Clone)]
pub(crate) struct Local {
    pub(crate) name: String,
    pub(crate) command: String,
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
}

impl Local {
    pub(crate) fn new(name: &str, command: &str, args: &[&str]) -> Self {
        let args = args.iter().map(|&arg| arg.to_owned()).collect();
        Self { name: name.to_owned(), command: command.to_owned(), args, env: Vec::new() }
    }

    pub(crate) fn with_env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn everything() -> Self {
        Self::new("everything", &node(), &[&npm("everything"), "stdio"])
    }

    pub(crate) fn memory(file: &Path) -> Self {
        Self::new("memory", &node(), &[&npm("memory")])
            .with_env("MEMORY_FILE_PATH", file.to_str().unwrap())
    }

    pub(crate) fn filesystem(folder: &Path) -> Self {
        Self::new("filesystem", &node(), &[&npm("filesystem"), folder.to_str().unwrap()])
    }

    pub(crate) fn time() -> Self {
        Self::new("time", &path(".cache/servers/bin/mcp-server-time"), &["--local-timezone", "UTC"])
    }

    pub(crate) fn git(repository: &Path) -> Self {
        let command = path(".cache/servers/bin/mcp-server-git");
        Self::new("git", &command, &["--repository", repository.to_str().unwrap()])
    }

    /// The server of `servers/odd.py`, which needs nothing installed but Python.
    pub(crate) fn odd() -> Self {
        Self::new("local", "python3", &[&path("servers/odd.py")])
    }

    /// The server of `servers/rough.py`; see there for its words. Others are passed over, and
    /// can be found again by [`super::process::with_word`].
    pub(crate) fn rough(words: &[&str]) -> Self {
        let script = path("servers/rough.py");
        let args = [&["-I", script.as_str()], words].concat();
        Self::new("rough", &path(".cache/servers/bin/python"), &args)
    }

    /// The server of `servers/ledger.py`, which writes each run of a tool into `file`.
    pub(crate) fn ledger(name: &str, file: &Path) -> Self {
        let args = [&path("servers/ledger.py"), "stdio", file.to_str().unwrap()];
        Self::new(name, "python3", &args)
    }

    /// What `POST /api/v1/upstreams` takes.
    pub(crate) fn registration(&self) -> Value {
        let env: serde_json::Map<_, _> =
            self.env.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        json!({"name": self.name, "command": self.command, "args": self.args, "env": env})
    }
}

fn npm(server: &str) -> String {
    path(&format!("servers/npm/node_modules/@modelcontextprotocol/server-{server}/dist/index.js"))
}

/// A streamable HTTP server of `tests/servers/`, running.
pub(crate) struct HttpServer {
    pub(crate) name: String,
    pub(crate) address: SocketAddr,
    program: Vec<String>,
    rest: Vec<String>,
    process: Process,
}

impl HttpServer {
    /// On the TypeScript SDK. `era` is `dual`, `legacy` or `modern`.
    pub(crate) fn typescript(name: &str, era: &str) -> Self {
        Self::start(name, &[&node(), &path("servers/ts/server.mjs")], &[era, name])
    }

    /// On the Python SDK, both eras.
    pub(crate) fn python(name: &str) -> Self {
        Self::start(
            name,
            &[&path(".cache/servers/bin/python"), &path("servers/py/server.py")],
            &[name],
        )
    }

    /// The server of `servers/ledger.py`, which writes each run of a tool into `file`.
    pub(crate) fn ledger(name: &str, file: &Path) -> Self {
        let program = ["python3", &path("servers/ledger.py")];
        Self::start(name, &program, &[file.to_str().unwrap()])
    }

    fn start(name: &str, program: &[&str], rest: &[&str]) -> Self {
        let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        let (program, rest): (Vec<String>, Vec<String>) = (owned(program), owned(rest));
        let (process, port) = spawn(&program, 0, &rest);
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        Self { name: name.to_owned(), address, program, rest, process }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// What `POST /api/v1/upstreams` takes.
    pub(crate) fn registration(&self) -> Value {
        json!({"name": self.name, "url": self.url()})
    }

    pub(crate) fn kill(&mut self) {
        self.process.kill9();
    }

    /// Stops the process, so that it does nothing but keeps its connections.
    pub(crate) fn freeze(&self) {
        self.process.signal(Signal::SIGSTOP);
    }

    pub(crate) fn thaw(&self) {
        self.process.signal(Signal::SIGCONT);
    }

    /// Starts the killed server anew, on the same port.
    pub(crate) fn start_again(&mut self) {
        self.process = spawn(&self.program, self.address.port(), &self.rest).0;
    }
}

fn spawn(program: &[String], port: u16, rest: &[String]) -> (Process, u16) {
    let mut process = Process::start(
        Command::new(&program[0])
            .args(&program[1..])
            .arg(port.to_string())
            .args(rest)
            .stdin(Stdio::null())
            .stdout(Stdio::piped()),
    );
    let port = process.line("a server that listens", |line| {
        line.strip_prefix("listening ").and_then(|port| port.parse().ok())
    });
    (process, port)
}
