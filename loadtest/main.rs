//! Measures what the manager costs: against calling a server directly, and against Pingora passing
//! bytes through. Everything it needs comes with it: a server, a baseline and a load generator.
//!
//! - `report` ([`report`]): the whole comparison as a table, with every process started and stopped here
//! - `soak` ([`report::soak`]): whether memory and open files stay flat over a long time
//! - `gen` ([`load`], [`sessions`], [`wire`]): one load against one endpoint, as JSON
//! - `toy` ([`toy`]): the MCP server behind everything, cheap enough not to be the limit
//! - `raw` ([`raw`]): Pingora without an MCP thought in it

mod limits;
mod load;
mod raw;
mod report;
mod sessions;
mod toy;
mod wire;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Load generator and comparison for MCP-Manager.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve a fast toy MCP server on 127.0.0.1.
    Toy(toy::Args),
    /// Pass everything through to another loopback port with bare Pingora.
    Raw(raw::Args),
    /// Load one endpoint and print one JSON object.
    Gen(load::Args),
    /// Load a gateway with everything at once for a long time, and print its memory and files.
    Soak(report::soak::Args),
    /// Compare direct, baseline and gateway, and print a Markdown table.
    Report(report::Args),
}

#[expect(clippy::print_stderr, reason = "the one place where an error reaches the caller")]
fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Toy(args) => toy::main(&args),
        Command::Raw(args) => raw::main(&args),
        Command::Gen(args) => load::main(&args),
        Command::Soak(args) => report::soak::main(&args),
        Command::Report(args) => report::main(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // Written here, since the standard way adds a backtrace that helps nobody.
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
