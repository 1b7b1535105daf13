//! The use cases: everything that apps (by `filters`) and people (by `admin`) may ask.
//!
//! Reading order: [`core`] (what there is, and how it changes) → [`access`] (who asks) →
//! [`call`] (one tool call, start to end; `recipe`, `answer`, `run_on`) → [`words`]
//! (what a model is told when a call fails) → [`manage`] (the use cases of people).

mod access;
mod answer;
mod call;
mod core;
mod keeper;
pub mod manage;
mod recipe;
mod run_on;
mod words;

pub use access::{Denied, Seat};
pub use call::{Asked, Found, Reply, Running, Step};
pub use catalog::Caller;
pub use conversation::{Cancellable, Conversation, Conversations, Kept};
pub use core::{Gateway, Options, StartError};
pub use run_on::{Underway, run_on};
pub use upstream::{Surroundings, is_own_request, stand_guard};
