//! Why the store could not do what it was asked.

use std::fmt;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

/// A failure of the store. Each call is all or nothing: after an error nothing of it is kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The name belongs to another one.
    #[error("{what} `{name}` already exists")]
    Taken {
        /// Of what.
        what: Noun,
        /// Which.
        name: String,
    },
    /// No such row, or one that the change refers to is not there.
    #[error("there is no {what} with id {id}")]
    Missing {
        /// Of what.
        what: Noun,
        /// Which.
        id: i64,
    },
    /// Written by a newer release, whose meaning cannot be guessed.
    #[error(
        "database `{}` has version {found} and this program reads up to {known}; \
         run the newer release again, or restore a backup made before it",
        path.display()
    )]
    Newer {
        /// The database file.
        path: PathBuf,
        /// Its `user_version`.
        found: i64,
        /// The newest one known here.
        known: i64,
    },
    /// The place, not the change, is at fault; the same call may succeed later.
    #[error("database `{}` {trouble}", path.display())]
    Unwritable {
        /// The database file.
        path: PathBuf,
        /// What is in the way.
        trouble: Trouble,
    },
    /// A row holds what this program never writes.
    #[error("{what} with id {id} is damaged in the database: {why}; restore a backup")]
    Damaged {
        /// Of what.
        what: Noun,
        /// Which.
        id: i64,
        /// What does not read.
        why: String,
    },
    /// The store has been closed.
    #[error("the store is closed")]
    Closed,
    /// Anything else, in the database's own words.
    #[error("database `{}`: {message}", path.display())]
    Other {
        /// The database file.
        path: PathBuf,
        /// What was reported.
        message: String,
    },
}

/// What a name or an id belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noun {
    /// A group.
    Group,
    /// A server.
    Server,
    /// A key.
    Key,
    /// A line of the audit.
    AuditLine,
    /// A tool of a server.
    Tool,
}

impl fmt::Display for Noun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Group => "group",
            Self::Server => "server",
            Self::Key => "key",
            Self::AuditLine => "audit line",
            Self::Tool => "tool",
        })
    }
}

/// What keeps the database from being read or written, with its remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// No room.
    Full,
    /// Another process holds the write lock for longer than the wait.
    Locked,
    /// No permission to write, or a read-only file system.
    ReadOnly,
    /// It cannot be opened.
    Unreachable,
    /// The file is not a database, or a broken one.
    Corrupt,
    /// A database of another program.
    Foreign,
    /// The file system reports an error.
    Io,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "cannot grow: the disk or quota is full; free some space on it",
            Self::Locked => {
                "is locked by another process; end that process, or wait until it is done"
            }
            Self::ReadOnly => {
                "cannot be written; give this user write access to the file and its directory"
            }
            Self::Unreachable => {
                "cannot be opened; its directory must exist and be writable by this user"
            }
            Self::Corrupt => "is damaged or not a database; restore a backup, or move it away",
            Self::Foreign => "belongs to another program; set `boot.db` to a file of its own",
            Self::Io => "cannot be read or written: input/output error; check the disk",
        })
    }
}

impl Error {
    /// Whether the same call may succeed later without a change to it.
    pub fn is_trouble(&self) -> bool {
        matches!(self, Self::Unwritable { .. })
    }

    /// Sorts what the database's library reports.
    pub(crate) fn of(path: &Path, error: &rusqlite::Error) -> Self {
        let trouble = match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Trouble::Full,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Trouble::Locked,
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Trouble::ReadOnly,
            Some(ErrorCode::CannotOpen) => Trouble::Unreachable,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Trouble::Corrupt,
            Some(ErrorCode::SystemIoFailure) => Trouble::Io,
            _ => return Self::Other { path: path.to_owned(), message: error.to_string() },
        };
        Self::Unwritable { path: path.to_owned(), trouble }
    }
}
