//! How a tool call is put to a server, of whichever era that turns out to be.

use std::sync::Arc;

use catalog::Tool;
use protocol::{Era, bridge, param};
use upstream::{CLIENT_INFO, Recipe, Repeat, Request, Wants};

/// How the call is made for a server of either era.
pub(crate) struct ToolCall {
    pub(crate) tool: Arc<Tool>,
    pub(crate) call: bridge::Call,
    /// Raw arguments, for a tool that wants some of them in headers.
    pub(crate) arguments: Option<String>,
    pub(crate) log_level: Option<&'static str>,
    pub(crate) wants_progress: bool,
}

impl Recipe for ToolCall {
    fn make(&self, wants: &Wants) -> Request {
        let hop = bridge::Hop {
            progress_token: self.wants_progress.then_some(wants.token.as_str()),
            log_level: self.log_level,
            client_info: CLIENT_INFO,
        };
        let headers = match wants.era {
            Era::Modern => param::build(&self.tool.header_params, self.arguments.as_deref()),
            Era::Legacy => Vec::new(),
        };
        Request {
            method: "tools/call",
            params: self.call.params(&hop, wants.era),
            name: Some(self.tool.name.clone()),
            headers,
            repeat: repeat(&self.tool),
        }
    }
}

/// Whether a call may be sent again when its outcome is unknown (P25).
fn repeat(tool: &Tool) -> Repeat {
    match tool {
        Tool { read_only: true, .. } => Repeat::ReadOnly,
        Tool { idempotent: true, .. } => Repeat::Idempotent,
        _ => Repeat::Never,
    }
}
