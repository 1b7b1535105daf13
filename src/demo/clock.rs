//! The server `clock`: the time and simple calendar sums, which language models get wrong when they
//! guess. Every tool only reads. The sums themselves are in `arithmetic`.

mod arithmetic;

use anyhow::Context;
use rmcp::handler::server::wrapper::{Json, Parameters};
use rmcp::model::{Implementation, ServerCapabilities, ServerConfig};
use rmcp::{ServerHandler, ServiceExt, tool, tool_handler, tool_router};

use arithmetic::{Days, Moment, Sum};

/// Serves `clock` on this process's stdin and stdout until stdin ends.
///
/// Nothing else in the process may write to stdout meanwhile.
///
/// # Errors
/// When the client leaves before the handshake, or the server's task fails.
pub async fn serve_stdio() -> anyhow::Result<()> {
    let running =
        Clock.serve(rmcp::transport::stdio()).await.context("failed to start `clock` on stdio")?;
    running.waiting().await.context("failed to serve `clock` on stdio")?;
    Ok(())
}

struct Clock;

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Now {
    /// Offset from UTC, such as "+02:00", "-05:30" or "Z". UTC when left out.
    timezone_offset: Option<String>,
}

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct AddDuration {
    /// Where to start: a date "2026-07-28", or a date and time "2026-07-28T09:30:00+02:00".
    start: String,
    /// What to add: ISO 8601 ("P1M2DT3H") or plain ("2 weeks 3 days", "1h 30m"). A leading "-"
    /// subtracts ("-P1D").
    duration: String,
}

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct DaysBetween {
    /// The first date, such as "2026-07-28". A time of day is ignored.
    from: String,
    /// The second date. The answer is negative when it is before the first.
    to: String,
}

#[tool_router]
impl Clock {
    #[tool(
        description = "Get the current date and time, with weekday and Unix time. Call this \
                       instead of guessing what day it is.",
        annotations(title = "Current time", read_only_hint = true, open_world_hint = false)
    )]
    fn now(&self, Parameters(ask): Parameters<Now>) -> Result<Json<Moment>, String> {
        arithmetic::moment(jiff::Timestamp::now(), ask.timezone_offset.as_deref()).map(Json)
    }

    #[tool(
        description = "Add a duration to a date or a date and time (or subtract it, with a \
                       leading minus). Months keep the day where they can: 31 January plus one \
                       month is the last day of February.",
        annotations(title = "Add a duration", read_only_hint = true, open_world_hint = false)
    )]
    fn add_duration(&self, Parameters(ask): Parameters<AddDuration>) -> Result<Json<Sum>, String> {
        arithmetic::add(&ask.start, &ask.duration).map(Json)
    }

    #[tool(
        description = "Count the days from one date to another, and how many of them are \
                       Monday to Friday.",
        annotations(title = "Days between", read_only_hint = true, open_world_hint = false)
    )]
    fn days_between(&self, Parameters(ask): Parameters<DaysBetween>) -> Result<Json<Days>, String> {
        arithmetic::days_between(&ask.from, &ask.to).map(Json)
    }
}

#[tool_handler]
impl ServerHandler for Clock {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(
                Implementation::new("clock", env!("CARGO_PKG_VERSION")).with_title("Clock"),
            )
            .with_instructions(
                "The current time and exact calendar sums. Use these tools rather than \
                 calculating dates yourself.",
            )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

    #[tokio::test]
    async fn a_client_on_a_pipe_lists_and_calls() {
        let (server, client) = tokio::io::duplex(64 * 1024);
        let serving = tokio::spawn(async { Clock.serve(server).await.unwrap().waiting().await });
        let (read, mut write) = tokio::io::split(client);
        let mut answers = BufReader::new(read).lines();
        let client = json!({"name": "test", "version": "1"});
        let hello =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        let call = json!({"name": "days_between", "arguments": {"from": "2026-07-28", "to": "2026-08-04"}});
        let mut got = Vec::new();
        for (method, params) in
            [("initialize", hello), ("tools/list", json!({})), ("tools/call", call)]
        {
            let sent =
                json!({"jsonrpc": "2.0", "id": got.len(), "method": method, "params": params});
            write.write_all(format!("{sent}\n").as_bytes()).await.unwrap();
            let line = answers.next_line().await.unwrap().unwrap();
            got.push(serde_json::from_str::<Value>(&line).unwrap());
            if method == "initialize" {
                let note = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";
                write.write_all(note.as_bytes()).await.unwrap();
            }
        }
        assert_eq!(got[0]["result"]["serverInfo"]["name"], "clock");
        let tools = got[1]["result"]["tools"].as_array().unwrap();
        assert_eq!(tools.len(), 3);
        assert!(tools.iter().all(|tool| tool["annotations"]["readOnlyHint"] == true));
        assert_eq!(got[2]["result"]["structuredContent"]["days"], 7);
        drop((write, answers));
        serving.await.unwrap().unwrap();
    }
}
