//! The comparison: starts the toys, the baselines and the gateway, measures them in turn, and writes
//! a table. Rounds are interleaved (each round visits every path once), so that a slow moment of the
//! machine falls on all of them; figures are medians over the rounds. Whatever happens, the
//! processes end with it.
//!
//! - [`paths`]: what is compared, and starting it; `gateway` and `nginx` are two of them
//! - [`measure`]: the rows, and the rounds over them
//! - [`table`]: medians and ratios as Markdown
//! - [`start`]: from the start of the process to the first list
//! - [`soak`]: a long run of everything at once, a command of its own
//! - [`child`], [`cost`], [`machine`]: processes, what they cost, where they ran

mod child;
mod cost;
mod gateway;
mod machine;
mod measure;
mod nginx;
mod paths;
pub(crate) mod soak;
mod start;
mod table;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::signal::unix::{SignalKind, signal};

use measure::Plan;
use paths::Paths;

/// Options of `report`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The gateway's program. Without it, only direct and baseline are measured.
    #[arg(long)]
    gateway: Option<PathBuf>,
    /// Seconds per measurement; event streams and lists take half of it.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// How often each path is measured.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// How many idle sessions to open, as far as the limit of open files goes.
    #[arg(long, default_value_t = 2000)]
    idle: usize,
    /// One round of one second and 200 idle sessions: to see that all works, not to quote.
    #[arg(long)]
    quick: bool,
    /// Also write the table to this file.
    #[arg(long)]
    out: Option<PathBuf>,
}

/// Runs the comparison and prints the table.
///
/// # Errors
/// When a process does not start, an answer is wrong, or a signal stops the run.
#[expect(clippy::print_stdout, reason = "the table on stdout is what the command is for")]
pub(crate) fn main(args: &Args) -> anyhow::Result<()> {
    let open_files = crate::limits::raise_open_files()?;
    let runtime = crate::load::runtime()?;
    let report = runtime.block_on(async {
        // The losing future is dropped here, and with it every child process.
        tokio::select! {
            report = compare(args, open_files) => report,
            stopped = stopped() => stopped,
        }
    })?;
    println!("{report}");
    if let Some(out) = &args.out {
        std::fs::write(out, report).with_context(|| format!("failed to write {out:?}"))?;
    }
    Ok(())
}

async fn compare(args: &Args, open_files: u64) -> anyhow::Result<String> {
    let plan = Plan {
        duration: Duration::from_secs(if args.quick { 1 } else { args.seconds.max(1) }),
        rounds: if args.quick { 1 } else { args.rounds.max(1) },
        idle_asked: if args.quick { args.idle.min(200) } else { args.idle },
        // A path holds two files for each session: one to the client and one to the toy.
        idle_fitting: crate::limits::sessions_that_fit(open_files, 2),
    };
    let directory = tempfile::tempdir().context("failed to make a temporary directory")?;
    let load_before = machine::load_average();
    let paths = Paths::start(args.gateway.as_deref(), directory.path()).await?;
    let results = match measure::all(&plan, &paths).await {
        Ok(results) => results,
        Err(error) => bail!("{error:#}\n{}", paths.logs()),
    };
    let start = match &args.gateway {
        Some(program) => Some(start::measure(program, directory.path()).await?),
        None => None,
    };
    let heading = table::Heading {
        start,
        machine: machine::describe(),
        date: machine::now(),
        load: (load_before, machine::load_average()),
        nginx: paths.has_nginx(),
        gateway: args.gateway.is_some(),
    };
    Ok(table::render(&heading, &plan, &results))
}

async fn stopped() -> anyhow::Result<String> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    bail!("stopped by a signal; no report")
}
