//! What the manager's tools answer with.

use std::fmt::Write as _;

use protocol::json;

use crate::cut;
use crate::schema::Schema;

/// Optional arguments that a match names.
const OPTIONAL: usize = 5;

/// Characters of a description's opening in a match, in a short line, and of a server.
const OPENING: usize = 90;
const SHORT: usize = 32;
const SERVER: usize = 120;

/// Characters of a call to copy.
const CALL: usize = 400;

/// A tool that was found.
#[derive(Debug, Clone, Copy)]
pub struct Match<'a> {
    /// The name that clients call.
    pub exposed: &'a str,
    /// Its server.
    pub server: &'a str,
    /// What models read of it.
    pub description: &'a str,
    /// What it takes.
    pub schema: &'a Schema,
    /// Why it cannot be called now; empty when it can.
    pub trouble: &'a str,
}

/// The matches of a search, each with a call to copy (P41).
pub fn matches(all: &[Match<'_>]) -> String {
    let mut out = String::from("Run one with call_tool:");
    for each in all {
        let call = format!(
            r#"{{"name":{},"arguments":{}}}"#,
            json::quoted(each.exposed),
            each.schema.example()
        );
        let _ = write!(out, "\n{}\n  {}: ", cut(&call, CALL), each.server);
        out.push_str(&opening(each.description, OPENING));
        let optional = optional(each.schema);
        if !optional.is_empty() {
            let _ = write!(out, " Optional: {optional}");
        }
        if !each.trouble.is_empty() {
            let _ = write!(out, " ({})", each.trouble);
        }
    }
    out
}

/// What is told when nothing fits.
pub fn nothing_found(query: &str) -> String {
    format!(
        "No tool found for `{}`. Try other words, an empty query for all tools, or \
         list_mcpservers.",
        cut(query, 80)
    )
}

/// A page of every tool within reach, in short; `all` are (exposed name, description) of the
/// page, `page` counts from 1.
pub fn all_tools<'a>(
    all: impl Iterator<Item = (&'a str, &'a str)>,
    page: usize,
    pages: usize,
) -> String {
    let mut out = lines(all);
    if pages > 1 {
        let _ = write!(out, "\nPage {page} of {pages}.");
    }
    if page < pages {
        let _ = write!(out, r#" Next: {{"query":"","page":{}}}"#, page + 1);
    }
    out
}

/// A server's tools, in short.
pub fn about_server<'a>(all: impl Iterator<Item = (&'a str, &'a str)>, trouble: &str) -> String {
    let mut out = lines(all);
    if out.is_empty() {
        out.push_str("It has no tools now.");
    }
    if !trouble.is_empty() {
        let _ = write!(out, "\n{trouble}");
    }
    out
}

fn lines<'a>(all: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let line = |(name, description): (&str, &str)| match opening(description, SHORT) {
        words if words.is_empty() => name.to_owned(),
        words => format!("{name}: {words}"),
    };
    all.map(line).collect::<Vec<_>>().join("\n")
}

/// A server, as it is told of.
#[derive(Debug, Clone, Copy)]
pub struct ServerLine<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it is for; may be empty.
    pub about: &'a str,
    /// How many tools it has.
    pub tools: usize,
    /// Its state in a word or two.
    pub state: &'a str,
}

/// The servers within reach.
pub fn servers(all: &[ServerLine<'_>]) -> String {
    if all.is_empty() {
        return "There are no servers within your reach.".to_owned();
    }
    let mut out = String::new();
    for server in all {
        if !out.is_empty() {
            out.push('\n');
        }
        let tools = if server.tools == 1 { "tool" } else { "tools" };
        let _ = write!(out, "{} ({} {tools}, {})", server.name, server.tools, server.state);
        let about = opening(server.about, SERVER);
        if !about.is_empty() {
            let _ = write!(out, ": {about}");
        }
    }
    out
}

/// `name: type` of the optional arguments, as many as are worth their words.
fn optional(schema: &Schema) -> String {
    let all: Vec<_> = schema.arguments().into_iter().filter(|each| !each.required).collect();
    let shown = all.iter().take(OPTIONAL);
    let mut words: Vec<_> = shown.map(|each| format!("{}: {}", each.name, each.kind)).collect();
    if all.len() > OPTIONAL {
        words.push(format!("{} more", all.len() - OPTIONAL));
    }
    words.join(", ")
}

/// The first sentence, on one line, within a bound that does not break a word.
fn opening(description: &str, most: usize) -> String {
    let lines = || {
        let all = description.trim().lines().map(str::trim);
        all.filter(|line| line.chars().any(char::is_alphanumeric))
    };
    // A heading says less than what follows it.
    let line = lines().find(|line| !line.starts_with('#')).or_else(|| lines().next());
    let line = line.unwrap_or_default().trim_start_matches(['#', '*', '-', ' ']);
    let sentence = match line.find(". ") {
        Some(end) => &line[..=end],
        None => line,
    };
    let sentence = sentence.split_whitespace().collect::<Vec<_>>().join(" ");
    let Some((end, _)) = sentence.char_indices().nth(most) else { return sentence };
    let head = &sentence[..end];
    let head = head.rsplit_once(' ').map_or(head, |(words, _)| words);
    format!("{}…", head.trim_end_matches([',', ';', ':']))
}
