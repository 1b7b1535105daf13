//! What stands beside a result, as its last block of text: what was mended, what else there is,
//! what happened meanwhile (P50–P55).

use std::sync::Arc;

use catalog::View;
use coach::note;
use conversation::Memory;
use upstream::State;

use crate::core::Gateway;
use crate::find::Target;

/// Below this score, a tool is no alternative.
const ALIKE: f32 = 0.5;

/// How a call went, as far as notes are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Went {
    /// The server answered.
    Answered,
    /// The server answered that a page would not be shown.
    Blocked,
    /// The server is down, and the answer says so.
    Down,
    /// Something else went wrong.
    Wrong,
}

impl Gateway {
    /// The notes for a call of a conversation. Each is told once where that is the rule, so this
    /// is asked once for each answer.
    pub(crate) fn notes(&self, target: &Target, memory: &Memory, went: Went) -> Vec<String> {
        let Target { view, server, .. } = target;
        let mut notes = Vec::new();
        if matches!(went, Went::Answered | Went::Blocked) {
            notes.extend(target.notes.iter().cloned());
        }
        if matches!(went, Went::Blocked | Went::Down) {
            notes.extend(self.alternative(target));
        }
        match went {
            Went::Down => memory.knows(server.id, false),
            Went::Wrong => {}
            Went::Answered | Went::Blocked => {
                memory.knows(server.id, true);
                if memory.used(server.id) && view.has_own_tools() {
                    notes.extend(siblings(view, target));
                }
            }
        }
        let servers = view.servers().iter().map(|listed| {
            let state = self.upstreams.get(listed.server.id).map(|upstream| upstream.state());
            let up = match state {
                Some(State::Connected) => Some(true),
                Some(State::Down | State::Auth) => Some(false),
                Some(State::Connecting | State::Silent | State::Disabled) | None => None,
            };
            (listed.server.id, listed.server.name.as_str(), up)
        });
        let turns = memory.turns(self.upstreams.turns(), servers);
        if !turns.is_empty() {
            notes.push(note::turns(&turns));
        }
        notes
    }

    /// A tool of another server that can do the same job, as far as that can be told, and that
    /// can be called now.
    fn alternative(&self, target: &Target) -> Option<String> {
        let alike = self.finder.alike(&target.view, target.server.id, &target.tool.name);
        let other = alike.into_iter().take_while(|hit| hit.score >= ALIKE).find(|hit| {
            let state = self.upstreams.get(hit.server.id).map(|upstream| upstream.state());
            hit.server.id != target.server.id
                && hit.tool.read_only >= target.tool.read_only
                && state == Some(State::Connected)
        })?;
        Some(note::alternative(&other.exposed, &other.server.name))
    }
}

/// The other tools of a server that is used for the first time.
fn siblings(view: &Arc<View>, target: &Target) -> Option<String> {
    let listed = view.server(&target.server.name)?;
    let others: Vec<&str> = listed
        .exposed
        .iter()
        .map(|name| &**name)
        .filter(|name| *name != &*target.exposed)
        .collect();
    (!others.is_empty()).then(|| note::siblings(&target.server.name, others.into_iter()))
}
