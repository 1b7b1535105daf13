//! The manager's own four tools, as hybrid and adaptive lists hold them (P40), and what they
//! answer with. Every word here is paid for with each request of each app, so there are few.

use protocol::json;

use crate::schema::{Schema, Verdict};
use crate::{cut, refusal};

mod answer;

pub use answer::{Match, ServerLine, about_server, all_tools, matches, nothing_found, servers};

/// One of the four.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ManagerTool {
    /// `search_tools`.
    Search,
    /// `call_tool`.
    Call,
    /// `list_mcpservers`.
    Servers,
    /// `get_tools_from_server`.
    OfServer,
}

/// Server names that the search tool's description holds.
const SERVERS: usize = 100;

impl ManagerTool {
    /// In the order in which they are listed.
    pub const ALL: [Self; 4] = [Self::Search, Self::Call, Self::Servers, Self::OfServer];

    /// Its name; no server's tool has it (P30).
    pub fn name(self) -> &'static str {
        match self {
            Self::Search => "search_tools",
            Self::Call => "call_tool",
            Self::Servers => "list_mcpservers",
            Self::OfServer => "get_tools_from_server",
        }
    }

    /// The one of that name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    fn schema_text(self) -> &'static str {
        match self {
            Self::Search => {
                r#"{"type":"object","properties":{"query":{"type":"string"},"page":{"type":"integer","minimum":1}}}"#
            }
            Self::Call => {
                r#"{"type":"object","properties":{"name":{"type":"string"},"arguments":{"type":"object"}},"required":["name"]}"#
            }
            Self::Servers => r#"{"type":"object","properties":{}}"#,
            Self::OfServer => {
                r#"{"type":"object","properties":{"server":{"type":"string"}},"required":["server"]}"#
            }
        }
    }

    /// What it takes.
    pub fn schema(self) -> &'static Schema {
        use std::sync::LazyLock;
        static ALL: LazyLock<[Schema; 4]> =
            LazyLock::new(|| ManagerTool::ALL.map(|tool| Schema::compile(tool.schema_text())));
        let [search, call, servers, of_server] = &*ALL;
        match self {
            Self::Search => search,
            Self::Call => call,
            Self::Servers => servers,
            Self::OfServer => of_server,
        }
    }

    /// The arguments as they are to be read, or what is told of those that cannot be.
    ///
    /// # Errors
    /// The text for the model.
    pub fn read(self, arguments: &str) -> Result<String, String> {
        match self.schema().judge(arguments) {
            Verdict::Fits => Ok(arguments.to_owned()),
            Verdict::Mended { arguments, .. } => Ok(arguments),
            Verdict::Refused(problems) => {
                Err(refusal::arguments(self.name(), self.schema(), &problems))
            }
        }
    }

    /// As a list holds it, for a group that reaches the servers of those names.
    pub fn definition<'a>(self, servers: impl ExactSizeIterator<Item = &'a str>) -> String {
        let description = match self {
            Self::Search => found_in(servers),
            Self::Call => "Runs a tool found by search_tools.".to_owned(),
            Self::Servers => "Lists the servers and what they are for.".to_owned(),
            Self::OfServer => "Lists all tools of a server.".to_owned(),
        };
        let hint = match self {
            Self::Call => "",
            _ => r#","annotations":{"readOnlyHint":true}"#,
        };
        format!(
            r#"{{"name":"{}","description":{},"inputSchema":{}{hint}}}"#,
            self.name(),
            json::quoted(&description),
            self.schema_text()
        )
    }
}

fn found_in<'a>(servers: impl ExactSizeIterator<Item = &'a str>) -> String {
    let all = servers.len();
    let names = servers.take(SERVERS).map(|name| cut(name, 64)).collect::<Vec<_>>().join(", ");
    let more = if all > SERVERS { format!(" and {} more", all - SERVERS) } else { String::new() };
    let names = if all == 0 { "(none now)".to_owned() } else { names };
    format!(
        "Finds tools by a few words on the task, and shows how to call them. Search here before \
         you say that something cannot be done. Servers: {names}{more}."
    )
}
