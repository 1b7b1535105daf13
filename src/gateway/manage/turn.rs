//! One write after the other: read the state, decide, apply, show.
//!
//! A change is made of what was read before, so two at once would lose one of them
//! (PLT-02). The turn is an async lock held over the database and the new snapshot, never
//! over waiting for a server.

use catalog::{Catalog, Group, Key, KeyId, Server};
use store::{AuditKind, Change, Noun, State};
use tokio::sync::{Mutex, MutexGuard};

use super::{Error, follow};
use crate::Gateway;

/// Whose turn it is to write.
#[derive(Debug, Default)]
pub struct Writes(Mutex<()>);

impl Writes {
    /// Waits for the turn; it lasts until the guard is dropped.
    pub(crate) async fn wait(&self) -> MutexGuard<'_, ()> {
        self.0.lock().await
    }
}

/// The state as it is, and the changes decided so far.
pub(super) struct Turn<'a> {
    gateway: &'a Gateway,
    /// Everything that operators set up, from the database.
    pub(super) state: State,
    /// Seconds since the Unix epoch.
    pub(super) now: i64,
    changes: Vec<Change>,
    _turn: MutexGuard<'a, ()>,
}

impl Gateway {
    /// Waits for the turn and reads the state.
    pub(super) async fn turn(&self) -> Result<Turn<'_>, Error> {
        let turn = self.writes.wait().await;
        let state = self.store.load().await?;
        let now = jiff::Timestamp::now().as_second();
        Ok(Turn { gateway: self, state, now, changes: Vec::new(), _turn: turn })
    }
}

impl Turn<'_> {
    /// The group of that name.
    pub(super) fn group(&self, name: &str) -> Result<&Group, Error> {
        let found = self.state.groups.iter().find(|group| group.name == name);
        found.ok_or_else(|| Error::not_found(Noun::Group, name))
    }

    /// The server of that name.
    pub(super) fn server(&self, name: &str) -> Result<&Server, Error> {
        let found = self.state.servers.iter().find(|server| server.name == name);
        found.ok_or_else(|| Error::not_found(Noun::Server, name))
    }

    /// The key with that id.
    pub(super) fn key(&self, id: KeyId) -> Result<&Key, Error> {
        let found = self.state.keys.iter().find(|key| key.id == id);
        found.ok_or_else(|| Error::not_found(Noun::Key, id.0))
    }

    /// Adds a change.
    pub(super) fn push(&mut self, change: Change) {
        self.changes.push(change);
    }

    /// Adds a line for the audit.
    pub(super) fn audit(&mut self, kind: AuditKind, message: String) {
        self.changes.push(Change::Audit { kind, message, at: self.now });
    }

    /// Makes the changes, with what follows from them, and shows them to requests. Answers
    /// the row id of the first change.
    pub(super) async fn commit(mut self) -> Result<i64, Error> {
        if self.changes.is_empty() {
            return Ok(0);
        }
        if self.changes.iter().any(names_may_change) {
            let after = self.after();
            let before = self.gateway.catalog();
            self.changes.extend(follow(&before, &after, &self.state.groups, self.now));
        }
        let ids = self.gateway.store.apply(self.changes).await?;
        self.gateway.show().await;
        Ok(ids.first().copied().unwrap_or_default())
    }

    /// The catalog as the changes will make it.
    fn after(&self) -> Catalog {
        let mut servers = self.state.servers.clone();
        for change in &self.changes {
            match change {
                Change::SetServer(set) => {
                    servers.iter_mut().filter(|s| s.id == set.id).for_each(|s| s.clone_from(set));
                }
                Change::RemoveServer(id) => servers.retain(|server| server.id != *id),
                _ => {}
            }
        }
        Catalog::build(servers, Vec::new(), Vec::new(), &[], &self.gateway.known())
    }
}

/// A new server has no tools yet: names change when it first lists them.
fn names_may_change(change: &Change) -> bool {
    matches!(change, Change::SetServer(_) | Change::RemoveServer(_))
}
