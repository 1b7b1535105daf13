//! What can go wrong between the manager and a server, by what it proves about the call.

use std::time::Duration;

/// A failed exchange. `Display` is for operators and may name addresses; what apps are told
/// is [`Failure::told`], which names neither address nor header (RES-08).
#[derive(Debug, Clone, thiserror::Error)]
pub enum Failure {
    /// No connection; the request was not sent.
    #[error("cannot connect: {0}")]
    Unreachable(String),
    /// Settings refer to environment variables that are not set.
    #[error("environment variable{} {} not set", if .0.len() == 1 { "" } else { "s" }, .0.join(", "))]
    MissingEnv(Vec<String>),
    /// Settings cannot be used as they are.
    #[error("{0}")]
    Settings(String),
    /// As many local processes of the server are running as may; the request was not sent.
    #[error("{0} local processes of the server are running already, as many as may")]
    Full(usize),
    /// The server refuses our credentials; the request was not run.
    #[error("the server refused the credentials with HTTP {0}; check its headers")]
    Auth(u16),
    /// The server does not know the session; the request was not run.
    #[error("the server forgot the session")]
    SessionLost,
    /// An answer that may mean that the session is forgotten, or come from a middle box: whether
    /// the request was run is not known. Told only of what changes nothing (P28).
    #[error("the server answered HTTP {0}, perhaps since it forgot the session")]
    SessionDoubted(u16),
    /// What comes before the request failed, such as opening a session; it was not sent, or not
    /// whole.
    #[error("the request could not be sent: {0}")]
    NotSent(Box<Self>),
    /// The session was closed here: its key was revoked, or the server changed or removed.
    #[error("the session was closed by the manager")]
    Closed,
    /// The connection broke after the request went out; whether it ran is not known.
    #[error("the connection broke before an answer came: {0}")]
    Lost(String),
    /// No answer in time; whether it ran is not known.
    #[error("no answer within {} s", .0.as_secs_f32())]
    Timeout(Duration),
    /// An HTTP status that means nothing in MCP.
    #[error("the server answered HTTP {0}")]
    Status(u16),
    /// An answer that is no MCP message.
    #[error("the server's answer is not MCP: {0}")]
    Garbage(String),
    /// An answer beyond the limit.
    #[error("the server's answer is longer than {0} bytes")]
    TooLarge(usize),
    /// The server speaks versions of the protocol that the request was not of.
    #[error("the server speaks no version of MCP that the manager does, but {}", .0.join(", "))]
    Versions(Vec<String>),
    /// The server answered a request of ours with a JSON-RPC error.
    #[error("the server answered error {code}: {message}")]
    Refused {
        /// JSON-RPC code.
        code: i64,
        /// The server's words.
        message: String,
    },
}

impl Failure {
    /// Whether the request was certainly not run, so that it may be sent again.
    pub fn not_run(&self) -> bool {
        matches!(
            self,
            Self::Unreachable(_)
                | Self::MissingEnv(_)
                | Self::Settings(_)
                | Self::Auth(_)
                | Self::SessionLost
                | Self::NotSent(_)
                | Self::Full(_)
                // Too many requests, or not here: said before anything is run.
                | Self::Status(429 | 300..400)
        )
    }

    /// The same as a failure of what comes before the request, which was then not run.
    #[must_use]
    pub fn before_sending(self) -> Self {
        if self.not_run() { self } else { Self::NotSent(Box::new(self)) }
    }

    /// Whether the server itself should be checked at once.
    pub fn suspicious(&self) -> bool {
        matches!(self, Self::Unreachable(_) | Self::Auth(_) | Self::Lost(_) | Self::Garbage(_))
    }

    /// The class of the failure in words for apps.
    pub fn told(&self) -> String {
        match self {
            Self::Unreachable(_) => "it cannot be reached".into(),
            Self::MissingEnv(_) | Self::Settings(_) => "its settings are incomplete".into(),
            Self::Full(_) => "too many apps are using it".into(),
            Self::Auth(_) => "it refuses the manager's credentials".into(),
            Self::SessionLost => "it keeps forgetting the session".into(),
            Self::Versions(_) => "it speaks another version of the protocol".into(),
            Self::NotSent(why) => format!("the call could not be handed to it, {}", why.told()),
            Self::Closed => "its session was closed".into(),
            Self::Lost(_) => "the connection broke before it answered".into(),
            Self::Timeout(after) => format!("it did not answer within {} s", after.as_secs()),
            Self::Status(status) | Self::SessionDoubted(status) => {
                format!("it answered with HTTP {status}")
            }
            Self::Garbage(_) => "its answer was not MCP".into(),
            Self::TooLarge(limit) => format!("its answer was longer than {limit} bytes"),
            // The words are the server's own, and may hold anything (RES-08).
            Self::Refused { code, .. } => format!("it answered error {code}"),
        }
    }
}

/// Values with their references replaced.
///
/// # Errors
/// [`Failure::MissingEnv`].
pub(crate) fn expand<'a>(
    values: impl IntoIterator<Item = &'a str>,
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<String>, Failure> {
    catalog::reference::expand(values, lookup).map_err(Failure::MissingEnv)
}
