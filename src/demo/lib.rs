//! Two small MCP servers to put behind the manager: `notes` over streamable HTTP and `clock` over
//! stdio. They are what a first run shows, so they do real work and describe themselves truthfully.
//! Both speak every protocol version that rmcp speaks; the manager knows nothing of this crate.
//!
//! - [`notes`]: the HTTP server; `notes/book.rs` keeps the notes, `notes/countdown.rs` reports progress
//! - [`clock`]: the stdio server; `clock/arithmetic.rs` holds its calendar

mod clock;
mod notes;

pub use clock::serve_stdio;
pub use notes::serve_http;
