//! What a client means by a name (P32). Names are looked up in tables, never parsed: a separator
//! that stands in a server's or a tool's own name splits nothing that is not there (CAT-07).

use std::collections::HashMap;

use coach::manager::ManagerTool;
use coach::nearest::{nearest, normal};

use super::{Place, View};

/// What stands between a server's name and a tool's, as clients and models write it.
const SEPARATORS: [&str; 4] = ["__", ".", "/", ":"];

/// What some clients put before a name.
const PREFIX: &str = "mcp__";

/// Longest name that is looked at beyond the tables, in bytes.
const LONGEST: usize = 256;

/// Other ways to write the names of one view; made when a name is met that is in no table.
#[derive(Debug)]
pub(super) struct Forms {
    /// Server name, in every form, and own name of the tool.
    qualified: HashMap<(String, String), Option<Place>>,
    /// Without case and separators: exposed names, own names, servers with own names.
    plain: HashMap<String, Option<Place>>,
}

impl Forms {
    pub(super) fn of(view: &View) -> Self {
        let (mut qualified, mut plain) = (HashMap::new(), HashMap::new());
        for (s, listed) in view.servers.iter().enumerate() {
            let server = listed.server.name.as_str();
            let clean = cleaned(server);
            for (t, tool) in listed.known.tools.iter().enumerate() {
                let place = (s, t);
                add(&mut qualified, (server.to_owned(), tool.name.clone()), place);
                add(&mut qualified, (clean.clone(), cleaned(&tool.name)), place);
                let exposed = listed.exposed.get(t).map_or("", |name| name);
                add(&mut plain, normal(exposed), place);
                add(&mut plain, normal(&tool.name), place);
                add(&mut plain, normal(&format!("{server}{}", tool.name)), place);
            }
        }
        Self { qualified, plain }
    }

    /// The one tool that a name in another form leads to.
    pub(super) fn find(&self, name: &str) -> Option<Place> {
        let usual = |c: char| c.is_alphanumeric() || "_-./:".contains(c);
        let begins = name.starts_with(char::is_alphanumeric);
        if name.len() > LONGEST || !begins || !name.chars().all(usual) {
            return None;
        }
        let bare = name.strip_prefix(PREFIX);
        let mut found = None;
        for name in [Some(name), bare].into_iter().flatten() {
            for separator in SEPARATORS {
                for (at, _) in name.match_indices(separator) {
                    let (server, tool) = (&name[..at], &name[at + separator.len()..]);
                    let key = (server.to_owned(), tool.to_owned());
                    match (self.qualified.get(&key), found) {
                        (None, _) => {}
                        (Some(None), _) => return None,
                        (Some(Some(place)), Some(other)) if *place != other => return None,
                        (Some(Some(place)), _) => found = Some(*place),
                    }
                }
            }
        }
        let plain = || {
            let forms = [Some(name), bare].into_iter().flatten().map(normal);
            let mut places = forms.filter_map(|form| self.plain.get(&form)).copied();
            places.next().flatten()
        };
        found.or_else(plain)
    }
}

/// The manager's own tool that a name means, written in any case.
pub(super) fn own(name: &str) -> Option<ManagerTool> {
    ManagerTool::of(name).or_else(|| {
        let form = Some(name).filter(|name| name.len() <= LONGEST).map(normal)?;
        ManagerTool::ALL.into_iter().find(|tool| normal(tool.name()) == form)
    })
}

/// The exposed name that is most like one that leads nowhere.
pub(super) fn like<'a>(view: &'a View, name: &str) -> Option<&'a str> {
    let exposed = view.servers.iter().flat_map(|listed| listed.exposed.iter().map(|name| &**name));
    nearest(name, exposed)
}

fn add<K: std::hash::Hash + Eq>(map: &mut HashMap<K, Option<Place>>, key: K, place: Place) {
    map.entry(key)
        .and_modify(|known| {
            if *known != Some(place) {
                *known = None;
            }
        })
        .or_insert(Some(place));
}

fn cleaned(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
}
