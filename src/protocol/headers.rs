//! HTTP header names of MCP, and the encoding of values mirrored from a body (F65–F67).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The session of a legacy client.
pub const SESSION_ID: &str = "mcp-session-id";
/// The protocol version in use.
pub const PROTOCOL_VERSION: &str = "mcp-protocol-version";
/// The body's `method` (2026-07-28).
pub const METHOD: &str = "mcp-method";
/// The body's `params.name` or `params.uri` (2026-07-28).
pub const NAME: &str = "mcp-name";
/// Prefix of headers mirrored from arguments (2026-07-28).
pub const PARAM_PREFIX: &str = "mcp-param-";

const OPEN: &str = "=?base64?";
const CLOSE: &str = "?=";

/// A header value for `text`: as it is where HTTP can carry it, else in the base64 form.
pub fn encode(text: &str) -> String {
    let plain = text.bytes().all(|byte| (0x20..0x7f).contains(&byte))
        && text.trim() == text
        && !text.starts_with(OPEN);
    if plain { text.to_owned() } else { format!("{OPEN}{}{CLOSE}", STANDARD.encode(text)) }
}

/// The text that a header value stands for; `None` when its base64 form is broken.
pub fn decode(value: &str) -> Option<String> {
    match value.strip_prefix(OPEN).and_then(|rest| rest.strip_suffix(CLOSE)) {
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok(),
        None => Some(value.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};

    fn check(text: &str, value: &str) {
        assert_eq!(encode(text), value);
        assert_eq!(decode(value).as_deref(), Some(text));
    }

    #[test]
    fn values_round_trip() {
        check("read_file", "read_file");
        check("ü", "=?base64?w7w=?=");
        check(" x", "=?base64?IHg=?=");
        check("=?base64?", "=?base64?PT9iYXNlNjQ/?=");
        check("", "");
    }

    #[test]
    fn broken_base64_is_refused() {
        assert_eq!(decode("=?base64?w7w?="), None);
        assert_eq!(decode("=?base64?*?="), None);
    }
}
