//! `tools/list`: the caller's view, from memory (P10, P12).

use bytes::Bytes;
use pingora_core::Result;
use protocol::{Era, message, meta};

use crate::refusal::Refusal;
use crate::reply::Client;
use crate::rpc::Request;

pub(crate) async fn serve(request: &Request<'_>, client: &mut Client<'_>) -> Result<()> {
    if let Some(refusal) = foreign_cursor(request) {
        return client.refuse(&refusal).await;
    }
    let Some(view) = request.gateway.view(&request.caller) else {
        return client.refuse(&Refusal::Internal { id: request.id.to_owned() }).await;
    };
    if let Some(conversation) = &request.conversation {
        conversation.listed(view.digest());
    }
    let [head, tail] = message::around_result(request.id);
    let head = Bytes::from(head + r#"{"tools":"#);
    let tail = match request.era {
        Era::Legacy => Bytes::from(format!("}}{tail}")),
        Era::Modern => Bytes::from(modern_tail(request.gateway.own_info()) + &tail),
    };
    client.json(200, &[head, view.list(), tail]).await
}

/// The list is one page, so every cursor is one that was not issued here (CAT-09).
pub(crate) fn foreign_cursor(request: &Request<'_>) -> Option<Refusal> {
    let cursor = request.params.get("cursor").filter(|raw| *raw != "null")?;
    Some(request.bad_params(format!("cursor {} was not issued here; leave it out", clip(cursor))))
}

fn clip(text: &str) -> String {
    text.chars().take(40).collect()
}

/// What a modern list says beside the tools (F70, F80).
fn modern_tail(info: &str) -> String {
    format!(
        r#","resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":{{"{}":{info}}}}}"#,
        meta::SERVER_INFO
    )
}
