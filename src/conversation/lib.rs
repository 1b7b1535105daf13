//! Legacy clients' sessions: opened, found by their id, ended, forgotten. And what clients of any
//! era used and were told.
//!
//! Reading order: [`Conversations`] (all of them) → [`Conversation`] (one) → [`seal`] (what
//! its id says, also after a restart) → [`resume`] (streams that broke off)
//! → `shelf` (the room that they have) → [`Memory`] (what outlives a session) → [`Learned`]
//! (what outlives a conversation).

mod all;
mod conversation;
mod learned;
mod memory;
mod resume;
mod seal;
mod shelf;

pub use all::Conversations;
pub use conversation::{Cancellable, Conversation};
pub use learned::{CAP, Learned, ToolId};
pub use memory::{Follower, Memory};
pub use resume::Kept;
