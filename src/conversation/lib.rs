//! Legacy clients' sessions: opened, found by their id, ended, forgotten.
//!
//! Reading order: [`Conversations`] (all of them) → [`Conversation`] (one) → [`seal`] (what
//! its id says, also after a restart) → [`resume`] (streams that broke off)
//! → `shelf` (the room that they have).

mod all;
mod conversation;
mod resume;
mod seal;
mod shelf;

pub use all::Conversations;
pub use conversation::{Cancellable, Conversation};
pub use resume::Kept;
