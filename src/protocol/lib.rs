//! MCP on the wire, both directions, every era. Pure: no I/O, no clock, no async.
//!
//! Reading order: [`json`] (raw JSON text, looked at but not re-typed), [`version`]
//! (eras), [`message`] (JSON-RPC envelopes), [`codes`], [`meta`] (per-request `_meta`),
//! [`headers`] and [`param`] (what 2026-07-28 mirrors into headers), [`sse`] (event
//! streams), [`bridge`] (what changes between a client of one era and a server of another).

pub mod bridge;
pub mod codes;
pub mod headers;
pub mod json;
pub mod message;
pub mod meta;
pub mod param;
pub mod sse;
pub mod version;

pub use message::{Incoming, Malformed, Message, Outcome};
pub use version::{Era, Version};
