//! Tools as people see them: every tool of every server, whatever groups reach; searched; and what
//! an app has learned of them.

use std::sync::Arc;

use catalog::{KeyId, Mode, Server, Tool};
use conversation::CAP;
use finder::Status;
use store::Noun;

use super::Error;
use crate::Gateway;

/// Results of one page of a search, at most.
const PAGE: u64 = 100;

/// One tool of one server.
#[derive(Debug, Clone)]
pub struct ToolInfo {
    /// The name that clients call.
    pub exposed: Arc<str>,
    /// Its server.
    pub server: Arc<Server>,
    /// As models read it.
    pub tool: Arc<Tool>,
    /// As its server described it, where an operator's words stand in for those.
    pub said: Option<Arc<Tool>>,
}

impl ToolInfo {
    /// The names of its arguments, in the order of the schema.
    pub fn arguments(&self) -> Vec<String> {
        self.tool.schema().arguments().into_iter().map(|argument| argument.name).collect()
    }
}

/// What a search found.
#[derive(Debug, Clone)]
pub struct Searched {
    /// `semantic` or `lexical`.
    pub mode: &'static str,
    /// Why search by meaning does not answer, where a model is set up.
    pub problem: Option<String>,
    /// Texts that wait until they can be found by their meaning.
    pub waiting: usize,
    /// How many tools fit at all.
    pub total: usize,
    /// A page of them, best first, each with its score of 0–1.
    pub tools: Vec<(ToolInfo, f32)>,
}

/// What an app has learned of a tool.
#[derive(Debug, Clone)]
pub struct LearnedTool {
    /// The tool.
    pub tool: ToolInfo,
    /// 0–1.
    pub score: f64,
    /// Its calls.
    pub calls: u32,
    /// Whether it is, or in an adaptive group would be, in the list.
    pub picked: bool,
}

/// What a key's app has learned.
#[derive(Debug, Clone)]
pub struct Ranking {
    /// Whether its group lists learned tools.
    pub listed: bool,
    /// How many of them.
    pub cap: u8,
    /// The tools in use within its reach, the likeliest first.
    pub tools: Vec<LearnedTool>,
}

impl Gateway {
    /// Every tool, servers in registration order and tools in their server's.
    pub fn tools(&self) -> Vec<ToolInfo> {
        let catalog = self.catalog();
        catalog.whole().all().map(|resolved| ToolInfo::of(&catalog, resolved)).collect()
    }

    /// A page of the tools that fit a task told in a few words; `page` counts from 1.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the field.
    pub async fn search(&self, query: &str, page: u64, size: u64) -> Result<Searched, Error> {
        if page == 0 {
            return Err(Error::invalid("page", "must be 1 or more"));
        }
        if !(1..=PAGE).contains(&size) {
            return Err(Error::invalid("page_size", format!("must be 1–{PAGE}, not {size}")));
        }
        let catalog = self.catalog();
        let found = self.finder.search(catalog.whole(), query, usize::MAX).await;
        let place = |pages: u64| usize::try_from(pages.saturating_mul(size)).unwrap_or(usize::MAX);
        let shown = found.hits.iter().skip(place(page - 1)).take(place(1));
        let tools = shown.filter_map(|hit| {
            let resolved = catalog.whole().tool(hit.server.id, &hit.tool.name)?;
            Some((ToolInfo::of(&catalog, resolved), hit.score))
        });
        let tools = tools.collect();
        let (waiting, problem) = match self.finder.status() {
            Status::Off => (0, None),
            Status::Loading => (0, Some("the model is being loaded".to_owned())),
            Status::Ready { waiting } => (waiting, None),
            Status::Failed(why) => (0, Some(why.to_string())),
        };
        Ok(Searched { mode: found.mode.as_str(), problem, waiting, total: found.hits.len(), tools })
    }

    /// What the key's app has learned.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn learned(&self, id: KeyId) -> Result<Ranking, Error> {
        let catalog = self.catalog();
        let missing = || Error::not_found(Noun::Key, id.0);
        let key = catalog.key_by_id(id).ok_or_else(missing)?;
        let view = catalog.view(key.group).ok_or_else(missing)?;
        let now = jiff::Timestamp::now().as_millisecond();
        let (ranking, picked) = self.learned.ranking(view, id, now);
        let tools = ranking.into_iter().filter_map(|ranked| {
            let (server, name) = &ranked.tool;
            let tool = ToolInfo::of(&catalog, view.tool(*server, name)?);
            let picked = picked.contains(&ranked.tool);
            Some(LearnedTool { tool, score: ranked.score, calls: ranked.calls, picked })
        });
        Ok(Ranking {
            listed: view.group.mode == Mode::Adaptive,
            cap: view.group.adaptive_cap.unwrap_or(CAP),
            tools: tools.collect(),
        })
    }
}
