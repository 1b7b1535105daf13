//! What a model is told when a call did not go well: what happened, whether the tool ran,
//! and what to do. Never an address, a header or a path (RES-08).

use std::time::Duration;

use catalog::Tool;
use protocol::json;
use upstream::{Failure, State, Status};

/// A tool result that says `text` and counts as an error.
pub(crate) fn error_result(text: &str) -> String {
    let text = json::quoted(text);
    format!(r#"{{"content":[{{"type":"text","text":{text}}}],"isError":true}}"#)
}

/// For a name that leads nowhere within reach.
pub(crate) fn unknown_tool(name: &str) -> String {
    format!("There is no tool `{}`. Read the tool list again: it may have changed.", short(name))
}

/// For a tool whose server cannot be reached now (P56).
pub(crate) fn down(server: &str, status: &Status) -> String {
    let why =
        status.failure.as_ref().map_or_else(|| "it cannot be reached".to_owned(), Failure::told);
    match status.state {
        State::Disabled => format!("Server `{server}` is turned off; nothing was run."),
        State::Connecting if status.down_for.is_none() => format!(
            "Server `{server}` is still connecting; nothing was run. Try again in a few seconds."
        ),
        _ => format!(
            "Server `{server}` is down{}: {why}. Nothing was run. The manager keeps trying{}; \
             the tool stays listed and works again once the server is back.",
            status.down_for.map(|d| format!(" since {}", span(d))).unwrap_or_default(),
            status.retry_in.map(|d| format!(", next in {}", span(d))).unwrap_or_default(),
        ),
    }
}

/// For a call that met a failure under way.
pub(crate) fn failed(tool: &Tool, server: &str, failure: &Failure) -> String {
    let why = failure.told();
    if failure.not_run() {
        return format!(
            "`{}` was not run: server `{server}` had a problem, {why}. You may call it again.",
            tool.name
        );
    }
    if tool.repeatable() {
        return format!(
            "No result from `{}` on server `{server}`: {why}. It is safe to call it again.",
            tool.name
        );
    }
    format!(
        "Outcome unknown: `{}` on server `{server}` may or may not have run, since {why}. It was \
         not repeated. Check whether it took effect before you call it again.",
        tool.name
    )
}

/// For an answer that breaks the protocol.
pub(crate) fn malformed(tool: &Tool, server: &str, what: &str) -> String {
    format!(
        "`{}` on server `{server}` answered, but {what} is not as the protocol wants it, so it \
         cannot be shown. Whether the tool did what it should is not known.",
        tool.name
    )
}

/// Names come from clients; a long one is cut, so that an answer stays short.
fn short(name: &str) -> String {
    const MOST: usize = 80;
    if name.chars().count() <= MOST {
        return name.to_owned();
    }
    name.chars().take(MOST).chain("…".chars()).collect()
}

fn span(duration: Duration) -> String {
    match duration.as_secs() {
        0..60 => format!("{} s", duration.as_secs().max(1)),
        60..3600 => format!("{} min", duration.as_secs() / 60),
        _ => format!("{} h", duration.as_secs() / 3600),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use catalog::Tool;
    use insta::assert_snapshot;
    use upstream::{Failure, State, Status};

    use super::{down, failed, unknown_tool};

    fn tool(annotations: &str) -> Tool {
        Tool::parse(&format!(r#"{{"name":"send","annotations":{annotations}}}"#)).expect("a tool")
    }

    fn status(state: State) -> Status {
        Status {
            state,
            failure: Some(Failure::Unreachable("1.2.3.4:5".into())),
            down_for: Some(Duration::from_secs(75)),
            retry_in: Some(Duration::from_secs(8)),
            sessions: 0,
            stderr: Vec::new(),
        }
    }

    #[test]
    fn texts_for_models() {
        assert_snapshot!(unknown_tool("x"), @"There is no tool `x`. Read the tool list again: it may have changed.");
        assert_snapshot!(down("mail", &status(State::Down)), @"Server `mail` is down since 1 min: it cannot be reached. Nothing was run. The manager keeps trying, next in 8 s; the tool stays listed and works again once the server is back.");
        let starting = Status { down_for: None, ..status(State::Connecting) };
        assert_snapshot!(down("mail", &starting), @"Server `mail` is still connecting; nothing was run. Try again in a few seconds.");
        assert_snapshot!(failed(&tool("{}"), "mail", &Failure::Lost("x".into())), @"Outcome unknown: `send` on server `mail` may or may not have run, since the connection broke before it answered. It was not repeated. Check whether it took effect before you call it again.");
        assert_snapshot!(failed(&tool(r#"{"readOnlyHint":true}"#), "mail", &Failure::Timeout(Duration::from_secs(600))), @"No result from `send` on server `mail`: it did not answer within 600 s. It is safe to call it again.");
        assert_snapshot!(failed(&tool("{}"), "mail", &Failure::SessionLost), @"`send` was not run: server `mail` had a problem, it keeps forgetting the session. You may call it again.");
    }
}
