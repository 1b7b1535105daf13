//! The use cases: everything that apps (by `filters`) and people (by `admin`) may ask.
//!
//! Reading order: [`core`] (what there is, and how it changes) → [`access`] (who asks) →
//! `list` (what an app lists) → [`find`] (what a caller means to call) → [`call`] (one tool call,
//! start to end; `recipe`, `answer`, `beside`, `run_on`) → [`own`] (the manager's own tools) →
//! [`words`] (what a model is told when a call fails) → [`manage`] (the use cases of people).

mod access;
mod beside;
mod call;
mod core;
mod find;
mod keeper;
mod list;
pub mod manage;
mod own;
mod recipe;
mod run_on;
mod words;

pub use access::{Denied, Seat};
pub use call::{Asked, Reply, Running, Step};
pub use catalog::Caller;
pub use conversation::{Cancellable, Conversation, Conversations, Follower, Kept, Memory};
pub use core::{Gateway, Options, StartError};
pub use find::Found;
pub use finder::{LIBRARY, Places};
pub use list::List;
pub use run_on::{Underway, run_on};
pub use upstream::{Surroundings, is_own_request, stand_guard};
