//! What one group lists and may call: the catalog cut to its reach (P44), in the shape of its
//! mode (product rule table "Modes").

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use coach::manager::ManagerTool;
use protocol::Era;
use sha2::{Digest, Sha256};

use crate::instructions;
use crate::model::{Group, Mode, Server, ServerId};
use crate::snapshot::Listed;
use crate::tool::Tool;
use names::Forms;

mod names;

/// A tool's place: which of the view's servers, which of its tools.
type Place = (usize, usize);

/// A group with the tools within its reach.
#[derive(Debug)]
pub struct View {
    /// The operator's settings.
    pub group: Group,
    servers: Vec<Arc<Listed>>,
    /// Exposed name → place.
    names: HashMap<Arc<str>, Place>,
    /// Own name → place, for names that one reachable server has; `None` when several do.
    own: HashMap<String, Option<Place>>,
    forms: OnceLock<Forms>,
    /// The tools of servers that every app of the group lists, in order.
    listed: OnceLock<Vec<Place>>,
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

/// What a client means by a name.
#[derive(Debug, Clone)]
pub enum Meant<'a> {
    /// A tool of a server.
    Tool(Resolved<'a>),
    /// The same, by a name in another form than any that is listed.
    Form(Resolved<'a>),
    /// One of the manager's own tools, where the group has them.
    Own(ManagerTool),
    /// A tool of that name on each of several servers; their exposed names.
    Several(Vec<&'a str>),
    /// Nothing; the tool whose name is most like it, if one is like it at all.
    Nothing(Option<Resolved<'a>>),
}

/// What stands in one app's list beside what every app of its group lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct More {
    /// Servers whose tools are in it (P42).
    pub servers: Vec<ServerId>,
    /// Learned tools, by server and own name (P43).
    pub learned: Vec<(ServerId, String)>,
}

impl View {
    pub(crate) fn new(group: Group, servers: &[Arc<Listed>]) -> Self {
        let servers: Vec<_> =
            servers.iter().filter(|l| group.reach.contains(l.server.id)).cloned().collect();
        let mut names = HashMap::new();
        let mut own: HashMap<String, Option<Place>> = HashMap::new();
        for (s, listed) in servers.iter().enumerate() {
            for (t, tool) in listed.known.tools.iter().enumerate() {
                names.insert(listed.exposed[t].clone(), (s, t));
                own.entry(tool.name.clone())
                    .and_modify(|place| *place = None)
                    .or_insert(Some((s, t)));
            }
        }
        Self {
            group,
            servers,
            names,
            own,
            forms: OnceLock::new(),
            listed: OnceLock::new(),
            list: OnceLock::new(),
            older: OnceLock::new(),
            digest: OnceLock::new(),
            instructions: OnceLock::new(),
        }
    }

    /// Servers within reach, in registration order.
    pub fn servers(&self) -> &[Arc<Listed>] {
        &self.servers
    }

    /// The server of that name, within reach.
    pub fn server(&self, name: &str) -> Option<&Arc<Listed>> {
        self.servers.iter().find(|listed| listed.server.name == name)
    }

    /// How many tools are within reach.
    pub fn tools(&self) -> usize {
        self.names.len()
    }

    /// Whether the group's apps search for tools and call them by `call_tool`.
    pub fn has_own_tools(&self) -> bool {
        self.group.mode != Mode::Direct
    }

    /// The tool of that exposed name, else of that own name where only one reachable server
    /// has it. What is out of reach is not there.
    pub fn resolve(&self, name: &str) -> Option<Resolved<'_>> {
        let place = self.names.get(name).or_else(|| self.own.get(name)?.as_ref())?;
        self.at(*place)
    }

    /// What a client means by a name (P32).
    pub fn meant(&self, name: &str) -> Meant<'_> {
        if let Some(resolved) = self.resolve(name) {
            return Meant::Tool(resolved);
        }
        if self.has_own_tools()
            && let Some(own) = names::own(name)
        {
            return Meant::Own(own);
        }
        if self.own.contains_key(name) {
            let all = self.all().filter(|each| each.tool.name == name);
            return Meant::Several(all.map(|each| &**each.exposed).collect());
        }
        let forms = self.forms.get_or_init(|| Forms::of(self));
        match forms.find(name).and_then(|place| self.at(place)) {
            Some(resolved) => Meant::Form(resolved),
            None => Meant::Nothing(names::like(self, name).and_then(|name| self.resolve(name))),
        }
    }

    /// The tool of that server and own name, within reach.
    pub fn tool(&self, server: ServerId, name: &str) -> Option<Resolved<'_>> {
        let s = self.servers.iter().position(|listed| listed.server.id == server)?;
        let tools = &self.servers.get(s)?.known.tools;
        self.at((s, tools.iter().position(|tool| tool.name == name)?))
    }

    /// Every tool within reach, in the order of lists.
    pub fn all(&self) -> impl Iterator<Item = Resolved<'_>> {
        self.places().filter_map(|place| self.at(place))
    }

    fn places(&self) -> impl Iterator<Item = Place> {
        let tools =
            |(s, listed): (usize, &Arc<Listed>)| (0..listed.known.tools.len()).map(move |t| (s, t));
        self.servers.iter().enumerate().flat_map(tools)
    }

    fn at(&self, (s, t): Place) -> Option<Resolved<'_>> {
        let listed = self.servers.get(s)?;
        let (server, tool) = (&listed.server, listed.known.tools.get(t)?);
        Some(Resolved { server, tool, exposed: listed.exposed.get(t)? })
    }

    /// The tools of servers that every app of the group lists: all, or the defaults that lead
    /// somewhere.
    fn listed(&self) -> &[Place] {
        self.listed.get_or_init(|| {
            if !self.has_own_tools() {
                return self.places().collect();
            }
            let mut places: Vec<Place> = Vec::new();
            for name in &self.group.defaults {
                let place = self.names.get(name.as_str()).or_else(|| self.own.get(name)?.as_ref());
                places.extend(place.filter(|place| !places.contains(place)));
            }
            places
        })
    }

    /// The tools of servers that every app of the group lists, in order.
    pub fn base(&self) -> impl Iterator<Item = Resolved<'_>> {
        self.listed().iter().filter_map(|place| self.at(*place))
    }

    /// The JSON array of listed tools for clients of an era, made once; the same bytes until
    /// something changed.
    pub fn list(&self, era: Era) -> Bytes {
        let kept = if self.differs(era) { &self.older } else { &self.list };
        kept.get_or_init(|| self.join(era, self.listed(), &[])).clone()
    }

    /// The same with what one app has beside it, each tool once.
    pub fn list_with(&self, era: Era, more: &More) -> Bytes {
        let places = self.places_of(more);
        match places.is_empty() {
            true => self.list(era),
            false => self.join(era, self.listed(), &places),
        }
    }

    /// The places of `more` that are not listed for everybody, each once.
    fn places_of(&self, more: &More) -> Vec<Place> {
        if !self.has_own_tools() || (more.servers.is_empty() && more.learned.is_empty()) {
            return Vec::new();
        }
        let mut seen: HashSet<Place> = self.listed().iter().copied().collect();
        let grown = self.places().filter(|(s, _)| {
            self.servers.get(*s).is_some_and(|listed| more.servers.contains(&listed.server.id))
        });
        let mut places: Vec<Place> = grown.filter(|place| seen.insert(*place)).collect();
        for (server, tool) in &more.learned {
            let Some(s) = self.servers.iter().position(|listed| listed.server.id == *server) else {
                continue;
            };
            let tools = self.servers.get(s).map(|listed| &listed.known.tools);
            let t = tools.and_then(|tools| tools.iter().position(|known| known.name == *tool));
            places.extend(t.map(|t| (s, t)).filter(|place| seen.insert(*place)));
        }
        places
    }

    /// Whether clients of an era list some tool in another way than the newest do.
    fn differs(&self, era: Era) -> bool {
        era == Era::Legacy && self.servers.iter().any(|listed| listed.older.is_some())
    }

    /// What everybody lists, the manager's own tools, what one app has beside it.
    fn join(&self, era: Era, base: &[Place], more: &[Place]) -> Bytes {
        let older = self.differs(era);
        let json = |(s, t): &Place| -> Option<&Bytes> {
            let listed = self.servers.get(*s)?;
            let all = listed.older.as_ref().filter(|_| older).unwrap_or(&listed.json);
            all.get(*t)
        };
        let own: Vec<Bytes> = match self.has_own_tools() {
            true => {
                let names = || self.servers.iter().map(|listed| listed.server.name.as_str());
                ManagerTool::ALL.map(|tool| Bytes::from(tool.definition(names()))).to_vec()
            }
            false => Vec::new(),
        };
        let all = || base.iter().filter_map(json).chain(&own).chain(more.iter().filter_map(json));
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
        *self.digest.get_or_init(|| first_bytes(&Sha256::digest(self.list(Era::Modern))))
    }

    /// The same for a list with the tools of `servers` beside it; learned tools come and go
    /// without a word (P43).
    pub fn digest_with(&self, servers: &[ServerId]) -> u64 {
        if servers.is_empty() || !self.has_own_tools() {
            return self.digest();
        }
        let mut hash = Sha256::new();
        hash.update(self.digest().to_be_bytes());
        for listed in self.servers.iter().filter(|listed| servers.contains(&listed.server.id)) {
            hash.update(listed.server.id.0.to_be_bytes());
            for json in &listed.json {
                hash.update(json);
            }
        }
        first_bytes(&hash.finalize())
    }
}

fn first_bytes(hash: &[u8]) -> u64 {
    let start = hash.first_chunk().copied().unwrap_or_default();
    u64::from_be_bytes(start)
}
