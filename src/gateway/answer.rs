//! What is wrong, or told, in a server's answer, beyond its bytes.

use protocol::json::{self, Members};
use upstream::Answer;

/// What no client could read about an answer. The usual start of a result is enough to know
/// that it is in order.
pub(crate) fn malformed(answer: &Answer) -> Option<&'static str> {
    let text = answer.text();
    if text.starts_with("{\"content\":[") {
        return None;
    }
    let Ok(members) = Members::parse(text) else {
        return Some(if answer.is_error { "its error" } else { "its result" });
    };
    let number = |raw: &str| raw.parse::<i64>().is_ok();
    match answer.is_error {
        true if !members.get("code").is_some_and(number) => Some("the `code` of its error"),
        true if members.get("message").and_then(json::string).is_none() => {
            Some("the `message` of its error")
        }
        true => None,
        false => members
            .get("content")
            .is_some_and(|content| !content.starts_with('['))
            .then_some("the `content` of its result"),
    }
}

/// Whether a result says `isError: true`. Looked for in the text first, so that the many
/// results that do not are not read again.
pub(crate) fn says_error(answer: &Answer) -> bool {
    let text = answer.text();
    text.contains("\"isError\"")
        && Members::parse(text).is_ok_and(|result| result.get("isError") == Some("true"))
}
