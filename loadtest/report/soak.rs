//! Everything at once for a long time: calls, event streams, lists, clients that open sessions and
//! leave, idle streams that come and go, clients that hang up on their calls. What counts is that
//! memory and open files end where they began.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::child::{Child, Group, free_ports};
use super::gateway::{Gateway, IDLE};
use super::{cost, machine};
use crate::load;
use crate::sessions::{Exchange, Session, Work};
use crate::wire::{Connection, Endpoint};

/// Sessions that are opened and left before the soak begins.
const LEFT: usize = 10_000;
/// Sessions opened at a time.
const AT_ONCE: usize = 32;
/// Connections that call over and over.
const CALLERS: usize = 8;
/// Pause of each between two calls: some 200 calls a second in all.
const PAUSE: Duration = Duration::from_millis(40);
/// Time between two readings.
const READING: Duration = Duration::from_secs(30);
/// How much memory may grow from the first third to the last, as a share.
const GROWTH: f64 = 0.10;

/// Options of `soak`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The gateway's program.
    #[arg(long)]
    gateway: PathBuf,
    /// How long.
    #[arg(long, default_value_t = 30)]
    minutes: u64,
}

/// Memory and files of the gateway at one time.
#[derive(Debug, Clone, Copy)]
struct Reading {
    seconds: u64,
    rss_kib: u64,
    files: usize,
}

/// What was done.
#[derive(Debug, Default)]
struct Done {
    calls: AtomicU64,
    lists: AtomicU64,
    left: AtomicU64,
    streams: AtomicU64,
    hung_up: AtomicU64,
}

/// Runs it and prints the readings.
///
/// # Errors
/// When an answer is wrong, or memory or files grow.
#[expect(clippy::print_stdout, reason = "the table on stdout is what the command is for")]
pub(crate) fn main(args: &Args) -> anyhow::Result<()> {
    crate::limits::raise_open_files()?;
    let (report, verdict) = load::runtime()?.block_on(soak(args))?;
    println!("{report}");
    verdict
}

async fn soak(args: &Args) -> anyhow::Result<(String, anyhow::Result<()>)> {
    let directory = tempfile::tempdir().context("failed to make a temporary directory")?;
    let [json, events] = free_ports()?;
    let mut toys = vec![toy("toy", json, &["--tools", "400"], directory.path())?];
    let more = ["--tools", "1", "--sse", "--prefix", "events"];
    toys.push(toy("events", events, &more, directory.path())?);
    for (toy, port) in toys.iter_mut().zip([json, events]) {
        toy.wait_for_port(port).await?;
    }
    let pairs = [("toy", json), ("events", events)];
    let gateway = Gateway::forgetful(&args.gateway, directory.path(), &pairs).await?;
    let group = gateway.child.group();

    // One of each first: what is built on first use is there before anything is compared.
    let stop = CancellationToken::new();
    let done = Arc::new(Done::default());
    let mut crowd = crowd(&gateway.endpoint, &done, &stop);
    tokio::time::sleep(Duration::from_secs(5)).await;
    stop.cancel();
    while let Some(ended) = crowd.join_next().await {
        ended.context("a client's task failed")??;
    }
    let mut report = open_and_leave(&gateway.endpoint, group).await?;

    let (stop, done) = (CancellationToken::new(), Arc::new(Done::default()));
    let mut crowd = self::crowd(&gateway.endpoint, &done, &stop);
    let (begin, length) = (Instant::now(), Duration::from_secs(args.minutes * 60));
    let mut readings = vec![reading(group, begin)?];
    while begin.elapsed() < length {
        tokio::select! {
            () = tokio::time::sleep(READING.min(length)) => readings.push(reading(group, begin)?),
            Some(ended) = crowd.join_next() => {
                ended.context("a client's task failed")??;
                bail!("a client ended before the time");
            }
        }
    }
    stop.cancel();
    while let Some(ended) = crowd.join_next().await {
        ended.context("a client's task failed")??;
    }
    let verdict = judge(&readings);
    report.push_str(&render(args.minutes, &done, &readings));
    Ok((report, verdict))
}

fn toy(name: &str, port: u16, more: &[&str], directory: &Path) -> anyhow::Result<Child> {
    let port = port.to_string();
    Child::ourselves(name, [&["toy", "--port", &port], more].concat(), directory)
}

/// Sessions that are opened and never used again (SEC-04).
async fn open_and_leave(endpoint: &Endpoint, group: Group) -> anyhow::Result<String> {
    let begin = Instant::now();
    let before = reading(group, begin)?;
    let mut opening = JoinSet::new();
    for _ in 0..LEFT {
        if opening.len() >= AT_ONCE {
            opening.join_next().await.context("nothing is opening")???;
        }
        let endpoint = endpoint.clone();
        opening.spawn(async move { Session::open(&endpoint).await.map(drop) });
    }
    while let Some(opened) = opening.join_next().await {
        opened??;
    }
    let open = reading(group, begin)?;
    tokio::time::sleep(IDLE * 3).await;
    let after = reading(group, begin)?;
    Ok(format!(
        "{LEFT} sessions opened and left: {} KiB and {} files before, {} KiB and {} files with \
         all of them, {} KiB and {} files three idle limits later.\n\n",
        before.rss_kib, before.files, open.rss_kib, open.files, after.rss_kib, after.files,
    ))
}

/// All clients of the soak.
fn crowd(
    endpoint: &Endpoint,
    done: &Arc<Done>,
    stop: &CancellationToken,
) -> JoinSet<anyhow::Result<()>> {
    let mut crowd = JoinSet::new();
    for at in 0..CALLERS {
        let tool = if at % 4 == 3 { "events_echo" } else { "echo" };
        crowd.spawn(ask(endpoint.clone(), done.clone(), stop.clone(), call(tool), PAUSE));
    }
    let list = Work::List { at_least: 400 };
    crowd.spawn(ask(endpoint.clone(), done.clone(), stop.clone(), list, PAUSE * 10));
    crowd.spawn(leave(endpoint.clone(), done.clone(), stop.clone()));
    crowd.spawn(listen(endpoint.clone(), done.clone(), stop.clone()));
    crowd.spawn(hang_up(endpoint.clone(), done.clone(), stop.clone()));
    crowd
}

fn call(tool: &str) -> Work {
    let arguments = r#"{"text":"soak","count":3,"labels":["one","two"]}"#.to_owned();
    Work::Call { tool: tool.to_owned(), arguments, expect: Some("soak".to_owned()) }
}

async fn ask(
    endpoint: Endpoint,
    done: Arc<Done>,
    stop: CancellationToken,
    work: Work,
    pause: Duration,
) -> anyhow::Result<()> {
    let count = if matches!(work, Work::List { .. }) { &done.lists } else { &done.calls };
    let mut exchange = Exchange::new(Session::open(&endpoint).await?, &endpoint, work);
    while !stop.is_cancelled() {
        exchange.once().await?;
        count.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(pause).await;
    }
    Ok(())
}

async fn leave(endpoint: Endpoint, done: Arc<Done>, stop: CancellationToken) -> anyhow::Result<()> {
    while !stop.is_cancelled() {
        drop(Session::open(&endpoint).await?);
        done.left.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(PAUSE * 2).await;
    }
    Ok(())
}

async fn listen(
    endpoint: Endpoint,
    done: Arc<Done>,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    while !stop.is_cancelled() {
        let held = load::hold(&endpoint, 20).await?;
        done.streams.fetch_add(held.len() as u64, Ordering::Relaxed);
        tokio::time::sleep(PAUSE * 50).await;
    }
    Ok(())
}

/// A call whose client is gone before the answer.
async fn hang_up(
    endpoint: Endpoint,
    done: Arc<Done>,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x","count":1,"labels":[]}}}"#;
    while !stop.is_cancelled() {
        let session = Session::open(&endpoint).await?;
        let request = endpoint.request("POST", session.lines(), body);
        let mut connection = Connection::open(&endpoint).await?;
        connection.only_send(&request).await?;
        drop(connection);
        done.hung_up.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

fn reading(group: Group, begin: Instant) -> anyhow::Result<Reading> {
    let files =
        std::fs::read_dir(format!("/proc/{}/fd", group.0)).context("the gateway is gone")?.count();
    let rss_kib = cost::of(group)?.rss_kib;
    Ok(Reading { seconds: begin.elapsed().as_secs(), rss_kib, files })
}

/// Whether the last third looks like the first.
fn judge(readings: &[Reading]) -> anyhow::Result<()> {
    let third = (readings.len() / 3).max(1);
    let most = |part: &[Reading]| {
        let rss = part.iter().map(|reading| reading.rss_kib).max().unwrap_or_default();
        (rss, part.iter().map(|reading| reading.files).max().unwrap_or_default())
    };
    let (first, last) = (most(&readings[..third]), most(&readings[readings.len() - third..]));
    if last.0 as f64 > first.0 as f64 * (1.0 + GROWTH) {
        bail!("memory grew from {} to {} KiB", first.0, last.0);
    }
    if last.1 > first.1 + CALLERS * 4 {
        bail!("open files grew from {} to {}", first.1, last.1);
    }
    Ok(())
}

fn render(minutes: u64, done: &Done, readings: &[Reading]) -> String {
    let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let mut page = format!(
        "{}. {}. {minutes} minutes: {} calls, {} lists of 400 tools, {} sessions opened and left, \
         {} streams opened and closed, {} clients that hung up on a call.\n\n\
         | minute | RSS KiB | open files |\n|--:|--:|--:|\n",
        machine::describe(),
        machine::now(),
        of(&done.calls),
        of(&done.lists),
        of(&done.left),
        of(&done.streams),
        of(&done.hung_up),
    );
    let step = (readings.len() / 10).max(1);
    for reading in readings.iter().step_by(step) {
        let minute = reading.seconds as f64 / 60.0;
        page.push_str(&format!("| {minute:.1} | {} | {} |\n", reading.rss_kib, reading.files));
    }
    page
}

#[cfg(test)]
mod tests {
    use super::{Reading, judge};

    fn readings(rss: [u64; 6], files: [usize; 6]) -> Vec<Reading> {
        let both = rss.into_iter().zip(files);
        both.map(|(rss_kib, files)| Reading { seconds: 0, rss_kib, files }).collect()
    }

    #[test]
    fn growth_is_told_from_noise() {
        let flat = [100; 6];
        assert!(judge(&readings([100, 104, 99, 103, 101, 105], flat)).is_ok());
        assert!(judge(&readings([100, 104, 110, 118, 121, 130], flat)).is_err());
        assert!(judge(&readings([100; 6], [10, 10, 40, 80, 120, 160])).is_err());
    }
}
