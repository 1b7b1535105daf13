//! Streams on which the manager tells of changes: GET for legacy sessions (F25),
//! `subscriptions/listen` for modern clients (F78).

use std::sync::Arc;

use gateway::{Caller, Gateway};
use pingora_core::Result;
use protocol::json::Members;
use protocol::{bridge, message, meta};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::accept::Accept;
use crate::methods::tools_call::QUIET;
use crate::refusal::Refusal;
use crate::reply::Client;
use crate::rpc::{self, Request};

const LIST_CHANGED: &str = "notifications/tools/list_changed";

/// GET: the stream of a session. Without a session it is refused at once (F25).
pub(crate) async fn get(
    gateway: &Arc<Gateway>,
    caller: Caller,
    client: &mut Client<'_>,
) -> Result<()> {
    client.report.method = "stream";
    client.report.era = "legacy";
    if !Accept::of(client.headers()).events {
        return client.refuse(&Refusal::NotAcceptable("text/event-stream")).await;
    }
    let conversation =
        match rpc::version_header(client).and_then(|()| rpc::session(gateway, caller, client)) {
            Ok(conversation) => conversation,
            Err(refusal) => return client.refuse(&refusal).await,
        };
    client.open_stream().await?;
    client.comment().await?;
    let note = message::notification(LIST_CHANGED, None);
    // What changed between the client's list and this stream is told now.
    let known = Some(conversation.last_listed()).filter(|digest| *digest != 0);
    follow(gateway, caller, client, &note, known, &conversation.ended).await?;
    client.end_stream().await
}

/// `subscriptions/listen`: acknowledged with what is honoured, then followed.
pub(crate) async fn listen(request: &Request<'_>, client: &mut Client<'_>) -> Result<()> {
    if !request.accept.events {
        return client.refuse(&Refusal::NotAcceptable("text/event-stream")).await;
    }
    let params = request.params.and_then(|raw| Members::parse(raw).ok()).unwrap_or_default();
    let wants = params.get("notifications").and_then(|raw| Members::parse(raw).ok());
    let Some(wants) = wants else {
        let refusal = request.bad_params("`params.notifications` must be an object");
        return client.refuse(&refusal).await;
    };
    let tools = wants.get("toolsListChanged") == Some("true");
    let subscription = format!(r#"{{"{}":{}}}"#, meta::SUBSCRIPTION_ID, request.id);
    let honoured = if tools { r#"{"toolsListChanged":true}"# } else { "{}" };
    let ack = format!(r#"{{"notifications":{honoured},"_meta":{subscription}}}"#);
    client.open_stream().await?;
    let ack = message::notification("notifications/subscriptions/acknowledged", Some(&ack));
    client.event(ack.as_bytes()).await?;
    let params = format!(r#"{{"_meta":{subscription}}}"#);
    let note =
        if tools { message::notification(LIST_CHANGED, Some(&params)) } else { String::new() };
    let open = CancellationToken::new();
    follow(request.gateway, request.caller, client, &note, None, &open).await?;
    let result = format!(r#"{{"resultType":"complete","_meta":{subscription}}}"#);
    let result = bridge::own_result(&result, request.era, request.gateway.own_info());
    client.event(message::result(request.id, &result).as_bytes()).await?;
    client.end_stream().await
}

/// Sends `note` each time the caller's list differs from the one it was last told of, until
/// the client, its right to be here, the session or the manager ends. An empty note is not
/// sent.
async fn follow(
    gateway: &Arc<Gateway>,
    caller: Caller,
    client: &mut Client<'_>,
    note: &str,
    known: Option<u64>,
    ended: &CancellationToken,
) -> Result<()> {
    let mut changes = gateway.changes();
    let mut told = known;
    let mut quiet = Instant::now() + QUIET;
    loop {
        changes.mark_unchanged();
        if !gateway.still(&caller) {
            return Ok(());
        }
        let digest = gateway.view(&caller).map(|view| view.digest());
        if told.is_some() && digest != told && !note.is_empty() {
            client.event(note.as_bytes()).await?;
        }
        told = digest;
        loop {
            tokio::select! {
                changed = changes.changed() => match changed {
                    Ok(()) => break,
                    Err(_) => return Ok(()),
                },
                () = client.gone() => return Err(gone()),
                () = ended.cancelled() => return Ok(()),
                () = gateway.closing.cancelled() => return Ok(()),
                () = tokio::time::sleep_until(quiet) => {
                    client.comment().await?;
                    quiet = Instant::now() + QUIET;
                }
            }
        }
    }
}

fn gone() -> pingora_core::BError {
    pingora_core::Error::explain(pingora_core::ErrorType::ConnectionClosed, "the client is gone")
}
