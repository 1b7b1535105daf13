//! From starting the process to the first answered `tools/list`, as after a reboot: the database
//! knows the servers and their tools, and all of them are there.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::child::{Child, free_ports};
use super::cost;
use super::gateway::{Gateway, launch};
use crate::sessions::{Exchange, Session, Work};

/// Servers in the database.
pub(crate) const SERVERS: usize = 10;
/// Tools of each.
pub(crate) const TOOLS: usize = 40;
/// How often it is started.
const STARTS: usize = 7;
/// Between two looks whether it listens.
const LOOK: Duration = Duration::from_millis(1);

/// What came of it, a figure for each start.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) lists_ms: Vec<f64>,
    pub(crate) rss_kib: Vec<f64>,
}

/// Starts the program several times on one database.
///
/// # Errors
/// When it does not start, or its first list is not whole.
pub(crate) async fn measure(program: &Path, directory: &Path) -> anyhow::Result<Start> {
    let directory = directory.join("start");
    std::fs::create_dir_all(&directory)?;
    let ports: [u16; SERVERS] = free_ports()?;
    let names: Vec<String> = (0..SERVERS).map(|at| format!("toy-{at}")).collect();
    let mut toys = Vec::with_capacity(SERVERS);
    for (name, port) in names.iter().zip(ports) {
        let (port_text, tools) = (port.to_string(), TOOLS.to_string());
        let prefix = name.replace('-', "_");
        let args = ["toy", "--port", &port_text, "--tools", &tools, "--prefix", &prefix];
        let mut toy = Child::ourselves(name, args, &directory)?;
        toy.wait_for_port(port).await?;
        toys.push(toy);
    }
    let pairs: Vec<(&str, u16)> = names.iter().map(String::as_str).zip(ports).collect();
    // What every later start finds: the servers, their tools and a key.
    let Gateway { child, endpoint } = Gateway::start(program, &directory, &pairs).await?;
    let mut first = Exchange::new(Session::open(&endpoint).await?, &endpoint, list());
    first.once().await?;
    drop(child);

    let [port] = free_ports()?;
    let endpoint = endpoint.at_port(port);
    let conf = format!("boot: {{host: 127.0.0.1, port: {port}, db: load.db}}\n");
    let mut start = Start { lists_ms: Vec::new(), rss_kib: Vec::new() };
    for _ in 0..STARTS {
        let started = Instant::now();
        let child = launch(program, &directory, &conf)?;
        let session = loop {
            match Session::open(&endpoint).await {
                Ok(session) => break session,
                Err(_) if started.elapsed() < Duration::from_secs(20) => {
                    tokio::time::sleep(LOOK).await;
                }
                Err(error) => bail!("{error:#}\n{}", child.log_tail()),
            }
        };
        let mut list_all = Exchange::new(session, &endpoint, list());
        list_all.once().await.context("the first list after a start")?;
        start.lists_ms.push(started.elapsed().as_secs_f64() * 1e3);
        start.rss_kib.push(cost::of(child.group())?.rss_kib as f64);
    }
    Ok(start)
}

fn list() -> Work {
    Work::List { at_least: SERVERS * TOOLS }
}
