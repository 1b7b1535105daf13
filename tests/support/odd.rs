//! An MCP server over HTTP that does whatever a test wants, wrong things above all. A script sees
//! each request first and scripts only what is odd; the rest is answered as a plain server with
//! sessions does. It remembers every request. The bytes on the wire are in `odd/wire.rs`.

mod wire;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

use serde_json::{Value, json};

pub(crate) use self::wire::{Action, Answer, Request};

type Script = Box<dyn Fn(&Request, &State) -> Action + Send + Sync>;

/// What a server is to be, before it starts.
pub(crate) struct Plan {
    tools: Vec<String>,
    script: Script,
    early: Option<Script>,
    tls: Option<Arc<rustls::ServerConfig>>,
    sessions: bool,
    stream: bool,
}

impl Plan {
    /// Asked about each request once it is here whole.
    pub(crate) fn script(
        mut self,
        script: impl Fn(&Request, &State) -> Action + Send + Sync + 'static,
    ) -> Self {
        self.script = Box::new(script);
        self
    }

    /// Asked about each request when its head is here and its body is not read yet. `Usual` goes
    /// on as if it had not been asked.
    pub(crate) fn early(
        mut self,
        script: impl Fn(&Request, &State) -> Action + Send + Sync + 'static,
    ) -> Self {
        self.early = Some(Box::new(script));
        self
    }

    pub(crate) fn tls(mut self, config: rustls::ServerConfig) -> Self {
        self.tls = Some(Arc::new(config));
        self
    }

    /// Gives no session ids and wants none.
    pub(crate) fn sessionless(mut self) -> Self {
        self.sessions = false;
        self
    }

    /// Opens the stream that a GET asks for; see [`State::say`].
    pub(crate) fn with_stream(mut self) -> Self {
        self.stream = true;
        self
    }

    pub(crate) fn start(self) -> Odd {
        let state = Arc::new(State {
            script: self.script,
            early: self.early,
            tls: Mutex::new(self.tls),
            with_sessions: self.sessions,
            with_stream: self.stream,
            tools: Mutex::new(self.tools),
            sessions: Mutex::default(),
            seen: Mutex::default(),
            ran: Mutex::default(),
            said: Mutex::default(),
            sockets: Mutex::default(),
            next: AtomicU64::new(1),
            taken: AtomicU64::new(0),
            accepting: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        });
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut odd = Odd { address, state, acceptor: None };
        odd.accept_on(listener);
        odd
    }
}

/// A running server; it ends with this value.
pub(crate) struct Odd {
    pub(crate) address: SocketAddr,
    state: Arc<State>,
    acceptor: Option<JoinHandle<()>>,
}

impl Deref for Odd {
    type Target = State;

    fn deref(&self) -> &State {
        &self.state
    }
}

impl Odd {
    /// A server with these tools, each a name or a whole JSON object.
    pub(crate) fn of(tools: &[&str]) -> Plan {
        Plan {
            tools: tools.iter().map(|tool| described(tool)).collect(),
            script: Box::new(|_, _| Action::Usual),
            early: None,
            tls: None,
            sessions: true,
            stream: false,
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// What `POST /api/v1/upstreams` takes.
    pub(crate) fn registration(&self, name: &str) -> Value {
        json!({"name": name, "url": self.url("/mcp")})
    }

    /// Connections are refused from now on, and those that there are end.
    pub(crate) fn refuse(&mut self) {
        self.stop_accepting();
        self.close_connections();
    }

    /// Connections are taken again, on the same port.
    pub(crate) fn accept(&mut self) {
        self.accept_on(TcpListener::bind(self.address).unwrap());
    }

    fn accept_on(&mut self, listener: TcpListener) {
        self.state.accepting.store(true, Ordering::SeqCst);
        let state = Arc::clone(&self.state);
        self.acceptor = Some(std::thread::spawn(move || {
            while let Ok((socket, _)) = listener.accept() {
                if !state.accepting.load(Ordering::SeqCst) {
                    return;
                }
                state.taken.fetch_add(1, Ordering::SeqCst);
                let state = Arc::clone(&state);
                std::thread::spawn(move || wire::serve(&state, socket));
            }
        }));
    }

    fn stop_accepting(&mut self) {
        let Some(acceptor) = self.acceptor.take() else { return };
        self.state.accepting.store(false, Ordering::SeqCst);
        // Wakes the thread, which then drops the listening socket.
        drop(TcpStream::connect(self.address));
        let _ended = acceptor.join();
    }
}

impl Drop for Odd {
    fn drop(&mut self) {
        self.state.ended.store(true, Ordering::SeqCst);
        self.refuse();
    }
}

/// What the server knows; scripts see it, too.
pub(crate) struct State {
    script: Script,
    early: Option<Script>,
    tls: Mutex<Option<Arc<rustls::ServerConfig>>>,
    with_sessions: bool,
    with_stream: bool,
    tools: Mutex<Vec<String>>,
    sessions: Mutex<HashSet<String>>,
    seen: Mutex<Vec<Request>>,
    ran: Mutex<BTreeMap<String, usize>>,
    said: Mutex<Vec<String>>,
    sockets: Mutex<HashMap<u64, TcpStream>>,
    next: AtomicU64,
    taken: AtomicU64,
    accepting: AtomicBool,
    ended: AtomicBool,
}

impl State {
    /// Every request so far that a filter takes, oldest first.
    pub(crate) fn requests(&self, take: impl Fn(&Request) -> bool) -> Vec<Request> {
        self.seen().iter().filter(|request| take(request)).cloned().collect()
    }

    /// How many requests there were in all.
    pub(crate) fn total(&self) -> usize {
        self.seen().len()
    }

    /// How often this MCP method was asked for.
    pub(crate) fn count(&self, method: &str) -> usize {
        self.seen().iter().filter(|request| request.rpc() == method).count()
    }

    /// How often a call of this tool came in, however it was answered.
    pub(crate) fn calls(&self, tool: &str) -> usize {
        self.seen().iter().filter(|request| request.tool() == Some(tool)).count()
    }

    /// How often this tool was run in the usual way.
    pub(crate) fn ran(&self, tool: &str) -> usize {
        self.ran.lock().unwrap().get(tool).copied().unwrap_or_default()
    }

    /// How many connections there have been in all.
    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Ordering::SeqCst)
    }

    /// Open sessions.
    pub(crate) fn sessions(&self) -> usize {
        self.sessions.lock().unwrap().len()
    }

    /// Open connections.
    pub(crate) fn connections(&self) -> usize {
        self.sockets.lock().unwrap().len()
    }

    /// Answers 404 to every session that there is, as after a restart.
    pub(crate) fn forget_sessions(&self) {
        self.sessions.lock().unwrap().clear();
    }

    /// Ends every connection, idle or not.
    pub(crate) fn close_connections(&self) {
        for socket in self.sockets.lock().unwrap().values() {
            let _already_closed = socket.shutdown(Shutdown::Both);
        }
    }

    /// New connections get this certificate.
    pub(crate) fn set_tls(&self, config: rustls::ServerConfig) {
        *self.tls.lock().unwrap() = Some(Arc::new(config));
    }

    /// Replaces the tools, and tells nobody.
    pub(crate) fn set_tools(&self, tools: &[&str]) {
        *self.tools.lock().unwrap() = tools.iter().map(|tool| described(tool)).collect();
    }

    /// Sends a message on every stream that a GET has opened.
    pub(crate) fn say(&self, message: &str) {
        self.said.lock().unwrap().push(message.to_owned());
    }

    /// What a plain server answers.
    pub(crate) fn usual(&self, request: &Request) -> Answer {
        let session = request.header("mcp-session-id").unwrap_or_default();
        match request.method.as_str() {
            "DELETE" => {
                self.sessions.lock().unwrap().remove(session);
                return Answer::empty(200);
            }
            "POST" => {}
            _ => return Answer::empty(405),
        }
        let known = |id: &str| self.sessions.lock().unwrap().contains(id);
        if request.rpc() == "initialize" {
            return self.initialize(request);
        } else if self.with_sessions && session.is_empty() {
            let error = r#"{"code":-32600,"message":"Mcp-Session-Id is missing"}"#;
            return Answer::error(request, error).with_status(400);
        } else if self.with_sessions && !known(session) {
            let error = r#"{"code":-32001,"message":"Session not found"}"#;
            return Answer::error(request, error).with_status(404);
        } else if request.id().is_null() || request.rpc().is_empty() {
            return Answer::empty(202);
        }
        match (request.rpc(), request.tool()) {
            ("ping", _) => Answer::result(request, "{}"),
            ("tools/list", _) => {
                let tools = self.tools.lock().unwrap().join(",");
                Answer::result(request, &format!(r#"{{"tools":[{tools}]}}"#))
            }
            (_, Some(tool)) => {
                *self.ran.lock().unwrap().entry(tool.to_owned()).or_default() += 1;
                Answer::text(request, tool)
            }
            _ => Answer::error(request, r#"{"code":-32601,"message":"no such method"}"#),
        }
    }

    fn initialize(&self, request: &Request) -> Answer {
        let hello = json!({
            "protocolVersion": request.body["params"]["protocolVersion"],
            "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": {"name": "odd", "version": "1"},
        });
        let answer = Answer::result(request, &hello.to_string());
        if !self.with_sessions {
            return answer;
        }
        let id = format!("s-{}", self.next.fetch_add(1, Ordering::SeqCst));
        self.sessions.lock().unwrap().insert(id.clone());
        answer.with_header("Mcp-Session-Id", &id)
    }

    fn seen(&self) -> MutexGuard<'_, Vec<Request>> {
        self.seen.lock().unwrap()
    }
}

fn described(tool: &str) -> String {
    match tool.starts_with('{') || tool.starts_with('[') {
        true => tool.to_owned(),
        false => json!({"name": tool, "inputSchema": {"type": "object"}}).to_string(),
    }
}
