//! JSON-RPC and MCP error codes, and error objects (F13, F14).

use crate::json;

/// The body is not JSON.
pub const PARSE_ERROR: i32 = -32700;
/// The body is JSON, but no JSON-RPC message.
pub const INVALID_REQUEST: i32 = -32600;
/// The method is not known.
pub const METHOD_NOT_FOUND: i32 = -32601;
/// Parameters, tool name or cursor are wrong.
pub const INVALID_PARAMS: i32 = -32602;
/// A fault of ours.
pub const INTERNAL: i32 = -32603;
/// A mirrored header is missing or differs from the body (2026-07-28).
pub const HEADER_MISMATCH: i32 = -32020;
/// The client did not declare a capability that the call needs (2026-07-28).
pub const MISSING_CAPABILITY: i32 = -32021;
/// The protocol version is not supported (2026-07-28).
pub const UNSUPPORTED_VERSION: i32 = -32022;
/// The session is unknown or over; legacy servers and clients use this code with a 404.
pub const SESSION_NOT_FOUND: i32 = -32001;
/// Refused by the HTTP layer; legacy code for errors without a better one.
pub const REFUSED: i32 = -32000;

/// What a modern client is told in place of a code that it must not see: those of older
/// versions, and those that the specification keeps clear of (F13). `None` for all others.
pub fn for_modern(code: i64) -> Option<i32> {
    match code {
        -32002 => Some(INVALID_PARAMS),
        -32042 | -32019..=-32000 => Some(INTERNAL),
        _ => None,
    }
}

/// An error object; `data` is raw JSON.
pub fn error(code: i32, message: &str, data: Option<&str>) -> String {
    let message = json::quoted(message);
    match data {
        Some(data) => format!(r#"{{"code":{code},"message":{message},"data":{data}}}"#),
        None => format!(r#"{{"code":{code},"message":{message}}}"#),
    }
}

/// The `code` of an error object, 0 when it has none.
pub fn code_of(error: &str) -> i64 {
    crate::json::Members::parse(error)
        .ok()
        .and_then(|members| members.get("code")?.parse().ok())
        .unwrap_or_default()
}

/// The versions that an error about an unsupported one names: short texts, a few.
pub fn supported_of(error: &str) -> Option<Vec<String>> {
    const MOST: usize = 16;
    const LONGEST: usize = 32;
    let error = json::Members::parse(error).ok()?;
    let data = json::Members::parse(error.get("data")?).ok()?;
    let versions = json::elements(data.get("supported")?).ok()?;
    let texts = versions.into_iter().filter_map(json::string).take(MOST);
    Some(texts.map(|text| text.chars().take(LONGEST).collect()).collect())
}

/// The `message` of an error object, empty when it has none.
pub fn message_of(error: &str) -> String {
    crate::json::Members::parse(error)
        .ok()
        .and_then(|members| Some(json::string(members.get("message")?)?.into_owned()))
        .unwrap_or_default()
}
