//! The servers behind: which session a call runs on, and how a server is kept reachable.
//!
//! Reading order: [`Upstreams`] (all servers) → [`Upstream`] (one server: its link and its
//! sessions) → [`link`] (the supervisor that connects and reconnects), [`follow`] (what it does
//! while connected) and [`probe`] (is it alive?) → [`slot`] (the place of an app's session) and [`aside`] (what is said on it
//! beside calls) → [`Call`] (a request in flight). One conversation and its bytes are the
//! crate `transport`.

mod aside;
mod backoff;
mod call;
mod follow;
mod link;
mod listing;
mod probe;
mod slot;
mod upstream;
mod upstreams;

pub use call::Call;
pub use link::{State, Status};
pub use slot::Owner;
pub use transport::{
    Answer, CLIENT_INFO, Event, Exchange, Failure, Notice, Recipe, Repeat, Request, Surroundings,
    Wants, is_own_request, stand_guard,
};
pub use upstream::Upstream;
pub use upstreams::{News, Tested, Upstreams};
