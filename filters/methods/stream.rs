//! Streams on which the manager tells of changes: GET for legacy sessions (F25),
//! `subscriptions/listen` for modern clients (F78).

use std::sync::Arc;

use gateway::{Caller, Conversation, Gateway, Kept, Memory};
use pingora_core::Result;
use protocol::json::Members;
use protocol::{bridge, message, meta};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::accept::Accept;
use crate::lone::{Ear, Rest};
use crate::methods::tools_call::QUIET;
use crate::refusal::Refusal;
use crate::reply::{Client, broken};
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
    let resumed = match client.header("last-event-id") {
        None => None,
        Some(id) => match conversation.resume(id) {
            // The session's own stream must not make room for one that nobody can fill.
            None => return client.refuse(&Refusal::UnknownEvent).await,
            resumed => resumed,
        },
    };
    client.open_stream().await?;
    client.comment().await?;
    if let Some((kept, seen)) = resumed {
        return resume(gateway, client, &conversation, &kept, seen).await;
    }
    // What changed between the client's list and this stream is told now.
    let (known, ready) = (conversation.last_listed(), conversation.ready().clone());
    let memory = conversation.memory.clone();
    let watch = Watch { gateway: gateway.clone(), caller, known, ready, memory };
    let ended = conversation.take_stream();
    let note = message::notification(LIST_CHANGED, None);
    let path = client.http.req_header().uri.path().to_owned();
    let Some((mut lone, peer)) = client.leave().await? else {
        watch.follow(client, &note, &ended).await?;
        return client.end_stream().await;
    };
    let run = Box::pin(async move {
        // Keeps the session in memory.
        let _held = conversation;
        watch.follow(&mut lone, &note, &ended).await?;
        lone.end().await
    });
    client.report.rest = Some(Rest { peer, path, run });
    Ok(())
}

/// The rest of a call's stream that broke off: what followed the last event that the client
/// saw, then its end (F30).
async fn resume(
    gateway: &Gateway,
    client: &mut Client<'_>,
    conversation: &Conversation,
    kept: &Arc<Kept>,
    mut seen: u64,
) -> Result<()> {
    let mut quiet = Instant::now() + QUIET;
    loop {
        let messages = tokio::select! {
            messages = kept.after(seen) => messages,
            () = client.gone() => return Err(broken()),
            () = conversation.ended.cancelled() => return client.end_stream().await,
            () = gateway.closing.cancelled() => return client.end_stream().await,
            () = tokio::time::sleep_until(quiet) => {
                client.comment().await?;
                quiet = Instant::now() + QUIET;
                continue;
            }
        };
        if messages.is_empty() {
            client.end_stream().await?;
            conversation.written(kept);
            return Ok(());
        }
        for (number, event_id, message) in messages {
            client.again(&event_id, &message).await?;
            seen = number;
        }
    }
}

/// `subscriptions/listen`: acknowledged with what is honoured, then followed.
pub(crate) async fn listen(request: &Request<'_>, client: &mut Client<'_>) -> Result<()> {
    if !request.accept.events {
        return client.refuse(&Refusal::NotAcceptable("text/event-stream")).await;
    }
    let wants = request.params.get("notifications").and_then(|raw| Members::parse(raw).ok());
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
    client.event(ack.into_bytes()).await?;
    let params = format!(r#"{{"_meta":{subscription}}}"#);
    let note =
        if tools { message::notification(LIST_CHANGED, Some(&params)) } else { String::new() };
    let open = CancellationToken::new();
    let ready = CancellationToken::new();
    ready.cancel();
    let (gateway, caller) = (request.gateway.clone(), request.caller);
    let watch = Watch { gateway, caller, known: None, ready, memory: request.memory() };
    watch.follow(client, &note, &open).await?;
    let result = format!(r#"{{"resultType":"complete","_meta":{subscription}}}"#);
    let result = bridge::own_result(&result, request.era, request.gateway.own_info());
    client.event(message::result(request.id, &result).into_bytes()).await?;
    client.end_stream().await
}

/// Whose list is watched, and what of it the client knows.
struct Watch {
    gateway: Arc<Gateway>,
    caller: Caller,
    /// Digest of the list that the client read last, if it read one.
    known: Option<u64>,
    /// Cancelled once the client may be told (F40).
    ready: CancellationToken,
    memory: Arc<Memory>,
}

impl Watch {
    /// Sends `note` each time the caller's list differs from the one it was last told of, until
    /// the client, its right to be here, the session or the manager ends. An empty note is not
    /// sent.
    async fn follow(
        &self,
        client: &mut impl Ear,
        note: &str,
        ended: &CancellationToken,
    ) -> Result<()> {
        let Self { gateway, caller, ready, memory, .. } = self;
        // From here on, the client's list holds what its conversation uses (P42).
        let _follower = (!note.is_empty()).then(|| memory.follow());
        let (mut changes, mut grown) = (gateway.changes(), memory.changes());
        let mut told = self.known;
        let mut quiet = Instant::now() + QUIET;
        loop {
            changes.mark_unchanged();
            grown.mark_unchanged();
            if !gateway.still(caller) {
                return Ok(());
            }
            let digest = gateway.digest(caller, memory);
            let unready = !ready.is_cancelled();
            if unready {
                // However much changes until then, it is told once.
                told = told.or(digest);
            } else {
                if told.is_some() && digest != told && !note.is_empty() {
                    client.event(note.as_bytes().to_vec()).await?;
                }
                told = digest;
            }
            tokio::select! {
                changed = changes.changed() => match changed {
                    Ok(()) => {}
                    Err(_) => return Ok(()),
                },
                _ = grown.changed() => {}
                () = ready.cancelled(), if unready => {}
                () = client.gone() => return Err(broken()),
                () = ended.cancelled() => return Ok(()),
                () = gateway.closing.cancelled() => return Ok(()),
                () = tokio::time::sleep_until(quiet) => {
                    client.comment().await?;
                    quiet = Instant::now() + QUIET;
                    // An hour after its last use, a server's tools leave the list.
                }
            }
        }
    }
}
