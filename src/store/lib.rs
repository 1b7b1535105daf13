//! What survives a restart: groups, servers, keys, last known catalogs, usage and audit, in
//! one SQLite file behind one writer thread. No type of the database's library leaves here.
//!
//! Reading order: `handle` (the face), `model` (what goes in and out), `error`, then `writer`
//! (the thread), `change` (what a write does), `read`, `usage` and `schema`.

mod change;
mod error;
mod handle;
mod model;
mod read;
mod schema;
mod usage;
mod writer;

pub use error::{Error, Noun, Trouble};
pub use handle::Store;
pub use model::{
    AuditKind, AuditLine, Behind, Change, ENDED_SESSIONS, Outcome, PastCall, State, StoredVector,
    VECTORS, added,
};
