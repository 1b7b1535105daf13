//! Connections to the servers behind: how a call reaches one, and how one is kept.
//!
//! Reading order: [`Upstreams`] (all servers) → [`Upstream`] (one server: its link and its
//! sessions) → [`link`] (the supervisor that lists, checks and reconnects) → [`session`]
//! (one conversation with a server, either era) → [`http`] and [`stdio`] (bytes).

mod backoff;
mod call;
mod endpoint;
mod exchange;
mod failure;
mod head;
mod http;
mod http_link;
mod link;
mod listing;
mod session;
mod slot;
mod stdio;
mod upstream;
mod upstreams;

pub use call::Call;
pub use exchange::{Answer, Event, Exchange, Notice};
pub use failure::Failure;
pub use link::{State, Status};
pub use session::{CLIENT_INFO, Recipe, Request, Wants};
pub use upstream::{Owner, Upstream};
pub use upstreams::{News, Tested, Upstreams};
