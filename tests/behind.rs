//! Servers behind the gateway by the rules of the protocol and the product: lists, eras, sessions,
//! connections. Faults that people reported of other gateways are in `cases/`.

mod eras;
mod lists;

use crate::support::gateway::Gateway;
use crate::support::mcp::Session;
use crate::support::odd::{Action, Answer, Odd, Request, State};

/// A gateway with this server behind it, and a session of an app.
fn before(odd: &Odd) -> (Gateway, Session) {
    let gateway = Gateway::start();
    gateway.add_server(&odd.registration("odd"));
    let session = gateway.session(&gateway.add_key("full"));
    (gateway, session)
}

/// What a plain server of 2026-07-28 does; to be had from one without sessions.
fn modern(request: &Request, state: &State) -> Action {
    match request.rpc() {
        "server/discover" => Answer::result(
            request,
            r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}"#,
        )
        .into(),
        "tools/list" | "tools/call" => state.usual(request).into(),
        "initialize" => unsupported(request, &["2026-07-28"]).into(),
        _ => Answer::error(request, r#"{"code":-32601,"message":"no such method"}"#)
            .with_status(404)
            .into(),
    }
}

/// The refusal of a server that speaks these versions and no other.
fn unsupported(request: &Request, supported: &[&str]) -> Answer {
    let data = serde_json::json!({"supported": supported, "requested": "2026-07-28"});
    let error = format!(r#"{{"code":-32022,"message":"unsupported version","data":{data}}}"#);
    Answer::error(request, &error).with_status(400)
}
