//! Methods that the manager answers alone and in a line.

use bytes::Bytes;
use gateway::{Caller, Gateway};
use pingora_core::Result;
use protocol::{Era, bridge, meta};

use crate::methods::tools_list;
use crate::reply::Client;
use crate::rpc::{self, Request};

/// Answers with a result of our own.
pub(crate) async fn result(
    request: &Request<'_>,
    client: &mut Client<'_>,
    raw: &str,
) -> Result<()> {
    let result = bridge::own_result(raw, request.era, request.gateway.own_info());
    request.answer(client, Bytes::from(result)).await
}

/// A list of something that is not offered yet: empty rather than an error, since clients
/// ask without being told to (HTTP-13).
pub(crate) async fn empty_list(
    request: &Request<'_>,
    client: &mut Client<'_>,
    member: &str,
) -> Result<()> {
    if let Some(refusal) = tools_list::foreign_cursor(request) {
        return client.refuse(&refusal).await;
    }
    let raw = match request.era {
        Era::Legacy => format!(r#"{{"{member}":[]}}"#),
        Era::Modern => format!(r#"{{"{member}":[],"ttlMs":0,"cacheScope":"private"}}"#),
    };
    result(request, client, &raw).await
}

/// `logging/setLevel`: from now on only log messages of at least that severity.
pub(crate) async fn set_level(request: &Request<'_>, client: &mut Client<'_>) -> Result<()> {
    let severity = request.text("level").and_then(|level| meta::severity(&level));
    match (severity, &request.conversation) {
        (Some(severity), Some(conversation)) => {
            conversation.set_log_level(severity);
            result(request, client, "{}").await
        }
        _ => {
            let levels = "debug, info, notice, warning, error, critical, alert or emergency";
            let refusal = request.bad_params(format!("`params.level` must be {levels}"));
            client.refuse(&refusal).await
        }
    }
}

/// DELETE: the client ends its session (F24).
pub(crate) async fn delete(
    gateway: &Gateway,
    caller: Caller,
    client: &mut Client<'_>,
) -> Result<()> {
    client.report.method = "delete";
    client.report.era = "legacy";
    match rpc::session(gateway, caller, client) {
        Ok(conversation) => {
            gateway.end_conversation(&conversation);
            client.empty(204, &[]).await
        }
        Err(refusal) => client.refuse(&refusal).await,
    }
}
