//! Measures what models get: whether search finds the right tool, and what lists and answers
//! cost in tokens. The data is beside it, in `tests/search-bench` and `tests/real-tools`.
//!
//! - `search` ([`retrieval`]): recall and rank on three sets of real questions
//! - `tokens` ([`tokens`]): the price of each mode on the tools of nineteen real servers

mod retrieval;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Measures what models get.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Search the benchmark sets, and print a Markdown table.
    Search(retrieval::Args),
}

#[expect(clippy::print_stderr, reason = "the one place where an error reaches the caller")]
fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Search(args) => retrieval::main(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
