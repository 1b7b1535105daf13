//! What a model is told when a call did not go well: what happened, whether the tool ran,
//! and what to do. Never an address, a header or a path (RES-08).

use std::time::Duration;

use catalog::{Resolved, Tool};
use coach::nearest::nearest;
use coach::{cut, refusal};
use protocol::json;
use upstream::{Failure, State, Status};

/// A tool result that says `text` and counts as an error.
pub(crate) fn error_result(text: &str) -> String {
    let text = json::quoted(text);
    format!(r#"{{"content":[{{"type":"text","text":{text}}}],"isError":true}}"#)
}

/// A tool result that says `text`.
pub(crate) fn result(text: &str) -> String {
    format!(r#"{{"content":[{{"type":"text","text":{}}}]}}"#, json::quoted(text))
}

/// For a name that leads nowhere within reach; `near` is the tool that was perhaps meant, `own`
/// whether there is a tool to search with.
pub(crate) fn unknown_tool(name: &str, own: bool, near: Option<Resolved<'_>>) -> String {
    let name = cut(name, 80);
    match near {
        Some(Resolved { tool, exposed, .. }) => {
            let usage = refusal::usage(exposed, tool.schema());
            format!("There is no tool `{name}`. Did you mean `{exposed}`?\n{usage}")
        }
        None if own => format!("There is no tool `{name}`. Find tools with search_tools."),
        None => {
            format!("There is no tool `{name}`. Read the tool list again: it may have changed.")
        }
    }
}

/// For a tool's own name that several servers have.
pub(crate) fn several(name: &str, exposed: &[&str]) -> String {
    let names: Vec<String> = exposed.iter().map(|name| format!("`{name}`")).collect();
    format!("Several servers have a tool `{}`: call one of {}.", cut(name, 80), names.join(", "))
}

/// For a server that is not within reach.
pub(crate) fn unknown_server<'a>(name: &str, all: impl Iterator<Item = &'a str>) -> String {
    let all: Vec<&str> = all.collect();
    let name = cut(name, 80);
    match nearest(&name, all.iter().copied()) {
        Some(meant) => format!("There is no server `{name}`. Did you mean `{meant}`?"),
        None if all.is_empty() => format!("There is no server `{name}`."),
        None => format!("There is no server `{name}`. There are: {}.", all.join(", ")),
    }
}

/// For one of the manager's own tools in `call_tool`.
pub(crate) fn own_through_call_tool(name: &str) -> String {
    format!("`{name}` is called by itself, not through call_tool. Nothing was run.")
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

fn span(duration: Duration) -> String {
    match duration.as_secs() {
        0..60 => format!("{} s", duration.as_secs().max(1)),
        60..3600 => format!("{} min", duration.as_secs() / 60),
        _ => format!("{} h", duration.as_secs() / 3600),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use catalog::{Resolved, Tool};
    use insta::assert_snapshot;
    use upstream::{Failure, State, Status};

    use super::{down, failed, own_through_call_tool, several, unknown_server, unknown_tool};

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
        assert_snapshot!(unknown_tool("x", true, None), @"There is no tool `x`. Find tools with search_tools.");
        let near = Arc::new(Tool::parse(r#"{"name":"send","inputSchema":{"type":"object","properties":{"to":{"type":"string"}},"required":["to"]}}"#).expect("a tool"));
        let near = Resolved { server: &Arc::default(), tool: &near, exposed: &"mail__send".into() };
        assert_snapshot!(unknown_tool("sned", true, Some(near)), @r#"
There is no tool `sned`. Did you mean `mail__send`?
Usage: mail__send(to: string)
Example arguments: {"to":"…"}
"#);
        assert_snapshot!(unknown_server("githb", ["github", "mail"].into_iter()), @"There is no server `githb`. Did you mean `github`?");
        assert_snapshot!(several("x", &["a__x", "b__x"]), @"Several servers have a tool `x`: call one of `a__x`, `b__x`.");
        assert_snapshot!(unknown_server("x", ["git", "mail"].into_iter()), @"There is no server `x`. There are: git, mail.");
        assert_snapshot!(own_through_call_tool("search_tools"), @"`search_tools` is called by itself, not through call_tool. Nothing was run.");
        assert_snapshot!(unknown_tool("x", false, None), @"There is no tool `x`. Read the tool list again: it may have changed.");
        assert_snapshot!(down("mail", &status(State::Down)), @"Server `mail` is down since 1 min: it cannot be reached. Nothing was run. The manager keeps trying, next in 8 s; the tool stays listed and works again once the server is back.");
        let starting = Status { down_for: None, ..status(State::Connecting) };
        assert_snapshot!(down("mail", &starting), @"Server `mail` is still connecting; nothing was run. Try again in a few seconds.");
        assert_snapshot!(failed(&tool("{}"), "mail", &Failure::Lost("x".into())), @"Outcome unknown: `send` on server `mail` may or may not have run, since the connection broke before it answered. It was not repeated. Check whether it took effect before you call it again.");
        assert_snapshot!(failed(&tool(r#"{"readOnlyHint":true}"#), "mail", &Failure::Timeout(Duration::from_secs(600))), @"No result from `send` on server `mail`: it did not answer within 600 s. It is safe to call it again.");
        assert_snapshot!(failed(&tool("{}"), "mail", &Failure::SessionLost), @"`send` was not run: server `mail` had a problem, it keeps forgetting the session. You may call it again.");
    }
}
