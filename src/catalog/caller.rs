//! Who asks: a key's app, or a caller without a key where the settings let those in.

use crate::model::{GroupId, Key, KeyId};

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
    pub fn of(key: &Key) -> Self {
        let (start, _) = key.hash.split_at(8);
        let secret = start.try_into().map_or(0, u64::from_be_bytes);
        Self { key: Some(key.id), group: key.group, secret }
    }

    /// An app without a key.
    pub fn keyless(group: GroupId) -> Self {
        Self { key: None, group, secret: 0 }
    }
}
