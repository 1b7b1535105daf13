//! Why a request is not served: the one home of status and JSON-RPC codes towards apps.

use std::time::Duration;

use gateway::Denied;
use protocol::{Era, Malformed, Version, codes, json, message};

/// An expected refusal. Each is a value that is answered, never an error that travels up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// `Host` is not one of our names.
    Host,
    /// `Origin` is not allowed.
    Origin,
    /// The manager itself sends the request: it is registered as its own server.
    Loop,
    /// No key, or one that is not good.
    Key(Denied),
    /// The HTTP method is not one of `allow`.
    HttpMethod {
        /// For the `Allow` header.
        allow: &'static str,
    },
    /// The client takes neither form of answer.
    NotAcceptable(&'static str),
    /// The body is not said to be JSON.
    MediaType,
    /// The body is larger than this.
    TooLarge(usize),
    /// The head is larger than this.
    LargeHead(usize),
    /// As many calls of the key are running as may.
    Busy {
        /// Raw id.
        id: String,
    },
    /// The body took longer than this.
    SlowBody(Duration),
    /// The body broke off.
    BrokenBody,
    /// The body is no message.
    Malformed(Malformed),
    /// An array where one message is wanted.
    Batch,
    /// A request that needs a session came without.
    NoSession,
    /// `Last-Event-ID` is of no stream that is kept.
    UnknownEvent,
    /// The session is unknown, over, or another key's.
    UnknownSession,
    /// `MCP-Protocol-Version` is no version that sessions can have.
    VersionHeader(String),
    /// A mirrored header is missing or differs from the body (2026-07-28).
    Mismatch {
        /// Raw id.
        id: String,
        /// Which, and what to send.
        why: String,
    },
    /// A version that is not served (2026-07-28).
    Unsupported {
        /// Raw id.
        id: String,
        /// What was asked for.
        requested: String,
    },
    /// The method is not known.
    Method {
        /// Raw id.
        id: String,
        /// As it was sent.
        method: String,
        /// Whether the client is of the modern era, where this is a 404.
        modern: bool,
    },
    /// Parameters that cannot be used.
    Params {
        /// Raw id.
        id: String,
        /// What is wrong and what to send.
        why: String,
        /// Whether HTTP says so too: for a malformed request of the modern era.
        bad_request: bool,
    },
    /// The server asks for a capability that the client did not declare (2026-07-28).
    Capability {
        /// Raw id.
        id: String,
        /// The server's own error object, raw.
        error: String,
    },
    /// A fault of ours.
    Internal {
        /// Raw id.
        id: String,
    },
}

impl Refusal {
    /// HTTP status.
    pub fn status(&self) -> u16 {
        match self {
            Self::Host | Self::Origin => 403,
            Self::Loop => 508,
            Self::Key(_) => 401,
            Self::HttpMethod { .. } => 405,
            Self::NotAcceptable(_) => 406,
            Self::MediaType => 415,
            Self::TooLarge(_) => 413,
            Self::LargeHead(_) => 431,
            Self::Busy { .. } => 429,
            Self::SlowBody(_) => 408,
            Self::UnknownSession | Self::Method { modern: true, .. } => 404,
            Self::Method { .. }
            | Self::Params { bad_request: false, .. }
            | Self::Internal { .. } => 200,
            Self::BrokenBody
            | Self::Malformed(_)
            | Self::Batch
            | Self::NoSession
            | Self::UnknownEvent
            | Self::VersionHeader(_)
            | Self::Mismatch { .. }
            | Self::Unsupported { .. }
            | Self::Capability { .. }
            | Self::Params { .. } => 400,
        }
    }

    /// JSON-RPC code. Modern clients are not sent those that older servers made up (F13).
    fn code(&self, era: Era) -> i32 {
        match self.older_code() {
            codes::REFUSED | codes::SESSION_NOT_FOUND if era == Era::Modern => {
                codes::INVALID_REQUEST
            }
            code => code,
        }
    }

    fn older_code(&self) -> i32 {
        match self {
            Self::Malformed(malformed) => malformed.code(),
            Self::Batch => codes::INVALID_REQUEST,
            Self::UnknownSession => codes::SESSION_NOT_FOUND,
            Self::Mismatch { .. } => codes::HEADER_MISMATCH,
            Self::Unsupported { .. } => codes::UNSUPPORTED_VERSION,
            Self::Capability { .. } => codes::MISSING_CAPABILITY,
            Self::Method { .. } => codes::METHOD_NOT_FOUND,
            Self::Params { .. } => codes::INVALID_PARAMS,
            Self::Internal { .. } | Self::Busy { .. } => codes::INTERNAL,
            Self::Host
            | Self::Origin
            | Self::Loop
            | Self::Key(_)
            | Self::HttpMethod { .. }
            | Self::NotAcceptable(_)
            | Self::MediaType
            | Self::TooLarge(_)
            | Self::LargeHead(_)
            | Self::SlowBody(_)
            | Self::BrokenBody
            | Self::NoSession
            | Self::UnknownEvent
            | Self::VersionHeader(_) => codes::REFUSED,
        }
    }

    /// What was wrong and what to do.
    fn message(&self) -> String {
        match self {
            Self::Host => "this host name is not served; use a name that `allowed_hosts` lists, \
                           or localhost on the same computer"
                .into(),
            Self::Origin => "pages of this origin may not call; add it to `allowed_origins`".into(),
            Self::Loop => "this is the manager itself, which cannot be its own server".into(),
            Self::Key(Denied::Missing) => {
                "a key is needed; send `Authorization: Bearer <key>`".into()
            }
            Self::Key(_) => "the key is not valid; ask the operator for a new one".into(),
            Self::HttpMethod { allow } => format!("use {allow}"),
            Self::NotAcceptable(wanted) => format!("`Accept` must allow {wanted}"),
            Self::MediaType => "`Content-Type` must be application/json".into(),
            Self::TooLarge(limit) => format!("the body is larger than {limit} bytes"),
            Self::LargeHead(limit) => format!("the request's head is larger than {limit} bytes"),
            Self::Busy { .. } => {
                "too many calls of this key are running; wait for one to end".into()
            }
            Self::SlowBody(limit) => {
                format!("the body did not arrive within {} s", limit.as_secs())
            }
            Self::BrokenBody => "the body broke off".into(),
            Self::Malformed(malformed) => malformed.to_string(),
            Self::Batch => {
                "send one message per request; only sessions of 2025-03-26 may send batches".into()
            }
            Self::NoSession => {
                "send `initialize` first, then its `Mcp-Session-Id` with each request".into()
            }
            Self::UnknownEvent => {
                "`Last-Event-ID` is of no stream that is kept here; whether that \
                                   call ran is not known. Open a stream without it"
                    .into()
            }
            Self::UnknownSession => "unknown session; send `initialize` again".into(),
            Self::VersionHeader(sent) => {
                format!("`MCP-Protocol-Version: {sent}` is not supported here")
            }
            Self::Mismatch { why, .. } | Self::Params { why, .. } => why.clone(),
            Self::Unsupported { requested, .. } => {
                format!(
                    "protocol version `{requested}` is not served without a session; use {}, or \
                     send `initialize`",
                    Version::NEWEST.as_str()
                )
            }
            Self::Method { method, .. } => format!("unknown method `{method}`"),
            Self::Capability { error, .. } => codes::message_of(error),
            Self::Internal { .. } => "the manager failed; see its log".into(),
        }
    }

    /// The JSON-RPC answer, for whoever said nothing of its era.
    pub fn body(&self) -> String {
        self.body_for(Era::Legacy)
    }

    /// The JSON-RPC answer for a client of `era`.
    pub(crate) fn body_for(&self, era: Era) -> String {
        let data = match self {
            // With the server's own data, which names the capability.
            Self::Capability { id, error } => return message::failure(Some(id), error),
            Self::Unsupported { requested, .. } => Some(format!(
                r#"{{"supported":{},"requested":{}}}"#,
                Version::served(),
                json::quoted(requested)
            )),
            _ => None,
        };
        let error = codes::error(self.code(era), &self.message(), data.as_deref());
        message::failure(self.id(), &error)
    }

    fn id(&self) -> Option<&str> {
        match self {
            Self::Malformed(malformed) => malformed.id(),
            Self::Mismatch { id, .. }
            | Self::Unsupported { id, .. }
            | Self::Method { id, .. }
            | Self::Params { id, .. }
            | Self::Busy { id }
            | Self::Capability { id, .. }
            | Self::Internal { id } => Some(id),
            _ => None,
        }
    }
}
