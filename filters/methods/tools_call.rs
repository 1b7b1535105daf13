//! `tools/call`: one call on the way to its server and back, with everything that can
//! happen meanwhile.

use std::pin::{Pin, pin};
use std::time::Duration;

use bytes::Bytes;
use gateway::{Asked, Cancellable, Reply, Seat, Step, Underway};
use pingora_core::Result;
use protocol::json;
use protocol::{Era, Version, codes, message, meta, param};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::refusal::Refusal;
use crate::reply::{Client, broken};
use crate::rpc::{self, Request};

/// How long a client hears nothing before it gets a sign of life (HTTP-15).
pub(crate) const QUIET: Duration = Duration::from_secs(15);

/// How long a call may take before its answer becomes a stream, for a client that could then
/// fetch the answer after losing its connection: without an event it has nothing to ask by.
const RESUMABLE: Duration = Duration::from_millis(100);

pub(crate) async fn serve(request: &Request<'_>, client: &mut Client<'_>) -> Result<()> {
    let asked = match prepare(request, |name| client.header(name)) {
        Ok(asked) => asked,
        Err(stop) => {
            refused(request);
            return match stop {
                Stop::Refusal(refusal) => client.refuse(&refusal).await,
                Stop::Reply(reply) => finish(request, client, reply).await,
            };
        }
    };
    client.report.tool = Some(asked.found.exposed().to_owned());
    let Some(seat) = request.gateway.seat(&request.caller) else {
        refused(request);
        return client.refuse(&Refusal::Busy { id: request.id.to_owned() }).await;
    };
    if let Some(conversation) = &request.conversation
        && conversation.version >= Version::V2025_11_25
        && request.accept.events
    {
        client.resumable(conversation.clone());
    }
    follow(request, client, &asked, seat).await
}

/// The answer of a call that is one of many in a batch: whoever sent it sees nothing before
/// the end. `None` for a call that was cancelled.
pub(crate) async fn quietly(request: &Request<'_>) -> Option<Vec<u8>> {
    let no = |refusal: Refusal| {
        refused(request);
        Some(refusal.body().into_bytes())
    };
    let asked = match prepare(request, |_| None) {
        Ok(asked) => asked,
        Err(Stop::Refusal(refusal)) => return no(refusal),
        Err(Stop::Reply(reply)) => {
            refused(request);
            return Some(reply.message(request.id));
        }
    };
    let Some(seat) = request.gateway.seat(&request.caller) else {
        return no(Refusal::Busy { id: request.id.to_owned() });
    };
    let call = request.conversation.as_ref()?.begin(request.id);
    let answered = async {
        let mut running = match request.gateway.call(&asked, seat).await {
            Ok(running) => running,
            Err(reply) => return reply,
        };
        loop {
            if let Step::Done(reply) = running.next().await {
                return reply;
            }
        }
    };
    // Dropped, a call tells its server to stop.
    tokio::select! {
        reply = answered => Some(reply.message(request.id)),
        () = call.cancelled.cancelled() => None,
    }
}

/// Counts a call that no server sees.
fn refused(request: &Request<'_>) {
    request.gateway.refused(&request.text("name").unwrap_or_default());
}

/// Why a call does not start.
enum Stop {
    Refusal(Refusal),
    Reply(Reply),
}

/// Reads what is asked, and finds the tool.
fn prepare<'r, 'h>(
    request: &'r Request<'r>,
    header: impl Fn(&str) -> Option<&'h str>,
) -> std::result::Result<Asked<'r>, Stop> {
    let refuse = |why: &str| Stop::Refusal(request.bad_params(why));
    let name = request.params.get("name").and_then(json::string);
    let name = name.ok_or_else(|| refuse("`params.name` must be a string"))?;
    let arguments = request.params.get("arguments").filter(|raw| *raw != "null");
    if arguments.is_some_and(|raw| !raw.starts_with('{')) {
        return Err(refuse("`params.arguments` must be an object"));
    }
    let found = request.gateway.find(&request.caller, request.era, &name, arguments);
    let found = found.map_err(Stop::Reply)?;
    if let (Era::Modern, Some(level)) = (request.era, &request.meta.log_level)
        && meta::severity(level).is_none()
    {
        return Err(refuse("`params._meta.io.modelcontextprotocol/logLevel` must be a log level"));
    }
    if request.era == Era::Modern {
        param::verify(found.header_params(), arguments, header)
            .map_err(|why| Stop::Refusal(Refusal::Mismatch { id: request.id.to_owned(), why }))?;
    }
    Ok(Asked {
        caller: request.caller,
        era: request.era,
        found,
        memory: request.memory(),
        params: &request.params,
        meta: &request.meta,
        log_level: log_level(request),
    })
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

/// From before the call is sent until its answer: whoever stops waiting is noticed at once,
/// whatever the call is waiting for.
async fn follow(
    request: &Request<'_>,
    client: &mut Client<'_>,
    asked: &Asked<'_>,
    seat: Seat,
) -> Result<()> {
    let mut waiting = Waiting::new(request);
    // From here on a change is noticed; what changed before is seen now.
    if !request.gateway.still(&request.caller) {
        return shut_off(request, client).await;
    }
    // Boxed: these two are the large futures of a call, and each frame around an unboxed one
    // would be as large, and moved several times on the way.
    let mut starting = Box::pin(request.gateway.call(asked, seat));
    let mut running = match waiting.beside(client, starting.as_mut()).await {
        Ok(Ok(running)) => running,
        Ok(Err(reply)) => return finish(request, client, reply).await,
        Err(Gone::Cancelled) => return unanswered(request, client).await,
        Err(Gone::Out) => return shut_off(request, client).await,
        Err(Gone::Client) => return leave(waiting, client, Underway::Starting(starting)),
    };
    loop {
        let gone = match waiting.beside(client, Box::pin(running.next()).as_mut()).await {
            // The call's own session may have heard of a revoked key first.
            Ok(Step::Done(_)) if !request.gateway.still(&request.caller) => Gone::Out,
            Ok(Step::Done(reply)) => return finish(request, client, reply).await,
            Ok(Step::Notice(notice)) => match pass_on(request, client, notice).await {
                Ok(()) => continue,
                Err(_) => Gone::Client,
            },
            Err(gone) => gone,
        };
        return match gone {
            Gone::Client => leave(waiting, client, Underway::Running(Box::new(running))),
            Gone::Out => {
                running.cancel();
                shut_off(request, client).await
            }
            Gone::Cancelled => {
                running.cancel();
                unanswered(request, client).await
            }
        };
    }
}

/// The client is gone. For a legacy one the call runs on (F35); for a modern one that is how it
/// is cancelled (F72): the server is told as the call is dropped.
fn leave(waiting: Waiting<'_>, client: &mut Client<'_>, call: Underway) -> Result<()> {
    let request = waiting.request;
    if request.era == Era::Legacy {
        let kept = client.take_kept().map(|kept| (kept, request.id.to_owned()));
        gateway::run_on(call, waiting.cancellable, kept);
    }
    Err(broken())
}

/// The key was revoked or the session ended while the call ran: said, unless a stream has
/// begun, which ends.
async fn shut_off(request: &Request<'_>, client: &mut Client<'_>) -> Result<()> {
    if client.is_streaming() {
        return Err(broken());
    }
    client.refuse(&rpc::shut_off(request.gateway, &request.caller)).await
}

/// A client that takes no stream gets the result alone.
async fn pass_on(request: &Request<'_>, client: &mut Client<'_>, notice: String) -> Result<()> {
    if request.accept.events {
        client.open_stream().await?;
        client.event(notice.into_bytes()).await?;
    }
    Ok(())
}

/// What is watched while a client waits.
struct Waiting<'r> {
    request: &'r Request<'r>,
    cancellable: Option<Cancellable>,
    never: CancellationToken,
    /// For a caller without a session; the end of a session says the same.
    changes: Option<watch::Receiver<u64>>,
}

impl<'r> Waiting<'r> {
    fn new(request: &'r Request<'r>) -> Self {
        let cancellable = request.conversation.as_ref().map(|all| all.begin(request.id));
        let changes = cancellable.is_none().then(|| request.gateway.changes());
        Self { request, cancellable, never: CancellationToken::new(), changes }
    }

    /// What `work` comes to, unless somebody stops waiting for it first. A quiet client gets
    /// a sign of life meanwhile.
    async fn beside<T>(
        &mut self,
        client: &mut Client<'_>,
        mut work: Pin<&mut impl Future<Output = T>>,
    ) -> std::result::Result<T, Gone> {
        let request = self.request;
        let cancelled = self.cancellable.as_ref().map_or(&self.never, |call| &call.cancelled);
        let patience = if client.waits_to_be_resumable() { RESUMABLE } else { QUIET };
        let mut quiet = pin!(tokio::time::sleep(patience));
        loop {
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                () = shut_out(&mut self.changes, request) => return Err(Gone::Out),
                () = client.gone() => return Err(Gone::Client),
                () = cancelled.cancelled() => {
                    let ended = request.conversation.as_ref().is_some_and(|c| c.ended.is_cancelled());
                    return Err(if ended { Gone::Out } else { Gone::Cancelled });
                }
                () = &mut quiet => {
                    if request.accept.events {
                        let alive = async {
                            client.open_stream().await?;
                            client.comment().await
                        };
                        if alive.await.is_err() {
                            return Err(Gone::Client);
                        }
                    }
                    quiet.as_mut().reset(Instant::now() + QUIET);
                }
            }
        }
    }
}

/// Waits until a caller without a session is no longer let in.
async fn shut_out(changes: &mut Option<watch::Receiver<u64>>, request: &Request<'_>) {
    let Some(changes) = changes else { return std::future::pending().await };
    while changes.changed().await.is_ok() && request.gateway.still(&request.caller) {}
}

/// Sends the answer in the form that was begun, or the one that the client takes.
async fn finish(request: &Request<'_>, client: &mut Client<'_>, reply: Reply) -> Result<()> {
    if client.is_streaming() || !request.accept.json {
        client.open_stream().await?;
        client.event(reply.message(request.id)).await?;
        return client.end_stream().await;
    }
    match reply {
        Reply::Result(raw) => client.json(200, &request.parts(raw)).await,
        Reply::Error(error) if lacks_capability(request.era, &error) => {
            client.refuse(&Refusal::Capability { id: request.id.to_owned(), error }).await
        }
        Reply::Error(error) => {
            client.json(200, &[Bytes::from(message::failure(Some(request.id), &error))]).await
        }
    }
}

/// A modern client learns from the status, too, that it lacks a capability (F76).
fn lacks_capability(era: Era, error: &str) -> bool {
    era == Era::Modern && codes::code_of(error) == i64::from(codes::MISSING_CAPABILITY)
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
