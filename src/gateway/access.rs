//! Who asks: a key's app, or a caller without a key where the settings let those in.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{PoisonError, RwLock};

use catalog::{GroupId, Key, KeyId};
use sha2::{Digest, Sha256};
use store::Behind;

use crate::core::Gateway;

/// Seconds between two notes of a key's last use.
const NOTE_EVERY: i64 = 30;

/// An app that was let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Caller {
    /// Its key; `None` for a caller without one.
    pub key: Option<KeyId>,
    /// Whose view it gets.
    pub group: GroupId,
    /// The start of the hash of the secret that it came with: a re-issued key keeps its id,
    /// and what runs on the old secret ends.
    pub secret: u64,
}

impl Caller {
    /// The app that holds a key's present secret.
    pub(crate) fn of(key: &Key) -> Self {
        let (start, _) = key.hash.split_at(8);
        let secret = start.try_into().map_or(0, u64::from_be_bytes);
        Self { key: Some(key.id), group: key.group, secret }
    }

    /// An app without a key.
    pub(crate) fn keyless(group: GroupId) -> Self {
        Self { key: None, group, secret: 0 }
    }
}

/// Why a caller is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// No key was sent.
    Missing,
    /// No such key.
    Unknown,
    /// The key was revoked.
    Revoked,
}

impl Denied {
    /// A word for metrics.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Unknown => "unknown",
            Self::Revoked => "revoked",
        }
    }
}

/// When each key was last noted as used, seconds since the Unix epoch.
#[derive(Debug, Default)]
pub(crate) struct Used(RwLock<HashMap<KeyId, AtomicI64>>);

impl Gateway {
    /// Finds the caller by the secret it sent. The secret is hashed before it is looked up,
    /// so that the time taken says nothing about other keys.
    ///
    /// # Errors
    /// Why it is not let in.
    pub fn admit(&self, secret: Option<&str>) -> Result<Caller, Denied> {
        let catalog = self.catalog.load();
        let found = match secret {
            Some(secret) => {
                let hash: [u8; 32] = Sha256::digest(secret).into();
                match catalog.key(&hash) {
                    Some(key) if key.revoked => Err(Denied::Revoked),
                    Some(key) => Ok(Caller::of(key)),
                    None => Err(Denied::Unknown),
                }
            }
            None => Err(Denied::Missing),
        };
        match found {
            Ok(caller) => {
                self.note_use(caller);
                Ok(caller)
            }
            Err(denied) if self.options.require_key => Err(denied),
            // Clients that cannot send a header, or send one for somebody else.
            Err(denied) => catalog
                .view_by_name(&self.options.default_group)
                .map(|view| Caller::keyless(view.group.id))
                .ok_or(denied),
        }
    }

    fn note_use(&self, caller: Caller) {
        let Some(key) = caller.key else { return };
        let now = jiff::Timestamp::now().as_second();
        let due = |last: &AtomicI64| {
            let before = last.load(Ordering::Relaxed);
            now - before >= NOTE_EVERY
                && last.compare_exchange(before, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        };
        let noted = self.used.0.read().unwrap_or_else(PoisonError::into_inner);
        let note = match noted.get(&key) {
            Some(last) => due(last),
            None => {
                drop(noted);
                let mut noted = self.used.0.write().unwrap_or_else(PoisonError::into_inner);
                due(noted.entry(key).or_default())
            }
        };
        if note {
            self.store.behind(Behind::KeyUsed { key, at: now });
        }
    }
}
