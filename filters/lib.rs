//! Requests from apps: MCP over HTTP, from the first header to the last byte.
//!
//! The order of checks (product rule P2) reads from top to bottom in [`mcp::serve`]; host
//! and origin come before anything is looked up. Reading order: [`host`], [`key`],
//! [`body`] (may it come in?) → [`rpc`] (which method, which era) → one file per method
//! under [`methods`] → [`reply`] and [`refusal`] (the only ways out).
//!
//! | method | 2025-11-25 and older | 2026-07-28 | file |
//! |---|---|---|---|
//! | `initialize` | yes | – | methods/initialize |
//! | `ping` | yes | – | methods/simple |
//! | `logging/setLevel` | yes | – | methods/simple |
//! | `server/discover` | – | yes | methods/discover |
//! | `subscriptions/listen` | – | yes | methods/stream |
//! | `tools/list` | yes | yes | methods/tools_list |
//! | `tools/call` | yes | yes | methods/tools_call |
//! | `resources/list`, `resources/templates/list`, `prompts/list` | yes | yes | methods/simple |
//! | GET (server's messages) | yes | – | methods/stream |
//! | DELETE (end of session) | yes | – | methods/simple |

mod accept;
mod batch;
mod body;
mod host;
mod key;
mod lone;
pub mod mcp;
mod methods;
mod refusal;
mod reply;
mod rpc;

pub use body::{drain as drain_body, read as read_body};
pub use host::{Bind, Hosts, Verdict};
pub use lone::Rest;
pub use refusal::Refusal;
pub use reply::{Client, Report, STALLED, stay_open};
