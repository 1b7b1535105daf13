//! `/tools`: every tool of every server.

use gateway::Gateway;
use gateway::manage::ToolInfo;
use serde::Serialize;

use crate::answer::Answer;
use crate::error::Error;

#[derive(Serialize)]
struct Tool<'a> {
    exposed: &'a str,
    upstream: &'a str,
    tool: &'a str,
    description: &'a str,
    overridden: bool,
    server_says: &'a str,
    arguments: Vec<String>,
}

pub(crate) async fn list(gateway: &Gateway) -> Result<Answer, Error> {
    let tools = gateway.tools();
    let tools: Vec<_> = tools.iter().map(Tool::of).collect();
    Ok(Answer::json(&tools))
}

impl<'a> Tool<'a> {
    fn of(info: &'a ToolInfo) -> Self {
        Self {
            exposed: &info.exposed,
            upstream: &info.server.name,
            tool: &info.tool.name,
            description: &info.tool.description,
            // There is no way yet to give a tool other words than its server's.
            overridden: false,
            server_says: &info.tool.description,
            arguments: info.arguments(),
        }
    }
}
