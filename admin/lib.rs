//! Requests from people: the management API, the page that is built on it, health and metrics.
//!
//! The caller has checked the Host and read the whole body within its limit; what is left is
//! CORS, the admin token, the route, and one file per noun that asks the gateway. Streams and
//! statistics have no place here yet.
//!
//! Reading order: [`routes`] (the table of endpoints), [`cors`] and [`token`] (who may ask),
//! [`body`] (what was sent), the nouns, [`answer`] and [`error`] (what goes back).

mod answer;
mod audit;
mod body;
mod cors;
mod error;
mod groups;
mod health;
mod keys;
mod overrides;
mod portal;
mod routes;
mod token;
mod tools;
mod upstreams;

use bytes::Bytes;
use gateway::Gateway;
use http::request::Parts;
use http::{Method, Response};

use crate::cors::Cors;
use crate::error::Error;
use crate::routes::{Access, Input};

/// Whether a path is served here; all others belong to apps or to nobody.
pub fn owns(path: &str) -> bool {
    path == "/api" || path.starts_with("/api/") || routes::is_path(path)
}

/// Why a body could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unread {
    /// Larger than this many bytes.
    TooLarge(usize),
    /// It took too long.
    Slow,
    /// It broke off.
    Broken,
}

/// Answers one request. `body` is waited for only once the caller may ask (P2). Never fails;
/// cancel-safe except that a write under way may still be made. The body of an answer to
/// `HEAD` is left empty.
pub async fn handle(
    gateway: &Gateway,
    parts: Parts,
    body: impl Future<Output = Result<Bytes, Unread>>,
) -> Response<Bytes> {
    let cors = Cors::of(&parts, gateway.options.allowed_origins.as_deref());
    let mut response = if parts.method == Method::OPTIONS {
        cors.preflight(&parts.headers)
    } else {
        match answer(gateway, &parts, body, &cors).await {
            Ok(answer) => answer.into_response(),
            Err(error) => error.into_response(),
        }
    };
    cors.mark(response.headers_mut());
    if parts.method == Method::HEAD {
        response.body_mut().clear();
    }
    response
}

/// The answer to a request that was sent to a name which is not ours. Nothing is looked up
/// for it, nor may pages read it.
pub fn wrong_host() -> Response<Bytes> {
    Error::Host.into_response()
}

async fn answer(
    gateway: &Gateway,
    parts: &Parts,
    body: impl Future<Output = Result<Bytes, Unread>>,
    cors: &Cors,
) -> Result<answer::Answer, Error> {
    if cors.refused() {
        return Err(Error::Origin);
    }
    let path = parts.uri.path();
    let found = routes::find(&parts.method, path);
    // Without the token, an endpoint that is there looks like one that is not.
    let access = match &found {
        Ok(found) => found.route.access,
        Err(_) if path.starts_with("/api/") => Access::Admin,
        Err(_) => Access::Anyone,
    };
    token::check(gateway, &parts.headers, access)?;
    let found = found?;
    let body = body.await.map_err(Error::Unread)?;
    (found.route.run)(gateway, Input { name: found.name, body }).await
}
