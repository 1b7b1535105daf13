//! Exposed names (product rule P30).
//!
//! A name passes unchanged when it is unique over all servers and every client accepts it.
//! The result depends only on the set of (server, tool) pairs, never on their order.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest, Sha256};

/// Longest exposed name.
pub const MAX: usize = 64;

/// Names that belong to the manager's own tools; a server's tool of such a name is renamed.
pub const RESERVED: [&str; 4] =
    ["search_tools", "call_tool", "list_mcpservers", "get_tools_from_server"];

/// Whether every client accepts the name: `^[A-Za-z0-9_-]{1,64}$`.
pub fn acceptable(name: &str) -> bool {
    (1..=MAX).contains(&name.len()) && name.bytes().all(allowed)
}

/// Gives each (server name, tool name) pair its exposed name, in the order given.
///
/// Names are unique. Repeated pairs get the same name; callers drop repeats before.
pub fn expose<'a>(pairs: &[(&'a str, &'a str)]) -> Vec<String> {
    let mut holders: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (server, tool) in pairs {
        holders.entry(tool).or_default().insert(server);
    }
    let plain = |tool: &str| {
        acceptable(tool)
            && !RESERVED.contains(&tool)
            && holders.get(tool).is_some_and(|s| s.len() == 1)
    };
    // Plain names win over made-up ones; a made-up name that meets another one, or a plain
    // one, takes a hash tail. Which do so is decided over the whole set, so order is moot.
    let mut wanted: BTreeMap<String, BTreeSet<(&str, &str)>> = BTreeMap::new();
    for (server, tool) in pairs.iter().filter(|(_, tool)| !plain(tool)) {
        wanted.entry(qualified(server, tool)).or_default().insert((server, tool));
    }
    pairs
        .iter()
        .map(|&(server, tool)| {
            if plain(tool) {
                return tool.to_owned();
            }
            let name = qualified(server, tool);
            let clashes = wanted.get(&name).is_some_and(|pairs| pairs.len() > 1)
                || (holders.contains_key(name.as_str()) && plain(&name))
                || RESERVED.contains(&name.as_str());
            if !clashes && name.len() <= MAX {
                return name;
            }
            // A tail can be foreseen, so a server may offer a tool of just that name.
            let taken = |name: &str| holders.contains_key(name) && plain(name);
            (6..=24)
                .map(|bytes| tailed(&name, server, tool, bytes))
                .find(|name| !taken(name))
                .unwrap_or_else(|| tailed(&name, server, tool, 24))
        })
        .collect()
}

/// `<server>__<tool>`, each part cleaned to the allowed characters.
fn qualified(server: &str, tool: &str) -> String {
    format!("{}__{}", cleaned(server), cleaned(tool))
}

fn cleaned(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii() && allowed(c as u8) { c } else { '_' }).collect()
}

/// Shortened, with a tail made of the pair itself, so that it never changes. 48 bits: two
/// pairs of one catalog that also share the head meet with a chance below one in 10^9.
fn tailed(name: &str, server: &str, tool: &str, bytes: usize) -> String {
    let mut hash = Sha256::new();
    hash.update((server.len() as u64).to_be_bytes());
    hash.update(server);
    hash.update(tool);
    let digest = hash.finalize();
    let tail: String = digest.iter().take(bytes).map(|byte| format!("{byte:02x}")).collect();
    let head = &name[..name.len().min(MAX - tail.len() - 1)];
    format!("{head}_{tail}")
}

fn allowed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

#[cfg(test)]
mod tests;
