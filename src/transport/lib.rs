//! One conversation with one server: bytes out, messages back.
//!
//! Reading order: [`Session`] (opened over either transport, of either era) → [`exchange`]
//! (one request in flight: notices, then an answer) → [`http_link`], [`http`], [`wire`],
//! [`endpoint`], [`hop`] and [`pool`] (streamable HTTP) or [`stdio`] (a process). Who keeps sessions, and for
//! whom, is the business of the crate `upstream`.

mod context;
mod decode;
mod endpoint;
mod exchange;
mod failure;
mod head;
mod hop;
mod http;
mod http_link;
mod pool;
mod session;
mod stdio;
mod wire;
mod write;

pub use context::{Context, Surroundings};
pub use exchange::{Answer, Event, Exchange, Notice};
pub use failure::Failure;
pub use hop::is_own as is_own_request;
pub use process::{Stderr, stand_guard};
pub use session::{CLIENT_INFO, Recipe, Repeat, Request, Session, Wants, next_id};
