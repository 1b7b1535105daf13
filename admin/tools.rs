//! `/tools`: every tool of every server; `/search`: those that fit a task; `/keys/{id}/adaptive`:
//! those that an app uses.

use gateway::Gateway;
use gateway::manage::{LearnedTool, ToolInfo};
use serde::Serialize;

use crate::answer::Answer;
use crate::body::Fields;
use crate::error::Error;
use crate::keys;
use crate::routes::Input;

/// Results of a page, where nothing is said of it.
const PAGE_SIZE: u64 = 10;

#[derive(Serialize)]
pub(crate) struct Tool<'a> {
    exposed: &'a str,
    upstream: &'a str,
    tool: &'a str,
    title: &'a str,
    description: &'a str,
    overridden: bool,
    server_says: &'a str,
    arguments: Vec<String>,
}

#[derive(Serialize)]
struct Found<'a> {
    mode: &'static str,
    problem: Option<&'a str>,
    waiting: usize,
    total: usize,
    page: u64,
    page_size: u64,
    results: Vec<Scored<'a>>,
}

#[derive(Serialize)]
struct Scored<'a> {
    #[serde(flatten)]
    tool: Tool<'a>,
    score: f32,
}

#[derive(Serialize)]
struct Ranking<'a> {
    listed: bool,
    cap: u8,
    tools: Vec<Ranked<'a>>,
}

#[derive(Serialize)]
struct Ranked<'a> {
    exposed: &'a str,
    upstream: &'a str,
    tool: &'a str,
    score: f64,
    calls: u32,
    picked: bool,
}

pub(crate) async fn list(gateway: &Gateway) -> Result<Answer, Error> {
    let tools = gateway.tools();
    let tools: Vec<_> = tools.iter().map(Tool::of).collect();
    Ok(Answer::json(&tools))
}

pub(crate) async fn search(gateway: &Gateway, input: Input) -> Result<Answer, Error> {
    let mut body = Fields::parse(&input.body, &["query", "page", "page_size"])?;
    let query = body.text("query")?.set();
    let query = query.ok_or_else(|| Error::Bad("`query` must be given".to_owned()))?;
    let page = body.number("page")?.over(1, 1);
    let page_size = body.number("page_size")?.over(PAGE_SIZE, PAGE_SIZE);
    let found = gateway.search(&query, page, page_size).await?;
    let scored = found.tools.iter().map(|(info, score)| (Tool::of(info), *score));
    Ok(Answer::json(&Found {
        mode: found.mode,
        problem: found.problem.as_deref(),
        waiting: found.waiting,
        total: found.total,
        page,
        page_size,
        results: scored.map(|(tool, score)| Scored { tool, score }).collect(),
    }))
}

pub(crate) async fn learned(gateway: &Gateway, input: Input) -> Result<Answer, Error> {
    let ranking = gateway.learned(keys::id(&input)?)?;
    Ok(Answer::json(&Ranking {
        listed: ranking.listed,
        cap: ranking.cap,
        tools: ranking.tools.iter().map(Ranked::of).collect(),
    }))
}

impl<'a> Tool<'a> {
    pub(crate) fn of(info: &'a ToolInfo) -> Self {
        let said = info.said.as_ref().unwrap_or(&info.tool);
        Self {
            exposed: &info.exposed,
            upstream: &info.server.name,
            tool: &info.tool.name,
            title: &info.tool.title,
            description: &info.tool.description,
            overridden: info.said.is_some(),
            server_says: &said.description,
            arguments: info.arguments(),
        }
    }
}

impl<'a> Ranked<'a> {
    fn of(learned: &'a LearnedTool) -> Self {
        let LearnedTool { tool: ToolInfo { exposed, server, tool, .. }, score, calls, picked } =
            learned;
        let (upstream, tool) = (server.name.as_str(), tool.name.as_str());
        Self { exposed, upstream, tool, score: *score, calls: *calls, picked: *picked }
    }
}
