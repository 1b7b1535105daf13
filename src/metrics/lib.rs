//! Every metric of the manager, in one registry of its own.
//!
//! Labels are bounded sets (PLT-01): words of this program, status codes, and the names of
//! servers and tools in the present catalog. A name that is in no catalog counts as `other`,
//! and the series of what was removed go with it.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use catalog::Catalog;
use prometheus::core::{Collector, Metric, MetricVec, MetricVecBuilder};
pub use prometheus::proto::MetricFamily;
use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts,
    Registry,
};
use store::Outcome;

/// Stands for every name that is in no catalog.
const OTHER: &str = "other";

/// Seconds: from an answer out of memory to a call that takes ten minutes.
const BUCKETS: [f64; 17] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0,
    180.0, 600.0,
];

/// Which part of a call took the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// All of it, from the request to the last byte of the answer.
    Total,
    /// Opening or re-opening the server's session.
    Session,
    /// Waiting for the server.
    Upstream,
}

impl Phase {
    const ALL: [Self; 3] = [Self::Total, Self::Session, Self::Upstream];

    fn as_str(self) -> &'static str {
        match self {
            Self::Total => "total",
            Self::Session => "session",
            Self::Upstream => "upstream",
        }
    }
}

/// The metrics. Recording takes no lock that another request could hold for long.
pub struct Metrics {
    registry: Registry,
    apps: Apps,
    servers: Servers,
    tls_not_after: OnceLock<IntGauge>,
    /// The handles of the present catalog, so that a call looks up one name, not five labels.
    live: ArcSwap<Live>,
}

/// What happens towards apps.
struct Apps {
    requests: IntCounterVec,
    request_duration: Histogram,
    sessions: IntGaugeVec,
    auth_failures: IntCounterVec,
    list_changes: IntCounterVec,
}

/// What happens towards servers.
struct Servers {
    calls: IntCounterVec,
    call_duration: HistogramVec,
    up: IntGaugeVec,
    reconnects: IntCounterVec,
    sessions: IntGaugeVec,
}

/// Exposed tool names with the handles of their series.
#[derive(Default)]
struct Live {
    tools: HashMap<Arc<str>, Arc<Series>>,
    servers: HashSet<String>,
}

/// The series of one tool. A counter is made at the first call that ends in its way.
struct Series {
    server: String,
    outcomes: [OnceLock<IntCounter>; Outcome::ALL.len()],
    phases: [OnceLock<Histogram>; Phase::ALL.len()],
}

impl Metrics {
    /// Metrics at nought. `version` is the manager's own.
    pub fn new(version: &str) -> Self {
        let registry = Registry::new();
        let help = "Always 1; the label is the version";
        let build = gauges(&registry, "mcpm_build_info", help, &["version"]);
        build.with_label_values(&[version]).set(1);
        Self {
            apps: Apps::new(&registry),
            servers: Servers::new(&registry),
            tls_not_after: OnceLock::new(),
            live: ArcSwap::default(),
            registry,
        }
    }

    /// Counts one request of an app. `method` is a word of the method table.
    pub fn request(&self, method: &'static str, era: &'static str, status: u16, took: Duration) {
        // A look-up by label hashes twenty bytes; a map of our own would do no less.
        self.apps.requests.with_label_values(&[method, era, status_text(status)]).inc();
        self.apps.request_duration.observe(took.as_secs_f64());
    }

    /// Counts one tool call by its exposed name; any text will do, unknown names are `other`.
    pub fn call(&self, tool: &str, outcome: Outcome, took: Duration) {
        match self.live.load().tools.get(tool) {
            Some(series) => {
                let place = Outcome::ALL.iter().position(|known| *known == outcome);
                if let Some(cell) = place.and_then(|place| series.outcomes.get(place)) {
                    let labels = [series.server.as_str(), tool, outcome.as_str()];
                    cell.get_or_init(|| self.servers.calls.with_label_values(&labels)).inc();
                }
                self.observe(series, Phase::Total, took);
            }
            None => self.servers.calls.with_label_values(&[OTHER, OTHER, outcome.as_str()]).inc(),
        }
    }

    /// Counts one tool call that was refused before any server saw it. It took no time.
    pub fn refused(&self, tool: &str) {
        let outcome = Outcome::Refused.as_str();
        let live = self.live.load();
        let labels = match live.tools.get(tool) {
            Some(series) => [series.server.as_str(), tool, outcome],
            None => [OTHER, OTHER, outcome],
        };
        self.servers.calls.with_label_values(&labels).inc();
    }

    /// Notes how long a part of a call took. Unknown names are left out.
    pub fn phase(&self, tool: &str, phase: Phase, took: Duration) {
        if let Some(series) = self.live.load().tools.get(tool) {
            self.observe(series, phase, took);
        }
    }

    fn observe(&self, series: &Series, phase: Phase, took: Duration) {
        let place = Phase::ALL.iter().position(|known| *known == phase);
        if let Some(cell) = place.and_then(|place| series.phases.get(place)) {
            let labels = [series.server.as_str(), phase.as_str()];
            let histogram =
                cell.get_or_init(|| self.servers.call_duration.with_label_values(&labels));
            histogram.observe(took.as_secs_f64());
        }
    }

    /// Sets the gauges of one server of the catalog.
    pub fn server(&self, server: &str, up: bool, sessions: usize) {
        self.servers.up.with_label_values(&[server]).set(i64::from(up));
        let sessions = i64::try_from(sessions).unwrap_or(i64::MAX);
        self.servers.sessions.with_label_values(&[server]).set(sessions);
    }

    /// Counts a link that was opened again.
    pub fn reconnect(&self, server: &str, cause: &'static str) {
        let known = self.live.load().servers.contains(server);
        let server = if known { server } else { OTHER };
        self.servers.reconnects.with_label_values(&[server, cause]).inc();
    }

    /// Says how many conversations of an era are in memory.
    pub fn client_sessions(&self, era: &'static str, count: usize) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.apps.sessions.with_label_values(&[era]).set(count);
    }

    /// Counts a request that was not let in.
    pub fn auth_failure(&self, reason: &'static str) {
        self.apps.auth_failures.with_label_values(&[reason]).inc();
    }

    /// Counts a change of what apps can list.
    pub fn list_changed(&self, cause: &'static str) {
        self.apps.list_changes.with_label_values(&[cause]).inc();
    }

    /// Says when the served certificate ends, in seconds since the Unix epoch. Without TLS
    /// there is no such metric: a nought would read as long expired.
    pub fn tls_not_after(&self, seconds: i64) {
        let gauge = self.tls_not_after.get_or_init(|| {
            let help = "When the served certificate ends, seconds since the Unix epoch";
            add(&self.registry, IntGauge::with_opts(Opts::new("mcpm_tls_not_after_seconds", help)))
        });
        gauge.set(seconds);
    }

    /// Takes up the names of a new catalog and drops the series of those that are no longer
    /// in it. To be called with each new snapshot.
    pub fn reconcile(&self, catalog: &Catalog) {
        let before = self.live.load();
        let mut live = Live::default();
        for listed in catalog.servers() {
            let server = &listed.server.name;
            live.servers.insert(server.clone());
            for exposed in &listed.exposed {
                let kept = before.tools.get(exposed).filter(|series| series.server == *server);
                let series = kept.cloned().unwrap_or_else(|| Arc::new(Series::of(server)));
                live.tools.insert(Arc::clone(exposed), series);
            }
        }
        let live = Arc::new(live);
        self.live.store(Arc::clone(&live));
        // What is there is compared, not what was: a call that was under way while its tool
        // was removed may have counted itself just after.
        prune(&self.servers.calls, ["server", "tool", "outcome"], |[server, tool, _]| {
            live.tools.get(*tool).is_some_and(|series| series.server == *server)
        });
        let known = |server: &str| live.servers.contains(server);
        prune(&self.servers.call_duration, ["server", "phase"], |[server, _]| known(server));
        prune(&self.servers.reconnects, ["server", "cause"], |[server, _]| known(server));
        prune(&self.servers.up, ["server"], |[server]| known(server));
        prune(&self.servers.sessions, ["server"], |[server]| known(server));
    }

    /// Everything counted so far.
    pub fn gather(&self) -> Vec<MetricFamily> {
        self.registry.gather()
    }
}

impl Apps {
    fn new(registry: &Registry) -> Self {
        let requests = "Requests of apps by method, protocol era and HTTP status";
        let took = "Time from a request's last byte to its answer's last byte";
        let sessions = "Conversations of apps by protocol era";
        let refused = "Requests refused for their key, token, host or origin";
        let changes = "Changes of what apps can list, by cause";
        let labels = ["method", "era", "status"];
        Self {
            requests: counters(registry, "mcpm_requests_total", requests, &labels),
            request_duration: add(
                registry,
                Histogram::with_opts(times("mcpm_request_duration_seconds", took)),
            ),
            sessions: gauges(registry, "mcpm_client_sessions", sessions, &["era"]),
            auth_failures: counters(registry, "mcpm_auth_failures_total", refused, &["reason"]),
            list_changes: counters(registry, "mcpm_list_changes_total", changes, &["cause"]),
        }
    }
}

impl Servers {
    fn new(registry: &Registry) -> Self {
        let calls = "Tool calls by server, exposed tool name and how they ended";
        let took = "Time of tool calls by server and phase";
        let up = "1 while the link to the server is connected";
        let reconnects = "Links to servers that were opened again, by cause";
        let sessions = "Open sessions of apps on the server";
        let labels = ["server", "tool", "outcome"];
        let causes = ["server", "cause"];
        let took = times("mcpm_tool_call_duration_seconds", took);
        Self {
            calls: counters(registry, "mcpm_tool_calls_total", calls, &labels),
            call_duration: add(registry, HistogramVec::new(took, &["server", "phase"])),
            up: gauges(registry, "mcpm_server_up", up, &["server"]),
            reconnects: counters(registry, "mcpm_server_reconnects_total", reconnects, &causes),
            sessions: gauges(registry, "mcpm_upstream_sessions", sessions, &["server"]),
        }
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Series {
    fn of(server: &str) -> Self {
        Self { server: server.to_owned(), outcomes: Default::default(), phases: Default::default() }
    }
}

/// Removes the series whose labels `keep` does not know; `other` always stays.
fn prune<T: MetricVecBuilder, const N: usize>(
    vec: &MetricVec<T>,
    labels: [&str; N],
    keep: impl Fn(&[&str; N]) -> bool,
) where
    T::M: Metric,
{
    for family in vec.collect() {
        for metric in family.get_metric() {
            let value = |name: &str| {
                let pair = metric.get_label().iter().find(|pair| pair.name() == name);
                pair.map_or("", |pair| pair.value())
            };
            let values = labels.map(value);
            if values[0] != OTHER && !keep(&values) {
                // Gone already is as good.
                let _ = vec.remove_label_values(&values);
            }
        }
    }
}

fn counters(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
    add(registry, IntCounterVec::new(Opts::new(name, help), labels))
}

fn gauges(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> IntGaugeVec {
    add(registry, IntGaugeVec::new(Opts::new(name, help), labels))
}

fn times(name: &str, help: &str) -> HistogramOpts {
    HistogramOpts::new(name, help).buckets(BUCKETS.to_vec())
}

fn add<C: Collector + Clone + 'static>(registry: &Registry, made: prometheus::Result<C>) -> C {
    let collector = made.expect("names and labels are constants, and tested");
    registry.register(Box::new(collector.clone())).expect("each name is registered once");
    collector
}

/// The codes that this program answers, and one word for the rest.
fn status_text(status: u16) -> &'static str {
    match status {
        200 => "200",
        202 => "202",
        204 => "204",
        400 => "400",
        401 => "401",
        403 => "403",
        404 => "404",
        405 => "405",
        406 => "406",
        408 => "408",
        409 => "409",
        413 => "413",
        415 => "415",
        429 => "429",
        431 => "431",
        500 => "500",
        502 => "502",
        503 => "503",
        504 => "504",
        _ => OTHER,
    }
}

#[cfg(test)]
mod tests;
