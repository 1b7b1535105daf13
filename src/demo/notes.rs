//! The server `notes`: a notebook in memory, shared by all sessions, and a countdown that sends
//! progress and log messages. What a note is and how one is found is in `book`.

mod book;
mod countdown;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context;
use rmcp::handler::server::wrapper::{Json, Parameters};
use rmcp::model::{Implementation, ServerCapabilities, ServerConfig};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler, tool, tool_handler, tool_router};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use book::{Book, Note, NoteList};
use countdown::{Countdown, CountdownDone, Listener};

/// How long open connections may finish after the shutdown was asked for.
const DRAIN: Duration = Duration::from_secs(3);

/// Serves `notes` at `/mcp` on `listener` until `shutdown` is cancelled, then ends its sessions.
///
/// The notes live as long as this future. Only requests with a loopback `Host` are answered.
///
/// # Errors
/// When the listener can no longer accept connections.
pub async fn serve_http(listener: TcpListener, shutdown: CancellationToken) -> anyhow::Result<()> {
    let book = Arc::new(Mutex::new(Book::default()));
    let config = StreamableHttpServerConfig::default()
        .with_cancellation_token(shutdown.child_token())
        .enforce_origin_validation()
        .with_allowed_origins(["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"]);
    let service: StreamableHttpService<Notes, LocalSessionManager> = StreamableHttpService::new(
        move || Ok(Notes::new(Arc::clone(&book))),
        Arc::default(),
        config,
    );
    let router = axum::Router::new().route_service("/mcp", service);
    let asked = shutdown.clone();
    let served = axum::serve(listener, router)
        .with_graceful_shutdown(async move { asked.cancelled_owned().await });
    let overdue = async {
        shutdown.cancelled().await;
        tokio::time::sleep(DRAIN).await;
    };
    tokio::select! {
        result = served.into_future() => result.context("failed to serve `notes`"),
        () = overdue => Ok(()),
    }
}

/// One session's server; the book is shared, the log level is the session's own.
struct Notes {
    book: Arc<Mutex<Book>>,
    level: Arc<Mutex<countdown::Level>>,
}

impl Notes {
    fn new(book: Arc<Mutex<Book>>) -> Self {
        Self { book, level: Arc::default() }
    }

    /// A std mutex is enough: it is held for one short operation and never over an await. A
    /// poisoned one still holds whole notes.
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct AddNote {
    /// One line that says what the note is about, at most 200 characters.
    title: String,
    /// The note itself; plain text or Markdown.
    #[serde(default)]
    text: String,
    /// Words to group notes by, such as "shopping" or "work".
    #[serde(default)]
    tags: Vec<String>,
}

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct ListNotes {
    /// How many notes to return at most, newest first. 20 when left out.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<usize>,
    /// Only notes that carry this tag.
    tag: Option<String>,
}

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct SearchNotes {
    /// Words to look for in title, text and tags. A note must contain all of them; case does not
    /// matter and parts of words match.
    query: String,
    /// How many notes to return at most, newest first. 20 when left out.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<usize>,
}

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct DeleteNote {
    /// The id of the note, as `add_note`, `list_notes` or `search_notes` returned it.
    id: u64,
}

#[tool_router]
impl Notes {
    #[tool(
        description = "Write down a note and get its id. Use it for anything worth remembering \
                       later: ideas, decisions, shopping lists. Notes are kept in memory until \
                       the server stops.",
        annotations(
            title = "Add a note",
            read_only_hint = false,
            destructive_hint = false,
            idempotent_hint = false,
            open_world_hint = false
        )
    )]
    fn add_note(&self, Parameters(note): Parameters<AddNote>) -> Result<Json<Note>, String> {
        let AddNote { title, text, tags } = note;
        self.book().add(&title, text, &tags, jiff::Timestamp::now()).map(Json)
    }

    #[tool(
        description = "List the notes, newest first, with how many there are in all. To find a \
                       note by its words use search_notes instead.",
        annotations(title = "List notes", read_only_hint = true, open_world_hint = false)
    )]
    fn list_notes(&self, Parameters(ask): Parameters<ListNotes>) -> Json<NoteList> {
        Json(self.book().list(ask.tag.as_deref(), ask.limit))
    }

    #[tool(
        description = "Find notes whose title, text or tags contain all of the given words, \
                       newest first.",
        annotations(title = "Search notes", read_only_hint = true, open_world_hint = false)
    )]
    fn search_notes(
        &self,
        Parameters(ask): Parameters<SearchNotes>,
    ) -> Result<Json<NoteList>, String> {
        self.book().search(&ask.query, ask.limit).map(Json)
    }

    #[tool(
        description = "Delete one note for good, by its id, and get back what it said. There is \
                       no undo.",
        annotations(
            title = "Delete a note",
            read_only_hint = false,
            destructive_hint = true,
            idempotent_hint = true,
            open_world_hint = false
        )
    )]
    fn delete_note(&self, Parameters(ask): Parameters<DeleteNote>) -> Result<Json<Note>, String> {
        self.book().delete(ask.id).map(Json)
    }

    #[tool(
        description = "Count down from a number to zero, one step per interval, reporting \
                       progress and a log message at each step. Useful to see that progress \
                       and long-running calls get through; it changes nothing.",
        annotations(title = "Count down", read_only_hint = true, open_world_hint = false)
    )]
    async fn countdown(
        &self,
        Parameters(ask): Parameters<Countdown>,
        context: RequestContext<RoleServer>,
    ) -> Result<Json<CountdownDone>, String> {
        let level = *self.level.lock().unwrap_or_else(PoisonError::into_inner);
        countdown::run(ask, Listener::new(context, level)).await.map(Json)
    }
}

#[tool_handler]
impl ServerHandler for Notes {
    #[expect(deprecated, reason = "clients of every version before 2026-07-28 still use logging")]
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_logging().build();
        ServerConfig::new(capabilities)
            .with_server_info(
                Implementation::new("notes", env!("CARGO_PKG_VERSION")).with_title("Notes"),
            )
            .with_instructions(
                "A shared notebook in memory. Add notes with add_note, find them again with \
                 search_notes, and name a note by its id to delete it.",
            )
    }

    #[expect(deprecated, reason = "clients of every version before 2026-07-28 still use logging")]
    async fn set_level(
        &self,
        request: rmcp::model::SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner) = request.level.into();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
