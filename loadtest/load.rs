//! One load against one endpoint: a number of connections, each asking again as soon as it is
//! answered (a closed loop, so latency is under exactly that many calls in flight).

use std::time::{Duration, Instant};

use anyhow::Context;
use hdrhistogram::Histogram;
use serde_json::json;
use tokio::task::JoinSet;

use crate::sessions::{Exchange, Session, Work};
use crate::wire::Endpoint;

/// Latency is counted in microseconds up to a minute, with three digits.
const LONGEST_US: u64 = 60_000_000;
/// Opening more at once would only fill the backlog of the server.
const OPENED_AT_ONCE: usize = 32;

/// Options of `gen`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// MCP endpoint, such as http://127.0.0.1:8899/mcp.
    #[arg(long)]
    url: String,
    /// Key, sent as a bearer token.
    #[arg(long)]
    token: Option<String>,
    /// How many connections, each with its own session.
    #[arg(long, default_value_t = 16)]
    connections: usize,
    /// How long to measure.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// What each connection does.
    #[arg(long, value_enum, default_value_t = Kind::Call)]
    kind: Kind,
    /// Tool to call.
    #[arg(long, default_value = "echo")]
    tool: String,
    /// Arguments of the call, as JSON.
    #[arg(long, default_value = r#"{"text":"hello"}"#)]
    args: String,
    /// Text that each answer to a call must contain.
    #[arg(long)]
    expect: Option<String>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Kind {
    /// Call a tool over and over.
    Call,
    /// List the tools over and over.
    List,
    /// Open sessions with a GET stream each and hold them.
    Idle,
}

/// What came of a load.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Right answers.
    pub(crate) requests: u64,
    /// Wrong or missing answers; each ended its connection's work.
    pub(crate) errors: u64,
    /// The first of these, as text.
    pub(crate) first_error: Option<String>,
    /// From the first request to the last answer.
    pub(crate) elapsed: Duration,
    /// Microseconds from request to whole answer.
    latency: Histogram<u64>,
}

impl Outcome {
    /// Right answers per second.
    pub(crate) fn per_second(&self) -> f64 {
        self.requests as f64 / self.elapsed.as_secs_f64().max(f64::EPSILON)
    }

    /// Latency in milliseconds at a quantile from 0 to 1.
    pub(crate) fn latency_ms(&self, quantile: f64) -> f64 {
        self.latency.value_at_quantile(quantile) as f64 / 1000.0
    }

    /// # Errors
    /// When any answer was wrong: its figures mean nothing.
    pub(crate) fn checked(self) -> anyhow::Result<Self> {
        match &self.first_error {
            Some(error) => anyhow::bail!("{} wrong answers, the first: {error}", self.errors),
            None => Ok(self),
        }
    }
}

/// Runs `gen`: one load, one JSON object on stdout.
///
/// # Errors
/// When no session can be opened, or any answer was wrong (after printing).
#[expect(clippy::print_stdout, reason = "the JSON on stdout is what the command is for")]
pub(crate) fn main(args: &Args) -> anyhow::Result<()> {
    crate::limits::raise_open_files()?;
    let endpoint = Endpoint::new(&args.url, args.token.clone())?;
    let runtime = runtime()?;
    let duration = Duration::from_secs(args.seconds);
    let work = match args.kind {
        Kind::Idle => {
            let opened = runtime.block_on(idle(&endpoint, args.connections, duration))?;
            println!(
                "{}",
                json!({"kind": "idle", "sessions": args.connections, "opened_ms": opened})
            );
            return Ok(());
        }
        Kind::List => Work::List { at_least: 0 },
        Kind::Call => {
            serde_json::from_str::<serde_json::Value>(&args.args).context("--args is no JSON")?;
            let (tool, arguments) = (args.tool.clone(), args.args.clone());
            Work::Call { tool, arguments, expect: args.expect.clone() }
        }
    };
    let outcome = runtime.block_on(async {
        let exchanges = prepare(&endpoint, args.connections, &work).await?;
        anyhow::Ok(run(exchanges, duration).await.1)
    })?;
    let line = json!({
        "connections": args.connections,
        "seconds": outcome.elapsed.as_secs_f64(),
        "requests": outcome.requests,
        "errors": outcome.errors,
        "first_error": outcome.first_error,
        "requests_per_second": outcome.per_second(),
        "p50_ms": outcome.latency_ms(0.5),
        "p99_ms": outcome.latency_ms(0.99),
        "max_ms": outcome.latency_ms(1.0),
    });
    println!("{line}");
    outcome.checked().map(drop)
}

/// A runtime for the generator: one thread, which is enough for what two cores can serve.
///
/// # Errors
/// When the system gives no event queue.
pub(crate) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("failed to start a runtime")
}

/// Opens a session per connection and makes one exchange on each, so that what is built on first
/// use is there before the clock starts.
///
/// # Errors
/// When a session is refused or the first answer is wrong.
pub(crate) async fn prepare(
    endpoint: &Endpoint,
    connections: usize,
    work: &Work,
) -> anyhow::Result<Vec<Exchange>> {
    let mut exchanges = Vec::with_capacity(connections);
    for _ in 0..connections {
        let session = Session::open(endpoint).await?;
        let mut exchange = Exchange::new(session, endpoint, work.clone());
        exchange.once().await?;
        exchanges.push(exchange);
    }
    Ok(exchanges)
}

/// Repeats every exchange until `duration` is over and returns those that still work.
pub(crate) async fn run(exchanges: Vec<Exchange>, duration: Duration) -> (Vec<Exchange>, Outcome) {
    let start = Instant::now();
    let end = start + duration;
    let mut loops = JoinSet::new();
    for exchange in exchanges {
        loops.spawn(repeat(exchange, end));
    }
    let mut outcome = Outcome {
        requests: 0,
        errors: 0,
        first_error: None,
        elapsed: Duration::ZERO,
        latency: histogram(),
    };
    let mut working = Vec::new();
    while let Some(joined) = loops.join_next().await {
        let (latency, ended) = joined.expect("a loop neither panics nor is aborted");
        outcome.requests += latency.len();
        outcome.latency.add(latency).expect("all histograms have the same bounds");
        match ended {
            Ok(exchange) => working.push(exchange),
            Err(error) => {
                outcome.errors += 1;
                outcome.first_error.get_or_insert(format!("{error:#}"));
            }
        }
    }
    outcome.elapsed = start.elapsed();
    (working, outcome)
}

/// Opens `sessions` sessions, each with a GET stream. They close when dropped.
///
/// # Errors
/// When one is refused.
pub(crate) async fn hold(endpoint: &Endpoint, sessions: usize) -> anyhow::Result<Vec<Session>> {
    let mut open = Vec::with_capacity(sessions);
    let mut opening = JoinSet::new();
    while open.len() < sessions {
        while opening.len() < OPENED_AT_ONCE && open.len() + opening.len() < sessions {
            let endpoint = endpoint.clone();
            opening.spawn(async move { Session::open(&endpoint).await?.listen(&endpoint).await });
        }
        let Some(joined) = opening.join_next().await else { break };
        let session = joined.context("a session's task failed")?;
        open.push(session.with_context(|| format!("failed after {} sessions", open.len()))?);
    }
    Ok(open)
}

async fn idle(endpoint: &Endpoint, sessions: usize, duration: Duration) -> anyhow::Result<u64> {
    let start = Instant::now();
    let open = hold(endpoint, sessions).await?;
    let opened = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
    tokio::time::sleep(duration).await;
    drop(open);
    Ok(opened)
}

async fn repeat(
    mut exchange: Exchange,
    end: Instant,
) -> (Histogram<u64>, anyhow::Result<Exchange>) {
    let mut latency = histogram();
    let mut before = Instant::now();
    while before < end {
        if let Err(error) = exchange.once().await {
            return (latency, Err(error));
        }
        let now = Instant::now();
        let us = u64::try_from((now - before).as_micros()).unwrap_or(LONGEST_US);
        latency.saturating_record(us);
        before = now;
    }
    (latency, Ok(exchange))
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_US, 3).expect("the bounds are valid")
}
