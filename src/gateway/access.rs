//! Who asks: a key's app, or a caller without a key where the settings let those in.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use catalog::{Caller, KeyId};
use conversation::Conversation;
use sha2::{Digest, Sha256};
use store::Behind;

use crate::core::Gateway;

/// Seconds between two notes of a key's last use.
const NOTE_EVERY: i64 = 30;

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

/// What is counted for each key; callers without one count as one app.
#[derive(Debug, Default)]
pub(crate) struct Apps(RwLock<HashMap<Option<KeyId>, Arc<App>>>);

#[derive(Debug, Default)]
struct App {
    /// When it was last noted as used, seconds since the Unix epoch.
    noted: AtomicI64,
    /// Calls under way.
    running: AtomicUsize,
}

/// The right to run one call, until dropped.
#[derive(Debug)]
pub struct Seat(Arc<App>);

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Apps {
    fn of(&self, key: Option<KeyId>) -> Arc<App> {
        if let Some(app) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return app.clone();
        }
        let mut apps = self.0.write().unwrap_or_else(PoisonError::into_inner);
        apps.entry(key).or_default().clone()
    }
}

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
        let app = self.apps.of(caller.key);
        let before = app.noted.load(Ordering::Relaxed);
        let swap = || app.noted.compare_exchange(before, now, Ordering::Relaxed, Ordering::Relaxed);
        if now - before >= NOTE_EVERY && swap().is_ok() {
            self.store.behind(Behind::KeyUsed { key, at: now });
        }
    }

    /// Ends a client's session at its wish. Its id stays unknown, over a restart, too (F24).
    pub fn end_session(&self, conversation: &Conversation) {
        if let Some(nonce) = self.conversations.end(conversation) {
            let at = jiff::Timestamp::now().as_second();
            self.store.behind(Behind::SessionEnded { nonce, at });
        }
    }

    /// The right to run one more call; `None` when as many are running as may (P6).
    pub fn seat(&self, caller: &Caller) -> Option<Seat> {
        let seat = Seat(self.apps.of(caller.key));
        // Counted first; a seat that is one too many gives it back as it is dropped.
        let before = seat.0.running.fetch_add(1, Ordering::Relaxed);
        (before < self.options.calls_per_key).then_some(seat)
    }
}
