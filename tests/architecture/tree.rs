//! The work tree as the rules read it: files, and source text without comments and literals.

use std::path::{Path, PathBuf};

/// A source file of ours.
pub(crate) struct Source {
    /// From the root of the work tree, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Every Rust file of ours.
pub(crate) fn sources() -> Vec<Source> {
    let with_text = |path: String| Source { text: read(&path), path };
    files(".rs").into_iter().map(with_text).collect()
}

/// A file's text.
pub(crate) fn read(path: &str) -> String {
    let full = root().join(path);
    std::fs::read_to_string(&full).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Whether there is such a file or folder.
pub(crate) fn exists(path: &str) -> bool {
    root().join(path).exists()
}

/// Paths of the files whose name ends in `end`, sorted; not what tools or builds put there.
pub(crate) fn files(end: &str) -> Vec<String> {
    let mut found = Vec::new();
    collect(&root(), "", end, &mut found);
    found.sort();
    found
}

/// Fails with what to do and where, unless there is nothing to do.
pub(crate) fn none(offences: &[String], advice: &str) {
    assert!(offences.is_empty(), "{advice}\n  {}", offences.join("\n  "));
}

impl Source {
    /// The text before the file's tests; nothing of a file that is a test.
    pub(crate) fn program(&self) -> &str {
        let is_test = self.path.starts_with("tests/")
            || self.path.contains("/tests/")
            || self.path.ends_with("/tests.rs");
        let end =
            self.text.find("\n#[cfg(test)]\nmod tests {").map_or(self.text.len(), |at| at + 1);
        if is_test { "" } else { &self.text[..end] }
    }

    /// Where the program holds a text outside of comments and literals, as `path:line: code`.
    pub(crate) fn program_with(&self, holds: impl Fn(&str) -> bool) -> Vec<String> {
        self.lines_with(self.program(), holds)
    }

    /// The same for the whole file, its tests included.
    pub(crate) fn anywhere_with(&self, holds: impl Fn(&str) -> bool) -> Vec<String> {
        self.lines_with(&self.text, holds)
    }

    fn lines_with(&self, text: &str, holds: impl Fn(&str) -> bool) -> Vec<String> {
        let bare = bare(text);
        let lines = bare.lines().zip(text.lines()).enumerate();
        let offending = lines.filter(|(_, (bare, _))| holds(bare));
        offending
            .map(|(place, (_, line))| format!("{}:{}: {}", self.path, place + 1, line.trim()))
            .collect()
    }
}

/// Words of a line: names and numbers.
pub(crate) fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// String literals of a text, in order, without their quotes. Comments are not looked into.
pub(crate) fn literals(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    pieces(text, |piece, kind| {
        if kind == Kind::Text {
            let from = piece.find('"').unwrap_or_default() + 1;
            let to = piece.rfind('"').unwrap_or_default();
            found.push(piece.get(from..to).unwrap_or_default());
        }
    });
    found
}

/// The text with comments and literals blanked out, line for line.
pub(crate) fn bare(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    pieces(text, |piece, kind| match kind {
        Kind::Code => out.push_str(piece),
        _ => out.extend(piece.chars().map(|c| if c == '\n' { c } else { ' ' })),
    });
    out
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Code,
    Text,
    Other,
}

/// Cuts a text into code, string literals, and the rest (comments, characters).
fn pieces<'a>(text: &'a str, mut take: impl FnMut(&'a str, Kind)) {
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (kind, length) = special(rest).unwrap_or((Kind::Code, first.len_utf8()));
        let (piece, after) = rest.split_at(length.min(rest.len()));
        take(piece, kind);
        rest = after;
    }
}

/// The comment or literal that a text begins with, and its length.
fn special(text: &str) -> Option<(Kind, usize)> {
    let until = |end: &str, from: usize| {
        text.get(from..).and_then(|rest| rest.find(end)).map_or(text.len(), |at| from + at)
    };
    if text.starts_with("//") {
        return Some((Kind::Other, until("\n", 0)));
    }
    if text.starts_with("/*") {
        return Some((Kind::Other, until("*/", 2) + 2));
    }
    if let Some(raw) = text.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if raw[hashes..].starts_with('"') {
            let end = format!("\"{}", "#".repeat(hashes));
            return Some((Kind::Text, until(&end, hashes + 2) + end.len()));
        }
    }
    if text.starts_with('"') {
        return Some((Kind::Text, escaped(text, '"')));
    }
    // A quote may also begin a lifetime, which has no second one.
    let mut after = text.strip_prefix('\'')?.chars();
    match (after.next()?, after.next()?) {
        ('\\', _) => Some((Kind::Other, escaped(text, '\''))),
        (one, '\'') => Some((Kind::Other, one.len_utf8() + 2)),
        _ => None,
    }
}

/// The length of a literal whose end may be escaped.
fn escaped(text: &str, quote: char) -> usize {
    let mut skip = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if skip => skip = false,
            '\\' => skip = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn collect(folder: &Path, prefix: &str, end: &str, found: &mut Vec<String>) {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name().to_string_lossy().into_owned();
        let skipped = name.starts_with('.') || name == "target" || name == "node_modules";
        let path = format!("{prefix}{name}");
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && !skipped => {
                collect(&entry.path(), &format!("{path}/"), end, found);
            }
            Ok(kind) if kind.is_file() && name.ends_with(end) => found.push(path),
            _ => {}
        }
    }
}

#[test]
fn code_is_told_from_comments_and_literals() {
    let check = |text: &str, expect: &str| assert_eq!(bare(text), expect, "{text}");
    check("a // b\nc", "a     \nc");
    check("f(\"x\\\"y\", 'z', '\\'', '\"') 'a", "f(      ,    ,     ,    ) 'a");
    check("r#\"a\"b\"# + 1 /* 2\n */ 3", "         + 1     \n    3");
    assert_eq!(literals("f(\"a\", r#\"b\"c\"#) // \"d\"\n\"\""), ["a", "b\"c", ""]);
}
