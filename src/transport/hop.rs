//! The mark that a request of this process carries, so that the manager notices when it is
//! talking to itself: registered as its own server, it would call itself without end.

use std::sync::LazyLock;

use http::header::{HeaderName, HeaderValue};

/// The header.
pub(crate) const NAME: HeaderName = HeaderName::from_static("mcpm-hop");

/// HTTP status of a request that came back to its sender (RFC 5842, section 7.2).
pub(crate) const LOOP: u16 = 508;

static OWN: LazyLock<HeaderValue> = LazyLock::new(|| {
    let mut bytes = [0; 8];
    // Without randomness two managers could take each other for themselves; no mark then.
    if getrandom::fill(&mut bytes).is_err() {
        return HeaderValue::from_static("");
    }
    HeaderValue::from(u64::from_ne_bytes(bytes))
});

/// This process's mark.
pub(crate) fn own() -> HeaderValue {
    OWN.clone()
}

/// Whether a request with these headers was sent by this process.
pub fn is_own(headers: &http::HeaderMap) -> bool {
    headers.get(NAME).is_some_and(|mark| !mark.is_empty() && *mark == *OWN)
}
