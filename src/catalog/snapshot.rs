//! Everything that requests read, at one moment: replaced whole, never changed.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use crate::known::Known;
use crate::model::{Group, GroupId, Key, KeyHash, KeyId, Mode, Override, Reach, Server, ServerId};
use crate::naming;
use crate::tool::Tool;
use crate::view::View;

/// A server with its tools and the names that clients call them by.
#[derive(Debug)]
pub struct Listed {
    /// The operator's settings.
    pub server: Arc<Server>,
    /// What the server last said, with the operator's words where there are any; empty while
    /// disabled.
    pub known: Known,
    /// Tools with the operator's words as their server described them, by own name.
    pub said: BTreeMap<String, Arc<Tool>>,
    /// The exposed name of each tool, in the order of `known.tools`.
    pub exposed: Vec<Arc<str>>,
    /// Each tool as clients list it.
    pub(crate) json: Vec<Bytes>,
    /// The same for clients of 2025-11-25 and older, where some tool differs.
    pub(crate) older: Option<Vec<Bytes>>,
}

/// All that requests read.
#[derive(Debug, Default)]
pub struct Catalog {
    servers: Vec<Arc<Listed>>,
    groups: Vec<Arc<View>>,
    keys: HashMap<KeyHash, Arc<Key>>,
    keys_by_id: HashMap<KeyId, Arc<Key>>,
    whole: OnceLock<Arc<View>>,
}

impl Catalog {
    /// Builds the snapshot. `known` gives what each server last said, `overrides` other words
    /// for some of it.
    pub fn build(
        servers: Vec<Server>,
        groups: Vec<Group>,
        keys: Vec<Key>,
        overrides: &[Override],
        known: &HashMap<ServerId, Known>,
    ) -> Self {
        let servers = list(servers, overrides, known);
        let groups = groups.into_iter().map(|group| Arc::new(View::new(group, &servers))).collect();
        let keys: Vec<_> = keys.into_iter().map(Arc::new).collect();
        let keys_by_id = keys.iter().map(|key| (key.id, key.clone())).collect();
        let keys = keys.into_iter().map(|key| (key.hash, key)).collect();
        Self { servers, groups, keys, keys_by_id, whole: OnceLock::new() }
    }

    /// Servers in registration order.
    pub fn servers(&self) -> &[Arc<Listed>] {
        &self.servers
    }

    /// The server of that name.
    pub fn server(&self, name: &str) -> Option<&Arc<Listed>> {
        self.servers.iter().find(|listed| listed.server.name == name)
    }

    /// The server of that id.
    pub fn server_by_id(&self, id: ServerId) -> Option<&Arc<Listed>> {
        self.servers.iter().find(|listed| listed.server.id == id)
    }

    /// Groups in creation order.
    pub fn views(&self) -> &[Arc<View>] {
        &self.groups
    }

    /// Every server and tool, as a group would see them that lists all; no app has it.
    pub fn whole(&self) -> &Arc<View> {
        self.whole.get_or_init(|| {
            let group = Group {
                id: GroupId(0),
                name: String::new(),
                mode: Mode::Direct,
                defaults: Vec::new(),
                adaptive_cap: None,
                reach: Reach::All,
            };
            Arc::new(View::new(group, &self.servers))
        })
    }

    /// The group of that id.
    pub fn view(&self, id: GroupId) -> Option<&Arc<View>> {
        self.groups.iter().find(|view| view.group.id == id)
    }

    /// The group of that name.
    pub fn view_by_name(&self, name: &str) -> Option<&Arc<View>> {
        self.groups.iter().find(|view| view.group.name == name)
    }

    /// The key with that hash, revoked or not.
    pub fn key(&self, hash: &KeyHash) -> Option<&Arc<Key>> {
        self.keys.get(hash)
    }

    /// The key of that id, revoked or not.
    pub fn key_by_id(&self, id: KeyId) -> Option<&Arc<Key>> {
        self.keys_by_id.get(&id)
    }

    /// All keys, by id.
    pub fn keys(&self) -> Vec<&Arc<Key>> {
        let mut keys: Vec<_> = self.keys.values().collect();
        keys.sort_by_key(|key| key.id);
        keys
    }

    /// Tools whose exposed name is another than in `before`, as (server, tool, was, is).
    /// Tools that only one of the two has are not renamed.
    pub fn renamed_since(&self, before: &Self) -> Vec<Renamed> {
        let mut old: HashMap<(ServerId, &str), &Arc<str>> = HashMap::new();
        for listed in &before.servers {
            for (tool, exposed) in listed.known.tools.iter().zip(&listed.exposed) {
                old.insert((listed.server.id, tool.name.as_str()), exposed);
            }
        }
        let mut renamed = Vec::new();
        for listed in &self.servers {
            for (tool, exposed) in listed.known.tools.iter().zip(&listed.exposed) {
                match old.get(&(listed.server.id, tool.name.as_str())) {
                    Some(was) if *was != exposed => renamed.push(Renamed {
                        server: listed.server.name.clone(),
                        tool: tool.name.clone(),
                        was: was.to_string(),
                        is: exposed.to_string(),
                    }),
                    _ => {}
                }
            }
        }
        renamed
    }
}

/// One line of [`Catalog::renamed_since`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renamed {
    /// Server name.
    pub server: String,
    /// The server's own name for the tool.
    pub tool: String,
    /// The exposed name before.
    pub was: String,
    /// The exposed name now.
    pub is: String,
}

fn list(
    servers: Vec<Server>,
    overrides: &[Override],
    known: &HashMap<ServerId, Known>,
) -> Vec<Arc<Listed>> {
    let mut known: Vec<Known> = servers
        .iter()
        .map(|server| match known.get(&server.id) {
            Some(known) if server.enabled => known.clone(),
            _ => Known::default(),
        })
        .collect();
    let said: Vec<_> = servers
        .iter()
        .zip(&mut known)
        .map(|(server, known)| put(overrides, server, known))
        .collect();
    let pairs: Vec<(&str, &str)> = servers
        .iter()
        .zip(&known)
        .flat_map(|(server, known)| {
            known.tools.iter().map(|tool| (server.name.as_str(), tool.name.as_str()))
        })
        .collect();
    let mut names = naming::expose(&pairs).into_iter().map(Arc::<str>::from);
    let exposed: Vec<Vec<Arc<str>>> =
        known.iter().map(|known| names.by_ref().take(known.tools.len()).collect()).collect();
    servers
        .into_iter()
        .zip(known)
        .zip(exposed)
        .zip(said)
        .map(|(((server, known), exposed), said)| {
            let tools = known.tools.iter().zip(&exposed);
            let json: Vec<_> = tools.clone().map(|(tool, name)| listed(tool, name)).collect();
            let older: Vec<_> = tools
                .zip(&json)
                .map(|((tool, name), json)| {
                    tool.for_older().map_or(json.clone(), |tool| listed(&tool, name))
                })
                .collect();
            let older = (older != json).then_some(older);
            Arc::new(Listed { server: Arc::new(server), known, said, exposed, json, older })
        })
        .collect()
}

/// Puts the operator's words in place of a server's; answers the tools as they were.
fn put(overrides: &[Override], server: &Server, known: &mut Known) -> BTreeMap<String, Arc<Tool>> {
    let mut said = BTreeMap::new();
    let ours = || overrides.iter().filter(|words| words.server == server.id);
    if ours().next().is_none() {
        return said;
    }
    let changed = |tool: &Arc<Tool>| {
        let words = ours().find(|words| words.tool == tool.name);
        match words.and_then(|words| tool.with(words)) {
            Some(changed) => {
                said.insert(tool.name.clone(), tool.clone());
                Arc::new(changed)
            }
            None => tool.clone(),
        }
    };
    known.tools = known.tools.iter().map(changed).collect();
    said
}

fn listed(tool: &Tool, name: &str) -> Bytes {
    let mut out = Vec::with_capacity(tool.text().len() + 16);
    tool.write_as(name, &mut out);
    Bytes::from(out)
}

#[cfg(test)]
pub(crate) mod tests;
