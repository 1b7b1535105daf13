//! What people may say of a server, a group or a key, and what is refused of it: fields that are
//! kept, reset or set, and the checks of their values, with messages that name the field. Pure.
//!
//! Reading order: here → [`check`] (single values) → [`server`] (a server's settings out of its
//! fields).

pub mod check;
pub mod server;

pub use server::ServerFields;

/// A value that cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` {message}")]
pub struct Invalid {
    /// The field, as the API and the conf file call it.
    pub field: String,
    /// What is wrong and what to send; reads after the field's name.
    pub message: String,
}

impl Invalid {
    /// Of that field.
    pub fn new(field: &str, message: impl Into<String>) -> Self {
        Self { field: field.to_owned(), message: message.into() }
    }
}

/// One field of a change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Field<T> {
    /// Left as it is; in something new, its default.
    #[default]
    Keep,
    /// Put back to its default.
    Reset,
    /// Given this value.
    Set(T),
}

impl<T> Field<T> {
    /// The value after the change.
    pub fn over(self, current: T, default: T) -> T {
        match self {
            Self::Keep => current,
            Self::Reset => default,
            Self::Set(value) => value,
        }
    }

    /// The same with another kind of value, which may be refused.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn try_map<U, E>(self, read: impl FnOnce(T) -> Result<U, E>) -> Result<Field<U>, E> {
        Ok(match self {
            Self::Keep => Field::Keep,
            Self::Reset => Field::Reset,
            Self::Set(value) => Field::Set(read(value)?),
        })
    }

    /// The value, when one is given.
    pub fn set(self) -> Option<T> {
        match self {
            Self::Set(value) => Some(value),
            Self::Keep | Self::Reset => None,
        }
    }
}
