//! `tools/list`: the caller's view, from memory (P10, P12).

use bytes::Bytes;
use protocol::{Era, message, meta};

use crate::refusal::Refusal;
use crate::rpc::{Parts, Request};

pub(crate) fn answer(request: &Request<'_>) -> Result<Parts, Refusal> {
    only_page(request)?;
    let list = request.gateway.list(&request.caller, request.era, &request.memory());
    let Some(list) = list else {
        return Err(Refusal::Internal { id: request.id.to_owned() });
    };
    if let Some(conversation) = &request.conversation {
        conversation.listed(list.digest);
    }
    let [head, tail] = message::around_result(request.id);
    let head = Bytes::from(head + r#"{"tools":"#);
    let tail = match request.era {
        Era::Legacy => Bytes::from(format!("}}{tail}")),
        Era::Modern => Bytes::from(modern_tail(request.gateway.own_info()) + &tail),
    };
    Ok([head, list.tools, tail])
}

/// The list is one page, so every cursor is one that was not issued here (CAT-09).
pub(crate) fn only_page(request: &Request<'_>) -> Result<(), Refusal> {
    let cursor = request.params.get("cursor").filter(|raw| *raw != "null");
    cursor.map_or(Ok(()), |cursor| {
        let why = format!("cursor {} was not issued here; leave it out", clip(cursor));
        Err(request.bad_params(why))
    })
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
