//! What one group lists and may call: the catalog cut to its reach (P44).

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use sha2::{Digest, Sha256};

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
    digest: OnceLock<u64>,
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
        Self { group, servers, names, own, list: OnceLock::new(), digest: OnceLock::new() }
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

    /// The JSON array of listed tools, made once; the same bytes until something changed.
    pub fn list(&self) -> Bytes {
        self.list
            .get_or_init(|| {
                let size: usize =
                    self.servers.iter().flat_map(|l| &l.json).map(|json| json.len() + 1).sum();
                let mut out = Vec::with_capacity(size + 2);
                out.push(b'[');
                for json in self.servers.iter().flat_map(|listed| &listed.json) {
                    if out.len() > 1 {
                        out.push(b',');
                    }
                    out.extend_from_slice(json);
                }
                out.push(b']');
                Bytes::from(out)
            })
            .clone()
    }

    /// Tells two lists apart: equal lists have equal digests.
    pub fn digest(&self) -> u64 {
        *self.digest.get_or_init(|| {
            let hash = Sha256::digest(self.list());
            let mut first = [0; 8];
            first.copy_from_slice(&hash[..8]);
            u64::from_be_bytes(first)
        })
    }
}
