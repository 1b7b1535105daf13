//! The ways from the generator to a toy that are compared, each with the process that is on trial.
//! Two toys run, one answering calls as JSON and one as event streams; every path leads to both.

use std::path::Path;

use super::child::{Child, Group, free_ports};
use super::gateway::Gateway;
use super::nginx::{self, Nginx};
use crate::wire::Endpoint;

/// Tools of the toy that answers as JSON; the row about lists counts them.
pub(crate) const TOOLS: usize = 400;
/// The JSON toy's tool that is called.
pub(crate) const JSON_TOOL: &str = "echo";
/// The event toy's only tool; its name differs, so that a gateway has no two of one name.
pub(crate) const EVENTS_TOOL: &str = "events_echo";
const EVENTS_PREFIX: &str = "events";

/// Which way a request takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    /// Straight to the toy; the toy is on trial.
    Direct,
    /// Through bare Pingora.
    Raw,
    /// Through nginx.
    Nginx,
    /// Through the manager.
    Gateway,
}

impl Kind {
    /// The name in the table.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Raw => "baseline (Pingora)",
            Self::Nginx => "nginx",
            Self::Gateway => "MCP-Manager",
        }
    }
}

/// One end of a path: where to send, and whose cost to read.
#[derive(Debug, Clone)]
pub(crate) struct Side {
    pub(crate) endpoint: Endpoint,
    pub(crate) group: Group,
}

/// A way to both toys.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) kind: Kind,
    /// To the toy that answers as JSON.
    pub(crate) json: Side,
    /// To the toy that answers as event streams.
    pub(crate) events: Side,
}

/// All routes, and the processes that make them. Dropping this ends the processes.
#[derive(Debug)]
pub(crate) struct Paths {
    pub(crate) routes: Vec<Route>,
    children: Vec<Child>,
}

impl Paths {
    /// Starts everything and waits until it serves.
    ///
    /// # Errors
    /// When a process does not start, or the gateway refuses its set-up.
    pub(crate) async fn start(gateway: Option<&Path>, directory: &Path) -> anyhow::Result<Self> {
        let [json_toy, events_toy, json_raw, events_raw] = free_ports()?;
        let mut paths = Self { routes: Vec::new(), children: Vec::new() };
        let toy = ["toy", "--port"].map(str::to_owned);
        let tools = TOOLS.to_string();
        let json = [&toy[..], &[json_toy.to_string(), "--tools".to_owned(), tools]].concat();
        let events = ["--tools", "1", "--sse", "--prefix", EVENTS_PREFIX].map(str::to_owned);
        let events = [&toy[..], &[events_toy.to_string()], &events].concat();
        let direct = Route {
            kind: Kind::Direct,
            json: paths.ourselves("toy", &json, json_toy, directory).await?,
            events: paths.ourselves("events-toy", &events, events_toy, directory).await?,
        };
        let raw = |port: u16, to: u16| {
            ["raw", "--port", &port.to_string(), "--to", &to.to_string()].map(str::to_owned)
        };
        let (json, events) = (raw(json_raw, json_toy), raw(events_raw, events_toy));
        let raw = Route {
            kind: Kind::Raw,
            json: paths.ourselves("raw", &json, json_raw, directory).await?,
            events: paths.ourselves("events-raw", &events, events_raw, directory).await?,
        };
        paths.routes.extend([direct, raw]);
        if nginx::is_installed() {
            let Nginx { child, json_port, events_port } =
                nginx::start(directory, json_toy, events_toy).await?;
            let group = child.group();
            paths.children.push(child);
            let side = |port| anyhow::Ok(Side { endpoint: loopback(port)?, group });
            let (json, events) = (side(json_port)?, side(events_port)?);
            paths.routes.push(Route { kind: Kind::Nginx, json, events });
        }
        if let Some(program) = gateway {
            let toys = [("toy", json_toy), ("events", events_toy)];
            let Gateway { child, endpoint } = Gateway::start(program, directory, &toys).await?;
            let side = Side { endpoint, group: child.group() };
            paths.children.push(child);
            paths.routes.push(Route { kind: Kind::Gateway, json: side.clone(), events: side });
        }
        Ok(paths)
    }

    /// Whether nginx is among the routes.
    pub(crate) fn has_nginx(&self) -> bool {
        self.routes.iter().any(|route| route.kind == Kind::Nginx)
    }

    /// The ends of all logs that are not empty, for an error.
    pub(crate) fn logs(&self) -> String {
        let tails = self.children.iter().map(Child::log_tail).filter(|tail| !tail.is_empty());
        tails.collect::<Vec<_>>().join("\n")
    }

    async fn ourselves(
        &mut self,
        name: &str,
        args: &[String],
        port: u16,
        directory: &Path,
    ) -> anyhow::Result<Side> {
        let mut child = Child::ourselves(name, args, directory)?;
        child.wait_for_port(port).await?;
        let side = Side { endpoint: loopback(port)?, group: child.group() };
        self.children.push(child);
        Ok(side)
    }
}

fn loopback(port: u16) -> anyhow::Result<Endpoint> {
    Endpoint::new(&format!("http://127.0.0.1:{port}/mcp"), None)
}
