//! The app's key, as it is sent.

use http::{HeaderMap, header};

/// The secret of `Authorization: Bearer <secret>`; the scheme in any case.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, secret) = value.split_once(' ')?;
    let secret = secret.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !secret.is_empty()).then_some(secret)
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::bearer;

    fn check(value: &str, expect: Option<&str>) {
        let mut headers = HeaderMap::new();
        headers.insert("authorization", value.parse().expect("a header value"));
        assert_eq!(bearer(&headers), expect);
    }

    #[test]
    fn sec_03_only_a_bearer_with_a_secret_counts() {
        check("Bearer abc", Some("abc"));
        check("bearer  abc ", Some("abc"));
        check("Bearer ", None);
        check("Bearer", None);
        check("Basic abc", None);
        check("abc", None);
    }
}
