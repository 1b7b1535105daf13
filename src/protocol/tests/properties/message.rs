//! JSON-RPC messages as serde_json's own values show them, and the reader beside that.

use mcpm_protocol::{Incoming, Malformed, Message, Outcome};
use serde_json::Value;

/// Reads the bytes both ways; panics where the two do not agree.
pub(crate) fn check(bytes: &[u8]) {
    let read = Incoming::parse(bytes);
    let value = match serde_json::from_slice::<Value>(bytes) {
        Ok(value) => value,
        Err(error) => {
            // Text that is passed on unread may hold what a value cannot: very large numbers,
            // halves of characters, thousands of levels.
            let unread = ["out of range", "recursion", "surrogate", "hex escape"];
            let passable = unread.iter().any(|why| error.to_string().contains(why));
            assert!(passable || read.is_err(), "{error}: taken as {read:?}");
            return;
        }
    };
    match (read, value) {
        (Ok(Incoming::Batch(texts)), Value::Array(values)) => {
            assert_eq!(texts.len(), values.len());
            for (text, value) in texts.iter().zip(&values) {
                same(Message::parse(text), value);
            }
        }
        (Ok(Incoming::One(message)), value) => same(Ok(message), &value),
        (Err(error), value) => same(Err(error), &value),
        (read, value) => panic!("{value} was read as {read:?}"),
    }
}

fn same(read: Result<Message<'_>, Malformed>, value: &Value) {
    let Some(expected) = expected(value) else { return };
    match (read, expected) {
        (Ok(Message::Request { id, method, params }), Kind::Request) => {
            assert_eq!(parsed(id), value["id"]);
            called(&method, params, value);
        }
        (Ok(Message::Notification { method, params }), Kind::Notification) => {
            called(&method, params, value);
        }
        (Ok(Message::Response { id, outcome }), Kind::Response) => {
            assert_eq!(id.map_or(Value::Null, parsed), value["id"]);
            match outcome {
                Outcome::Result(raw) => assert_eq!(parsed(raw), value["result"]),
                Outcome::Error(raw) => assert_eq!(parsed(raw), value["error"]),
            }
        }
        (Err(error), Kind::Refused) => assert!(matches!(error, Malformed::Invalid { .. })),
        (read, expected) => panic!("{value} is a {expected:?}, and was read as {read:?}"),
    }
}

fn called(method: &str, params: Option<&str>, value: &Value) {
    assert_eq!(method, value["method"]);
    assert_eq!(params.map_or(Value::Null, parsed), value["params"]);
}

fn parsed(raw: &str) -> Value {
    serde_json::from_str(raw).expect("a part of what could be read")
}

#[derive(Debug)]
enum Kind {
    Request,
    Notification,
    Response,
    Refused,
}

/// What a value is; `None` where a value does not show it: a number that was rounded may have
/// been written as an integer or not.
fn expected(value: &Value) -> Option<Kind> {
    let Some(object) = value.as_object() else { return Some(Kind::Refused) };
    let id = object.get("id");
    let id_fits = match id {
        None | Some(Value::Null | Value::String(_)) => true,
        Some(Value::Number(number)) if number.is_f64() => {
            if number.as_f64().is_some_and(|number| number.fract() == 0.0) {
                return None;
            }
            false
        }
        Some(Value::Number(_)) => true,
        Some(_) => false,
    };
    let params_fit = matches!(object.get("params"), None | Some(Value::Null | Value::Object(_)));
    if !id_fits || object.get("jsonrpc").is_none_or(|version| version != "2.0") {
        return Some(Kind::Refused);
    }
    Some(match (object.get("method"), id) {
        (None, _) => {
            let has_error = object.get("error").is_some_and(|error| !error.is_null());
            let answers = has_error || object.contains_key("result");
            if answers { Kind::Response } else { Kind::Refused }
        }
        (Some(Value::String(_)), None) if params_fit => Kind::Notification,
        (Some(Value::String(_)), Some(id)) if params_fit && !id.is_null() => Kind::Request,
        _ => Kind::Refused,
    })
}
