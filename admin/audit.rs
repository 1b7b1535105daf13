//! `/audit`: what was changed, by the manager itself and by people.

use gateway::Gateway;
use gateway::manage::AuditReport;
use serde::Serialize;

use crate::answer::{self, Answer};
use crate::error::Error;

#[derive(Serialize)]
struct Audit {
    renamed: Vec<Renamed>,
    events: Vec<Event>,
}

#[derive(Serialize)]
struct Renamed {
    tool: String,
    servers: Vec<Holder>,
}

#[derive(Serialize)]
struct Holder {
    upstream: String,
    name: String,
}

#[derive(Serialize)]
struct Event {
    ts: String,
    kind: &'static str,
    message: String,
}

pub(crate) async fn list(gateway: &Gateway) -> Result<Answer, Error> {
    let audit = gateway.audit().await?;
    Ok(Answer::json(&Audit::from(audit)))
}

impl From<AuditReport> for Audit {
    fn from(report: AuditReport) -> Self {
        let holder = |(upstream, name)| Holder { upstream, name };
        let renamed = report.renamed.into_iter().map(|tool| Renamed {
            tool: tool.tool,
            servers: tool.servers.into_iter().map(holder).collect(),
        });
        let events = report.events.into_iter().map(|event| Event {
            ts: answer::time(event.at),
            kind: event.kind,
            message: event.message,
        });
        Self { renamed: renamed.collect(), events: events.collect() }
    }
}
