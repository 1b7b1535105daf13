//! Texts that stand as last block beside a result: what was changed in a call, what else there
//! is, what happened meanwhile (P50, P51, P54, P55). Short, and plain.

use protocol::json::{self, Members};

/// Changes that are told.
const CHANGES: usize = 6;

/// Names of tools that are told.
const NAMES: usize = 25;

/// A tool ran under another name than the one that was asked for.
pub fn ran(asked: &str, name: &str) -> String {
    format!("`{}` is called `{name}`; that ran.", crate::cut(asked, 80))
}

/// Arguments were mended before the call.
pub fn mended(changes: &[String]) -> String {
    let shown = changes.iter().take(CHANGES).cloned().collect::<Vec<_>>().join("; ");
    let more = match changes.len().saturating_sub(CHANGES) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    format!("Arguments corrected before the call: {shown}{more}.")
}

/// The other tools of a server that is used for the first time.
pub fn siblings<'a>(server: &str, names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let all = names.len();
    let shown = names.take(NAMES).collect::<Vec<_>>().join(", ");
    let more = if all > NAMES { format!(" and {} more", all - NAMES) } else { String::new() };
    format!("Other tools of `{server}`: {shown}{more}.")
}

/// A tool on another server that may do what this one could not.
pub fn alternative(name: &str, server: &str) -> String {
    format!("`{name}` on server `{server}` may do the same.")
}

/// What became of a server while a conversation ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// It cannot be reached.
    Down,
    /// It can be reached again.
    Back,
    /// It was not there before.
    Added,
    /// It is not there any more.
    Removed,
}

/// What became of servers, told once.
pub fn turns(all: &[(String, Turn)]) -> String {
    let of = |turn: Turn| {
        let names = all.iter().filter(|(_, is)| *is == turn).map(|(name, _)| format!("`{name}`"));
        names.collect::<Vec<_>>()
    };
    let texts = [
        (of(Turn::Down), "is down", "are down"),
        (of(Turn::Back), "is back", "are back"),
        (of(Turn::Added), "was added", "were added"),
        (of(Turn::Removed), "was removed", "were removed"),
    ];
    let mut parts = Vec::new();
    for (names, one, many) in texts {
        match &names[..] {
            [] => {}
            [name] => parts.push(format!("server {name} {one}")),
            several => parts.push(format!("servers {} {many}", several.join(", "))),
        }
    }
    format!("Since your last call: {}.", parts.join("; "))
}

/// Words by which a site says that it does not show its page to a program, in small letters.
const BLOCKED: [&str; 13] = [
    "robots.txt",
    "403 forbidden",
    "status code 403",
    "error 403",
    "status 403",
    "captcha",
    "access denied",
    "just a moment",
    "verify you are human",
    "are you a robot",
    "enable javascript and cookies",
    "before you continue",
    "unusual traffic",
];

/// Bytes of a result beyond which it is a page, whatever words are in it.
const PAGE: usize = 6000;

/// Whether the result of a tool that reads pages says that a page would not be shown (P54).
/// A long text that is no error is a page, even one about captchas.
pub fn blocked(result: &str, is_error: bool) -> bool {
    if result.len() > PAGE && !is_error {
        return false;
    }
    let start = result.get(..result.len().min(PAGE)).unwrap_or(result).to_lowercase();
    BLOCKED.iter().any(|words| start.contains(words))
}

/// A result with notes as one more block of text, the last; `None` when there are none, or when
/// the result has no blocks to stand beside.
pub fn beside(result: &str, notes: &[String]) -> Option<String> {
    if notes.is_empty() {
        return None;
    }
    let members = Members::parse(result).ok()?;
    let content = members.borrowed("content").filter(|raw| raw.starts_with('['))?;
    // Within `result`, since it was borrowed from there.
    let start = content.as_ptr() as usize - result.as_ptr() as usize;
    let end = start + content.len() - 1;
    let empty = content.get(1..content.len() - 1)?.trim().is_empty();
    let comma = if empty { "" } else { "," };
    let text = json::quoted(&notes.join("\n"));
    let (head, tail) = (result.get(..end)?, result.get(end..)?);
    Some(format!(r#"{head}{comma}{{"type":"text","text":{text}}}{tail}"#))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::{Turn, alternative, beside, blocked, mended, ran, siblings, turns};

    #[test]
    fn texts_beside_results() {
        assert_snapshot!(ran("listTabs", "list_tabs"), @"`listTabs` is called `list_tabs`; that ran.");
        let changes = ["`count`: \"42\" → 42".to_owned(), "`opt`: null left out".to_owned()];
        assert_snapshot!(mended(&changes), @r#"Arguments corrected before the call: `count`: "42" → 42; `opt`: null left out."#);
        assert_snapshot!(siblings("git", ["log", "diff"].into_iter()), @"Other tools of `git`: log, diff.");
        let many: Vec<String> = (0..30).map(|n| format!("t{n}")).collect();
        let text = siblings("big", many.iter().map(String::as_str));
        assert!(text.ends_with("t24 and 5 more."), "{text}");
        assert_snapshot!(alternative("fetch", "web"), @"`fetch` on server `web` may do the same.");
        let all = [
            ("a".to_owned(), Turn::Down),
            ("b".to_owned(), Turn::Down),
            ("c".to_owned(), Turn::Back),
        ];
        assert_snapshot!(turns(&all), @"Since your last call: servers `a`, `b` are down; server `c` is back.");
    }

    #[test]
    fn a_note_is_the_last_block_and_all_else_stays() {
        let notes = ["a \"b\"".to_owned(), "c".to_owned()];
        let check = |result: &str, expect: &str| {
            assert_eq!(beside(result, &notes).as_deref(), Some(expect));
            assert_eq!(beside(result, &[]), None);
        };
        check(
            r#"{ "structuredContent":{"content":[1]},"content" : [ {"type":"text","text":"x"} ] ,"n":1e400}"#,
            r#"{ "structuredContent":{"content":[1]},"content" : [ {"type":"text","text":"x"} ,{"type":"text","text":"a \"b\"\nc"}] ,"n":1e400}"#,
        );
        check(
            r#"{"content":[],"isError":true}"#,
            r#"{"content":[{"type":"text","text":"a \"b\"\nc"}],"isError":true}"#,
        );
        assert_eq!(beside(r#"{"structuredContent":{}}"#, &notes), None);
    }

    #[test]
    fn p54_a_page_that_is_not_shown_is_told_from_one_that_is() {
        for text in [
            "Failed to fetch https://x/ - status code 403",
            "The site's robots.txt specifies that autonomous fetching is not allowed",
            "<title>Just a moment...</title>",
            "Before you continue to Google",
        ] {
            assert!(blocked(text, false), "{text}");
        }
        assert!(!blocked("Contents of https://x/: Welcome", false));
        let page = format!("How captchas work. {}", "words ".repeat(2000));
        assert!(!blocked(&page, false) && blocked(&page, true));
    }
}
