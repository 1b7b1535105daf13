//! What goes back when all is well.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Response, StatusCode};
use serde::Serialize;

/// A good answer: 200 with a body.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) content_type: &'static str,
    pub(crate) headers: Vec<(&'static str, &'static str)>,
    pub(crate) body: Bytes,
}

/// `{"ok": true}`.
#[derive(Serialize)]
pub(crate) struct Done {
    ok: bool,
}

impl Answer {
    /// A JSON body.
    pub(crate) fn json(value: &impl Serialize) -> Self {
        let body = serde_json::to_vec(value).expect("answers have string keys and finite numbers");
        Self { content_type: "application/json", headers: Vec::new(), body: body.into() }
    }

    /// `{"ok": true}`.
    pub(crate) fn done() -> Self {
        Self::json(&Done { ok: true })
    }

    /// Any other text.
    pub(crate) fn text(content_type: &'static str, body: impl Into<Bytes>) -> Self {
        Self { content_type, headers: Vec::new(), body: body.into() }
    }

    pub(crate) fn into_response(self) -> Response<Bytes> {
        let mut response = response(StatusCode::OK, self.content_type, self.body);
        for (name, value) in self.headers {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

/// Seconds since the Unix epoch as RFC 3339 in UTC.
pub(crate) fn time(seconds: i64) -> String {
    let time = jiff::Timestamp::from_second(seconds);
    time.map(|time| time.to_string()).unwrap_or_default()
}

/// A response that no cache keeps and no browser takes for another type.
pub(crate) fn response(
    status: StatusCode,
    content_type: &'static str,
    body: Bytes,
) -> Response<Bytes> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers: &mut HeaderMap = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    response
}
