//! One JSON-RPC message: its era, its session, its method.

use std::sync::Arc;

use bytes::Bytes;
use gateway::{Caller, Conversation, Denied, Gateway, Memory};
use pingora_core::Result;
use protocol::json::{self, Members};
use protocol::meta::RequestMeta;
use protocol::{Era, Message, Version, headers, message};

use crate::accept::Accept;
use crate::methods::{discover, initialize, simple, stream, tools_call, tools_list};
use crate::refusal::Refusal;
use crate::reply::Client;

/// A request that may be served: known method, right era, live session.
pub(crate) struct Request<'a> {
    pub(crate) gateway: &'a Arc<Gateway>,
    pub(crate) caller: Caller,
    pub(crate) accept: Accept,
    /// Raw id.
    pub(crate) id: &'a str,
    /// Read once; empty when there are none.
    pub(crate) params: Members<'a>,
    pub(crate) meta: RequestMeta<'a>,
    pub(crate) era: Era,
    /// The legacy session; `None` in the modern era and before `initialize`.
    pub(crate) conversation: Option<Arc<Conversation>>,
}

/// A successful answer: what stands before the result, the result, what stands after it.
pub(crate) type Parts = [Bytes; 3];

/// What answers a method that waits for nobody.
type AtOnce = fn(&Request<'_>) -> std::result::Result<Parts, Refusal>;

/// What serves a method.
#[derive(Clone, Copy)]
pub(crate) enum Handler {
    Initialize,
    Listen,
    ToolsCall,
    AtOnce(AtOnce),
}

/// A line of [`METHODS`]: the method, whether legacy clients have it, whether modern ones do,
/// what serves it.
pub(crate) type Line = (&'static str, bool, bool, Handler);

const METHODS: [Line; 10] = [
    ("initialize", true, false, Handler::Initialize),
    ("ping", true, false, Handler::AtOnce(|request| Ok(simple::own(request, "{}")))),
    ("logging/setLevel", true, false, Handler::AtOnce(simple::set_level)),
    ("server/discover", false, true, Handler::AtOnce(|request| Ok(discover::answer(request)))),
    ("subscriptions/listen", false, true, Handler::Listen),
    ("tools/list", true, true, Handler::AtOnce(tools_list::answer)),
    ("tools/call", true, true, Handler::ToolsCall),
    ("resources/list", true, true, Handler::AtOnce(simple::no_resources)),
    ("resources/templates/list", true, true, Handler::AtOnce(simple::no_templates)),
    ("prompts/list", true, true, Handler::AtOnce(simple::no_prompts)),
];

/// The line of a method that clients of `era` have.
pub(crate) fn line(method: &str, era: Era) -> Option<&'static Line> {
    METHODS.iter().find(|(name, legacy, modern, _)| {
        *name == method && if era == Era::Modern { *modern } else { *legacy }
    })
}

/// Serves one message.
///
/// # Errors
/// When the client cannot be written to.
pub(crate) async fn serve(
    gateway: &Arc<Gateway>,
    caller: Caller,
    accept: Accept,
    client: &mut Client<'_>,
    message: Message<'_>,
) -> Result<()> {
    let (id, method, params) = match message {
        Message::Request { id, method, params } => (id, method, params),
        Message::Notification { method, params } => {
            return notification(gateway, caller, client, &method, params).await;
        }
        // Nothing is asked of clients, so an answer of theirs is taken and dropped.
        Message::Response { .. } => {
            client.report.method = "response";
            return client.empty(202, &[]).await;
        }
    };
    let params = params.and_then(|raw| Members::parse(raw).ok()).unwrap_or_default();
    let meta = match RequestMeta::of(&params) {
        Ok(meta) => meta,
        Err(why) => {
            let (id, bad_request) = (id.to_owned(), is_modern(client));
            return client.refuse(&Refusal::Params { id, why: why.to_owned(), bad_request }).await;
        }
    };
    // `initialize` agrees on a version by its parameters, whatever its header says (F20).
    let newer = unpublished(client).is_some() && method != "initialize";
    let modern_request = meta.version.is_some() || says_modern(client) || newer;
    let era = if modern_request { Era::Modern } else { Era::Legacy };
    client.report.era = if era == Era::Modern { "modern" } else { "legacy" };
    let found = line(&method, era);
    client.report.method = found.map_or("other", |(name, ..)| name);
    let mut request =
        Request { gateway, caller, accept, id, params, meta, era, conversation: None };
    let checked = match era {
        Era::Modern => modern(&request, client, &method, found.is_some()),
        Era::Legacy => match legacy(&request, client, &method) {
            Ok(conversation) => {
                request.conversation = conversation;
                Ok(())
            }
            Err(refusal) => Err(refusal),
        },
    };
    if let Err(refusal) = checked {
        return client.refuse(&refusal).await;
    }
    let Some((_, _, _, handler)) = found else {
        let (id, modern) = (id.to_owned(), era == Era::Modern);
        let refusal = Refusal::Method { id, method: method.into_owned(), modern };
        return client.refuse(&refusal).await;
    };
    let answered = match handler {
        Handler::Initialize => return Box::pin(initialize::serve(&request, client)).await,
        Handler::Listen => return Box::pin(stream::listen(&request, client)).await,
        Handler::ToolsCall => return tools_call::serve(&request, client).await,
        Handler::AtOnce(answer) => answer(&request),
    };
    match answered {
        Ok(parts) => client.json(200, &parts).await,
        Err(refusal) => client.refuse(&refusal).await,
    }
}

impl Request<'_> {
    /// The refusal of parameters that cannot be used.
    pub(crate) fn bad_params(&self, why: impl Into<String>) -> Refusal {
        Refusal::Params { id: self.id.to_owned(), why: why.into(), bad_request: false }
    }

    /// What the client used and was told, in this session and those before it; one without
    /// sessions is known by its name.
    pub(crate) fn memory(&self) -> Arc<Memory> {
        match &self.conversation {
            Some(conversation) => conversation.memory.clone(),
            None => {
                let info = self.meta.client_info;
                self.gateway.conversations.memory(self.caller, &client_name(info))
            }
        }
    }

    /// A string member of `params`.
    pub(crate) fn text(&self, key: &str) -> Option<String> {
        json::string(self.params.get(key)?).map(|text| text.into_owned())
    }

    /// The answer that carries a raw result, already in the form of the client's era.
    pub(crate) fn parts(&self, result: Bytes) -> Parts {
        let [head, tail] = message::around_result(self.id);
        [Bytes::from(head), result, Bytes::from(tail)]
    }
}

/// The name in a raw `clientInfo`; empty where there is none.
pub(crate) fn client_name(info: Option<&str>) -> String {
    let info = info.and_then(|raw| Members::parse(raw).ok()).unwrap_or_default();
    info.get("name").and_then(json::string).unwrap_or_default().into_owned()
}

/// Whether the header claims the modern era; such a request must also carry its `_meta`.
pub(crate) fn says_modern(client: &Client<'_>) -> bool {
    client.header(headers::PROTOCOL_VERSION) == Some(Version::V2026_07_28.as_str())
}

/// The version that the header claims, where none of that name is published and no session
/// says that the client is an older one.
fn unpublished<'c>(client: &'c Client<'_>) -> Option<&'c str> {
    let sent = client.header(headers::PROTOCOL_VERSION)?;
    let unknown = Version::parse(sent).is_none();
    (unknown && client.headers().get(headers::SESSION_ID).is_none()).then_some(sent)
}

/// Whether the header says that the client is one without sessions, of this version or of one
/// that is not known here.
pub(crate) fn is_modern(client: &Client<'_>) -> bool {
    says_modern(client) || unpublished(client).is_some()
}

/// The checks of a modern request (F60–F66).
fn modern(
    request: &Request<'_>,
    client: &Client<'_>,
    method: &str,
    known: bool,
) -> std::result::Result<(), Refusal> {
    let id = || request.id.to_owned();
    let missing = |key: &str| Refusal::Params {
        id: id(),
        why: format!("`params._meta` must hold `io.modelcontextprotocol/{key}`"),
        bad_request: true,
    };
    let mismatch = |why: String| Refusal::Mismatch { id: id(), why };
    let unsupported =
        |version: &str| Refusal::Unsupported { id: id(), requested: version.to_owned() };
    let version = match (request.meta.version.as_deref(), unpublished(client)) {
        (Some(version), _) => version,
        (None, Some(claimed)) => return Err(unsupported(claimed)),
        (None, None) => return Err(missing("protocolVersion")),
    };
    if client.header(headers::PROTOCOL_VERSION) != Some(version) {
        let why = format!("header `MCP-Protocol-Version` must be `{version}`, as in the body");
        return Err(mismatch(why));
    }
    if version != Version::V2026_07_28.as_str() {
        return Err(unsupported(version));
    }
    if request.meta.capabilities.is_none() {
        return Err(missing("clientCapabilities"));
    }
    // An unknown method is told as such (F64), whatever its headers.
    if !known {
        return Ok(());
    }
    if client.header(headers::METHOD) != Some(method) {
        return Err(mismatch(format!("header `Mcp-Method` must be `{method}`, as in the body")));
    }
    if method == "tools/call" {
        let name = request.text("name").unwrap_or_default();
        let sent = client.header(headers::NAME).and_then(headers::decode);
        if sent.as_deref() != Some(name.as_str()) {
            let why = "header `Mcp-Name` must repeat `params.name`".to_owned();
            return Err(mismatch(why));
        }
    }
    Ok(())
}

/// The checks of a legacy request: version header and session (F22, F23, F33, F38).
fn legacy(
    request: &Request<'_>,
    client: &Client<'_>,
    method: &str,
) -> std::result::Result<Option<Arc<Conversation>>, Refusal> {
    if method == "initialize" {
        return Ok(None);
    }
    version_header(client)?;
    match session(request.gateway, request.caller, client) {
        Ok(conversation) => Ok(Some(conversation)),
        // A ping needs no session: it asks only whether we live.
        Err(Refusal::NoSession) if method == "ping" => Ok(None),
        Err(refusal) => Err(refusal),
    }
}

/// Refuses a version header that no legacy session can have.
pub(crate) fn version_header(client: &Client<'_>) -> std::result::Result<(), Refusal> {
    match client.headers().get(headers::PROTOCOL_VERSION) {
        None => Ok(()),
        Some(value) => match value.to_str().ok().and_then(Version::parse) {
            Some(version) if version.era() == Era::Legacy => Ok(()),
            _ => Err(Refusal::VersionHeader(String::from_utf8_lossy(value.as_bytes()).into())),
        },
    }
}

/// The session that the request names.
pub(crate) fn session(
    gateway: &Gateway,
    caller: Caller,
    client: &Client<'_>,
) -> std::result::Result<Arc<Conversation>, Refusal> {
    let sent = client.headers().get(headers::SESSION_ID).ok_or(Refusal::NoSession)?;
    let id = sent.to_str().map_err(|_| Refusal::UnknownSession)?;
    gateway.conversations.find(id, caller).ok_or(Refusal::UnknownSession)
}

/// What is told to a client whose session or key ended while it waited.
pub(crate) fn shut_off(gateway: &Gateway, caller: &Caller) -> Refusal {
    match gateway.still(caller) {
        true => Refusal::UnknownSession,
        false => Refusal::Key(Denied::Revoked),
    }
}

/// Notifications are always accepted; two of them mean something (F6, F39, F40).
async fn notification(
    gateway: &Arc<Gateway>,
    caller: Caller,
    client: &mut Client<'_>,
    method: &str,
    params: Option<&str>,
) -> Result<()> {
    client.report.method = "notification";
    if says_modern(client) {
        return client.empty(202, &[]).await;
    }
    match session(gateway, caller, client) {
        Ok(conversation) => {
            heed(&conversation, method, params);
            client.empty(202, &[]).await
        }
        Err(refusal) => client.refuse(&refusal).await,
    }
}

/// Does what a notification of a legacy client asks for: two of them ask for anything.
pub(crate) fn heed(conversation: &Conversation, method: &str, params: Option<&str>) {
    if method == "notifications/initialized" {
        conversation.initialized();
    }
    if method == "notifications/cancelled"
        && let Some(params) = params.and_then(|raw| Members::parse(raw).ok())
        && let Some(id) = params.get("requestId")
    {
        conversation.cancel(id);
    }
}
