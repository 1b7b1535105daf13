//! What changes between a client of one era and a server of another (protocol table §6).
//!
//! Everything else passes as the same text. The era of each side is a value; no other
//! module decides by it.

use crate::json::Members;
use crate::meta;
use crate::version::Era;

/// What the manager tells its servers it can do as a client. Sampling, elicitation and
/// roots are not bridged, so they are not declared (U24).
pub const CAPABILITIES: &str = "{}";

/// For a legacy client, when a modern server wants to ask something first.
const NOT_COMPLETE: &str = r#"{"content":[{"type":"text","text":"This tool asks for more input during the call, which your client cannot give here. Nothing more will follow."}],"isError":true}"#;

/// The `params` of a call on its way to a server: prepared once, completed for the server's
/// era when that is known.
#[derive(Debug, Clone)]
pub struct Call {
    /// The members but for `_meta`, without the closing brace.
    open: String,
    /// What of the client's `_meta` travels on, without its braces; empty when nothing does.
    rest: String,
}

/// What belongs to the hop between the manager and a server.
#[derive(Debug, Clone, Copy)]
pub struct Hop<'a> {
    /// Our own progress token, raw; given only when the client gave one (U18, BID-01).
    pub progress_token: Option<&'a str>,
    /// The level of log messages that the client wants; set only for a modern server.
    pub log_level: Option<&'a str>,
    /// Raw `clientInfo` of ours.
    pub client_info: &'a str,
}

impl Call {
    /// Takes the client's `params`, with `name` in place of the exposed name. `rest` is the
    /// raw object of what of its `_meta` travels on.
    pub fn new(params: &Members<'_>, name: &str, rest: Option<&str>) -> Self {
        let mut params = params.clone();
        params.remove("_meta");
        params.set("name", &crate::json::quoted(name));
        if matches!(params.get("arguments"), None | Some("null")) {
            params.set("arguments", "{}");
        }
        let mut open = params.to_text();
        open.pop();
        let rest = rest.and_then(|raw| raw.strip_prefix('{')?.strip_suffix('}'));
        Self { open, rest: rest.unwrap_or_default().to_owned() }
    }

    /// The whole `params` for a server of `era`.
    pub fn params(&self, hop: &Hop<'_>, era: Era) -> String {
        let mut meta = self.rest.clone();
        let mut add = |key: &str, raw: &str| {
            let comma = if meta.is_empty() { "" } else { "," };
            meta.extend([comma, "\"", key, "\":", raw]);
        };
        if let Some(token) = hop.progress_token {
            add("progressToken", token);
        }
        if era == Era::Modern {
            for (key, raw) in meta::modern(CAPABILITIES, hop.client_info) {
                add(key, raw);
            }
            if let Some(level) = hop.log_level {
                add(meta::LOG_LEVEL, &crate::json::quoted(level));
            }
        }
        let open = &self.open;
        if meta.is_empty() {
            format!("{open}}}")
        } else {
            format!(r#"{open},"_meta":{{{meta}}}}}"#)
        }
    }
}

/// A server's result as a client of `to` should read it. `None` means: as it is.
///
/// `server_info` is our own name, which a modern client finds in each result (F70).
pub fn result(raw: &str, from: Era, to: Era, server_info: &str) -> Option<String> {
    if (from, to) == (Era::Legacy, Era::Legacy) && !raw.contains(STRUCTURED) {
        return None;
    }
    let mut result = Members::parse(raw).ok()?;
    let unfit = to == Era::Legacy && without_unfit(&mut result);
    if from == Era::Legacy && to == Era::Legacy {
        return unfit.then(|| result.to_text());
    }
    let mut meta_members = Members::default();
    let meta_text = result.get("_meta").map(str::to_owned);
    if let Some(members) = meta_text.as_deref().and_then(|raw| Members::parse(raw).ok()) {
        meta_members = members;
    }
    match to {
        Era::Modern => {
            // A word of the older era that happens to have that name means nothing here.
            if from == Era::Legacy || result.get("resultType").is_none() {
                result.set("resultType", "\"complete\"");
            }
            meta_members.set(meta::SERVER_INFO, server_info);
        }
        Era::Legacy => {
            if !matches!(result.get("resultType"), None | Some("\"complete\"")) {
                return Some(NOT_COMPLETE.to_owned());
            }
            for key in ["resultType", "ttlMs", "cacheScope"] {
                result.remove(key);
            }
            meta_members.remove(meta::SERVER_INFO);
        }
    }
    if meta_members.is_empty() {
        result.remove("_meta");
    } else {
        result.set("_meta", &meta_members.to_text());
    }
    Some(result.to_text())
}

const STRUCTURED: &str = "structuredContent";

/// Takes out structured content that is no object: clients of older versions throw on it. What
/// it says stays, as text where the server gave none. Whether there was any.
fn without_unfit(result: &mut Members<'_>) -> bool {
    let unfit = result.get(STRUCTURED).filter(|raw| !raw.starts_with('{')).map(str::to_owned);
    let Some(unfit) = unfit else { return false };
    result.remove(STRUCTURED);
    let silent = match result.get("content") {
        None => true,
        Some(raw) => crate::json::elements(raw).is_ok_and(|blocks| blocks.is_empty()),
    };
    if silent {
        let text = crate::json::quoted(&unfit);
        result.set("content", &format!(r#"[{{"type":"text","text":{text}}}]"#));
    }
    true
}

/// A result of our own for a client of `era`: legacy as given, modern with its envelope.
pub fn own_result(raw: &str, era: Era, server_info: &str) -> String {
    result(raw, Era::Legacy, era, server_info).unwrap_or_else(|| raw.to_owned())
}

/// A server's error object as a client of `to` should read it (A10, F13). `None`: as it is.
pub fn error(raw: &str, to: Era) -> Option<String> {
    if to == Era::Legacy {
        return None;
    }
    let code = crate::codes::for_modern(crate::codes::code_of(raw))?;
    let mut members = Members::parse(raw).ok()?;
    members.set("code", &code.to_string());
    Some(members.to_text())
}

/// A notification's `params` with another progress token.
pub fn progress(params: &str, token: &str) -> Option<String> {
    let mut members = Members::parse(params).ok()?;
    members.get("progressToken")?;
    members.set("progressToken", token);
    Some(members.to_text())
}

#[cfg(test)]
mod tests {
    use super::{Call, Hop, error, progress, result};
    use crate::json::Members;
    use crate::meta::RequestMeta;
    use crate::version::Era;

    const INFO: &str = r#"{"name":"m","version":"1"}"#;

    fn sent(params: &str, token: Option<&str>, era: Era) -> String {
        let params = Members::parse(params).expect("an object");
        let meta = RequestMeta::of(&params).expect("it is right");
        let log_level = meta.log_level.as_deref();
        let hop = Hop { progress_token: token, log_level, client_info: INFO };
        Call::new(&params, "own", meta.rest.as_deref()).params(&hop, era)
    }

    #[test]
    fn arg_07_arguments_default_to_an_object() {
        assert_eq!(
            sent(r#"{"name":"s__own"}"#, None, Era::Legacy),
            r#"{"name":"own","arguments":{}}"#
        );
        assert_eq!(
            sent(r#"{"name":"x","arguments":null}"#, None, Era::Legacy),
            r#"{"name":"own","arguments":{}}"#
        );
    }

    #[test]
    fn arguments_are_not_touched() {
        let odd = r#"{"a" : 1e400,"b":[ 1 ]}"#;
        assert_eq!(
            sent(&format!(r#"{{"arguments":{odd},"name":"x"}}"#), None, Era::Legacy),
            format!(r#"{{"arguments":{odd},"name":"own"}}"#)
        );
    }

    #[test]
    fn a12_hop_keys_stay_here_and_tracing_travels() {
        let params = r#"{"name":"x","arguments":{},"_meta":{"progressToken":1,"traceparent":"t","io.modelcontextprotocol/logLevel":"info"}}"#;
        assert_eq!(
            sent(params, Some("\"p9\""), Era::Legacy),
            r#"{"name":"own","arguments":{},"_meta":{"traceparent":"t","progressToken":"p9"}}"#
        );
        assert_eq!(
            sent(params, None, Era::Modern),
            r#"{"name":"own","arguments":{},"_meta":{"traceparent":"t","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"m","version":"1"},"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/logLevel":"info"}}"#
        );
    }

    #[test]
    fn results_two_by_two() {
        let legacy = r#"{"content":[],"structuredContent":{"n":1e999}}"#;
        let modern = r#"{"resultType":"complete","content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"up"},"k":1}}"#;
        assert_eq!(result(legacy, Era::Legacy, Era::Legacy, INFO), None);
        assert_eq!(
            result(legacy, Era::Legacy, Era::Modern, INFO).as_deref(),
            Some(
                r#"{"content":[],"structuredContent":{"n":1e999},"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"m","version":"1"}}}"#
            )
        );
        assert_eq!(
            result(modern, Era::Modern, Era::Legacy, INFO).as_deref(),
            Some(r#"{"content":[],"_meta":{"k":1}}"#)
        );
        assert_eq!(
            result(modern, Era::Modern, Era::Modern, INFO).as_deref(),
            Some(
                r#"{"resultType":"complete","content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"m","version":"1"},"k":1}}"#
            )
        );
    }

    #[test]
    fn p13_structured_content_that_is_no_object_is_text_for_older_clients() {
        let fine = r#"{"content":[],"structuredContent":{"n":[1]}}"#;
        assert_eq!(result(fine, Era::Legacy, Era::Legacy, INFO), None);
        let list = r#"{"content":[{"type":"text","text":"x"}],"structuredContent":[1e400],"y":1}"#;
        let bare = r#"{"structuredContent":[1, "a"],"resultType":"complete"}"#;
        for from in [Era::Legacy, Era::Modern] {
            assert_eq!(
                result(list, from, Era::Legacy, INFO).as_deref(),
                Some(r#"{"content":[{"type":"text","text":"x"}],"y":1}"#)
            );
            let told = result(bare, from, Era::Legacy, INFO).expect("another result");
            assert!(told.contains(r#""content":[{"type":"text","text":"[1, \"a\"]"}]"#), "{told}");
            assert!(!told.contains("structuredContent"), "{told}");
        }
        let modern = result(list, Era::Modern, Era::Modern, INFO).expect("another result");
        assert!(modern.contains(r#""structuredContent":[1e400]"#), "{modern}");
    }

    #[test]
    fn u13_a_question_is_no_result_for_a_legacy_client() {
        let asks = r#"{"resultType":"input_required","requestState":"s"}"#;
        let told = result(asks, Era::Modern, Era::Legacy, INFO).expect("another result");
        assert!(told.contains("\"isError\":true") && !told.contains("requestState"), "{told}");
        assert!(result(asks, Era::Modern, Era::Modern, INFO).is_some_and(|r| r.contains("\"s\"")));
    }

    #[test]
    fn res_06_codes_are_kept_but_for_those_a_modern_client_must_not_see() {
        assert_eq!(error(r#"{"code":-32063,"message":"m","data":1}"#, Era::Modern), None);
        assert_eq!(error(r#"{"code":-32002,"message":"m"}"#, Era::Legacy), None);
        assert_eq!(
            error(r#"{"code":-32002,"message":"m","data":1}"#, Era::Modern).as_deref(),
            Some(r#"{"code":-32602,"message":"m","data":1}"#)
        );
        for code in [-32042, -32000, -32001, -32019] {
            let raw = format!(r#"{{"code":{code},"message":"m","data":{{"a":1e400}}}}"#);
            assert_eq!(error(&raw, Era::Legacy), None);
            assert_eq!(
                error(&raw, Era::Modern).as_deref(),
                Some(r#"{"code":-32603,"message":"m","data":{"a":1e400}}"#)
            );
        }
        for code in [-32020, -32021, -31999, -32603, 7] {
            assert_eq!(error(&format!(r#"{{"code":{code}}}"#), Era::Modern), None);
        }
    }

    #[test]
    fn bid_01_progress_tokens_are_swapped() {
        assert_eq!(
            progress(r#"{"progressToken":"p1","progress":1}"#, "7").as_deref(),
            Some(r#"{"progressToken":7,"progress":1}"#)
        );
        assert_eq!(progress(r#"{"progress":1}"#, "7"), None);
    }
}
