//! Batches: arrays of messages, which sessions of 2025-03-26 alone may send (F36).

use std::sync::Arc;

use bytes::Bytes;
use futures::{FutureExt as _, StreamExt as _, stream};
use gateway::{Caller, Conversation, Gateway};
use pingora_core::Result;
use protocol::json::Members;
use protocol::meta::RequestMeta;
use protocol::{Era, Malformed, Message, Version};

use crate::accept::Accept;
use crate::methods::tools_call;
use crate::refusal::Refusal;
use crate::reply::{Client, broken};
use crate::rpc::{self, Handler, Request};

/// Most messages of one batch.
const MOST: usize = 1000;

/// Requests of one batch that run at the same time.
const BESIDE: usize = 16;

/// Serves the messages of a batch: requests side by side, answered together, in order.
///
/// # Errors
/// When the client cannot be written to.
pub(crate) async fn serve(
    gateway: &Arc<Gateway>,
    caller: Caller,
    client: &mut Client<'_>,
    messages: &[&str],
) -> Result<()> {
    client.report.method = "batch";
    client.report.era = "legacy";
    // Told of the batch, not of its version, which is a good one.
    if rpc::says_modern(client) {
        return client.refuse(&Refusal::Batch).await;
    }
    if messages.is_empty() || messages.len() > MOST {
        let why = "a batch must hold 1 to 1000 messages";
        let refusal = Refusal::Malformed(Malformed::Invalid { id: None, why });
        return client.refuse(&refusal).await;
    }
    let session = rpc::version_header(client).and_then(|()| rpc::session(gateway, caller, client));
    let conversation = match session {
        Ok(conversation) if conversation.version == Version::V2025_03_26 => conversation,
        // Without a session nobody knows the version; batches are for one only.
        Ok(_) | Err(Refusal::NoSession) => return client.refuse(&Refusal::Batch).await,
        Err(refusal) => return client.refuse(&refusal).await,
    };
    let batch = Batch {
        gateway: gateway.clone(),
        caller,
        conversation: conversation.clone(),
        messages: messages.iter().map(|text| (*text).to_owned()).collect(),
    };
    // A task of its own: it goes on when the client's connection is lost (F35). It ends with
    // the session, as each of its calls does.
    let mut answers = tokio::spawn(batch.answers());
    let answers = tokio::select! {
        answers = &mut answers => answers.map_err(|_| broken())?,
        () = client.gone() => return Err(broken()),
        () = conversation.ended.cancelled() => {
            return client.refuse(&rpc::shut_off(gateway, &caller)).await;
        }
    };
    // A call's own session may have heard first.
    if conversation.ended.is_cancelled() || !gateway.still(&caller) {
        return client.refuse(&rpc::shut_off(gateway, &caller)).await;
    }
    if answers.is_empty() {
        return client.empty(202, &[]).await;
    }
    let mut body = b"[".to_vec();
    body.extend_from_slice(&answers.join(&b','));
    body.push(b']');
    client.json(200, &[Bytes::from(body)]).await
}

/// A batch that may be answered.
struct Batch {
    gateway: Arc<Gateway>,
    caller: Caller,
    conversation: Arc<Conversation>,
    messages: Vec<String>,
}

impl Batch {
    /// The answers, in order.
    async fn answers(self) -> Vec<Vec<u8>> {
        let each: Vec<_> = self
            .messages
            .iter()
            .map(|text| {
                answer(&self.gateway, self.caller, &self.conversation, Message::parse(text)).boxed()
            })
            .collect();
        let answers = stream::iter(each).buffered(BESIDE).collect::<Vec<Option<Vec<u8>>>>();
        answers.await.into_iter().flatten().collect()
    }
}

/// The answer of one message; `None` for one that wants none.
async fn answer(
    gateway: &Arc<Gateway>,
    caller: Caller,
    conversation: &Arc<Conversation>,
    message: std::result::Result<Message<'_>, Malformed>,
) -> Option<Vec<u8>> {
    let refused = |refusal: Refusal| Some(refusal.body().into_bytes());
    let (id, method, params) = match message {
        Ok(Message::Request { id, method, params }) => (id, method, params),
        Ok(Message::Notification { method, params }) => {
            rpc::heed(conversation, &method, params);
            return None;
        }
        Ok(Message::Response { .. }) => return None,
        Err(malformed) => return refused(Refusal::Malformed(malformed)),
    };
    let params = params.and_then(|raw| Members::parse(raw).ok()).unwrap_or_default();
    let meta = match RequestMeta::of(&params) {
        Ok(meta) => meta,
        Err(why) => {
            let (id, why) = (id.to_owned(), why.to_owned());
            return refused(Refusal::Params { id, why, bad_request: false });
        }
    };
    let request = Request {
        gateway,
        caller,
        accept: Accept { json: true, events: false },
        id,
        params,
        meta,
        era: Era::Legacy,
        conversation: Some(conversation.clone()),
    };
    let answered = match rpc::line(&method, Era::Legacy) {
        Some((_, _, _, Handler::AtOnce(answer))) => answer(&request),
        Some((_, _, _, Handler::ToolsCall)) => return tools_call::quietly(&request).await,
        Some((_, _, _, Handler::Initialize)) => {
            Err(request.bad_params("`initialize` must not be part of a batch; send it alone"))
        }
        Some((_, _, _, Handler::Listen)) | None => {
            let (id, method) = (id.to_owned(), method.into_owned());
            Err(Refusal::Method { id, method, modern: false })
        }
    };
    match answered {
        Ok(parts) => Some(parts.concat()),
        Err(refusal) => refused(refusal),
    }
}
