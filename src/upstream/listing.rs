//! What a server offers: its tools, page by page, and what it says of itself.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use catalog::{Known, Tool};
use protocol::codes;
use protocol::json::{self, Members};
use transport::{Failure, Session};

/// Pages of one list; a server that goes on for ever is cut there.
const MAX_PAGES: usize = 1000;

/// Bytes of one list, over all its pages.
const MAX_BYTES: usize = 64 << 20;

/// Reads the whole tool list (U17). Tools that cannot be used are left out and logged.
///
/// # Errors
/// When a page cannot be read. A server without tools has an empty list (UPS-09).
pub(crate) async fn read(
    session: &Session,
    server: &str,
    within: Duration,
) -> Result<Known, Failure> {
    // Each page has its time, and so has the whole: a list may go on for ever.
    let all = tokio::time::timeout(within, pages(session, server, within)).await;
    all.map_err(|_| Failure::Timeout(within))?
}

async fn pages(session: &Session, server: &str, within: Duration) -> Result<Known, Failure> {
    let mut tools: Vec<Arc<Tool>> = Vec::new();
    let mut names = HashSet::new();
    let mut cursors = HashSet::new();
    let mut cursor: Option<String> = None;
    let mut bytes = 0;
    for _ in 0..MAX_PAGES {
        let mut params = Members::default();
        if let Some(cursor) = &cursor {
            params.set("cursor", cursor);
        }
        let page = match session.ask("tools/list", params, within).await {
            Err(Failure::Refused { code, .. })
                if code == i64::from(codes::METHOD_NOT_FOUND) && tools.is_empty() =>
            {
                break;
            }
            page => page?,
        };
        bytes += page.text().len();
        if bytes > MAX_BYTES {
            return Err(Failure::TooLarge(MAX_BYTES));
        }
        let garbage = |error: json::Unexpected| Failure::Garbage(format!("tools/list: {error}"));
        let page = Members::parse(page.text()).map_err(garbage)?;
        for text in json::elements(page.get("tools").unwrap_or("[]")).map_err(garbage)? {
            match Tool::parse(text) {
                Ok(tool) if names.insert(tool.name.clone()) => {
                    if !tool.dropped.is_empty() {
                        let (tool, members) = (&tool.name, tool.dropped.join(", "));
                        tracing::warn!(
                            server,
                            tool,
                            members,
                            "left out malformed members of a tool"
                        );
                    }
                    tools.push(Arc::new(tool));
                }
                Ok(tool) => tracing::warn!(server, tool = tool.name, "a tool is listed twice"),
                Err(error) => tracing::warn!(server, %error, "left a tool out"),
            }
        }
        match page.get("nextCursor").filter(|raw| *raw != "null") {
            Some(next) if cursors.insert(next.to_owned()) => cursor = Some(next.to_owned()),
            Some(_) => {
                tracing::warn!(server, "tools/list repeats a cursor; the list ends there");
                break;
            }
            None => break,
        }
    }
    Ok(Known { tools: tools.into(), ..Known::about(&session.hello) })
}
