//! The `_meta` of a request: what belongs to one hop, and what travels on (A12, F61).

use std::borrow::Cow;

use crate::json::{self, Members};

/// Prefix of the keys that the specification reserves for itself.
const MCP: &str = "io.modelcontextprotocol/";

/// Keys that mean something between two peers only.
const HOP: [&str; 7] = [
    "progressToken",
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/clientCapabilities",
    "io.modelcontextprotocol/logLevel",
    "io.modelcontextprotocol/subscriptionId",
    "io.modelcontextprotocol/serverInfo",
];

/// The `_meta` key of a server's name in results.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// The `_meta` key that ties a message to a `subscriptions/listen` request.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// What a request's `_meta` says about this hop; raw JSON borrowed from the request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestMeta<'a> {
    /// Present means: a request of the modern era.
    pub version: Option<Cow<'a, str>>,
    /// Raw object.
    pub capabilities: Option<&'a str>,
    /// Raw object.
    pub client_info: Option<&'a str>,
    /// Lowest level of log message wanted during this request.
    pub log_level: Option<Cow<'a, str>>,
    /// Raw string or integer; wanted back in progress notifications.
    pub progress_token: Option<&'a str>,
    /// Members that travel on, as raw `_meta` object text; `None` when there are none.
    pub rest: Option<String>,
}

impl<'a> RequestMeta<'a> {
    /// Reads `params._meta`. Odd parts are as good as absent, but for a progress token: whoever
    /// sent one waits for progress.
    ///
    /// # Errors
    /// What is wrong and what to send.
    pub fn of(params: &Members<'a>) -> Result<Self, &'static str> {
        let Some(raw) = params.borrowed("_meta").filter(|raw| *raw != "null") else {
            return Ok(Self::default());
        };
        let mut members = Members::parse(raw).map_err(|_| "`params._meta` must be an object")?;
        let text = |key: &str| members.borrowed(&format!("{MCP}{key}")).and_then(json::string);
        let object =
            |key: &str| members.borrowed(&format!("{MCP}{key}")).filter(|raw| raw.starts_with('{'));
        let mut meta = Self {
            version: text("protocolVersion"),
            capabilities: object("clientCapabilities"),
            client_info: object("clientInfo"),
            log_level: text("logLevel"),
            progress_token: members.borrowed("progressToken").filter(|raw| *raw != "null"),
            rest: None,
        };
        if meta.progress_token.is_some_and(|raw| raw.starts_with(['t', 'f', '[', '{'])) {
            return Err("`params._meta.progressToken` must be a string or a number");
        }
        members.retain(|key| !HOP.contains(&key));
        meta.rest = (!members.is_empty()).then(|| members.to_text());
        Ok(meta)
    }
}

/// The severity of a log level, 0 (`debug`) to 7 (`emergency`); `None` for another word.
pub fn severity(level: &str) -> Option<u8> {
    LEVELS.iter().position(|known| *known == level).map(|place| place as u8)
}

/// The log level of a severity.
pub fn level(severity: u8) -> Option<&'static str> {
    LEVELS.get(usize::from(severity)).copied()
}

const LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// The `_meta` members that a request to a modern server must carry (U12), raw.
pub fn modern<'a>(capabilities: &'a str, client_info: &'a str) -> [(&'static str, &'a str); 3] {
    const VERSION: &str = "\"2026-07-28\"";
    [
        ("io.modelcontextprotocol/protocolVersion", VERSION),
        ("io.modelcontextprotocol/clientInfo", client_info),
        ("io.modelcontextprotocol/clientCapabilities", capabilities),
    ]
}

/// The `_meta` key of the lowest level of log message wanted.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

#[cfg(test)]
mod tests {
    use super::RequestMeta;
    use crate::json::Members;

    #[test]
    fn hop_keys_are_read_and_the_rest_travels() {
        let params = r#"{"name":"x","_meta":{"progressToken":7,"traceparent":"00-1","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}"#;
        let params = Members::parse(params).expect("an object");
        let meta = RequestMeta::of(&params).expect("it is right");
        assert_eq!(meta.version.as_deref(), Some("2026-07-28"));
        assert_eq!(meta.progress_token, Some("7"));
        assert_eq!(meta.capabilities, Some("{}"));
        assert_eq!(meta.rest.as_deref(), Some(r#"{"traceparent":"00-1"}"#));
    }

    #[test]
    fn what_says_nothing_is_no_meta() {
        for params in ["{}", r#"{"_meta":null}"#, r#"{"_meta":{"progressToken":null}}"#] {
            let params = Members::parse(params).expect("an object");
            assert_eq!(RequestMeta::of(&params), Ok(RequestMeta::default()));
        }
    }

    #[test]
    fn p7_the_wrong_type_is_named() {
        for (meta, word) in [("5", "_meta"), ("[]", "_meta"), (r#"{"progressToken":{}}"#, "Token")]
        {
            let params = format!(r#"{{"_meta":{meta}}}"#);
            let params = Members::parse(&params).expect("an object");
            assert!(RequestMeta::of(&params).is_err_and(|why| why.contains(word)), "{meta}");
        }
    }
}
