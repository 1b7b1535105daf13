//! What a caller means to call: which tool by which name (P32), on which arguments (P51, P52).

use std::sync::Arc;

use catalog::{Caller, Meant, Resolved, Server, Tool, View};
use coach::manager::ManagerTool;
use coach::{Verdict, note, refusal};
use protocol::json::{self, Members};
use protocol::{Era, bridge, codes};

use crate::call::Reply;
use crate::core::Gateway;
use crate::words;

/// What a caller means. Looked up once, so that every check and the call itself are about the
/// same tool.
#[derive(Debug, Clone)]
pub enum Found {
    /// A tool of a server.
    Tool(Arc<Target>),
    /// One of the manager's own.
    Own(Arc<OwnCall>),
}

/// A tool of a server, and how it is to be called.
#[derive(Debug)]
pub struct Target {
    pub(crate) view: Arc<View>,
    pub(crate) server: Arc<Server>,
    pub(crate) tool: Arc<Tool>,
    pub(crate) exposed: Arc<str>,
    /// What is sent instead of the request's own arguments, raw.
    pub(crate) arguments: Option<String>,
    /// What the model is told of its slips.
    pub(crate) notes: Vec<String>,
    /// Whether the client called it by the name in `params`.
    direct: bool,
}

/// A call of one of the manager's own tools.
#[derive(Debug)]
pub struct OwnCall {
    pub(crate) view: Arc<View>,
    pub(crate) tool: ManagerTool,
    /// Raw, as its schema wants them.
    pub(crate) arguments: String,
}

impl Found {
    /// The name that clients see.
    pub fn exposed(&self) -> &str {
        match self {
            Self::Tool(target) => &target.exposed,
            Self::Own(call) => call.tool.name(),
        }
    }

    /// Arguments that a modern client repeats in headers, as (property, header) (F67).
    pub fn header_params(&self) -> &[(String, String)] {
        match self {
            Self::Tool(target) if target.direct => &target.tool.header_params,
            _ => &[],
        }
    }
}

/// How a tool was named.
#[derive(Clone, Copy)]
struct Asked<'a> {
    name: &'a str,
    /// Raw object.
    arguments: Option<&'a str>,
    /// Whether in `params` itself, not in the arguments of `call_tool`.
    direct: bool,
}

impl Gateway {
    /// The tool that a name leads the caller to, with the arguments as they are to be sent;
    /// else the answer that says why there is none, or what is wrong with them.
    ///
    /// # Errors
    /// That answer. A name out of reach gets the one of a name that is nowhere (P44).
    pub fn find(
        &self,
        caller: &Caller,
        era: Era,
        name: &str,
        arguments: Option<&str>,
    ) -> Result<Found, Reply> {
        let Some(view) = self.view(caller) else {
            return Err(self.unknown(era, &words::unknown_tool(name, false, None)));
        };
        let refuse = |text: &str| self.told(era, text);
        match view.meant(name) {
            Meant::Own(ManagerTool::Call) => self.through(&view, era, arguments),
            Meant::Own(tool) => {
                let arguments = tool.read(arguments.unwrap_or("{}")).map_err(|t| refuse(&t))?;
                Ok(Found::Own(Arc::new(OwnCall { view, tool, arguments })))
            }
            meant => {
                let asked = Asked { name, arguments, direct: true };
                let unknown = |text: &str| self.unknown(era, text);
                target(&view, asked, meant, unknown, refuse)
            }
        }
    }

    /// The tool that `call_tool` is to run.
    fn through(&self, view: &Arc<View>, era: Era, arguments: Option<&str>) -> Result<Found, Reply> {
        let refuse = |text: &str| self.told(era, text);
        let read = ManagerTool::Call.read(arguments.unwrap_or("{}")).map_err(|t| refuse(&t))?;
        let mut members = Members::parse(&read).unwrap_or_default();
        let name = members.get("name").and_then(json::string).unwrap_or_default().into_owned();
        let inner = members.get("arguments").map(str::to_owned).or_else(|| {
            // Written beside the name instead of into `arguments`.
            members.remove("name");
            (!members.is_empty()).then(|| members.to_text())
        });
        let inner = inner.unwrap_or_else(|| "{}".to_owned());
        let meant = match view.meant(&name) {
            Meant::Own(_) => return Err(refuse(&words::own_through_call_tool(&name))),
            meant => meant,
        };
        let asked = Asked { name: &name, arguments: Some(&inner), direct: false };
        target(view, asked, meant, refuse, refuse)
    }

    /// A result of our own that is an error.
    pub(crate) fn told(&self, era: Era, text: &str) -> Reply {
        let result = words::error_result(text);
        Reply::Result(bridge::own_result(&result, era, self.own_info()).into())
    }

    /// A name that leads nowhere is an error of the protocol for modern clients; older ones get
    /// a result that a model can act on (P53).
    fn unknown(&self, era: Era, text: &str) -> Reply {
        match era {
            Era::Modern => Reply::Error(codes::error(codes::INVALID_PARAMS, text, None)),
            Era::Legacy => self.told(era, text),
        }
    }
}

fn target(
    view: &Arc<View>,
    asked: Asked<'_>,
    meant: Meant<'_>,
    unknown: impl Fn(&str) -> Reply,
    refuse: impl Fn(&str) -> Reply,
) -> Result<Found, Reply> {
    let (resolved, other_form) = match meant {
        Meant::Tool(resolved) => (resolved, false),
        Meant::Form(resolved) => (resolved, true),
        Meant::Nothing(near) => {
            return Err(unknown(&words::unknown_tool(asked.name, view.has_own_tools(), near)));
        }
        Meant::Several(names) => return Err(unknown(&words::several(asked.name, &names))),
        // Told apart by the callers.
        Meant::Own(tool) => return Err(refuse(&words::own_through_call_tool(tool.name()))),
    };
    let Resolved { server, tool, exposed } = resolved;
    let mut notes = Vec::new();
    if other_form {
        notes.push(note::ran(asked.name, exposed));
    }
    let sent = asked.arguments.unwrap_or("{}");
    let arguments = match tool.schema().judge(sent) {
        Verdict::Fits => (!asked.direct).then(|| sent.to_owned()),
        Verdict::Mended { arguments, changes } => {
            notes.push(note::mended(&changes));
            Some(arguments)
        }
        Verdict::Refused(problems) => {
            return Err(refuse(&refusal::arguments(exposed, tool.schema(), &problems)));
        }
    };
    Ok(Found::Tool(Arc::new(Target {
        view: view.clone(),
        server: server.clone(),
        tool: tool.clone(),
        exposed: exposed.clone(),
        arguments,
        notes,
        direct: asked.direct,
    })))
}
