//! What the client takes and sends: `Accept` and `Content-Type` (F8, HTTP-09, HTTP-10).

use http::{HeaderMap, header};

/// The forms of answer that a client takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Accept {
    pub(crate) json: bool,
    pub(crate) events: bool,
}

impl Accept {
    /// Reads the header; without one the client takes anything.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let mut accept = Self { json: false, events: false };
        let mut present = false;
        for value in headers.get_all(header::ACCEPT) {
            present = true;
            let value = value.to_str().unwrap_or_default();
            for range in value.split([',', ';']).map(str::trim) {
                let any = range == "*/*";
                accept.json |= any || is(range, "application/json") || is(range, "application/*");
                accept.events |= any || is(range, "text/event-stream") || is(range, "text/*");
            }
        }
        if present { accept } else { Self { json: true, events: true } }
    }
}

/// Whether the body is said to be JSON, whatever its parameters.
pub(crate) fn sends_json(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    value.is_some_and(|value| {
        is(value.split(';').next().unwrap_or_default().trim(), "application/json")
    })
}

fn is(range: &str, media: &str) -> bool {
    range.eq_ignore_ascii_case(media)
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::{Accept, sends_json};

    fn check(value: &str, json: bool, events: bool) {
        let mut headers = HeaderMap::new();
        headers.insert("accept", value.parse().expect("a header value"));
        assert_eq!(Accept::of(&headers), Accept { json, events }, "{value}");
    }

    #[test]
    fn http_09_lenient_but_honest() {
        check("application/json, text/event-stream", true, true);
        check("application/json;q=0.9, text/event-stream", true, true);
        check("*/*", true, true);
        check("text/event-stream", false, true);
        check("application/json", true, false);
        check("text/html", false, false);
        assert_eq!(Accept::of(&HeaderMap::new()), Accept { json: true, events: true });
    }

    #[test]
    fn http_10_media_type_alone() {
        for (value, json) in [
            ("application/json; charset=utf-8", true),
            ("Application/JSON", true),
            ("text/plain", false),
            ("application/json-rpc", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("content-type", value.parse().expect("a header value"));
            assert_eq!(sends_json(&headers), json, "{value}");
        }
        assert!(!sends_json(&HeaderMap::new()));
    }
}
