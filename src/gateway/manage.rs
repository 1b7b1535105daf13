//! The use cases of people: what the API and the command line may look at and change.
//!
//! One file per noun. Each write is checked first, with messages that name the field, then
//! made in one transaction together with its audit line, then shown to requests by a new
//! snapshot (P72). Nothing here knows HTTP; status codes are the edge's business.

mod audit;
mod follow;
mod groups;
mod health;
mod keys;
mod overrides;
mod servers;
mod tools;
mod turn;

pub use audit::{AuditEvent, AuditReport, RenamedTool};
pub use fields::{Field, ServerFields};
pub use groups::{GroupFields, GroupInfo};
pub use health::Ready;
pub use keys::{IssuedKey, KeyFields, KeyInfo};
pub use overrides::{OverrideFields, OverrideInfo};
pub use servers::{ServerInfo, Tested};
pub use tools::{LearnedTool, Ranking, Searched, ToolInfo};
pub use turn::Writes;

pub(crate) use follow::follow;

use fields::Invalid;
use store::Noun;

/// Why a use case could not be carried out. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A value that cannot be taken.
    #[error("`{field}` {message}")]
    Invalid {
        /// The field, as the API and the conf file call it.
        field: String,
        /// What is wrong and what to send; reads after the field's name.
        message: String,
    },
    /// Not possible in the present state, whatever the values.
    #[error("{0}")]
    Refused(String),
    /// No such thing.
    #[error("there is no {what} `{name}`")]
    NotFound {
        /// Of what.
        what: &'static str,
        /// Its name, or the id of a key.
        name: String,
    },
    /// The name belongs to another one.
    #[error("the name `{name}` is taken by another {what}")]
    Taken {
        /// Of what.
        what: &'static str,
        /// Which.
        name: String,
    },
    /// The system gave no random bytes for a new key.
    #[error("the system's random source failed: {0}")]
    Random(String),
    /// The database failed.
    #[error(transparent)]
    Store(store::Error),
}

impl Error {
    /// Whether the same request may succeed later without a change to it.
    pub fn is_trouble(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_trouble())
    }

    fn invalid(field: &str, message: impl Into<String>) -> Self {
        Self::Invalid { field: field.to_owned(), message: message.into() }
    }

    fn not_found(what: Noun, name: impl ToString) -> Self {
        Self::NotFound { what: word(what), name: name.to_string() }
    }
}

impl From<Invalid> for Error {
    fn from(invalid: Invalid) -> Self {
        Self::Invalid { field: invalid.field, message: invalid.message }
    }
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        match error {
            store::Error::Taken { what, name } => Self::Taken { what: word(what), name },
            store::Error::Missing { what, id } => Self::not_found(what, id),
            other => Self::Store(other),
        }
    }
}

fn word(noun: Noun) -> &'static str {
    match noun {
        Noun::Group => "group",
        Noun::Server => "server",
        Noun::Key => "key",
        Noun::AuditLine => "audit line",
        Noun::Tool => "tool",
    }
}
