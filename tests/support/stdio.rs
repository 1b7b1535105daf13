//! A client of a server over stdio, for what a server says when nobody stands between.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::json;

use super::mcp::{Message, Peer, initialize_params};
use super::peers::Local;
use super::{SOON, eventually};

pub(crate) struct StdioClient {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    requests: u64,
}

impl StdioClient {
    pub(crate) fn start(server: &Local) -> Self {
        let mut child = Command::new(&server.command)
            .args(&server.args)
            .envs(server.env.iter().cloned())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {}: {error}", server.command));
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let input = child.stdin.take();
        let mut client = Self { child, input, lines, requests: 0 };
        client.request("initialize", &initialize_params());
        client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        client
    }

    fn send(&mut self, message: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(format!("{message}\n").as_bytes()).unwrap();
        input.flush().unwrap();
    }
}

impl Peer for StdioClient {
    fn request(&mut self, method: &str, params: &str) -> Message {
        self.requests += 1;
        let id = self.requests;
        self.send(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#
        ));
        loop {
            let line = self.lines.recv_timeout(SOON);
            let message = Message(line.unwrap_or_else(|_| panic!("no answer to {method}")));
            if message.id() == Some(json!(id)) {
                return message;
            }
        }
    }
}

impl Drop for StdioClient {
    fn drop(&mut self) {
        self.input = None;
        if !std::thread::panicking() {
            eventually("the end of a server whose input was closed", SOON, || {
                self.child.try_wait().unwrap()
            });
        }
        let _already_gone = self.child.kill();
        let _already_gone = self.child.wait();
    }
}
