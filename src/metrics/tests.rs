//! Names stay the same, and series stay few.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use catalog::{Catalog, Known, Server, ServerId, Tool};
use store::Outcome;

use super::{Metrics, Phase};

const TOOK: Duration = Duration::from_millis(3);

fn catalog(servers: &[(i64, &str, &str)]) -> Catalog {
    let known: HashMap<_, _> = servers
        .iter()
        .map(|(id, _, tool)| {
            let tool = Tool::parse(&format!(r#"{{"name":"{tool}"}}"#)).expect("a tool");
            (ServerId(*id), Known { tools: Arc::from([Arc::new(tool)]), ..Known::default() })
        })
        .collect();
    let servers = servers.iter().map(|(id, name, _)| Server {
        id: ServerId(*id),
        name: (*name).to_owned(),
        ..Server::default()
    });
    Catalog::build(servers.collect(), vec![], vec![], &[], &known)
}

/// Each series as `name{labels}`, without values.
fn series(metrics: &Metrics) -> Vec<String> {
    let mut out = Vec::new();
    for family in metrics.gather() {
        for metric in family.get_metric() {
            let labels: Vec<_> =
                metric.get_label().iter().map(|l| format!("{}={}", l.name(), l.value())).collect();
            out.push(format!("{}{{{}}}", family.name(), labels.join(",")));
        }
    }
    out
}

#[test]
fn names_are_the_documented_ones() {
    let metrics = Metrics::new("0.1.0");
    metrics.reconcile(&catalog(&[(1, "browser", "open")]));
    metrics.request("tools/call", "legacy", 200, TOOK);
    metrics.call("open", Outcome::Ok, TOOK);
    metrics.phase("open", Phase::Upstream, TOOK);
    metrics.server("browser", true, 2);
    metrics.reconnect("browser", "lost");
    metrics.client_sessions("legacy", 1);
    metrics.auth_failure("missing_key");
    metrics.list_changed("server");
    metrics.tls_not_after(1_800_000_000);
    assert_eq!(
        series(&metrics),
        [
            "mcpm_auth_failures_total{reason=missing_key}",
            "mcpm_build_info{version=0.1.0}",
            "mcpm_client_sessions{era=legacy}",
            "mcpm_list_changes_total{cause=server}",
            "mcpm_request_duration_seconds{}",
            "mcpm_requests_total{era=legacy,method=tools/call,status=200}",
            "mcpm_server_reconnects_total{cause=lost,server=browser}",
            "mcpm_server_up{server=browser}",
            "mcpm_tls_not_after_seconds{}",
            "mcpm_tool_call_duration_seconds{phase=total,server=browser}",
            "mcpm_tool_call_duration_seconds{phase=upstream,server=browser}",
            "mcpm_tool_calls_total{outcome=ok,server=browser,tool=open}",
            "mcpm_upstream_sessions{server=browser}",
        ]
    );
}

#[test]
fn plt_01_series_stay_bounded() {
    let metrics = Metrics::new("0.1.0");
    metrics.reconcile(&catalog(&[(1, "browser", "open"), (2, "notes", "add")]));
    for n in 0..10_000_u32 {
        metrics.call(&format!("tool{n}"), Outcome::Refused, TOOK);
        metrics.request("other", "legacy", u16::try_from(n % 600).expect("small"), TOOK);
        metrics.reconnect(&format!("server{n}"), "lost");
    }
    let before = series(&metrics).len();
    assert!(before < 30, "{before}");
    metrics.call("open", Outcome::Ok, TOOK);
    metrics.call("add", Outcome::Ok, TOOK);
    metrics.server("notes", true, 1);
    metrics.reconcile(&catalog(&[(1, "browser", "open")]));
    let after = series(&metrics);
    assert!(!after.iter().any(|line| line.contains("notes") || line.contains("tool=add")));
    assert!(after.iter().any(|line| line.contains("server=browser,tool=open")));
    assert!(after.iter().any(|line| line.contains("server=other,tool=other")));
}

#[test]
fn counts_survive_a_new_catalog() {
    let metrics = Metrics::new("0.1.0");
    for _ in 0..3 {
        metrics.reconcile(&catalog(&[(1, "browser", "open")]));
        metrics.call("open", Outcome::Ok, TOOK);
    }
    let families = metrics.gather();
    let calls = families.iter().find(|f| f.name() == "mcpm_tool_calls_total").expect("calls");
    assert_eq!(calls.get_metric().len(), 1);
    let count = calls.get_metric()[0].get_counter().get_value();
    assert!((count - 3.0).abs() < f64::EPSILON, "{count}");
}
