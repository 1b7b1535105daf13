//! `initialize`: agrees on a version and opens a session, without waiting for any server
//! (F20, F21, P10).

use bytes::Bytes;
use pingora_core::Result;
use protocol::{Version, json, message};

use crate::refusal::Refusal;
use crate::reply::Client;
use crate::rpc::{Request, client_name};

/// What the manager offers: tools that change, log messages, and empty lists of the rest.
pub(crate) const CAPABILITIES: &str =
    r#"{"tools":{"listChanged":true},"resources":{},"prompts":{},"logging":{}}"#;

/// What the client is told at the start, as a raw JSON string (A11).
pub(crate) fn instructions(request: &Request<'_>) -> String {
    let view = request.gateway.view(&request.caller);
    view.map_or_else(|| "\"\"".to_owned(), |view| view.instructions().to_owned())
}

pub(crate) async fn serve(request: &Request<'_>, client: &mut Client<'_>) -> Result<()> {
    let Some(asked) = request.text("protocolVersion") else {
        let refusal = request.bad_params("`params.protocolVersion` must be a string");
        return client.refuse(&refusal).await;
    };
    let version = Version::negotiate(&asked);
    let name = client_name(request.params.get("clientInfo"));
    let opened = request.gateway.conversations.open(request.caller, version, &name);
    let Some(conversation) = opened else {
        return client.refuse(&Refusal::Internal { id: request.id.to_owned() }).await;
    };
    let result = format!(
        r#"{{"protocolVersion":{},"capabilities":{CAPABILITIES},"serverInfo":{},"instructions":{}}}"#,
        json::quoted(version.as_str()),
        request.gateway.own_info(),
        instructions(request),
    );
    let body = Bytes::from(message::result(request.id, &result));
    client.json_with(200, &[("mcp-session-id", &conversation.id)], &[body]).await
}
