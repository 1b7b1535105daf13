//! One tool as its server described it, kept as the same JSON text.
//!
//! Only the members that the manager acts on are read; the rest is never re-typed
//! (product rule P13).

use std::ops::Range;
use std::sync::OnceLock;

use protocol::json::{self, Members};

use crate::model::Override;
use crate::sound::{self, sound};

/// A tool of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// The server's own name for it, as sent upstream.
    pub name: String,
    /// The server's title for it; empty if it gave none.
    pub title: String,
    /// The server's title or description, whichever explains more; empty if it gave none.
    pub description: String,
    /// `annotations.readOnlyHint`, false when absent.
    pub read_only: bool,
    /// `annotations.idempotentHint`, false when absent.
    pub idempotent: bool,
    /// Properties carrying `x-mcp-header`, as (property, header name).
    pub header_params: Vec<(String, String)>,
    /// Which rule its `x-mcp-header` annotations break, if they do: over HTTP, a tool of a modern
    /// server is then not offered (U10); for any other they mean nothing.
    pub header_fault: Option<&'static str>,
    /// Members that were of the wrong type and are left out.
    pub dropped: Vec<&'static str>,
    text: String,
    name_at: Range<usize>,
    schema: Compiled,
}

/// A schema that is compiled when the first call needs it. It says nothing that the text does
/// not say, so that two tools of one text are equal.
#[derive(Debug, Default)]
struct Compiled(OnceLock<coach::Schema>);

impl Clone for Compiled {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for Compiled {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Compiled {}

/// Why a tool cannot be offered; the rest of its server's list is unaffected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// Not a JSON object.
    #[error("a tool must be a JSON object")]
    NotAnObject,
    /// `name` is missing or not a string.
    #[error("a tool must have a string `name`")]
    NoName,
}

impl Tool {
    /// Reads one entry of a `tools/list` answer.
    ///
    /// What would make a client refuse the whole list is mended (see [`crate::sound`]).
    ///
    /// # Errors
    /// Says what makes this tool unusable; skip it and go on with the others.
    pub fn parse(text: &str) -> Result<Self, ToolError> {
        let (text, dropped) = sound(text).ok_or(ToolError::NotAnObject)?;
        let members = Members::parse(&text).map_err(|_| ToolError::NotAnObject)?;
        let raw_name = members.get("name").ok_or(ToolError::NoName)?;
        let name = json::string(raw_name).ok_or(ToolError::NoName)?.into_owned();
        let start = offset(&text, raw_name);
        let name_at = start..start + raw_name.len();
        let text_of = |key| members.get(key).and_then(json::string).unwrap_or_default();
        let title = text_of("title").into_owned();
        let description = match text_of("description") {
            words if words.trim().is_empty() => title.clone(),
            words => words.into_owned(),
        };
        let annotations = members.get("annotations").and_then(|raw| Members::parse(raw).ok());
        let hint = |key| annotations.as_ref().and_then(|a| a.get(key)) == Some("true");
        let (header_params, header_fault) =
            match members.get("inputSchema").map(protocol::param::declared) {
                Some(Ok(declared)) => (declared, None),
                Some(Err(why)) => (Vec::new(), Some(why)),
                None => (Vec::new(), None),
            };
        let (read_only, idempotent) = (hint("readOnlyHint"), hint("idempotentHint"));
        Ok(Self {
            name,
            title,
            description,
            read_only,
            idempotent,
            header_params,
            header_fault,
            dropped,
            name_at,
            text,
            schema: Compiled::default(),
        })
    }

    /// The tool with an operator's words in place of its server's.
    #[must_use]
    pub fn with(&self, words: &Override) -> Option<Self> {
        let mut members = Members::parse(&self.text).ok()?;
        for (key, said) in [("title", &words.title), ("description", &words.description)] {
            if let Some(said) = said {
                members.set(key, &json::quoted(said));
            }
        }
        Self::parse(&members.to_text()).ok()
    }

    /// What it takes, compiled when it is first asked for.
    pub fn schema(&self) -> &coach::Schema {
        self.schema.0.get_or_init(|| coach::Schema::compile(self.input_schema()))
    }

    /// The tool as the server described it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The tool as clients of 2025-11-25 and older list it, where that differs: without an
    /// output schema that would have them refuse the whole list.
    pub(crate) fn for_older(&self) -> Option<Self> {
        Self::parse(&sound::for_older(&self.text)?).ok()
    }

    /// Whether it fetches pages: it takes the address of one.
    pub fn reads_pages(&self) -> bool {
        self.input_schema().contains("\"url\"")
    }

    /// Appends the tool's JSON with `exposed` in place of its own name.
    pub fn write_as(&self, exposed: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.text.as_bytes()[..self.name_at.start]);
        json::write_string(exposed, out);
        out.extend_from_slice(&self.text.as_bytes()[self.name_at.end..]);
    }

    /// The raw JSON of the input schema.
    pub fn input_schema(&self) -> &str {
        Members::parse(&self.text)
            .ok()
            .and_then(|tool| tool.borrowed("inputSchema"))
            .unwrap_or("{}")
    }

    /// Whether a call may be sent again when its outcome is unknown (P25).
    pub fn repeatable(&self) -> bool {
        self.read_only || self.idempotent
    }
}

/// Where `part`, a slice of `whole`, starts.
fn offset(whole: &str, part: &str) -> usize {
    part.as_ptr() as usize - whole.as_ptr() as usize
}

#[cfg(test)]
mod tests {
    use super::Tool;

    fn check(text: &str, listed: &str) {
        let tool = Tool::parse(text).expect("a usable tool");
        let mut out = Vec::new();
        tool.write_as("s__x", &mut out);
        assert_eq!(String::from_utf8(out).expect("UTF-8"), listed);
    }

    #[test]
    fn res_02_every_field_survives_but_the_name() {
        check(
            r#"{"x-new":1e400,"name":"x","title":"X","annotations":{"readOnlyHint":true,"z":0},"inputSchema":{"type":"object","$defs":{}},"_meta":{"a":[1]}}"#,
            r#"{"x-new":1e400,"name":"s__x","title":"X","annotations":{"readOnlyHint":true,"z":0},"inputSchema":{"type":"object","$defs":{}},"_meta":{"a":[1]}}"#,
        );
    }

    #[test]
    fn sch_03_schemas_gain_at_least_a_type() {
        let object = r#"{"name":"s__x","inputSchema":{"type":"object"}}"#;
        check(r#"{"name":"x"}"#, object);
        check(r#"{"name":"x","inputSchema":null}"#, object);
        check(r#"{"name":"x","inputSchema":true}"#, object);
        check(r#"{"name":"x","inputSchema":[]}"#, object);
        check(r#"{"name":"x","inputSchema":{}}"#, object);
        check(
            r#"{"name":"x","inputSchema":{"$schema":"s"}}"#,
            r#"{"name":"s__x","inputSchema":{"$schema":"s","type":"object"}}"#,
        );
        check(
            r#"{"name":"x","inputSchema":{"type":["object"]}}"#,
            r#"{"name":"s__x","inputSchema":{"type":["object"]}}"#,
        );
    }

    #[test]
    fn annotations_are_read() {
        let tool = Tool::parse(
            r#"{"name":"x","annotations":{"readOnlyHint":true,"idempotentHint":false}}"#,
        );
        let tool = tool.expect("a usable tool");
        assert!(tool.read_only && !tool.idempotent && tool.repeatable());
    }

    #[test]
    fn u10_wrong_header_annotations_are_told_beside_the_tool() {
        let tool = |name: &str| {
            let schema =
                format!(r#"{{"properties":{{"a":{{"type":"string","x-mcp-header":"{name}"}}}}}}"#);
            Tool::parse(&format!(r#"{{"name":"x","inputSchema":{schema}}}"#))
                .expect("a usable tool")
        };
        assert_eq!((tool("A").header_params.len(), tool("A").header_fault), (1, None));
        assert!(tool("A B").header_params.is_empty() && tool("A B").header_fault.is_some());
    }

    #[test]
    fn unusable_tools_are_named() {
        assert!(Tool::parse("[]").is_err());
        assert!(Tool::parse(r#"{"name":5}"#).is_err());
    }
}
