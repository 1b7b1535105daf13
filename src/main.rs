//! MCP-Manager: one MCP server in front of many. This file turns arguments into one command
//! and its error into an exit code; everything else is behind [`cli`] and [`boot`].

// The future of a request nests as deep as its path through the crates.
#![recursion_limit = "256"]

mod boot;
mod cli;
mod logging;
mod settings;

use std::process::ExitCode;

use clap::Parser as _;

/// A call makes many small allocations; with the system's allocator it costs a tenth more CPU
/// (README, "Speed").
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments = cli::Arguments::parse();
    // Pingora and others take rustls's process-wide provider; there must be one, and one only.
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        return cli::fail(&anyhow::anyhow!("failed to install the TLS provider twice"));
    }
    match cli::run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => cli::fail(&error),
    }
}
