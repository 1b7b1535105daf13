//! Methods that the manager answers alone and in a line.

use gateway::{Caller, Gateway};
use pingora_core::Result;
use protocol::{Era, bridge, meta};

use crate::methods::tools_list;
use crate::refusal::Refusal;
use crate::reply::Client;
use crate::rpc::{self, Parts, Request};

/// A result of our own, in the form of the client's era.
pub(crate) fn own(request: &Request<'_>, raw: &str) -> Parts {
    let result = bridge::own_result(raw, request.era, request.gateway.own_info());
    request.parts(result.into())
}

pub(crate) fn no_resources(request: &Request<'_>) -> std::result::Result<Parts, Refusal> {
    empty_list(request, "resources")
}

pub(crate) fn no_templates(request: &Request<'_>) -> std::result::Result<Parts, Refusal> {
    empty_list(request, "resourceTemplates")
}

pub(crate) fn no_prompts(request: &Request<'_>) -> std::result::Result<Parts, Refusal> {
    empty_list(request, "prompts")
}

/// A list of something that is not offered yet: empty rather than an error, since clients
/// ask without being told to (HTTP-13).
fn empty_list(request: &Request<'_>, member: &str) -> std::result::Result<Parts, Refusal> {
    tools_list::only_page(request)?;
    let raw = match request.era {
        Era::Legacy => format!(r#"{{"{member}":[]}}"#),
        Era::Modern => format!(r#"{{"{member}":[],"ttlMs":0,"cacheScope":"private"}}"#),
    };
    Ok(own(request, &raw))
}

/// `logging/setLevel`: from now on only log messages of at least that severity.
pub(crate) fn set_level(request: &Request<'_>) -> std::result::Result<Parts, Refusal> {
    let severity = request.text("level").and_then(|level| meta::severity(&level));
    match (severity, &request.conversation) {
        (Some(severity), Some(conversation)) => {
            conversation.set_log_level(severity);
            Ok(own(request, "{}"))
        }
        _ => {
            let levels = "debug, info, notice, warning, error, critical, alert or emergency";
            Err(request.bad_params(format!("`params.level` must be {levels}")))
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
            gateway.end_session(&conversation);
            client.empty(204, &[]).await
        }
        Err(refusal) => client.refuse(&refusal).await,
    }
}
