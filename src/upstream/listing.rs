//! What a server offers: its tools, page by page, and what it says of itself.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use catalog::{Known, Tool};
use protocol::json::{self, Members};
use protocol::{Era, codes};
use transport::{Failure, Session};

/// Pages of one list; a server that goes on for ever is cut there.
const MAX_PAGES: u32 = 1000;

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
    let mut tools = Tools::default();
    let mut cursors = HashSet::new();
    let mut cursor: Option<String> = None;
    for number in 1.. {
        let mut params = Members::default();
        if let Some(cursor) = &cursor {
            params.set("cursor", cursor);
        }
        let page = match session.ask("tools/list", params, within).await {
            Err(Failure::Refused { code, .. })
                if code == i64::from(codes::METHOD_NOT_FOUND) && number == 1 =>
            {
                break;
            }
            page => page?,
        };
        let next = tools.take(page.text(), session, server)?;
        match next {
            Some(_) if number == MAX_PAGES => {
                tracing::warn!(server, pages = number, "tools/list does not end; it is cut there");
                break;
            }
            // Any text is a cursor, also an empty one (U17).
            Some(next) if cursors.insert(next.clone()) => cursor = Some(next),
            Some(_) => {
                tracing::warn!(server, "tools/list repeats a cursor; the list ends there");
                break;
            }
            None => break,
        }
    }
    Ok(Known { tools: tools.list.into(), ..Known::about(&session.hello) })
}

/// What has been read of a list.
#[derive(Default)]
struct Tools {
    list: Vec<Arc<Tool>>,
    names: HashSet<String>,
    bytes: usize,
}

impl Tools {
    /// Takes a page; the raw cursor of the next one, if there is one.
    fn take(
        &mut self,
        page: &str,
        session: &Session,
        server: &str,
    ) -> Result<Option<String>, Failure> {
        self.bytes += page.len();
        if self.bytes > MAX_BYTES {
            return Err(Failure::TooLarge(MAX_BYTES));
        }
        let garbage = |error: json::Unexpected| Failure::Garbage(format!("tools/list: {error}"));
        let page = Members::parse(page).map_err(garbage)?;
        for text in json::elements(page.get("tools").unwrap_or("[]")).map_err(garbage)? {
            match Tool::parse(text) {
                Ok(tool) => self.add(tool, session, server),
                Err(error) => tracing::warn!(server, %error, "left a tool out"),
            }
        }
        Ok(page.get("nextCursor").filter(|raw| *raw != "null").map(str::to_owned))
    }

    fn add(&mut self, tool: Tool, session: &Session, server: &str) {
        let mirrors = session.era == Era::Modern && !session.is_local();
        if let Some(why) = tool.header_fault.filter(|_| mirrors) {
            tracing::warn!(server, tool = tool.name, why, "left a tool out: its `x-mcp-header`");
        } else if !self.names.insert(tool.name.clone()) {
            tracing::warn!(server, tool = tool.name, "a tool is listed twice");
        } else {
            if !tool.dropped.is_empty() {
                let (tool, members) = (&tool.name, tool.dropped.join(", "));
                tracing::warn!(server, tool, members, "left out malformed members of a tool");
            }
            self.list.push(Arc::new(tool));
        }
    }
}
