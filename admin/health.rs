//! `/livez`, `/readyz` and `/metrics`: how the manager itself fares.

use gateway::Gateway;
use prometheus::TextEncoder;
use serde::Serialize;

use crate::answer::Answer;
use crate::error::Error;

#[derive(Serialize)]
struct Ready {
    ready: bool,
    status: &'static str,
    database: String,
}

pub(crate) async fn live() -> Result<Answer, Error> {
    Ok(Answer::done())
}

/// Apps are served without the database, so its trouble is told and not answered with a
/// failure: taking the manager out of rotation would turn a degraded one into none.
pub(crate) async fn ready(gateway: &Gateway) -> Result<Answer, Error> {
    let ready = gateway.ready().await;
    Ok(Answer::json(&match ready.database {
        None => Ready { ready: true, status: "ok", database: "ok".to_owned() },
        Some(trouble) => Ready { ready: true, status: "degraded", database: trouble },
    }))
}

pub(crate) async fn metrics(gateway: &Gateway) -> Result<Answer, Error> {
    let text = TextEncoder::new().encode_to_string(&gateway.gather());
    let text = text.expect("families are not empty and are written to memory");
    Ok(Answer::text("text/plain; version=0.0.4; charset=utf-8", text))
}
