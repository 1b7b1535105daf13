//! Other words for tools than their servers' (P62).

use std::sync::Arc;
use std::time::Duration;

use catalog::{Catalog, Override, Resolved, Server, Tool};
use fields::{Field, check};
use store::{AuditKind, Change, Noun};

use super::{Error, ToolInfo};
use crate::Gateway;

/// Longest title, in characters, and longest description, in bytes.
const TITLE: usize = 200;
const DESCRIPTION: usize = 16 << 10;

/// How long a change waits until search knows it by its meaning, too.
const PATIENCE: Duration = Duration::from_secs(10);

/// What may be said of a tool.
#[derive(Debug, Clone, Default)]
pub struct OverrideFields {
    /// The server's name.
    pub upstream: Field<String>,
    /// The server's own name for the tool.
    pub tool: Field<String>,
    /// Blank or reset is the server's own.
    pub title: Field<String>,
    /// Blank or reset is the server's own.
    pub description: Field<String>,
}

/// Other words for a tool, with its server's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverrideInfo {
    /// The server's name.
    pub upstream: String,
    /// The words.
    pub words: Override,
}

impl Gateway {
    /// All of them, by server and tool.
    ///
    /// # Errors
    /// As the database fails.
    pub async fn overrides(&self) -> Result<Vec<OverrideInfo>, Error> {
        let state = self.store.load().await?;
        let named = |words: Override| {
            let server = state.servers.iter().find(|server| server.id == words.server)?;
            Some(OverrideInfo { upstream: server.name.clone(), words })
        };
        Ok(state.overrides.into_iter().filter_map(named).collect())
    }

    /// Gives a tool other words, or its server's back. They are in force, in search too, when
    /// this returns.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the field; [`Error::NotFound`] for a server or tool that is not
    /// there.
    pub async fn set_override(&self, fields: OverrideFields) -> Result<ToolInfo, Error> {
        let upstream = must(fields.upstream, "upstream")?;
        let tool = must(fields.tool, "tool")?;
        let mut turn = self.turn().await?;
        let server = turn.server(&upstream)?.clone();
        let known = self.known().get(&server.id).cloned().unwrap_or_default();
        let said = known.tools.iter().find(|known| known.name == tool);
        let said = said.ok_or_else(|| Error::not_found(Noun::Tool, &tool))?;
        let mut all = turn.state.overrides.iter();
        let was = all.find(|words| words.server == server.id && words.tool == tool).cloned();
        let blank = Override { server: server.id, tool, title: None, description: None };
        let was = was.unwrap_or(blank);
        let words = Override {
            title: over(fields.title, &was.title, &said.title),
            description: over(fields.description, &was.description, &said.description),
            ..was.clone()
        };
        if words.title.as_ref().is_some_and(|title| title.chars().count() > TITLE) {
            let message = format!("must have at most {TITLE} characters");
            return Err(Error::invalid("title", message));
        }
        check::short("description", words.description.as_deref().unwrap_or(""), DESCRIPTION)?;
        if words != was {
            let what = match (&words.title, &words.description) {
                (None, None) => "has its server's words again",
                _ => "was given other words",
            };
            let message = format!("tool `{}` of server `{upstream}` {what}", words.tool);
            turn.push(Change::SetOverride(words));
            turn.audit(AuditKind::Server, message);
        }
        turn.commit().await?;
        self.finder.settled(PATIENCE).await;
        let catalog = self.catalog();
        Ok(match catalog.whole().tool(server.id, &said.name) {
            Some(resolved) => ToolInfo::of(&catalog, resolved),
            // A disabled server lists nothing.
            None => ToolInfo::unlisted(&server, said),
        })
    }
}

fn must(field: Field<String>, name: &str) -> Result<String, Error> {
    field.set().ok_or_else(|| Error::invalid(name, "must be given"))
}

/// The words after a change. An editor that sends back what it was shown does not mean to
/// freeze the server's own.
fn over(field: Field<String>, was: &Option<String>, said: &str) -> Option<String> {
    let text = field.over(was.clone().unwrap_or_default(), String::new()).trim().to_owned();
    Some(text).filter(|text| !text.is_empty() && *text != said.trim())
}

impl ToolInfo {
    pub(super) fn of(catalog: &Catalog, resolved: Resolved<'_>) -> Self {
        let Resolved { server, tool, exposed } = resolved;
        let listed = catalog.server_by_id(server.id);
        let said = listed.and_then(|listed| listed.said.get(&tool.name)).cloned();
        let (exposed, server, tool) = (exposed.clone(), server.clone(), tool.clone());
        Self { exposed, server, tool, said }
    }

    fn unlisted(server: &Server, tool: &Arc<Tool>) -> Self {
        let (server, exposed) = (Arc::new(server.clone()), tool.name.as_str().into());
        Self { exposed, server, tool: tool.clone(), said: None }
    }
}
