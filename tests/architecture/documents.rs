//! The documents against the code: what README and ARCHITECTURE list is what there is, and
//! all of it.

use std::collections::BTreeSet;

use crate::tree::{bare, exists, files, literals, none, read, sources, words};

/// Both ways: nothing is missing from the document, nothing in it is made up.
fn same(code: &BTreeSet<String>, document: &BTreeSet<String>, what: &str) {
    let missing = code.difference(document).map(|each| format!("missing: {each}"));
    let made_up = document.difference(code).map(|each| format!("not in the code: {each}"));
    none(&missing.chain(made_up).collect::<Vec<_>>(), &format!("make {what} true in README.md:"));
}

/// Rows of a document's tables, as cells without the back quotes around them.
pub(crate) fn rows(text: &str) -> Vec<Vec<String>> {
    let cells = |line: &str| -> Option<Vec<String>> {
        let inside = line.trim().strip_prefix('|')?.strip_suffix('|')?;
        Some(inside.split('|').map(|cell| cell.trim().replace('`', "")).collect())
    };
    text.lines().filter_map(cells).collect()
}

/// The source between two texts.
fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let (_, after) = text.split_once(from).unwrap_or_else(|| panic!("no `{from}`"));
    after.split_once(to).unwrap_or_else(|| panic!("no `{to}` after `{from}`")).0
}

#[test]
fn every_endpoint_is_in_the_readme() {
    let routes = read("admin/routes.rs");
    let table = between(&routes, "static ROUTES", "\n];");
    let mut code = BTreeSet::new();
    let mut rest = table;
    for path in literals(table).into_iter().filter(|text| text.starts_with('/')) {
        let literal = format!("\"{path}\"");
        let (before, after) = rest.split_once(&literal).expect("the literal is in the table");
        // An endpoint that names no method is one of the open ones.
        let named = before.rsplit_once("Method::").and_then(|(_, name)| words(name).next());
        code.insert(format!("{} {path}", named.unwrap_or("GET")));
        rest = after;
    }
    assert!(code.len() > 20, "the table of routes was not read: {code:?}");
    let is_method = |cell: &str| ["GET", "POST", "PATCH", "DELETE"].contains(&cell);
    let document = rows(&read("README.md")).into_iter().filter(|row| is_method(&row[0]));
    let document = document.map(|row| match row[1].as_str() {
        path if path.starts_with("/api/") || OPEN.contains(&path) => format!("{} {path}", row[0]),
        path => format!("{} /api/v1{path}", row[0]),
    });
    same(&code, &document.collect(), "the tables of endpoints");
}

/// Endpoints outside of `/api/v1`.
const OPEN: [&str; 6] = ["/", "/app.css", "/app.js", "/livez", "/metrics", "/readyz"];

#[test]
fn every_mcp_method_is_in_the_readme() {
    let rpc = read("filters/rpc.rs");
    let table = between(&rpc, "const METHODS", "\n];");
    let mut code = BTreeSet::new();
    for line in table.lines().filter(|line| line.trim_start().starts_with("(\"")) {
        let name = literals(line).first().copied().unwrap_or_default().to_owned();
        let bare = bare(line);
        let mut has = words(&bare).filter(|word| ["true", "false"].contains(word));
        let (legacy, modern) = (has.next() == Some("true"), has.next() == Some("true"));
        code.insert(format!("{name}, sessions {legacy}, 2026-07-28 {modern}"));
    }
    assert!(code.len() >= 10, "the table of methods was not read: {code:?}");
    let readme = read("README.md");
    let section = between(&readme, "### Methods for apps", "\n### ");
    let is_method = |row: &Vec<String>| row.len() >= 3 && ["yes", "–"].contains(&row[1].as_str());
    let document = rows(section).into_iter().filter(is_method).flat_map(|row| {
        let (legacy, modern) = (row[1] == "yes", row[2] == "yes");
        let names: Vec<String> = row[0].split(", ").map(str::to_owned).collect();
        names.into_iter().map(move |n| format!("{n}, sessions {legacy}, 2026-07-28 {modern}"))
    });
    same(&code, &document.collect(), "the table of methods");
}

/// Variants of an enum of subcommands as they are typed; hidden ones are left out.
fn commands(path: &str, name: &str) -> Vec<String> {
    let text = read(path);
    let body = between(&text, &format!("enum {name} {{"), "\n}");
    let mut hidden = false;
    let mut found = Vec::new();
    for line in body.lines() {
        let line = line.strip_prefix("    ").unwrap_or_default();
        hidden |= line.starts_with("#[") && line.contains("hide = true");
        if line.starts_with(|first: char| first.is_ascii_uppercase()) {
            let variant = words(line).next().unwrap_or_default().to_lowercase();
            found.extend((!std::mem::take(&mut hidden)).then_some(variant));
        }
    }
    found
}

#[test]
fn every_command_is_in_the_readme() {
    let mut code = BTreeSet::new();
    for command in commands("src/cli.rs", "Command") {
        let path = format!("src/cli/{command}.rs");
        let name = format!("{}{}", command[..1].to_uppercase(), &command[1..]);
        if exists(&path) && read(&path).contains(&format!("enum {name} {{")) {
            code.extend(commands(&path, &name).iter().map(|sub| format!("{command} {sub}")));
        } else {
            code.insert(command);
        }
    }
    assert!(code.len() > 12, "the commands were not read: {code:?}");
    let readme = read("README.md");
    let listing = between(&readme, "## Command line", "\n## ");
    let document = listing.lines().filter_map(|line| line.strip_prefix("mcp-manager "));
    let document = document.map(|line| {
        let is_word = |word: &&str| word.starts_with(|first: char| first.is_ascii_lowercase());
        let typed = line.split_once("  ").map_or(line, |(typed, _)| typed);
        typed.split_whitespace().take_while(is_word).collect::<Vec<_>>().join(" ")
    });
    same(&code, &document.collect(), "the list of commands");
}

#[test]
fn every_metric_is_in_the_readme() {
    let metrics = read("src/metrics/lib.rs");
    let names = literals(&metrics).into_iter().filter(|text| text.starts_with("mcpm_"));
    let code: BTreeSet<String> = names.map(str::to_owned).collect();
    assert!(code.len() > 8, "the metrics were not read: {code:?}");
    let document = rows(&read("README.md")).into_iter().map(|mut row| row.swap_remove(0));
    same(&code, &document.filter(|cell| cell.starts_with("mcpm_")).collect(), "the metrics");
}

#[test]
fn every_variable_is_in_the_readme() {
    let variables = |text: &str| -> BTreeSet<String> {
        words(text).filter(|word| word.starts_with("MCPM_")).map(str::to_owned).collect()
    };
    let settings = read("src/settings.rs");
    let code: BTreeSet<String> = literals(&settings).into_iter().flat_map(&variables).collect();
    assert!(code.len() > 10, "the variables were not read: {code:?}");
    let document = rows(&read("README.md")).into_iter().map(|mut row| row.swap_remove(0));
    let document = document.filter(|cell| cell.starts_with("MCPM_"));
    same(&code, &document.collect(), "the table of variables");
    let others = variables(&read("conf/mcp-manager.yaml"));
    let others = others.union(&variables(&read("README.md"))).cloned().collect::<BTreeSet<_>>();
    let made_up: Vec<_> = others.difference(&code).cloned().collect();
    none(&made_up, "README.md or the conf file speak of variables that nothing reads:");
}

#[test]
fn every_fault_is_in_the_readme_against_each_kind_of_tool() {
    let matrix = read("tests/faults.rs");
    let faults = literals(between(&matrix, "fn faults()", "\n}"));
    let code: BTreeSet<String> = faults.into_iter().map(str::to_owned).collect();
    assert!(code.len() > 8, "the faults were not read: {code:?}");
    let readme = read("README.md");
    let table = rows(between(&readme, "<!-- faults:begin -->", "<!-- faults:end -->"));
    assert_eq!(table[0], ["fault", "read-only tool", "idempotent tool", "write tool"]);
    let short = table.iter().filter(|row| row.len() != 4).map(|row| row.join(" | "));
    none(&short.collect::<Vec<_>>(), "these rows of README.md lack a cell; see `make faults`:");
    let document = table.into_iter().skip(2).map(|mut row| row.swap_remove(0));
    same(&code, &document.collect(), "the table of faults");
}

#[test]
fn every_make_target_that_is_spoken_of_is_there() {
    let makefile = read("Makefile");
    let mut offences = Vec::new();
    for path in files(".md") {
        let text = read(&path);
        let spoken_of = text.split(['`', '\n']).filter_map(|part| part.strip_prefix("make "));
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let targets = spoken_of.filter_map(|rest| rest.split(|c| !is_name(c)).next());
        for target in targets.filter(|target| !target.is_empty()) {
            if !makefile.lines().any(|line| line.starts_with(&format!("{target}:"))) {
                offences.push(format!("{path}: make {target}"));
            }
        }
    }
    none(&offences, "add the target to the Makefile or correct the text:");
}

#[test]
fn links_between_files_lead_somewhere() {
    let mut offences = Vec::new();
    for path in files(".md") {
        let text = read(&path);
        let folder =
            path.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
        let links = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
        let images = text.split("src=\"").skip(1).filter_map(|rest| rest.split('"').next());
        for link in links.chain(images).filter(|link| !link.is_empty() && !link.contains("://")) {
            if !exists(&format!("{folder}{link}")) {
                offences.push(format!("{path}: {link}"));
            }
        }
    }
    none(&offences, "no file is there; correct the link:");
}

#[test]
fn the_tests_that_architecture_names_are_there() {
    let text = read("ARCHITECTURE.md");
    let section = between(&text, "## Invariants", "\n## ");
    let all = sources();
    let known = |name: &str| all.iter().any(|s| s.text.contains(&format!("fn {name}(")));
    let mut offences = Vec::new();
    for line in section.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())) {
        let (_, tests) = line.split_once("Test").unwrap_or_default();
        let named: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        if named.is_empty() {
            offences.push(format!("no test: {line}"));
        }
        offences.extend(named.iter().filter(|name| !known(name)).map(|n| format!("no fn: {n}")));
    }
    none(&offences, "each invariant in ARCHITECTURE.md names the tests that keep it:");
}

#[test]
fn the_code_map_has_every_crate_and_every_file_of_the_root_package() {
    let text = read("ARCHITECTURE.md");
    let map = between(&text, "## Code map", "\n## ");
    let folders = files("Cargo.toml").into_iter().filter_map(|path| {
        path.strip_suffix("Cargo.toml").filter(|folder| !folder.is_empty()).map(str::to_owned)
    });
    let root = files(".rs")
        .into_iter()
        .filter(|path| path.strip_prefix("src/").is_some_and(|name| !name.contains('/')));
    let missing = folders.chain(root).filter(|path| !map.contains(&format!("`{path}`")));
    none(&missing.collect::<Vec<_>>(), "give it a line in the code map of ARCHITECTURE.md:");
}
