//! What clients are told at the start (A11): a few words of our own, then what the servers
//! within reach say of themselves, each under its name and within bounds.

use protocol::json;

use crate::snapshot::Listed;

/// Whose words these are, and how to read what follows.
const OWN: &str = "This is MCP-Manager: it offers the tools of several MCP servers at one \
    endpoint. A tool whose name two servers use is listed as `<server>__<tool>`. The list may \
    change while you work.";

/// Characters of one server's instructions.
const EACH: usize = 1000;

/// Characters of all servers' instructions.
const ALL: usize = 4000;

/// The text as a raw JSON string, for the servers of one view, in their order.
pub(crate) fn of<'a>(servers: impl Iterator<Item = &'a Listed>) -> String {
    let mut text = OWN.to_owned();
    let (mut left, mut omitted) = (ALL, 0);
    for listed in servers {
        let Some(said) = listed.known.instructions.as_deref().map(str::trim) else { continue };
        if said.is_empty() {
            continue;
        }
        let (said, length) = cut(said);
        // Whole or not at all: half of what one server says may say the opposite.
        if length > left {
            omitted += 1;
            continue;
        }
        left -= length;
        text.extend(["\n\n# Server `", listed.server.name.as_str(), "`\n", said.as_str()]);
    }
    match omitted {
        0 => {}
        1 => text.push_str("\n\nThe instructions of one more server are left out here."),
        more => {
            let more = format!("\n\nThe instructions of {more} more servers are left out here.");
            text.push_str(&more);
        }
    }
    json::quoted(&text)
}

/// The text within its bound, and its length in characters.
fn cut(text: &str) -> (String, usize) {
    match text.char_indices().nth(EACH) {
        None => (text.to_owned(), text.chars().count()),
        Some((end, _)) => (format!("{} … (cut here)", &text[..end]), EACH),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{ALL, EACH, json, of};
    use crate::known::Known;
    use crate::model::Server;
    use crate::snapshot::Listed;

    fn says(name: &str, instructions: Option<&str>) -> Listed {
        let server = Arc::new(Server { name: name.to_owned(), ..Server::default() });
        let instructions = instructions.map(str::to_owned);
        let known = Known { instructions, ..Known::default() };
        Listed {
            server,
            known,
            said: Default::default(),
            exposed: Vec::new(),
            json: Vec::new(),
            older: None,
        }
    }

    fn told(servers: &[Listed]) -> String {
        json::string(&of(servers.iter())).expect("a JSON string").into_owned()
    }

    #[test]
    fn a11_each_server_speaks_under_its_name() {
        let all = [says("a", Some(" Ask \"a\" first.\n")), says("b", None), says("c", Some(" "))];
        let text = told(&all);
        assert!(text.ends_with("\n\n# Server `a`\nAsk \"a\" first."), "{text}");
        assert!(!told(&[]).contains("# Server"));
    }

    #[test]
    fn a11_what_is_too_much_is_cut_and_counted() {
        let long = "é".repeat(EACH + 1);
        let all: Vec<_> = (0..=ALL / EACH + 1).map(|n| says(&n.to_string(), Some(&long))).collect();
        let text = told(&all);
        assert_eq!(text.matches('é').count(), ALL);
        assert_eq!(text.matches("… (cut here)").count(), ALL / EACH);
        assert!(text.ends_with("The instructions of 2 more servers are left out here."), "{text}");
        let one = told(&all[..=ALL / EACH]);
        assert!(one.ends_with("of one more server are left out here."), "{one}");
    }
}
