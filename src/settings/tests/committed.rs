//! Holds `conf/mcp-manager.yaml` and the structs of settings together.

use super::{COMMITTED, Settings, parse};

/// The code whose field docs are the comments of the file.
const CODE: [&str; 2] = [include_str!("../../settings.rs"), include_str!("../seed.rs")];

/// Each struct, the line after which its fields stand, and how far they are indented: live, or
/// as an example.
const STRUCTS: [(&str, &str, &str); 9] = [
    ("Settings", "", ""),
    ("Boot", "boot:", "  "),
    ("Limits", "limits:", "  "),
    ("Log", "log:", "  "),
    ("Metrics", "metrics:", "  "),
    ("Sessions", "sessions:", "  "),
    ("Search", "search:", "  "),
    ("Upstream", "#upstreams:", "#    "),
    ("SeedGroup", "#groups:", "#    "),
];

/// A struct's fields in order, each with its doc comment on one line.
fn fields(name: &str) -> Vec<(String, String)> {
    let head = format!("struct {name} {{\n");
    let body = CODE.iter().find_map(|code| code.split_once(&head)).unwrap().1;
    let body = body.split_once("\n}\n").unwrap().0;
    let (mut found, mut docs, mut skip) = (Vec::new(), Vec::new(), false);
    for line in body.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("///") {
            docs.push(text.trim());
        } else if line == "#[serde(skip)]" {
            skip = true;
        } else if let Some(field) = line.strip_prefix("pub(crate) ") {
            let docs = std::mem::take(&mut docs).join(" ");
            if !std::mem::take(&mut skip) {
                found.push((field.split_once(':').unwrap().0.to_owned(), docs));
            }
        }
    }
    found
}

/// The comment right above a setting indented so far, on one line.
fn comment(above: &str, indent: &str) -> String {
    let each = format!("{indent}# ");
    // The first field of an example carries the dash of its list.
    let text = |line| str::strip_prefix(line, each.as_str()).or(str::strip_prefix(line, "#  - # "));
    let mut words: Vec<&str> = above.lines().rev().map_while(text).collect();
    words.reverse();
    words.join(" ")
}

#[test]
fn every_setting_stands_in_the_file_with_its_doc_as_comment() {
    let mut live = 0;
    for (name, head, indent) in STRUCTS {
        let (_, part) = COMMITTED.split_once(&format!("{head}\n")).unwrap();
        for (field, docs) in fields(name) {
            let line = format!("\n{indent}{field}:");
            let at = part.find(&line).unwrap_or_else(|| panic!("no `{name}.{field}`"));
            assert_eq!(comment(&part[..=at], indent), docs, "comment of `{name}.{field}`");
            live += usize::from(!indent.starts_with('#'));
        }
    }
    // And nothing but settings, beside the two groups of the seed.
    let lines = COMMITTED.lines().map(str::trim);
    let found = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    assert_eq!(found.count(), live + 2);
}

#[test]
fn the_file_holds_the_defaults() {
    assert_eq!(parse(COMMITTED), Ok(Settings::default()));
}

#[test]
fn the_examples_in_the_file_parse() {
    let example: Vec<&str> = COMMITTED
        .lines()
        .filter_map(|line| line.strip_prefix('#'))
        .filter(|line| line.starts_with("  ") || line.ends_with("s:"))
        .collect();
    let settings = parse(&example.join("\n")).unwrap();
    assert_eq!((settings.upstreams.len(), settings.groups.len()), (1, 1));
    assert_eq!(settings.upstreams[0].headers.0.len(), 1);
}
