//! `tools/call`: one call on the way to its server and back, with everything that can
//! happen meanwhile.

use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use gateway::{Asked, Reply, Running, Step};
use pingora_core::Result;
use protocol::json::{self, Members};
use protocol::{Era, message, meta, param};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::refusal::Refusal;
use crate::reply::Client;
use crate::rpc::Request;

/// How long a client hears nothing before it gets a sign of life (HTTP-15).
pub(crate) const QUIET: Duration = Duration::from_secs(15);

pub(crate) async fn serve(request: &Request<'_>, client: &mut Client<'_>) -> Result<()> {
    let params = request.params.and_then(|raw| Members::parse(raw).ok()).unwrap_or_default();
    let Some(name) = params.get("name").and_then(json::string) else {
        return client.refuse(&request.bad_params("`params.name` must be a string")).await;
    };
    let arguments = params.get("arguments").filter(|raw| *raw != "null");
    if arguments.is_some_and(|raw| !raw.starts_with('{')) {
        return client.refuse(&request.bad_params("`params.arguments` must be an object")).await;
    }
    if let Err(refusal) = mirrored(request, client, &name, arguments) {
        return client.refuse(&refusal).await;
    }
    client.report.tool = request.gateway.exposed(&request.caller, &name);
    let asked = Asked {
        caller: request.caller,
        era: request.era,
        name: &name,
        params: request.params,
        arguments,
        meta: &request.meta,
        log_level: log_level(request),
    };
    match request.gateway.call(&asked).await {
        Ok(running) => follow(request, client, running).await,
        Err(reply) => finish(request, client, reply).await,
    }
}

/// Arguments that the listed tool wants repeated in headers (F67).
fn mirrored(
    request: &Request<'_>,
    client: &Client<'_>,
    name: &str,
    arguments: Option<&str>,
) -> std::result::Result<(), Refusal> {
    if request.era == Era::Legacy {
        return Ok(());
    }
    let Some(tool) = request.gateway.tool(&request.caller, name) else { return Ok(()) };
    param::verify(&tool.header_params, arguments, |name| client.header(name))
        .map_err(|why| Refusal::Mismatch { id: request.id.to_owned(), why })
}

/// The lowest severity of log messages wanted: a modern client says so with each call.
fn log_level(request: &Request<'_>) -> Option<u8> {
    match &request.conversation {
        Some(conversation) => Some(conversation.log_level()),
        None => request.meta.log_level.as_deref().and_then(meta::severity),
    }
}

/// Why nobody waits any longer for a call.
enum Gone {
    /// The client's connection ended.
    Client,
    /// The client cancelled by a notification; it wants no answer.
    Cancelled,
    /// The key was revoked, or the session ended.
    Out,
}

async fn follow(
    request: &Request<'_>,
    client: &mut Client<'_>,
    mut running: Running,
) -> Result<()> {
    let cancellable =
        request.conversation.as_ref().map(|conversation| conversation.begin(request.id));
    let never = CancellationToken::new();
    let cancelled = cancellable.as_ref().map_or(&never, |call| &call.cancelled);
    loop {
        match next(request, client, &mut running, cancelled).await? {
            Ok(Step::Notice(notice)) => {
                // A client that takes no stream gets the result alone.
                if request.accept.events {
                    client.open_stream().await?;
                    client.event(notice.as_bytes()).await?;
                }
            }
            Ok(Step::Done(reply)) => return finish(request, client, reply).await,
            Err(Gone::Client) if request.era == Era::Legacy => {
                running.run_on();
                return Err(broken());
            }
            Err(Gone::Client) => {
                running.cancel().await;
                return Err(broken());
            }
            Err(Gone::Cancelled) => {
                running.cancel().await;
                return unanswered(request, client).await;
            }
            Err(Gone::Out) => {
                running.cancel().await;
                return Err(broken());
            }
        }
    }
}

/// The next step of the call, unless somebody stops waiting for it first.
async fn next(
    request: &Request<'_>,
    client: &mut Client<'_>,
    running: &mut Running,
    cancelled: &CancellationToken,
) -> Result<std::result::Result<Step, Gone>> {
    let mut step = pin!(running.next());
    let mut quiet = pin!(tokio::time::sleep(QUIET));
    let mut changes = request.gateway.changes();
    loop {
        tokio::select! {
            biased;
            step = &mut step => return Ok(Ok(step)),
            () = client.gone() => return Ok(Err(Gone::Client)),
            () = cancelled.cancelled() => {
                let ended = request.conversation.as_ref().is_some_and(|c| c.ended.is_cancelled());
                return Ok(Err(if ended { Gone::Out } else { Gone::Cancelled }));
            }
            changed = changes.changed() => {
                if changed.is_err() || !request.gateway.still(&request.caller) {
                    return Ok(Err(Gone::Out));
                }
            }
            () = &mut quiet => {
                if request.accept.events {
                    client.open_stream().await?;
                    client.comment().await?;
                }
                quiet.as_mut().reset(Instant::now() + QUIET);
            }
        }
    }
}

/// Sends the answer in the form that was begun, or the one that the client takes.
async fn finish(request: &Request<'_>, client: &mut Client<'_>, reply: Reply) -> Result<()> {
    if client.is_streaming() || !request.accept.json {
        client.open_stream().await?;
        let text = match &reply {
            Reply::Result(raw) => {
                let mut text =
                    format!(r#"{{"jsonrpc":"2.0","id":{},"result":"#, request.id).into_bytes();
                text.extend_from_slice(raw);
                text.push(b'}');
                text
            }
            Reply::Error(error) => message::failure(Some(request.id), error).into_bytes(),
        };
        client.event(&text).await?;
        return client.end_stream().await;
    }
    match reply {
        Reply::Result(raw) => request.answer(client, raw).await,
        Reply::Error(error) => {
            client.json(200, &[Bytes::from(message::failure(Some(request.id), &error))]).await
        }
    }
}

/// A cancelled call gets no answer (F39), but its HTTP request must end somehow: with an
/// empty stream, which holds no message.
async fn unanswered(request: &Request<'_>, client: &mut Client<'_>) -> Result<()> {
    if client.is_streaming() || request.accept.events {
        client.open_stream().await?;
        client.comment().await?;
        return client.end_stream().await;
    }
    client.empty(202, &[]).await
}

/// Has pingora drop the connection.
fn broken() -> pingora_core::BError {
    pingora_core::Error::explain(pingora_core::ErrorType::ConnectionClosed, "the client is gone")
}
