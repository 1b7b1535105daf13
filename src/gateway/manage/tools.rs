//! Tools as people see them: every tool of every server, whatever groups reach.

use std::sync::Arc;

use catalog::{Server, Tool};
use protocol::json::Members;

use crate::Gateway;

/// One tool of one server.
#[derive(Debug, Clone)]
pub struct ToolInfo {
    /// The name that clients call.
    pub exposed: Arc<str>,
    /// Its server.
    pub server: Arc<Server>,
    /// As the server described it.
    pub tool: Arc<Tool>,
}

impl ToolInfo {
    /// The names of its arguments, in the order of the schema.
    pub fn arguments(&self) -> Vec<String> {
        let names = |properties: &str| {
            let members = Members::parse(properties).ok()?;
            Some(members.iter().map(|(name, _)| name.to_owned()).collect())
        };
        Members::parse(self.tool.input_schema())
            .ok()
            .and_then(|schema| names(schema.get("properties")?))
            .unwrap_or_default()
    }
}

impl Gateway {
    /// Every tool, servers in registration order and tools in their server's.
    pub fn tools(&self) -> Vec<ToolInfo> {
        let catalog = self.catalog();
        let of = |listed: &Arc<catalog::snapshot::Listed>| {
            let server = Arc::clone(&listed.server);
            let tools = listed.known.tools.iter().zip(&listed.exposed);
            let info = move |(tool, exposed): (&Arc<Tool>, &Arc<str>)| ToolInfo {
                exposed: Arc::clone(exposed),
                server: Arc::clone(&server),
                tool: Arc::clone(tool),
            };
            tools.map(info).collect::<Vec<_>>()
        };
        catalog.servers().iter().flat_map(of).collect()
    }
}
