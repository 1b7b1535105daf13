//! The use cases: everything that apps (by `filters`) and people (by `admin`) may ask.
//!
//! Reading order: [`core`] (what there is, and how it changes) → [`access`] (who asks) →
//! [`conversation`] (legacy sessions) → [`call`] (one tool call, start to end) → [`words`]
//! (what a model is told when a call fails) → [`manage`] (the use cases of people).

mod access;
mod call;
mod conversation;
mod core;
mod keeper;
pub mod manage;
mod seal;
mod words;

pub use access::{Caller, Denied};
pub use call::{Asked, Found, Reply, Running, Step};
pub use conversation::{Cancellable, Conversation};
pub use core::{Gateway, Options, StartError};
