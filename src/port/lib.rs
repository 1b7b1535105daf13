//! The one port: connections, and the life of each request on it.
//!
//! Reading order: [`listen`] (the port, bound first; TLS told by its first byte; then pingora) →
//! [`lanes`] (the threads that connections stay on) → [`line`] (one connection: bounds on its
//! silence and on how long a head may take) → [`front`] (host, route, edge, log line). [`certificate`] is what TLS is served with, [`turned_away`] what
//! connections are told that are not served.

mod certificate;
mod front;
mod lanes;
mod line;
mod listen;
mod turned_away;

use std::time::Duration;

pub use certificate::Tls;
pub use front::Front;
pub use lanes::Lanes;
pub use listen::{Listener, serve};

/// What connections and requests may cost.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Largest body of a request, in bytes.
    pub body: usize,
    /// How long a body may take.
    pub body_time: Duration,
    /// Largest head of a request, in bytes.
    pub head: usize,
    /// How long a connection may stay open without a request.
    pub idle: Duration,
    /// Connections that may be open at a time.
    pub connections: usize,
}
