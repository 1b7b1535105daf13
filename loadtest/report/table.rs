//! Medians and ratios as a Markdown page.

use std::fmt::Write as _;

use super::measure::{Plan, ROWS, Results, Row, Sample, Series, Shape};
use super::paths::{Kind, TOOLS};
use super::start::{self, Start};

/// Where and when it was measured, and what was there.
#[derive(Debug)]
pub(crate) struct Heading {
    pub(crate) machine: String,
    pub(crate) date: String,
    /// Load average before and after.
    pub(crate) load: (String, String),
    pub(crate) nginx: bool,
    pub(crate) gateway: bool,
    /// How long the gateway took to start.
    pub(crate) start: Option<Start>,
}

/// The whole page.
pub(crate) fn render(heading: &Heading, plan: &Plan, results: &Results) -> String {
    let mut page = String::from("# Load test\n\n");
    let Heading { machine, date, load, .. } = heading;
    let (rounds, seconds) = (plan.rounds, plan.duration.as_secs());
    let lines = [
        format!("{machine}. {date}. Load average {} before and {} after.", load.0, load.1),
        format!(
            "Generator, server and process under test share the cores. Rounds are interleaved; \
             figures are medians of {rounds} × {seconds} s (event streams and lists: half). \
             CPU and memory are those of the process under test; memory includes what the \
             idle sessions, which come first, left behind. All paths carry the protocol of \
             2025-11-25, and none writes a log line per request."
        ),
    ];
    page.push_str(&lines.join("\n"));
    page.push_str("\n\n");
    for (missing, note) in [
        (!heading.nginx, "nginx is not installed here: its rows are absent."),
        (!heading.gateway, "No gateway was given: its rows are absent."),
    ] {
        if missing {
            page.push_str(note);
            page.push_str("\n\n");
        }
    }
    page.push_str(
        "| load | connections | path | requests/s | p50 ms | p99 ms | CPU µs per call | RSS KiB \
         | CPU ÷ baseline | requests/s ÷ baseline |\n|---|--:|---|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for (at, row) in ROWS.iter().enumerate() {
        let of_row: Vec<&Series> = results.series.iter().filter(|one| one.row == at).collect();
        let baseline = of_row.iter().find(|one| one.kind == Kind::Raw).map(|one| median_of(one));
        for series in of_row {
            line(&mut page, *row, series.kind, &median_of(series), baseline.as_ref());
        }
    }
    idle(&mut page, plan, results);
    if let Some(start) = &heading.start {
        start_up(&mut page, start);
    }
    page
}

fn line(page: &mut String, row: Row, kind: Kind, sample: &Sample, baseline: Option<&Sample>) {
    let load = match row.shape {
        Shape::Json => "call, JSON".to_owned(),
        Shape::Events => "call, event stream".to_owned(),
        Shape::List => format!("list of {TOOLS} tools"),
    };
    // The toy's own cost is no proxy's: its ratio of CPU would say nothing.
    let cpu_baseline = baseline.filter(|_| kind != Kind::Direct);
    let cpu = ratio(sample.cpu_us, cpu_baseline.map(|baseline| baseline.cpu_us));
    let speed = ratio(sample.per_second, baseline.map(|baseline| baseline.per_second));
    // Writing to a string cannot fail.
    let _ = writeln!(
        page,
        "| {load} | {} | {} | {:.0} | {:.2} | {:.2} | {:.1} | {:.0} | {cpu} | {speed} |",
        row.connections,
        kind.name(),
        sample.per_second,
        sample.p50_ms,
        sample.p99_ms,
        sample.cpu_us,
        sample.rss_kib,
    );
}

fn idle(page: &mut String, plan: &Plan, results: &Results) {
    page.push_str("\nIdle sessions, each with an open GET stream:\n\n");
    if plan.idle() < plan.idle_asked {
        let _ = writeln!(
            page,
            "{} were asked for; the limit of open files lets us have {}.\n",
            plan.idle_asked,
            plan.idle()
        );
    }
    page.push_str("| path | sessions | RSS KiB before | RSS KiB after | KiB per session |\n");
    page.push_str("|---|--:|--:|--:|--:|\n");
    for idle in &results.idle {
        let grown = idle.after_kib as f64 - idle.before_kib as f64;
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} | {:.1} |",
            idle.kind.name(),
            idle.sessions,
            idle.before_kib,
            idle.after_kib,
            grown / (idle.sessions.max(1) as f64),
        );
    }
}

fn start_up(page: &mut String, start: &Start) {
    let Start { lists_ms, rss_kib } = start;
    let of = |values: &[f64]| median(values.to_vec());
    let most = lists_ms.iter().copied().fold(0.0, f64::max);
    // Writing to a string cannot fail.
    let _ = writeln!(
        page,
        "\nFrom starting the process to the first answered list, with {} servers of {} tools in \
         the database: median {:.0} ms, at most {most:.0} ms of {} starts. RSS then: {:.0} KiB.",
        start::SERVERS,
        start::TOOLS,
        of(lists_ms),
        lists_ms.len(),
        of(rss_kib),
    );
}

fn ratio(value: f64, baseline: Option<f64>) -> String {
    match baseline {
        Some(baseline) if baseline > 0.0 => format!("{:.2}", value / baseline),
        _ => "–".to_owned(),
    }
}

/// The median of each figure by itself: a sample is no unit, a slow moment spoils one figure.
fn median_of(series: &Series) -> Sample {
    let of = |figure: fn(&Sample) -> f64| median(series.samples.iter().map(figure).collect());
    Sample {
        per_second: of(|sample| sample.per_second),
        p50_ms: of(|sample| sample.p50_ms),
        p99_ms: of(|sample| sample.p99_ms),
        cpu_us: of(|sample| sample.cpu_us),
        rss_kib: of(|sample| sample.rss_kib),
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.get(middle) {
        None => f64::NAN,
        Some(upper) if values.len() % 2 == 1 => *upper,
        Some(upper) => (upper + values[middle - 1]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::measure::Idle;
    use std::time::Duration;

    #[test]
    fn a_median_is_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0]), 2.5);
        assert!(median(Vec::new()).is_nan());
    }

    #[test]
    fn ratios_are_to_the_baseline_of_the_same_row() {
        let sample = |per_second: f64, cpu_us: f64| Sample {
            per_second,
            p50_ms: 0.5,
            p99_ms: 1.0,
            cpu_us,
            rss_kib: 2048.0,
        };
        let series = |kind, sample| Series { row: 1, kind, samples: vec![sample] };
        let results = Results {
            series: vec![
                series(Kind::Direct, sample(30_000.0, 20.0)),
                series(Kind::Raw, sample(10_000.0, 100.0)),
                series(Kind::Gateway, sample(9_000.0, 110.0)),
            ],
            idle: vec![Idle { kind: Kind::Raw, sessions: 10, before_kib: 100, after_kib: 150 }],
        };
        let heading = Heading {
            machine: "box".to_owned(),
            date: "today".to_owned(),
            load: ("0".to_owned(), "1".to_owned()),
            nginx: false,
            gateway: true,
            start: Some(Start { lists_ms: vec![40.0, 42.0, 50.0], rss_kib: vec![20_000.0] }),
        };
        let duration = Duration::from_secs(5);
        let plan = Plan { duration, rounds: 3, idle_asked: 20, idle_fitting: 10 };
        let page = render(&heading, &plan, &results);
        let has = |text: &str| assert!(page.contains(text), "{text} in\n{page}");
        has("| call, JSON | 16 | direct | 30000 | 0.50 | 1.00 | 20.0 | 2048 | – | 3.00 |");
        has("| call, JSON | 16 | MCP-Manager | 9000 | 0.50 | 1.00 | 110.0 | 2048 | 1.10 | 0.90 |");
        has("median 42 ms, at most 50 ms of 3 starts. RSS then: 20000 KiB.");
        has("nginx is not installed");
        has("20 were asked for; the limit of open files lets us have 10.");
        has("| baseline (Pingora) | 10 | 100 | 150 | 5.0 |");
        assert!(!page.contains("No gateway"));
    }
}
