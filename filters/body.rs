//! Bodies in, within limits (P6).

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header;
use pingora_core::protocols::http::server::Session;

use crate::refusal::Refusal;

/// What is read of a body nobody wants, so that a refusal reaches a client that is still
/// sending, and its connection can be used again.
const DRAIN: usize = 32 << 20;
const DRAIN_TIME: Duration = Duration::from_secs(2);

/// Reads the whole body, of at most `limit` bytes, for at most `within`.
///
/// # Errors
/// A refusal to answer with: too large, too slow, or broken off.
pub async fn read(http: &mut Session, limit: usize, within: Duration) -> Result<Bytes, Refusal> {
    let announced = http
        .get_header(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|length| length > limit) {
        return Err(Refusal::TooLarge(limit));
    }
    // Pingora answers an `Expect: 100-continue` only when it forwards the body itself.
    if http
        .get_header(header::EXPECT)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"))
        && http.write_continue_response().await.is_err()
    {
        return Err(Refusal::BrokenBody);
    }
    match tokio::time::timeout(within, collect(http, limit)).await {
        Ok(body) => body,
        Err(_) => Err(Refusal::SlowBody(within)),
    }
}

/// Reads and drops what is left of a body, within bounds.
pub async fn drain(http: &mut Session) {
    // Who waits for a `100 Continue` has not sent its body and now will not.
    if http.get_header(header::EXPECT).is_some() {
        return;
    }
    let rest = async {
        let mut left = DRAIN;
        while let Ok(Some(chunk)) = http.read_request_body().await {
            left = left.saturating_sub(chunk.len());
            if left == 0 {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(DRAIN_TIME, rest).await;
}

async fn collect(http: &mut Session, limit: usize) -> Result<Bytes, Refusal> {
    let broken = |_| Refusal::BrokenBody;
    let Some(first) = http.read_request_body().await.map_err(broken)? else {
        return Ok(Bytes::new());
    };
    let Some(second) = http.read_request_body().await.map_err(broken)? else {
        return if first.len() > limit { Err(Refusal::TooLarge(limit)) } else { Ok(first) };
    };
    let mut whole = BytesMut::from(first);
    whole.extend_from_slice(&second);
    while let Some(chunk) = http.read_request_body().await.map_err(broken)? {
        if whole.len() + chunk.len() > limit {
            return Err(Refusal::TooLarge(limit));
        }
        whole.extend_from_slice(&chunk);
    }
    if whole.len() > limit { Err(Refusal::TooLarge(limit)) } else { Ok(whole.freeze()) }
}
