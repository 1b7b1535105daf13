//! Connections that are answered before any request of theirs is looked at: plain HTTP on a
//! TLS port (P92), and one more than there is room for (P6).

use bytes::Bytes;
use filters::{Hosts, Refusal, Verdict};
use http::header;
use pingora_core::protocols::Stream;
use pingora_core::protocols::http::ServerSession;
use pingora_http::ResponseHeader;

use crate::line;

/// Sends a client that speaks plain HTTP to the same address by HTTPS. With 308 the method
/// and the body stay.
pub(crate) async fn to_https(stream: Stream, hosts: &Hosts) {
    let mut session = ServerSession::new_http1(stream);
    if !matches!(session.read_request().await, Ok(true)) {
        return;
    }
    line::passed();
    let request = session.req_header();
    if hosts.host(&request.uri, &request.headers) != Verdict::Pass {
        let body = Refusal::Host.body();
        return answer(&mut session, Refusal::Host.status(), "application/json", None, &body).await;
    }
    let host = request.headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let path = request.uri.path_and_query().map_or("/", |path| path.as_str());
    let location = host.map(|host| format!("https://{host}{path}"));
    let text = "This port speaks HTTPS; use https:// in the address.\n";
    let status = if location.is_some() { 308 } else { 400 };
    answer(&mut session, status, "text/plain", location.as_deref(), text).await;
}

/// Says that there is no room.
pub(crate) async fn full(stream: Stream) {
    let mut session = ServerSession::new_http1(stream);
    if !matches!(session.read_request().await, Ok(true)) {
        return;
    }
    line::passed();
    let text =
        r#"{"error":"too many connections; close some, try again, or raise `limits.connections`"}"#;
    answer(&mut session, 503, "application/json", None, text).await;
}

async fn answer(
    session: &mut ServerSession,
    status: u16,
    kind: &str,
    location: Option<&str>,
    text: &str,
) {
    let sent = async {
        let mut response = ResponseHeader::build(status, Some(5))?;
        response.insert_header(header::CONTENT_TYPE, kind)?;
        response.insert_header(header::CONTENT_LENGTH, text.len())?;
        if let Some(location) = location {
            response.insert_header(header::LOCATION, location)?;
        }
        if status == 503 {
            response.insert_header(header::RETRY_AFTER, 1)?;
        }
        session.set_keepalive(None);
        filters::drain_body(session).await;
        session.write_response_header(Box::new(response)).await?;
        session.write_response_body(Bytes::copy_from_slice(text.as_bytes()), true).await
    };
    // A client that is gone has its answer.
    let _: pingora_core::Result<()> = sent.await;
    session.shutdown().await;
}
