//! What a server last said of itself.

use std::sync::Arc;

use protocol::json::{self, Members};
use protocol::meta;

use crate::tool::Tool;

/// What a server last said of itself; kept in the database so that a restart can list
/// tools before any server has answered (P10).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    /// Usable tools in the server's own order, without repeats.
    pub tools: Arc<[Arc<Tool>]>,
    /// `serverInfo.name`.
    pub name: Option<String>,
    /// `serverInfo.title` or `serverInfo.description`, or the first lines of `instructions`.
    pub says: Option<String>,
    /// `instructions`, whole.
    pub instructions: Option<String>,
}

impl Known {
    /// What a server says of itself in its raw `initialize` or `server/discover` result; no
    /// tools yet.
    pub fn about(hello: &str) -> Self {
        let Ok(hello) = Members::parse(hello) else { return Self::default() };
        let meta = hello.get("_meta").and_then(|raw| Members::parse(raw).ok());
        let info = hello
            .get("serverInfo")
            .or_else(|| meta.as_ref()?.get(meta::SERVER_INFO))
            .and_then(|raw| Members::parse(raw).ok())
            .unwrap_or_default();
        let text = |members: &Members<'_>, key: &str| {
            members
                .get(key)
                .and_then(json::string)
                .map(|t| t.into_owned())
                .filter(|t| !t.is_empty())
        };
        let instructions = text(&hello, "instructions");
        Self {
            name: text(&info, "name"),
            says: text(&info, "description")
                .or_else(|| instructions.clone())
                .or_else(|| text(&info, "title")),
            instructions,
            ..Self::default()
        }
    }

    /// As JSON text, tools as their servers wrote them.
    pub fn to_text(&self) -> String {
        let mut out = b"{\"tools\":[".to_vec();
        for (place, tool) in self.tools.iter().enumerate() {
            if place > 0 {
                out.push(b',');
            }
            out.extend_from_slice(tool.text().as_bytes());
        }
        out.push(b']');
        for (key, value) in
            [("name", &self.name), ("says", &self.says), ("instructions", &self.instructions)]
        {
            if let Some(value) = value {
                out.extend_from_slice(format!(",\"{key}\":").as_bytes());
                json::write_string(value, &mut out);
            }
        }
        out.push(b'}');
        String::from_utf8(out).expect("all parts are UTF-8")
    }

    /// Reads [`Known::to_text`].
    ///
    /// # Errors
    /// When the text is not such an object; tools that cannot be used are left out.
    pub fn from_text(text: &str) -> Result<Self, json::Unexpected> {
        let members = Members::parse(text)?;
        let string = |key| members.get(key).and_then(json::string).map(|text| text.into_owned());
        let tools = json::elements(members.get("tools").unwrap_or("[]"))?;
        Ok(Self {
            tools: tools.into_iter().filter_map(|t| Tool::parse(t).ok()).map(Arc::new).collect(),
            name: string("name"),
            says: string("says"),
            instructions: string("instructions"),
        })
    }
}
