//! What the manager and its operators changed, in sentences.

use store::AuditKind;

use super::Error;
use crate::Gateway;

/// How many lines one look at the audit gives.
const LINES: u32 = 500;

/// The audit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditReport {
    /// Tools that clients call by another name than their server does, right now.
    pub renamed: Vec<RenamedTool>,
    /// What happened, newest first.
    pub events: Vec<AuditEvent>,
}

/// One tool name that had to be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenamedTool {
    /// The servers' own name.
    pub tool: String,
    /// Each holder, as (server, exposed name), in registration order.
    pub servers: Vec<(String, String)>,
}

/// One line of the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEvent {
    /// Seconds since the Unix epoch.
    pub at: i64,
    /// One word; `rename`, `default` and `edit` among others.
    pub kind: &'static str,
    /// One sentence.
    pub message: String,
}

impl Gateway {
    /// The names changed right now, and the newest lines of the history.
    ///
    /// # Errors
    /// As the database fails.
    pub async fn audit(&self) -> Result<AuditReport, Error> {
        let lines = self.store.audit(LINES).await?;
        let event = |line: store::AuditLine| AuditEvent {
            at: line.at,
            kind: AuditKind::as_str(line.kind),
            message: line.message,
        };
        let events = lines.into_iter().map(event).collect();
        Ok(AuditReport { renamed: self.renamed(), events })
    }

    fn renamed(&self) -> Vec<RenamedTool> {
        let mut renamed: Vec<RenamedTool> = Vec::new();
        for info in self.tools().into_iter().filter(|info| *info.exposed != *info.tool.name) {
            let holder = (info.server.name.clone(), info.exposed.to_string());
            match renamed.iter_mut().find(|found| found.tool == info.tool.name) {
                Some(found) => found.servers.push(holder),
                None => renamed
                    .push(RenamedTool { tool: info.tool.name.clone(), servers: vec![holder] }),
            }
        }
        renamed
    }
}
