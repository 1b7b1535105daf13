//! What one app lists: its group's view, and what its conversation has beside it (P42, P43).

use bytes::Bytes;
use catalog::{Caller, More};
use conversation::Memory;
use protocol::Era;

use crate::core::Gateway;

/// A list, as it is at one moment.
#[derive(Debug, Clone)]
pub struct List {
    /// The JSON array of tools.
    pub tools: Bytes,
    /// Tells lists apart that a client should be told of.
    pub digest: u64,
}

impl Gateway {
    /// What the caller lists in that conversation; `None` for a caller whose group is gone.
    pub fn list(&self, caller: &Caller, era: Era, memory: &Memory) -> Option<List> {
        let view = self.view(caller)?;
        let now = jiff::Timestamp::now().as_millisecond();
        let learned = caller.key.map(|key| self.learned.pick(&view, key, now));
        let more = More { servers: memory.grown(), learned: learned.unwrap_or_default() };
        let tools = view.list_with(era, &more);
        Some(List { tools, digest: view.digest_with(&more.servers) })
    }

    /// Tells lists apart that a client should be told of.
    pub fn digest(&self, caller: &Caller, memory: &Memory) -> Option<u64> {
        self.view(caller).map(|view| view.digest_with(&memory.grown()))
    }
}
