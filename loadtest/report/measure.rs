//! The rows of the table and the rounds over them.

use std::time::Duration;

use anyhow::Context;

use super::cost;
use super::paths::{EVENTS_TOOL, JSON_TOOL, Kind, Paths, Route, Side, TOOLS};
use crate::load;
use crate::sessions::Work;

/// Before each measurement, so that nothing of the one before is still running.
const WARM_UP: Duration = Duration::from_millis(300);
/// After opening or closing idle sessions, until memory is counted.
const SETTLE: Duration = Duration::from_millis(700);
/// A text that no part of the way could make up.
const MARK: &str = "quartz-sphinx-1729";

/// How much to measure.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) duration: Duration,
    pub(crate) rounds: usize,
    /// Idle sessions that were asked for.
    pub(crate) idle_asked: usize,
    /// Idle sessions that the limit of open files lets us have.
    pub(crate) idle_fitting: usize,
}

/// What a row asks for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Shape {
    /// Calls answered with a JSON body.
    Json,
    /// Calls answered with an event stream of one message.
    Events,
    /// Lists of all tools.
    List,
}

/// One kind of load; measured on several paths.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) shape: Shape,
    pub(crate) connections: usize,
}

/// All rows, in the order of the table.
pub(crate) const ROWS: [Row; 5] = [
    Row { shape: Shape::Json, connections: 1 },
    Row { shape: Shape::Json, connections: 16 },
    Row { shape: Shape::Json, connections: 64 },
    Row { shape: Shape::Events, connections: 16 },
    Row { shape: Shape::List, connections: 4 },
];

/// Figures of one measurement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) per_second: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    /// Of the process under test, per call.
    pub(crate) cpu_us: f64,
    /// Of the process under test, at the end.
    pub(crate) rss_kib: f64,
}

/// All samples of a row on a path.
#[derive(Debug)]
pub(crate) struct Series {
    pub(crate) row: usize,
    pub(crate) kind: Kind,
    pub(crate) samples: Vec<Sample>,
}

/// Memory for idle sessions on a path.
#[derive(Debug)]
pub(crate) struct Idle {
    pub(crate) kind: Kind,
    pub(crate) sessions: usize,
    pub(crate) before_kib: u64,
    pub(crate) after_kib: u64,
}

/// Everything that was measured.
#[derive(Debug, Default)]
pub(crate) struct Results {
    pub(crate) series: Vec<Series>,
    pub(crate) idle: Vec<Idle>,
}

impl Plan {
    /// Idle sessions to open.
    pub(crate) fn idle(&self) -> usize {
        self.idle_asked.min(self.idle_fitting)
    }

    fn duration_of(&self, shape: Shape) -> Duration {
        match shape {
            Shape::Json => self.duration,
            Shape::Events | Shape::List => self.duration.div_f64(2.0).max(Duration::from_secs(1)),
        }
    }
}

impl Row {
    /// Lists are not compared with plain proxies: passing 400 tools on is not making a list.
    fn is_for(self, kind: Kind) -> bool {
        self.shape != Shape::List || matches!(kind, Kind::Direct | Kind::Gateway)
    }

    fn side(self, route: &Route) -> &Side {
        match self.shape {
            Shape::Json | Shape::List => &route.json,
            Shape::Events => &route.events,
        }
    }

    fn work(self) -> Work {
        let call = |tool: &str| Work::Call {
            tool: tool.to_owned(),
            arguments: format!(r#"{{"text":"{MARK}","count":3,"labels":["one","two"]}}"#),
            expect: Some(MARK.to_owned()),
        };
        match self.shape {
            Shape::Json => call(JSON_TOOL),
            Shape::Events => call(EVENTS_TOOL),
            Shape::List => Work::List { at_least: TOOLS },
        }
    }
}

/// Measures memory of idle sessions first, while the processes are fresh, then all rounds.
///
/// # Errors
/// When any answer was wrong.
pub(crate) async fn all(plan: &Plan, paths: &Paths) -> anyhow::Result<Results> {
    let mut results = Results::default();
    for route in paths.routes.iter().filter(|route| route.kind != Kind::Nginx) {
        let idle = idle(plan.idle(), route);
        let idle = idle.await.with_context(|| format!("idle sessions, {}", route.kind.name()))?;
        results.idle.push(idle);
    }
    for round in 0..plan.rounds {
        for (at, row) in ROWS.iter().enumerate() {
            for route in paths.routes.iter().filter(|route| row.is_for(route.kind)) {
                let sample = sample(plan, *row, route).await.with_context(|| {
                    format!("{:?} at {}, {}", row.shape, row.connections, route.kind.name())
                })?;
                progress(round, *row, route.kind, &sample);
                results.add(at, route.kind, sample);
            }
        }
    }
    Ok(results)
}

impl Results {
    fn add(&mut self, row: usize, kind: Kind, sample: Sample) {
        let known = self.series.iter_mut().find(|series| series.row == row && series.kind == kind);
        match known {
            Some(series) => series.samples.push(sample),
            None => self.series.push(Series { row, kind, samples: vec![sample] }),
        }
    }
}

async fn sample(plan: &Plan, row: Row, route: &Route) -> anyhow::Result<Sample> {
    let side = row.side(route);
    let exchanges = load::prepare(&side.endpoint, row.connections, &row.work()).await?;
    let (exchanges, warm_up) = load::run(exchanges, WARM_UP).await;
    warm_up.checked()?;
    let before = cost::of(side.group)?;
    let (_exchanges, outcome) = load::run(exchanges, plan.duration_of(row.shape)).await;
    let after = cost::of(side.group)?;
    let outcome = outcome.checked()?;
    let cpu = after.cpu.saturating_sub(before.cpu);
    Ok(Sample {
        per_second: outcome.per_second(),
        p50_ms: outcome.latency_ms(0.5),
        p99_ms: outcome.latency_ms(0.99),
        cpu_us: cpu.as_secs_f64() * 1e6 / (outcome.requests.max(1) as f64),
        rss_kib: after.rss_kib as f64,
    })
}

async fn idle(sessions: usize, route: &Route) -> anyhow::Result<Idle> {
    let Side { endpoint, group } = &route.json;
    // One call first: what is built on first use is not the sessions'.
    let warm_up = Row { shape: Shape::Json, connections: 1 };
    drop(load::prepare(endpoint, warm_up.connections, &warm_up.work()).await?);
    let before_kib = cost::of(*group)?.rss_kib;
    let open = load::hold(endpoint, sessions).await?;
    tokio::time::sleep(SETTLE).await;
    let after_kib = cost::of(*group)?.rss_kib;
    drop(open);
    tokio::time::sleep(SETTLE).await;
    Ok(Idle { kind: route.kind, sessions, before_kib, after_kib })
}

#[expect(clippy::print_stderr, reason = "a run takes minutes; whoever waits wants to see it go on")]
fn progress(round: usize, row: Row, kind: Kind, sample: &Sample) {
    eprintln!(
        "round {}: {:?} at {:>2}, {:<18} {:>8.0}/s {:>6.1} us CPU",
        round + 1,
        row.shape,
        row.connections,
        kind.name(),
        sample.per_second,
        sample.cpu_us,
    );
}
