//! Pages of other origins (P5): the token is the boundary, so every origin may use the API
//! unless the settings narrow it. Errors carry the same headers as answers (HTTP-06).

use bytes::Bytes;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, HOST, HeaderMap, HeaderValue, ORIGIN,
    VARY,
};
use http::request::Parts;
use http::{Response, StatusCode};

/// Named one by one: `*` would not cover `Authorization`.
const REQUEST_HEADERS: &str = "authorization, content-type, accept, mcp-session-id, \
    mcp-protocol-version, mcp-method, mcp-name, last-event-id, traceparent, tracestate";

const METHODS: &str = "GET, POST, PATCH, DELETE, OPTIONS";

const EXPOSED: &str = "mcp-session-id, www-authenticate, allow, retry-after";

/// What one request's origin may do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Cors {
    /// Every origin may.
    Every,
    /// The settings name some; this one is the page's own, or a request without one.
    Own,
    /// The settings name this one.
    Named(HeaderValue),
    /// The settings name others.
    Refused,
}

impl Cors {
    /// Decides by the request's `Origin`. `None` allows every origin.
    pub(crate) fn of(parts: &Parts, allowed: Option<&[String]>) -> Self {
        let Some(allowed) = allowed.filter(|list| !list.iter().any(|entry| entry == "*")) else {
            return Self::Every;
        };
        let Some(origin) = parts.headers.get(ORIGIN) else { return Self::Own };
        let text = origin.to_str().unwrap_or_default();
        if allowed.iter().any(|entry| entry.trim_end_matches('/').eq_ignore_ascii_case(text)) {
            return Self::Named(origin.clone());
        }
        let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
        let host = host.or_else(|| parts.uri.authority().map(http::uri::Authority::as_str));
        // A page's own requests carry an `Origin` too, all but plain reads.
        let own = text.split_once("://").map(|(_, authority)| authority);
        match (own, host) {
            (Some(own), Some(host)) if own.eq_ignore_ascii_case(host) => Self::Own,
            _ => Self::Refused,
        }
    }

    pub(crate) fn refused(&self) -> bool {
        *self == Self::Refused
    }

    /// The answer to a preflight, which can carry no token (HTTP-03). A refused origin gets
    /// one without leave, which is how browsers are told no.
    pub(crate) fn preflight(&self, asked: &HeaderMap) -> Response<Bytes> {
        let mut response = Response::new(Bytes::new());
        *response.status_mut() = StatusCode::NO_CONTENT;
        if self.refused() {
            return response;
        }
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(REQUEST_HEADERS));
        headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("7200"));
        // Browsers ask this before a public page may reach a private address.
        if asked.contains_key("access-control-request-private-network") {
            let yes = HeaderValue::from_static("true");
            headers.insert("access-control-allow-private-network", yes);
        }
        response
    }

    /// Puts what every answer carries, good or bad.
    pub(crate) fn mark(&self, headers: &mut HeaderMap) {
        let origin = match self {
            Self::Every => HeaderValue::from_static("*"),
            Self::Named(origin) => origin.clone(),
            Self::Own | Self::Refused => {
                headers.append(VARY, HeaderValue::from_static("Origin"));
                return;
            }
        };
        if *self != Self::Every {
            headers.append(VARY, HeaderValue::from_static("Origin"));
        }
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
    }
}

#[cfg(test)]
mod tests {
    use http::Request;
    use http::header::HeaderMap;

    use super::Cors;

    fn cors(origin: Option<&str>, allowed: &[&str]) -> Cors {
        let mut request = Request::get("/api/v1/keys").header("host", "mcp.lan:8899");
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        let (parts, ()) = request.body(()).expect("a request").into_parts();
        let allowed: Vec<_> = allowed.iter().map(|&entry| entry.to_owned()).collect();
        Cors::of(&parts, (!allowed.is_empty()).then_some(&allowed[..]))
    }

    fn headers(cors: &Cors) -> String {
        let mut headers = HeaderMap::new();
        cors.mark(&mut headers);
        let lines = headers.iter().map(|(name, value)| format!("{name}: {value:?}"));
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn every_origin_unless_narrowed() {
        assert_eq!(cors(Some("https://a.example"), &[]), Cors::Every);
        assert_eq!(cors(Some("null"), &["*"]), Cors::Every);
        let narrowed = ["https://A.example/"];
        assert!(matches!(cors(Some("https://a.example"), &narrowed), Cors::Named(_)));
        assert_eq!(cors(Some("https://b.example"), &narrowed), Cors::Refused);
        assert_eq!(cors(Some("https://a.example.evil"), &narrowed), Cors::Refused);
        assert_eq!(cors(Some("null"), &narrowed), Cors::Refused);
        assert_eq!(cors(Some("http://mcp.lan:8899"), &narrowed), Cors::Own);
        assert_eq!(cors(None, &narrowed), Cors::Own);
    }

    #[test]
    fn http_03_preflight_needs_no_token() {
        let response = Cors::Every.preflight(&HeaderMap::new());
        let names: Vec<_> = response.headers().keys().map(|name| name.as_str()).collect();
        assert_eq!(response.status(), 204);
        assert_eq!(
            names,
            [
                "access-control-allow-methods",
                "access-control-allow-headers",
                "access-control-max-age"
            ]
        );
        assert!(Cors::Refused.preflight(&HeaderMap::new()).headers().is_empty());
    }

    #[test]
    fn marks() {
        insta::assert_snapshot!(headers(&Cors::Every), @r#"
        access-control-allow-origin: "*"
        access-control-expose-headers: "mcp-session-id, www-authenticate, allow, retry-after"
        "#);
        let named = cors(Some("https://a.example"), &["https://a.example"]);
        insta::assert_snapshot!(headers(&named), @r#"
        vary: "Origin"
        access-control-allow-origin: "https://a.example"
        access-control-expose-headers: "mcp-session-id, www-authenticate, allow, retry-after"
        "#);
        insta::assert_snapshot!(headers(&Cors::Refused), @r#"vary: "Origin""#);
    }
}
