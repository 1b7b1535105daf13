//! Texts that stand as last block beside a result: what was changed in a call, what else there
//! is, what happened meanwhile (P50, P51, P54, P55). Short, and plain.

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

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::{Turn, alternative, mended, ran, siblings, turns};

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
}
