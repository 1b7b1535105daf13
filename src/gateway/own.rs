//! The manager's own tools: finding tools, and telling of servers (P40–P42).

use std::sync::Arc;

use catalog::View;
use catalog::snapshot::Listed;
use coach::manager::{self, ManagerTool, Match, ServerLine};
use protocol::json::{self, Members};
use upstream::State;

use crate::core::Gateway;
use crate::find::OwnCall;
use crate::words;

/// Matches of one answer.
const MATCHES: usize = 5;

/// Tools of one answer that lists all of them.
const PAGE: usize = 50;

/// Pages of matches; what comes after so many has nothing to do with the words.
const PAGES: usize = 20;

impl Gateway {
    /// What one of the manager's own tools answers, a raw result.
    pub(crate) async fn own(&self, call: &OwnCall) -> String {
        let arguments = Members::parse(&call.arguments).unwrap_or_default();
        let text = |key: &str| arguments.get(key).and_then(json::string).unwrap_or_default();
        match call.tool {
            ManagerTool::Search => {
                let page = arguments.get("page").and_then(|raw| raw.parse::<f64>().ok());
                // The schema has seen to it that it is a whole number from 1.
                let page = page.map_or(1, |page| page as usize).max(1);
                words::result(&match text("query").trim() {
                    "" => all_tools(&call.view, page),
                    query => self.matches(&call.view, query, page).await,
                })
            }
            ManagerTool::Servers => words::result(&self.server_lines(&call.view)),
            ManagerTool::OfServer => self.tools_of(&call.view, &text("server")),
            // `find` looks into it.
            ManagerTool::Call => words::error_result(&words::own_through_call_tool("call_tool")),
        }
    }

    async fn matches(&self, view: &Arc<View>, query: &str, page: usize) -> String {
        let page = page.min(PAGES);
        let found = self.finder.search(view, query, MATCHES * page).await;
        let hits = found.hits.get(MATCHES * (page - 1)..).unwrap_or_default();
        if hits.is_empty() {
            return manager::nothing_found(query);
        }
        let troubles: Vec<String> = hits.iter().map(|hit| self.trouble(hit.server.id)).collect();
        let matches = hits.iter().zip(&troubles).map(|(hit, trouble)| Match {
            exposed: &hit.exposed,
            server: &hit.server.name,
            description: &hit.tool.description,
            schema: hit.tool.schema(),
            trouble,
        });
        manager::matches(&matches.collect::<Vec<_>>())
    }

    fn server_lines(&self, view: &View) -> String {
        let states: Vec<&str> =
            view.servers().iter().map(|listed| self.state_word(listed)).collect();
        let lines = view.servers().iter().zip(states).map(|(listed, state)| ServerLine {
            name: &listed.server.name,
            about: finder::about(listed),
            tools: listed.known.tools.len(),
            state,
        });
        manager::servers(&lines.collect::<Vec<_>>())
    }

    fn tools_of(&self, view: &View, name: &str) -> String {
        let same = coach::nearest::normal(name);
        let alike = || {
            let mut all = view.servers().iter();
            all.find(|listed| coach::nearest::normal(&listed.server.name) == same)
        };
        let Some(listed) = view.server(name).or_else(alike) else {
            let names = view.servers().iter().map(|listed| listed.server.name.as_str());
            return words::error_result(&words::unknown_server(name, names));
        };
        let tools = listed.known.tools.iter().zip(&listed.exposed);
        let tools = tools.map(|(tool, exposed)| (&**exposed, tool.description.as_str()));
        let trouble = match self.state_word(listed) {
            "connected" => String::new(),
            state => format!("Server `{}` is {state}.", listed.server.name),
        };
        words::result(&manager::about_server(tools, &trouble))
    }

    /// Why a server's tools cannot be called now; empty when they can.
    fn trouble(&self, server: catalog::ServerId) -> String {
        match self.upstreams.get(server).map(|upstream| upstream.state()) {
            Some(State::Connected | State::Silent) => String::new(),
            Some(State::Connecting) => "still connecting".to_owned(),
            Some(State::Disabled) => "turned off".to_owned(),
            Some(State::Down | State::Auth) | None => "down now".to_owned(),
        }
    }

    fn state_word(&self, listed: &Listed) -> &'static str {
        match self.upstreams.get(listed.server.id).map(|upstream| upstream.state()) {
            Some(State::Connected | State::Silent) => "connected",
            Some(State::Connecting) => "connecting",
            Some(State::Disabled) => "turned off",
            Some(State::Down | State::Auth) | None => "down",
        }
    }
}

fn all_tools(view: &View, page: usize) -> String {
    let pages = view.tools().div_ceil(PAGE).max(1);
    let page = page.min(pages);
    let shown = view.all().skip(PAGE * (page - 1)).take(PAGE);
    let shown: Vec<_> =
        shown.map(|each| (&**each.exposed, each.tool.description.as_str())).collect();
    manager::all_tools(shown.into_iter(), page, pages)
}
