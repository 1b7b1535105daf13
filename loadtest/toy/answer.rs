//! From the JSON of a request to the JSON of its answer. Only the id, the method and the name of
//! the tool are read; everything else stays text.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

const SERVER_INFO: &str = r#"{"name":"toy","version":"1.0.0"}"#;
const MODERN_META: &str =
    r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"toy","version":"1.0.0"}}"#;
const MODERN_MARK: &str = "\"io.modelcontextprotocol/protocolVersion\"";

/// What a message is answered with. The text is a whole JSON-RPC message.
#[derive(Debug, PartialEq)]
pub(crate) enum Answer {
    /// A notification or a response: nothing to say.
    Nothing,
    /// A result that opens a session.
    Session(String),
    /// The result of a call.
    Call(String),
    /// Any other result, or an error that belongs to a request.
    Plain(String),
    /// The message could not be read.
    Refused(String),
}

/// Answers messages; holds what is serialised once.
#[derive(Debug)]
pub(crate) struct Answerer {
    legacy_list: String,
    modern_list: String,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

impl Answerer {
    /// `tools` is the JSON text of the array of tools.
    pub(crate) fn new(tools: &str) -> Self {
        Self {
            legacy_list: format!(r#"{{"tools":{tools}}}"#),
            modern_list: format!(
                r#"{{"resultType":"complete","tools":{tools},"ttlMs":60000,"cacheScope":"public",{MODERN_META}}}"#
            ),
        }
    }

    /// Answers one message.
    pub(crate) fn answer(&self, body: &[u8]) -> Answer {
        let Ok(message) = serde_json::from_slice::<Message<'_>>(body) else {
            return Answer::Refused(error("null", -32700, "parse error"));
        };
        let (Some(id), Some(method)) = (message.id, message.method) else {
            return Answer::Nothing;
        };
        let id = id.get();
        let params: Params<'_> = match message.params {
            Some(text) => serde_json::from_str(text.get()).unwrap_or_default(),
            None => Params::default(),
        };
        let modern = params.meta.is_some_and(|meta| meta.get().contains(MODERN_MARK));
        match method.as_ref() {
            "tools/call" => call(id, &params, modern),
            "tools/list" if modern => Answer::Plain(result(id, &self.modern_list)),
            "tools/list" => Answer::Plain(result(id, &self.legacy_list)),
            "initialize" => Answer::Session(result(id, &initialized())),
            "server/discover" => Answer::Plain(result(id, &discovered())),
            "ping" => Answer::Plain(result(id, "{}")),
            _ => Answer::Plain(error(id, -32601, "method not found")),
        }
    }
}

fn call(id: &str, params: &Params<'_>, modern: bool) -> Answer {
    if params.name.as_ref().is_none_or(|name| !name.ends_with("echo")) {
        return Answer::Plain(error(id, -32602, "unknown tool"));
    }
    let arguments = params.arguments.map_or("{}", RawValue::get);
    // Serialising a string cannot fail; an empty text would show up as a wrong answer.
    let text = serde_json::to_string(arguments).unwrap_or_default();
    let content = format!(r#""content":[{{"type":"text","text":{text}}}]"#);
    Answer::Call(if modern {
        result(id, &format!(r#"{{"resultType":"complete",{content},{MODERN_META}}}"#))
    } else {
        result(id, &format!("{{{content}}}"))
    })
}

fn initialized() -> String {
    format!(
        r#"{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{"listChanged":true}}}},"serverInfo":{SERVER_INFO}}}"#
    )
}

fn discovered() -> String {
    format!(
        r#"{{"resultType":"complete","supportedVersions":["2026-07-28","2025-11-25"],"capabilities":{{"tools":{{"listChanged":true}}}},"ttlMs":60000,"cacheScope":"public",{MODERN_META}}}"#
    )
}

fn result(id: &str, result: &str) -> String {
    ["{\"jsonrpc\":\"2.0\",\"id\":", id, ",\"result\":", result, "}"].concat()
}

fn error(id: &str, code: i32, message: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"{message}"}}}}"#)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn answer(body: &str) -> Answer {
        Answerer::new("[{\"name\":\"echo\"}]").answer(body.as_bytes())
    }

    fn parsed(answer: Answer) -> Value {
        match answer {
            Answer::Plain(text)
            | Answer::Call(text)
            | Answer::Session(text)
            | Answer::Refused(text) => serde_json::from_str(&text).unwrap(),
            Answer::Nothing => Value::Null,
        }
    }

    #[test]
    fn a_call_returns_its_arguments_as_they_were_sent() {
        let sent = r#"{"jsonrpc":"2.0","id":"a\"1","method":"tools/call","params":{"name":"echo","arguments":{"text": "ö\n"}}}"#;
        let got = parsed(answer(sent));
        assert_eq!(got["id"], "a\"1");
        assert_eq!(got["result"]["content"][0]["text"], r#"{"text": "ö\n"}"#);
        assert!(got["result"].get("resultType").is_none());
    }

    #[test]
    fn a_modern_request_gets_a_modern_result() {
        let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
        for (method, extra) in
            [("tools/call", r#""name":"echo","#), ("tools/list", ""), ("server/discover", "")]
        {
            let sent = format!(r#"{{"id":7,"method":"{method}","params":{{{extra}{meta}}}}}"#);
            assert_eq!(parsed(answer(&sent))["result"]["resultType"], "complete", "{method}");
        }
    }

    #[test]
    fn what_is_no_request_gets_no_result() {
        assert_eq!(answer(r#"{"method":"notifications/initialized"}"#), Answer::Nothing);
        assert_eq!(answer(r#"{"id":1,"result":{}}"#), Answer::Nothing);
        assert_eq!(parsed(answer("{"))["error"]["code"], -32700);
        assert_eq!(parsed(answer(r#"{"id":1,"method":"nope"}"#))["error"]["code"], -32601);
        let unknown = r#"{"id":1,"method":"tools/call","params":{"name":"nope"}}"#;
        assert_eq!(parsed(answer(unknown))["error"]["code"], -32602);
        let opened = answer(r#"{"id":0,"method":"initialize","params":{}}"#);
        assert!(matches!(opened, Answer::Session(_)));
    }
}
