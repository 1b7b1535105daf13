//! What goes into the store and comes out of it, beside the domain's own types.

use std::sync::Arc;
use std::time::Duration;

use catalog::{Group, GroupId, Key, KeyId, Known, Override, Server, ServerId};

/// What operators set up, as one consistent moment of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// In id order.
    pub groups: Vec<Group>,
    /// In id order, which is the order of registration.
    pub servers: Vec<Server>,
    /// In id order.
    pub keys: Vec<Key>,
    /// By server and tool.
    pub overrides: Vec<Override>,
    /// Whether the first-run seed has been taken over ([`Change::Seeded`]).
    pub seeded: bool,
}

/// One write. `id` of a value that is added is ignored: the database gives it.
#[derive(Debug, Clone)]
pub enum Change {
    /// Adds a group. Its reach may name servers added by the same call, see [`added`].
    AddGroup(Group),
    /// Replaces a group's values.
    SetGroup(Group),
    /// Removes a group and its keys.
    RemoveGroup(GroupId),
    /// Adds a server, last in registration order.
    AddServer(Server),
    /// Replaces a server's values.
    SetServer(Server),
    /// Removes a server, also from the reach of groups that chose it; a group that chose only
    /// this one then reaches nothing. Its usage stays.
    RemoveServer(ServerId),
    /// Adds a key.
    AddKey(Key),
    /// Replaces a key's values; `last_used_at` never goes back.
    SetKey(Key),
    /// Removes a key. Its usage stays.
    RemoveKey(KeyId),
    /// Puts other words for a tool in the place of those that there are; without any, its
    /// server's own are back.
    SetOverride(Override),
    /// Replaces the last known catalog of a server.
    SetKnown(ServerId, Known),
    /// Adds a line to the audit.
    Audit {
        /// What sort of change the line tells of.
        kind: AuditKind,
        /// One sentence for the operator.
        message: String,
        /// Seconds since the Unix epoch.
        at: i64,
    },
    /// Notes that the first-run seed has been taken over, so that it never is again.
    Seeded,
}

/// Stands for the server that change number `index` (from 0) of the same
/// [`Store::apply`](crate::Store::apply) adds, in the reach of a group further on in it.
pub fn added(index: usize) -> ServerId {
    ServerId(-1 - i64::try_from(index).unwrap_or(i64::MAX - 1))
}

/// The sort of an audit line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AuditKind {
    /// The manager renamed a tool, or gave it back its own name.
    Rename,
    /// A group's default followed a rename.
    Default,
    /// A rename made in the settings.
    Edit,
    /// A group was added, changed or removed.
    Group,
    /// A server was added, changed or removed.
    Server,
    /// A key was made, moved, revoked, re-issued or removed.
    Key,
    /// Something that bears on safety.
    Security,
}

impl AuditKind {
    const ALL: [Self; 7] = [
        Self::Rename,
        Self::Default,
        Self::Edit,
        Self::Group,
        Self::Server,
        Self::Key,
        Self::Security,
    ];

    /// The word used in the API and the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rename => "rename",
            Self::Default => "default",
            Self::Edit => "edit",
            Self::Group => "group",
            Self::Server => "server",
            Self::Key => "key",
            Self::Security => "security",
        }
    }

    /// Reads the word; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// One line of the audit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditLine {
    /// Row id; a later line has a larger one.
    pub id: i64,
    /// Seconds since the Unix epoch.
    pub at: i64,
    /// What sort of change it tells of.
    pub kind: AuditKind,
    /// One sentence for the operator.
    pub message: String,
}

/// What is written behind, off the path of a request.
#[derive(Debug, Clone)]
pub enum Behind {
    /// One tool call.
    Usage {
        /// Whose; `None` for a key-less caller.
        key: Option<KeyId>,
        /// The server that was to run it.
        server: ServerId,
        /// The server's own name for the tool.
        tool: String,
        /// How it ended.
        outcome: Outcome,
        /// From the caller's request to the last byte of its answer.
        latency: Duration,
        /// When it ended, milliseconds since the Unix epoch.
        at_ms: i64,
    },
    /// A key was used.
    KeyUsed {
        /// Which.
        key: KeyId,
        /// Seconds since the Unix epoch.
        at: i64,
    },
    /// What search made of a text.
    Vector(StoredVector),
    /// A client's session was ended; its id must not be good again after a restart.
    SessionEnded {
        /// Tells its id from all others.
        nonce: u64,
        /// Seconds since the Unix epoch.
        at: i64,
    },
}

/// What search made of a text with a model.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredVector {
    /// Tells the model from others.
    pub model: [u8; 32],
    /// Tells the text from others.
    pub text: [u8; 32],
    /// The vector.
    pub values: Arc<[f32]>,
}

/// Vectors that are kept; beyond that the oldest are forgotten.
pub const VECTORS: usize = 50_000;

/// A call that reached its tool, as habits are learned from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastCall {
    /// Whose.
    pub key: KeyId,
    /// The server that ran it.
    pub server: ServerId,
    /// The server's own name for the tool.
    pub tool: String,
    /// When it ended, milliseconds since the Unix epoch.
    pub at_ms: i64,
}

/// Ended sessions that are remembered; beyond that the oldest are forgotten.
pub const ENDED_SESSIONS: usize = 1_000_000;

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// With a result.
    Ok,
    /// With a result that says `isError`.
    ToolError,
    /// The server could not be reached, or broke the protocol.
    Failed,
    /// Refused by the manager, the server never saw it.
    Refused,
    /// The caller took it back.
    Cancelled,
    /// Out of time.
    Timeout,
}

impl Outcome {
    /// Every outcome, for labels and tables.
    pub const ALL: [Self; 6] =
        [Self::Ok, Self::ToolError, Self::Failed, Self::Refused, Self::Cancelled, Self::Timeout];

    /// The word used in the API, the metrics and the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ToolError => "tool_error",
            Self::Failed => "failed",
            Self::Refused => "refused",
            Self::Cancelled => "cancelled",
            Self::Timeout => "timeout",
        }
    }

    /// Reads the word; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.as_str() == text)
    }
}
