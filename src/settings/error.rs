//! What is wrong with the settings, where, and what to write instead.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_saphyr::Location;

use super::place::{Tree, Way};

/// A setting that the program cannot start with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    /// A file that cannot be read.
    #[error("`{}` cannot be read: {why}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// The system's words.
        why: String,
    },
    /// Not YAML.
    #[error("{at}: {message}")]
    Yaml {
        /// Where.
        at: At,
        /// The parser's words.
        message: String,
    },
    /// A key that means nothing.
    #[error("{at}: unknown setting `{name}`{}; {hint}", inside(section.as_deref()))]
    Unknown {
        /// Where.
        at: At,
        /// The key.
        name: String,
        /// What it stands in; `None` at the top.
        section: Option<String>,
        /// The nearest name, or all of them.
        hint: String,
    },
    /// A value of the wrong type or out of range.
    #[error("{at}: {key} must be {expected}{}", but(found.as_deref()))]
    Wrong {
        /// Where.
        at: At,
        /// The setting, in backticks, or the file as a whole.
        key: String,
        /// What to write.
        expected: String,
        /// What stands there; `None` when it may be a secret.
        found: Option<String>,
    },
    /// A token in a file that gets committed.
    #[error(
        "{at}: `{name}` does not belong in this file; \
         set `{variable}` in the environment or in `.env`, or name a file in `{variable}_FILE`"
    )]
    SecretInFile {
        /// Where.
        at: At,
        /// The key.
        name: String,
        /// The variable to set.
        variable: &'static str,
    },
    /// A part of the seed that does not fit the rest of it.
    #[error("{at}: `{key}` {why}")]
    Seed {
        /// Where.
        at: At,
        /// The setting.
        key: String,
        /// What is wrong, put after the key.
        why: String,
    },
    /// A certificate without its key, or the reverse.
    #[error("`{given}` is set but `{missing}` is not; set it (or `{variable}`), or unset both")]
    HalfTls {
        /// The half that is there.
        given: &'static str,
        /// The half that is not.
        missing: &'static str,
        /// The variable that sets it.
        variable: &'static str,
    },
    /// An environment variable of the wrong type.
    #[error("`{name}` must be {expected}, not `{found}`")]
    Variable {
        /// Which.
        name: &'static str,
        /// What to set.
        expected: &'static str,
        /// Its value; no variable that holds a secret has a type to miss.
        found: String,
    },
    /// Two sources for one secret.
    #[error("`{name}` and `{file}` are both set; unset one of them")]
    Both {
        /// The variable that holds it.
        name: &'static str,
        /// The variable that names a file.
        file: &'static str,
    },
    /// A line of a `.env` file that does not read.
    #[error("{}:{line}: this line must be `NAME=value`; quote a value that has spaces", path.display())]
    DotEnv {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
    },
}

/// A place in a file, printed as editors open it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct At {
    path: PathBuf,
    line: u64,
    column: u64,
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.path.display(), self.line, self.column)
    }
}

impl At {
    fn new(path: &Path, location: Location) -> Self {
        // Unknown positions are 0; the file's start is then as good a place.
        let (line, column) = (location.line().max(1), location.column().max(1));
        Self { path: path.to_owned(), line, column }
    }
}

/// A fault in the seed, before its place in the file is looked up.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) way: Way,
    pub(super) why: String,
}

impl Fault {
    pub(super) fn in_file(self, path: &Path, text: &str) -> Error {
        let location = Tree::read(text).map_or(Location::UNKNOWN, |t| t.location_of(&self.way));
        Error::Seed { at: At::new(path, location), key: self.way.to_string(), why: self.why }
    }
}

impl Error {
    /// Words what the parser found.
    pub(super) fn of(path: &Path, text: &str, error: &serde_saphyr::Error) -> Self {
        use serde_saphyr::Error as Found;
        let location = error.location().unwrap_or(Location::UNKNOWN);
        let at = At::new(path, location);
        let way = Tree::read(text).and_then(|tree| tree.way_to(location)).unwrap_or_default();
        match error {
            Found::AliasError { error, .. } => Self::of(path, text, error),
            Found::SerdeUnknownField { field, expected, .. } => {
                Self::unknown(at, field, way.section(), expected)
            }
            Found::SerdeInvalidType { unexpected, expected, .. }
            | Found::SerdeInvalidValue { unexpected, expected, .. } => {
                // A place that is not known might be one of a secret.
                let open = !way.0.is_empty() && !way.is_secret();
                let found = open.then(|| plain(unexpected));
                Self::Wrong { at, key: named(&way), expected: words(expected), found }
            }
            Found::Unexpected { expected, .. } => {
                Self::Wrong { at, key: named(&way), expected: words(expected), found: None }
            }
            Found::NullIntoString { .. } => {
                let (key, expected) = (named(&way), "text".to_owned());
                Self::Wrong { at, key, expected, found: Some("nothing".to_owned()) }
            }
            Found::DuplicateMappingKey { key, .. } => {
                let key = key.as_deref().unwrap_or_default();
                Self::Yaml { at, message: format!("`{key}` stands here twice; remove one of them") }
            }
            other => Self::Yaml { at, message: message(other) },
        }
    }

    fn unknown(at: At, field: &str, section: Option<String>, known: &[&str]) -> Self {
        let name = field.to_owned();
        let ours = matches!(section.as_deref(), None | Some("boot" | "metrics"));
        if ours && field.to_lowercase().contains("token") {
            let metrics = name.contains("metrics") || section.as_deref() == Some("metrics");
            let variable = if metrics { "MCPM_METRICS_TOKEN" } else { "MCPM_ADMIN_TOKEN" };
            return Self::SecretInFile { at, name, variable };
        }
        let hint = match nearest(field, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known here: {}", known.join(", ")),
        };
        Self::Unknown { at, name, section, hint }
    }
}

/// The name that was most likely meant.
pub(super) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let scored = known.iter().map(|each| (strsim::jaro_winkler(name, each), *each));
    scored.filter(|(score, _)| *score >= 0.8).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, n)| n)
}

fn inside(section: Option<&str>) -> String {
    section.map(|section| format!(" in `{section}`")).unwrap_or_default()
}

fn but(found: Option<&str>) -> String {
    found.map(|found| format!(", not {found}")).unwrap_or_default()
}

fn named(way: &Way) -> String {
    if way.0.is_empty() { "the file".to_owned() } else { format!("`{way}`") }
}

/// Serde's description of a found value, in an operator's words.
fn plain(unexpected: &str) -> String {
    match unexpected {
        "map" => return "a mapping".to_owned(),
        "sequence" => return "a list".to_owned(),
        "unit value" | "null" => return "nothing".to_owned(),
        _ => {}
    }
    let quoted = unexpected.strip_prefix("string \"").and_then(|text| text.strip_suffix('"'));
    match (quoted, unexpected.split_once('`')) {
        (Some(text), _) => format!("`{text}`"),
        (None, Some((_, value))) => format!("`{value}"),
        (None, None) => unexpected.to_owned(),
    }
}

/// The parser's description of what it wanted, in an operator's words.
fn words(expected: &str) -> String {
    match expected {
        "string scalar" | "a string" => "text".to_owned(),
        "a sequence" | "sequence start" => "a list".to_owned(),
        "a map" | "mapping start" => "a mapping".to_owned(),
        text if text.starts_with("struct ") => "a mapping".to_owned(),
        text => text.to_owned(),
    }
}

/// The parser's own words on one line, without the position, which stands in front of them.
fn message(error: &serde_saphyr::Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.split(" at line ").next().unwrap_or_default().trim_end_matches('.').to_owned()
}
