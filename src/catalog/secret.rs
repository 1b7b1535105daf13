//! Text that must never reach a log, an error or a metric.

use std::fmt;

/// A secret value: a header, an environment variable, a token.
///
/// It can be read only by naming it ([`Secret::reveal`]), and prints as `***`, so that a
/// struct holding one may derive `Debug` without leaking it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Secret(String);

impl Secret {
    /// Wraps a value.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value itself. Each caller is a place to review.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}
