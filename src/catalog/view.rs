//! What one group lists and may call: the catalog cut to its reach (P44).

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use protocol::Era;
use sha2::{Digest, Sha256};

use crate::instructions;
use crate::model::{Group, Server};
use crate::snapshot::Listed;
use crate::tool::Tool;

/// A group with the tools within its reach.
#[derive(Debug)]
pub struct View {
    /// The operator's settings.
    pub group: Group,
    servers: Vec<Arc<Listed>>,
    /// Exposed name → (place in `servers`, place in its tools).
    names: HashMap<Arc<str>, (usize, usize)>,
    /// Own name → place, for names that one reachable server has; `None` when several do.
    own: HashMap<String, Option<(usize, usize)>>,
    list: OnceLock<Bytes>,
    /// For clients of 2025-11-25 and older.
    older: OnceLock<Bytes>,
    digest: OnceLock<u64>,
    instructions: OnceLock<String>,
}

/// A tool that a name leads to.
#[derive(Debug, Clone, Copy)]
pub struct Resolved<'a> {
    /// Its server.
    pub server: &'a Arc<Server>,
    /// The tool.
    pub tool: &'a Arc<Tool>,
    /// The name that clients see.
    pub exposed: &'a Arc<str>,
}

impl View {
    pub(crate) fn new(group: Group, servers: &[Arc<Listed>]) -> Self {
        let servers: Vec<_> =
            servers.iter().filter(|l| group.reach.contains(l.server.id)).cloned().collect();
        let mut names = HashMap::new();
        let mut own: HashMap<String, Option<(usize, usize)>> = HashMap::new();
        for (s, listed) in servers.iter().enumerate() {
            for (t, tool) in listed.known.tools.iter().enumerate() {
                names.insert(listed.exposed[t].clone(), (s, t));
                own.entry(tool.name.clone())
                    .and_modify(|place| *place = None)
                    .or_insert(Some((s, t)));
            }
        }
        let (list, older) = (OnceLock::new(), OnceLock::new());
        let (digest, instructions) = (OnceLock::new(), OnceLock::new());
        Self { group, servers, names, own, list, older, digest, instructions }
    }

    /// Servers within reach, in registration order.
    pub fn servers(&self) -> &[Arc<Listed>] {
        &self.servers
    }

    /// How many tools are within reach.
    pub fn tools(&self) -> usize {
        self.names.len()
    }

    /// The tool that a client means: by exposed name, else by the tool's own name where
    /// only one reachable server has it. What is out of reach is not there.
    pub fn resolve(&self, name: &str) -> Option<Resolved<'_>> {
        let &(s, t) = self.names.get(name).or_else(|| self.own.get(name)?.as_ref())?;
        let listed = &self.servers[s];
        Some(Resolved {
            server: &listed.server,
            tool: &listed.known.tools[t],
            exposed: &listed.exposed[t],
        })
    }

    /// The JSON array of listed tools for clients of an era, made once; the same bytes until
    /// something changed.
    pub fn list(&self, era: Era) -> Bytes {
        let older = |listed: &Listed| listed.older.is_some();
        match era {
            Era::Legacy if self.servers.iter().any(|listed| older(listed)) => self
                .older
                .get_or_init(|| self.join(|listed| listed.older.as_ref().unwrap_or(&listed.json)))
                .clone(),
            _ => self.list.get_or_init(|| self.join(|listed| &listed.json)).clone(),
        }
    }

    fn join(&self, tools: impl Fn(&Listed) -> &Vec<Bytes>) -> Bytes {
        let all = || self.servers.iter().flat_map(|listed| tools(listed));
        let size: usize = all().map(|json| json.len() + 1).sum();
        let mut out = Vec::with_capacity(size + 2);
        out.push(b'[');
        for json in all() {
            if out.len() > 1 {
                out.push(b',');
            }
            out.extend_from_slice(json);
        }
        out.push(b']');
        Bytes::from(out)
    }

    /// What clients are told at the start, as a raw JSON string; made once.
    pub fn instructions(&self) -> &str {
        self.instructions.get_or_init(|| instructions::of(self.servers.iter().map(|l| &**l)))
    }

    /// Tells two lists apart: equal lists have equal digests.
    pub fn digest(&self) -> u64 {
        *self.digest.get_or_init(|| {
            let hash = Sha256::digest(self.list(Era::Modern));
            let mut first = [0; 8];
            first.copy_from_slice(&hash[..8]);
            u64::from_be_bytes(first)
        })
    }
}
