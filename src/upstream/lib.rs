//! Connections to the servers behind: how a call reaches one, and how one is kept.
//!
//! Reading order: [`Upstreams`] (all servers) → [`Upstream`] (one server: its link and its
//! sessions) → [`link`] (the supervisor that lists, checks and reconnects) → [`session`]
//! (one conversation with a server, either era) → [`http`] and [`stdio`] (bytes).

mod backoff;
mod endpoint;
mod environment;
mod exchange;
mod failure;
mod http;
mod link;
mod listing;
mod session;
mod stdio;
mod upstream;
mod upstreams;

pub use environment::Lookup;
pub use exchange::{Answer, Event, Exchange, Notice};
pub use failure::Failure;
pub use link::{State, Status};
pub use session::{CLIENT_INFO, Recipe, Request, Wants};
pub use upstream::{Call, Owner, Upstream};
pub use upstreams::{News, Tested, Upstreams};
