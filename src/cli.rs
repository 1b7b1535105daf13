//! The command line: one file per command.

mod check;
mod connect;
mod demo;
mod group;
mod key;
mod serve;
mod server;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use tokio::runtime::Builder;

use crate::settings::{Env, Settings};

/// One MCP server in front of many: one keyed endpoint for every app, all your servers behind it.
#[derive(Debug, Parser)]
#[command(name = "mcp-manager", version, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Args)]
struct Common {
    /// The conf file; without it conf/mcp-manager.yaml, if there is one, else the defaults
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve; this is what happens without a command, too
    Serve,
    /// Show the manager at work: two small servers, a key, one call, and how to connect
    Demo(demo::Demo),
    /// Read the conf file and the environment, and say what is wrong
    Check,
    /// Keys of apps
    #[command(subcommand)]
    Key(key::Key),
    /// Groups: what the apps with their keys see
    #[command(subcommand)]
    Group(group::Group),
    /// MCP servers behind the manager
    #[command(subcommand)]
    Server(server::Server),
    /// One of the demo's own servers
    #[command(hide = true)]
    DemoClock,
    /// Ends local servers when a manager that was killed could not (see [`gateway::stand_guard`])
    #[command(hide = true, name = crate::boot::WARDEN)]
    Warden,
}

/// Threads for what runs beside requests, which have threads of their own (`port::Lanes`).
const WORKERS: usize = 2;

/// Runs the command.
///
/// # Errors
/// What went wrong, to be told to the person at the terminal.
pub(crate) fn run(arguments: Arguments) -> anyhow::Result<()> {
    let load = || Settings::load(arguments.common.config.as_deref(), &Env::process());
    if let Some(Command::Warden) = arguments.command {
        // Without a runtime and its threads: all it does is wait.
        gateway::stand_guard(std::io::stdin().lock());
        return Ok(());
    }
    let runtime = Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build()?;
    let done = match arguments.command {
        None | Some(Command::Serve) => runtime.block_on(serve::run(&load()?)),
        Some(Command::Demo(demo)) => runtime.block_on(demo::run(&demo)),
        Some(Command::Check) => check::run(&load()?),
        Some(Command::Key(key)) => runtime.block_on(key::run(key, &load()?)),
        Some(Command::Group(group)) => runtime.block_on(group::run(group, &load()?)),
        Some(Command::Server(server)) => runtime.block_on(server::run(server, &load()?)),
        Some(Command::Warden) => Ok(()),
        Some(Command::DemoClock) => runtime.block_on(::demo::serve_stdio()),
    };
    // Reading standard input cannot be interrupted; do not wait for it.
    runtime.shutdown_background();
    done
}

/// Tells what went wrong, with its causes in one line.
pub(crate) fn fail(error: &anyhow::Error) -> ExitCode {
    say_error(&format!("mcp-manager: {error:#}"));
    ExitCode::FAILURE
}

#[expect(clippy::print_stdout, reason = "a command line answers on standard output")]
fn say(line: &str) {
    println!("{line}");
}

#[expect(clippy::print_stderr, reason = "the reason of a failed command goes to standard error")]
fn say_error(line: &str) {
    eprintln!("{line}");
}
