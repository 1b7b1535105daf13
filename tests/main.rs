//! The manager from outside: the real binary on a real socket, real MCP servers behind it and real
//! MCP clients in front. Nothing here calls a function of the manager.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop there and say where")]

mod api;
mod behaviour;
mod behind;
mod calls;
mod cases;
mod conformance;
mod doors;
mod eras;
mod faults;
mod front;
mod hostile;
mod hybrid;
mod limits;
mod real_clients;
mod real_servers;
mod sessions;
mod support;
mod trouble;
mod versions;
