//! Rules about source files: their size, their head, and words that stand in few of them.

use std::collections::BTreeMap;

use crate::tree::{Source, files, none, sources, words};

const FILE_LINES: usize = 400;
const CRATE_LINES: usize = 3000;

/// Where a secret is taken out of its wrapper: to be sent, stored, compared, checked, or
/// shown once to whoever made it.
const REVEALED: [&str; 9] = [
    "admin/keys.rs",
    "admin/token.rs",
    "admin/upstreams.rs",
    "src/cli/demo.rs",
    "src/cli/key.rs",
    "src/fields/check.rs",
    "src/store/change.rs",
    "src/transport/endpoint.rs",
    "src/process/child.rs",
];

fn lines_of(sources: &[Source], holds: impl Fn(&str) -> bool) -> Vec<String> {
    sources.iter().flat_map(|source| source.anywhere_with(&holds)).collect()
}

fn program_lines(folders: &[&str], holds: impl Fn(&str) -> bool) -> Vec<String> {
    let sources = sources();
    let inside = |path: &str| folders.iter().any(|folder| path.starts_with(folder));
    let chosen = sources.iter().filter(|source| inside(&source.path));
    chosen.flat_map(|source| source.program_with(&holds)).collect()
}

fn has_word(line: &str, wanted: &str) -> bool {
    words(line).any(|word| word == wanted)
}

#[test]
fn files_fit_on_a_few_screens() {
    let long = sources().into_iter().filter_map(|source| {
        let lines = source.text.lines().count();
        (lines > FILE_LINES).then(|| format!("{}: {lines} lines", source.path))
    });
    let advice = format!("split by subject; a file has at most {FILE_LINES} lines:");
    none(&long.collect::<Vec<_>>(), &advice);
}

#[test]
fn crates_can_be_read_in_an_afternoon() {
    // The root package comes first and has what is in no other crate's folder.
    let manifests = files("Cargo.toml");
    let mut folders: Vec<&str> =
        manifests.iter().map(|path| path.trim_end_matches("Cargo.toml")).collect();
    folders.sort_by_key(|folder| folder.len());
    let mut lines: BTreeMap<&str, usize> = BTreeMap::new();
    for source in sources() {
        let home = folders.iter().rfind(|folder| source.path.starts_with(**folder));
        *lines.entry(home.unwrap_or(&"")).or_default() += source.program().lines().count();
    }
    let large = lines.into_iter().filter(|(_, lines)| *lines > CRATE_LINES);
    let large: Vec<_> = large.map(|(home, lines)| format!("./{home}: {lines} lines")).collect();
    let advice = format!("a crate has at most {CRATE_LINES} lines without its tests; move a part:");
    none(&large, &advice);
}

#[test]
fn each_file_opens_with_what_it_is_for() {
    let bare = sources().into_iter().filter(|source| !source.text.starts_with("//! "));
    let bare: Vec<_> = bare.map(|source| source.path).collect();
    none(&bare, "begin with `//!`: what the file is for, and what it leaves to whom:");
}

#[test]
fn modules_are_named_after_their_file() {
    let found = sources().into_iter().filter(|source| source.path.ends_with("/mod.rs"));
    let found: Vec<_> = found.map(|source| source.path).collect();
    none(&found, "call it `name.rs` beside the folder `name/`:");
}

#[test]
fn no_lint_is_silenced_without_a_reason() {
    let found = lines_of(&sources(), |line| {
        let attribute = line.trim_start().starts_with("#[") || line.trim_start().starts_with("#![");
        attribute && line.contains("allow(")
    });
    none(&found, "mend it, or write `#[expect(lint, reason = \"…\")]`, which ends by itself:");
}

#[test]
fn every_test_runs() {
    let skipped = ["#[ignore", "#[should_panic"];
    let found = lines_of(&sources(), |line| skipped.iter().any(|word| line.contains(word)));
    none(&found, "a test runs always; a slow one returns early by its environment:");
}

#[test]
fn nothing_is_unsafe() {
    let found = lines_of(&sources(), |line| has_word(line, "unsafe"));
    none(&found, "use a crate that wraps it:");
}

#[test]
fn pure_crates_have_no_io_no_clock_and_no_waiting() {
    const WORDS: [&str; 14] = [
        "async ",
        ".await",
        "tokio",
        "SystemTime",
        "Instant",
        "std::env",
        "std::fs",
        "std::io",
        "std::net",
        "std::process",
        "std::thread",
        "Timestamp",
        "Mutex",
        "RwLock",
    ];
    let found = program_lines(
        &["src/protocol/", "src/coach/", "src/adaptive/", "src/catalog/", "src/fields/"],
        |line| WORDS.iter().any(|word| line.contains(word)),
    );
    none(
        &found,
        "pass values in; `protocol`, `coach`, `catalog` and `fields` only work on what they are given:",
    );
}

/// Good answers (200, 202, 204) are written where they are made; a refusal is a value whose
/// number is looked up in one place for apps and in one for people.
#[test]
fn refusals_get_their_status_in_one_place_for_each_edge() {
    let homes = ["filters/refusal.rs:", "admin/error.rs:"];
    let edges = ["filters/", "admin/", "src/port/front.rs", "src/port/listen.rs", "src/boot.rs"];
    let found = program_lines(&edges, |line| {
        let refuses =
            |word: &str| word.parse::<u16>().is_ok_and(|number| (400..600).contains(&number));
        let names = line.split("StatusCode::").skip(1);
        let named = names.filter_map(|rest| words(rest).next());
        words(line).any(refuses) || named.into_iter().any(|name| !is_good(name))
    });
    let found: Vec<_> =
        found.into_iter().filter(|line| homes.iter().all(|home| !line.starts_with(home))).collect();
    none(&found, "add a variant to `Refusal` (apps) or `Error` (people), and its number there:");
}

fn is_good(name: &str) -> bool {
    ["OK", "NO_CONTENT"].contains(&name)
}

#[test]
fn json_rpc_error_numbers_stand_in_protocol() {
    let others = ["filters/", "admin/", "src/"];
    let found = program_lines(&others, |line| {
        let is_code =
            |word: &str| word.parse::<u32>().is_ok_and(|number| (32_000..32_768).contains(&number));
        words(line).any(is_code)
    });
    let found: Vec<_> =
        found.into_iter().filter(|line| !line.starts_with("src/protocol/")).collect();
    none(&found, "name it in `protocol::codes`:");
}

/// What clients send and servers answer is cut and joined as text (`protocol::json`).
#[test]
fn nothing_on_the_way_of_a_call_re_types_json() {
    let found =
        program_lines(&["filters/", "src/gateway/", "src/transport/", "src/upstream/"], |line| {
            has_word(line, "serde_json") || has_word(line, "Deserialize")
        });
    none(&found, "read single members with `protocol::json::Members`; all else stays text:");
}

#[test]
fn secrets_have_no_display_and_few_readers() {
    let all = sources();
    let shown = lines_of(&all, |line| line.contains("Display for Secret"));
    none(&shown, "a secret is never text by accident; take this away:");
    let readers = all.iter().filter(|source| !source.program_with(reveals).is_empty());
    let readers: Vec<&str> = readers.map(|source| source.path.as_str()).collect();
    let strays: Vec<_> =
        readers.iter().filter(|path| !REVEALED.contains(path)).map(|p| (*p).to_owned()).collect();
    none(&strays, "pass the `Secret` on instead; if it must be read here, add it to REVEALED:");
    let gone = REVEALED.iter().filter(|path| !readers.contains(path));
    let gone: Vec<_> = gone.map(|path| (*path).to_owned()).collect();
    none(&gone, "these read no secret any more; take them out of REVEALED:");
}

fn reveals(line: &str) -> bool {
    line.contains(".reveal()") || line.contains("Secret::reveal")
}

/// The order of checks (P2) as it stands in the code: what comes later must not be reached
/// by who fails what comes first.
#[test]
fn host_and_origin_are_checked_before_anything_is_looked_up() {
    let all = sources();
    for (path, steps) in [
        ("src/port/front.rs", &[".host(", "mcp::owns(", "mcp::serve(", "self.admin("][..]),
        ("filters/mcp.rs", &[".origin(", "OPTIONS", ".admit(", "POST", "body::read("][..]),
        ("admin/lib.rs", &["Cors::of(", "refused()", "routes::find(", "token::check("][..]),
    ] {
        let source = all.iter().find(|source| source.path == path).expect("the file is there");
        let bare = crate::tree::bare(source.program());
        let places: Vec<_> = steps.iter().map(|step| bare.find(step)).collect();
        let in_order = places.iter().all(Option::is_some) && places.is_sorted();
        assert!(in_order, "{path} must check in this order: {steps:?}, found at {places:?}");
    }
}
