//! JSON-RPC envelopes: which kind of message a body is, and the members that matter.

use std::borrow::Cow;

use crate::codes;
use crate::json::{self, Members};

/// A body as received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Incoming<'a> {
    /// One message.
    One(Message<'a>),
    /// An array; its entries are raw text, read one by one with [`Message::parse`].
    Batch(Vec<&'a str>),
}

/// One JSON-RPC message. Ids, parameters and results are raw JSON text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message<'a> {
    /// Wants an answer with the same id.
    Request {
        /// A string or an integer, as it stood.
        id: &'a str,
        /// Unescaped.
        method: Cow<'a, str>,
        /// An object, when present.
        params: Option<&'a str>,
    },
    /// Wants none.
    Notification {
        /// Unescaped.
        method: Cow<'a, str>,
        /// An object, when present.
        params: Option<&'a str>,
    },
    /// Answers one of ours.
    Response {
        /// `None` when it was `null` or absent, as in errors about unreadable requests.
        id: Option<&'a str>,
        /// Result or error.
        outcome: Outcome<'a>,
    },
}

/// What a response says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// The result, raw.
    Result(&'a str),
    /// The error object, raw.
    Error(&'a str),
}

/// Why a body is no message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Not JSON, or not UTF-8.
    #[error("the body is not JSON; send one JSON-RPC message in UTF-8")]
    NotJson,
    /// JSON, but not a JSON-RPC message; `id` is the raw id where one could be read.
    #[error("{why}")]
    Invalid {
        /// Raw id to answer with.
        id: Option<String>,
        /// What is wrong and what to send.
        why: &'static str,
    },
}

impl Malformed {
    /// The JSON-RPC code for it.
    pub fn code(&self) -> i32 {
        match self {
            Self::NotJson => codes::PARSE_ERROR,
            Self::Invalid { .. } => codes::INVALID_REQUEST,
        }
    }

    /// The raw id to answer with, where one could be read.
    pub fn id(&self) -> Option<&str> {
        match self {
            Self::NotJson => None,
            Self::Invalid { id, .. } => id.as_deref(),
        }
    }

    fn invalid(why: &'static str) -> Self {
        Self::Invalid { id: None, why }
    }
}

impl<'a> Incoming<'a> {
    /// Reads a body.
    ///
    /// # Errors
    /// Says what to answer; never panics, whatever the bytes.
    pub fn parse(body: &'a [u8]) -> Result<Self, Malformed> {
        let text = std::str::from_utf8(body).map_err(|_| Malformed::NotJson)?;
        if text.trim_start().starts_with('[') {
            return json::elements(text).map(Self::Batch).map_err(|_| Malformed::NotJson);
        }
        Message::parse(text).map(Self::One)
    }
}

impl<'a> Message<'a> {
    /// Reads one message.
    ///
    /// # Errors
    /// Says what to answer.
    pub fn parse(text: &'a str) -> Result<Self, Malformed> {
        let members = Members::parse(text).map_err(|_| {
            if json::is_json(text.as_bytes()) {
                Malformed::invalid("a message must be a JSON object")
            } else {
                Malformed::NotJson
            }
        })?;
        let raw_id = members.borrowed("id");
        let id = match raw_id {
            None => None,
            Some("null") => None,
            Some(raw) if is_id(raw) => Some(raw),
            Some(_) => return Err(Malformed::invalid("`id` must be a string or an integer")),
        };
        let invalid = |why| Malformed::Invalid { id: id.map(str::to_owned), why };
        let version = members.get("jsonrpc").and_then(json::string);
        if version.as_deref() != Some("2.0") {
            return Err(invalid("`jsonrpc` must be \"2.0\""));
        }
        let Some(method) = members.borrowed("method") else {
            return Self::response(&members, id)
                .ok_or_else(|| invalid("a message needs `method`, or `result` or `error`"));
        };
        let method = json::string(method).ok_or_else(|| invalid("`method` must be a string"))?;
        let params = members.borrowed("params").filter(|raw| *raw != "null");
        if params.is_some_and(|raw| !raw.starts_with('{')) {
            return Err(invalid("`params` must be an object"));
        }
        match (raw_id, id) {
            (None, _) => Ok(Self::Notification { method, params }),
            (Some(_), Some(id)) => Ok(Self::Request { id, method, params }),
            (Some(_), None) => Err(invalid("`id` must be a string or an integer, not null")),
        }
    }

    fn response(members: &Members<'a>, id: Option<&'a str>) -> Option<Self> {
        let outcome = match (members.borrowed("result"), members.borrowed("error")) {
            (_, Some(error)) if error != "null" => Outcome::Error(error),
            (Some(result), _) => Outcome::Result(result),
            _ => return None,
        };
        Some(Self::Response { id, outcome })
    }
}

/// Whether raw JSON is an id: a string, or an integer.
fn is_id(raw: &str) -> bool {
    raw.starts_with('"')
        || raw.strip_prefix('-').unwrap_or(raw).bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether the id of an answer is the one that was asked with, tolerating a server that
/// turns a number into a string (shared decision 1, UPS-10).
pub fn same_id(asked: &str, answered: &str) -> bool {
    asked == answered || asked.trim_matches('"') == answered.trim_matches('"')
}

/// A request of ours.
pub fn request(id: &str, method: &str, params: Option<&str>) -> String {
    let method = json::quoted(method);
    match params {
        Some(params) => {
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method},"params":{params}}}"#)
        }
        None => format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method}}}"#),
    }
}

/// A notification of ours.
pub fn notification(method: &str, params: Option<&str>) -> String {
    let method = json::quoted(method);
    match params {
        Some(params) => format!(r#"{{"jsonrpc":"2.0","method":{method},"params":{params}}}"#),
        None => format!(r#"{{"jsonrpc":"2.0","method":{method}}}"#),
    }
}

/// A successful answer; both arguments are raw JSON.
pub fn result(id: &str, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

/// What stands before and after the raw result of a successful answer, for results that are
/// written without being copied.
pub fn around_result(id: &str) -> [String; 2] {
    [format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"#), "}".to_owned()]
}

/// A failed answer; without an id the member is `null`, as JSON-RPC asks.
pub fn failure(id: Option<&str>, error: &str) -> String {
    let id = id.unwrap_or("null");
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Incoming, Malformed, Message, Outcome, same_id};

    fn check(text: &str, expect: Message<'_>) {
        assert_eq!(Message::parse(text), Ok(expect));
    }

    fn refuse(text: &str, code: i32) {
        let refused = Incoming::parse(text.as_bytes()).map_err(|e| e.code());
        assert_eq!(refused, Err(code), "{text}");
    }

    #[test]
    fn http_05_ids_are_kept_as_text() {
        for id in ["\"init-1\"", "\"7\"", "7", "0", "-3", "\"\\u0041\"", "99999999999999999999"] {
            check(
                &format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#),
                Message::Request { id, method: "ping".into(), params: None },
            );
        }
    }

    #[test]
    fn kinds() {
        check(
            r#"{"jsonrpc":"2.0","method":"notifications/x","params":{"a":1}}"#,
            Message::Notification { method: "notifications/x".into(), params: Some(r#"{"a":1}"#) },
        );
        check(
            r#"{"id":1,"result":{},"jsonrpc":"2.0"}"#,
            Message::Response { id: Some("1"), outcome: Outcome::Result("{}") },
        );
        check(
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":1}}"#,
            Message::Response { id: None, outcome: Outcome::Error(r#"{"code":1}"#) },
        );
    }

    #[test]
    fn wrong_types_are_refused() {
        refuse("nonsense", -32700);
        refuse("", -32700);
        refuse("[1", -32700);
        for body in [
            "5",
            "{}",
            r#"{"jsonrpc":"1.0","id":1,"method":"x"}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"x"}"#,
            r#"{"jsonrpc":"2.0","id":1.5,"method":"x"}"#,
            r#"{"jsonrpc":"2.0","id":[],"method":"x"}"#,
            r#"{"jsonrpc":"2.0","id":true,"method":"x"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":5}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"x","params":[]}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"x","params":"y"}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
        ] {
            refuse(body, -32600);
        }
    }

    #[test]
    fn a_refusal_keeps_the_id_where_it_could_be_read() {
        let refused = Message::parse(r#"{"jsonrpc":"2.0","id":"a","method":5}"#);
        assert_eq!(refused.map_err(|e| e.id().map(str::to_owned)), Err(Some("\"a\"".to_owned())));
        assert_eq!(Message::parse("{").map_err(|e| e == Malformed::NotJson), Err(true));
    }

    #[test]
    fn ups_10_servers_may_turn_a_number_into_a_string() {
        assert!(same_id("0", "\"0\"") && same_id("\"a\"", "\"a\"") && !same_id("1", "2"));
    }

    proptest! {
        #[test]
        fn any_bytes_get_an_answer(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Incoming::parse(&body);
        }
    }
}
