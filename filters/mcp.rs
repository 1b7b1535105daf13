//! `/mcp`: the life of a request, check by check.

use std::sync::Arc;
use std::time::Duration;

use gateway::{Caller, Gateway};
use http::Method;
use pingora_core::Result;
use pingora_core::protocols::http::server::Session;
use protocol::Incoming;

use crate::accept::{self, Accept};
use crate::host::{Hosts, Verdict};
use crate::key;
use crate::methods::{simple, stream};
use crate::refusal::Refusal;
use crate::reply::{Client, Report};
use crate::rpc;
use crate::{batch, body};

/// What every request to `/mcp` needs.
#[derive(Debug)]
pub struct Mcp {
    /// The use cases.
    pub gateway: Arc<Gateway>,
    /// Rules for names and origins.
    pub hosts: Arc<Hosts>,
    /// Largest body, in bytes.
    pub body_limit: usize,
    /// Time for a whole body, however slowly it drips.
    pub body_time: Duration,
    /// How long a connection may wait for another request.
    pub idle: Duration,
}

/// Whether a path is ours.
pub fn owns(path: &str) -> bool {
    matches!(path, "/mcp" | "/mcp/")
}

/// Serves one request whose host has been checked. Expected refusals are answers; an error
/// means that the client's connection is broken.
///
/// # Errors
/// When the client cannot be written to.
pub async fn serve(mcp: &Mcp, http: &mut Session, report: &mut Report) -> Result<()> {
    let mut client = Client::new(http, report, mcp.idle);
    if mcp.hosts.origin(client.headers()) != Verdict::Pass {
        mcp.gateway.metrics.auth_failure("origin");
        return client.without_cors().refuse(&Refusal::Origin).await;
    }
    let method = client.http.req_header().method.clone();
    if method == Method::OPTIONS {
        client.report.method = "preflight";
        return client.preflight().await;
    }
    if gateway::is_own_request(client.headers()) {
        return client.refuse(&Refusal::Loop).await;
    }
    let caller = match mcp.gateway.admit(key::bearer(client.headers())) {
        Ok(caller) => caller,
        Err(denied) => {
            mcp.gateway.metrics.auth_failure(denied.reason());
            return client.refuse(&Refusal::Key(denied)).await;
        }
    };
    client.report.key = caller.key.map(|key| key.0);
    // The modern era has neither (F68); a legacy session's requests never claim it.
    let modern = rpc::says_modern(&client);
    match method {
        Method::GET | Method::DELETE if modern => {
            client.refuse(&Refusal::HttpMethod { allow: "POST" }).await
        }
        Method::POST => post(mcp, caller, &mut client).await,
        Method::GET => stream::get(&mcp.gateway, caller, &mut client).await,
        Method::DELETE => simple::delete(&mcp.gateway, caller, &mut client).await,
        _ => client.refuse(&Refusal::HttpMethod { allow: "POST, GET, DELETE" }).await,
    }
}

async fn post(mcp: &Mcp, caller: Caller, client: &mut Client<'_>) -> Result<()> {
    let accept = Accept::of(client.headers());
    if !accept.json && !accept.events {
        let wanted = "application/json and text/event-stream";
        return client.refuse(&Refusal::NotAcceptable(wanted)).await;
    }
    if !accept::sends_json(client.headers()) {
        return client.refuse(&Refusal::MediaType).await;
    }
    client.events_only = !accept.json;
    let body = match body::read(client.http, mcp.body_limit, mcp.body_time).await {
        Ok(body) => body,
        Err(refusal) => return client.refuse(&refusal).await,
    };
    match Incoming::parse(&body) {
        Ok(Incoming::One(message)) => {
            rpc::serve(&mcp.gateway, caller, accept, client, message).await
        }
        Ok(Incoming::Batch(messages)) => {
            Box::pin(batch::serve(&mcp.gateway, caller, client, &messages)).await
        }
        Err(malformed) => client.refuse(&Refusal::Malformed(malformed)).await,
    }
}
