//! Faults that people reported of other gateways, each as a test that carries the id of its case.
//! The server behind is mostly the scriptable one of `support/odd.rs`. Ids without a test here
//! are in `cases.md`.

mod arg;
mod bid;
mod cat;
mod http;
mod plt;
mod res;
mod sch;
mod sec;
mod ses;
mod stdio;
mod ups;

use serde_json::Value;

use crate::support::gateway::Gateway;
use crate::support::mcp::{Message, Session};
use crate::support::odd::Odd;

/// A gateway with this server behind it, and a session of an app.
fn before(odd: &Odd) -> (Gateway, Session) {
    let gateway = Gateway::start();
    gateway.add_server(&odd.registration("odd"));
    let session = gateway.session(&gateway.add_key("full"));
    (gateway, session)
}

fn result(message: &Message) -> Value {
    serde_json::from_str(message.result()).unwrap()
}

/// A call as text, with the id as it stands.
fn call(id: &str, tool: &str, arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
    )
}

/// A call that asks for progress.
fn call_with_token(id: &str, tool: &str, arguments: &str, token: &str) -> String {
    let whole = call(id, tool, arguments);
    let open = whole.strip_suffix("}}").unwrap();
    format!(r#"{open},"_meta":{{"progressToken":{token}}}}}}}"#)
}

/// A progress notification as a server sends it.
fn progress(token: &str, step: u32, message: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{step},"message":"{message}"}}}}"#
    )
}

const LIST_CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
