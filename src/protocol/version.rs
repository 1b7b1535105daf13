//! Protocol versions and the two eras they fall into.

/// A published version of the Model Context Protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// HTTP+SSE with two endpoints.
    V2024_11_05,
    /// Streamable HTTP; batches.
    V2025_03_26,
    /// Structured output, elicitation, the version header; no batches.
    V2025_06_18,
    /// Priming events, tasks, icons.
    V2025_11_25,
    /// Stateless: no `initialize`, no session.
    V2026_07_28,
}

/// How a peer is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Era {
    /// `initialize` and sessions: 2025-11-25 and older.
    Legacy,
    /// Per-request `_meta`, no session: 2026-07-28.
    Modern,
}

impl Version {
    /// Every version, oldest first.
    pub const ALL: [Self; 5] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];

    /// The newest version that `initialize` can agree on.
    pub const NEWEST_LEGACY: Self = Self::V2025_11_25;

    /// The newest version of all.
    pub const NEWEST: Self = Self::V2026_07_28;

    /// The text on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// Reads the text on the wire; `None` for a version that is not published.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.as_str() == text)
    }

    /// Every version that is served here, newest first, as a raw JSON array: those of
    /// `initialize` as well as those without, for a client that has either.
    pub fn served() -> String {
        let all: Vec<_> =
            Self::ALL.iter().rev().map(|version| format!("\"{}\"", version.as_str())).collect();
        format!("[{}]", all.join(","))
    }

    /// What `initialize` answers to a client that asked for `asked` (F20).
    pub fn negotiate(asked: &str) -> Self {
        match Self::parse(asked) {
            Some(version) if version.era() == Era::Legacy => version,
            _ => Self::NEWEST_LEGACY,
        }
    }

    /// The era it belongs to.
    pub fn era(self) -> Era {
        if self == Self::V2026_07_28 { Era::Modern } else { Era::Legacy }
    }
}

#[cfg(test)]
mod tests {
    use super::Version;

    #[test]
    fn http_11_negotiation() {
        for version in &Version::ALL[..4] {
            assert_eq!(Version::negotiate(version.as_str()), *version);
        }
        for odd in ["2026-07-28", "2099-01-01", "foo", ""] {
            assert_eq!(Version::negotiate(odd), Version::V2025_11_25);
        }
    }
}
