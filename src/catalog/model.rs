//! What operators set up: groups, servers and keys, as plain values.
//!
//! Ids are the database's row ids; names are what people see and may change.

use std::time::Duration;

use crate::secret::Secret;

/// The identity of a server, kept over renames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerId(pub i64);

/// The identity of a group, kept over renames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupId(pub i64);

/// The identity of a key, kept when it is re-issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId(pub i64);

/// SHA-256 of a key's secret; all that is ever stored of it.
pub type KeyHash = [u8; 32];

/// What the tool list of a group's apps holds (product rule table "Modes").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Every tool of the group's servers.
    Direct,
    /// The group's defaults and the four manager tools.
    Hybrid,
    /// Hybrid, and the tools this key is likely to use.
    Adaptive,
}

impl Mode {
    /// The word used in the API, the conf file and the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Hybrid => "hybrid",
            Self::Adaptive => "adaptive",
        }
    }

    /// Reads the word; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Direct, Self::Hybrid, Self::Adaptive].into_iter().find(|mode| mode.as_str() == text)
    }
}

/// Which servers a group reaches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// All, also those added later (`servers: null`).
    All,
    /// Those, in no particular order; empty reaches nothing.
    Only(Vec<ServerId>),
}

impl Reach {
    /// Whether the server is within reach.
    pub fn contains(&self, server: ServerId) -> bool {
        match self {
            Self::All => true,
            Self::Only(servers) => servers.contains(&server),
        }
    }
}

/// What a group's apps see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Row id.
    pub id: GroupId,
    /// Unique, case-sensitive, 1–64 characters.
    pub name: String,
    /// Shape of the tool list.
    pub mode: Mode,
    /// Exposed tool names kept in hybrid and adaptive lists; survive a switch to direct.
    pub defaults: Vec<String>,
    /// Learned tools listed in adaptive mode, 1–50; `None` is the default of 10.
    pub adaptive_cap: Option<u8>,
    /// Servers within reach.
    pub reach: Reach,
}

/// Other words for one tool than its server's (P62).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// Whose tool.
    pub server: ServerId,
    /// The server's own name for it.
    pub tool: String,
    /// Its title; `None` leaves the server's.
    pub title: Option<String>,
    /// Its description; `None` leaves the server's.
    pub description: Option<String>,
}

/// One app's key. The secret is shown once and not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Row id.
    pub id: KeyId,
    /// The group whose view it gets.
    pub group: GroupId,
    /// What the operator calls it.
    pub label: String,
    /// The last four characters of the secret, to tell keys apart in a list.
    pub hint: String,
    /// SHA-256 of the secret.
    pub hash: KeyHash,
    /// Seconds since the Unix epoch.
    pub created_at: i64,
    /// Seconds since the Unix epoch of the last request, written behind.
    pub last_used_at: Option<i64>,
    /// A revoked key is kept for the list and refused everywhere.
    pub revoked: bool,
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// Streamable HTTP.
    Http {
        /// Sent byte for byte as configured (path and query included).
        url: String,
        /// Sent with every request; values may hold `${NAME}` references.
        headers: Vec<(String, Secret)>,
        /// PEM file trusted in addition to the system's roots.
        ca_file: Option<String>,
    },
    /// A local process.
    Stdio {
        /// Program, looked up on `PATH`.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Added to the small base environment; values may hold `${NAME}` references.
        env: Vec<(String, Secret)>,
        /// Working directory.
        cwd: Option<String>,
    },
}

/// An operator's word on which era a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pinned {
    /// Find out (modern first, then `initialize`).
    #[default]
    Auto,
    /// Only `initialize`.
    Legacy,
    /// Only 2026-07-28.
    Modern,
}

impl Pinned {
    /// The word used in the API, the conf file and the database (`protocol`).
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }

    /// Reads the word; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Auto, Self::Legacy, Self::Modern].into_iter().find(|pin| pin.as_str() == text)
    }
}

/// One upstream MCP server (product rule P21).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Row id; registration order is id order.
    pub id: ServerId,
    /// Unique, case-sensitive, 1–64 characters.
    pub name: String,
    /// How it is reached.
    pub transport: Transport,
    /// What models are told it is for; empty means the server's own words.
    pub description: String,
    /// A disabled server has no link and no tools.
    pub enabled: bool,
    /// One session per group instead of one per key.
    pub shared: bool,
    /// For connecting, listing and health checks; 100 ms – 10 min, default 30 s.
    pub timeout: Duration,
    /// For one tool call; reset by progress, hard cap six times this. Default 10 min.
    pub call_timeout: Duration,
    /// Which era to speak.
    pub protocol: Pinned,
}

/// What a server is before anything is said of it.
impl Default for Server {
    fn default() -> Self {
        Self {
            id: ServerId(0),
            name: String::new(),
            transport: Transport::Http { url: String::new(), headers: Vec::new(), ca_file: None },
            description: String::new(),
            enabled: true,
            shared: false,
            timeout: Self::TIMEOUT,
            call_timeout: Self::CALL_TIMEOUT,
            protocol: Pinned::Auto,
        }
    }
}

impl Server {
    /// Default of [`Server::timeout`].
    pub const TIMEOUT: Duration = Duration::from_secs(30);
    /// Default of [`Server::call_timeout`].
    pub const CALL_TIMEOUT: Duration = Duration::from_secs(600);

    /// Whether a running connection made for `self` can go on serving `other`.
    /// Name, description, sharing and the call's time do not touch the connection.
    pub fn same_connection(&self, other: &Self) -> bool {
        self.transport == other.transport
            && self.protocol == other.protocol
            && self.timeout == other.timeout
            && self.enabled == other.enabled
    }
}
