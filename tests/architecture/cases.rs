//! The table of other gateways' faults against the tests that stand for them.

use std::collections::{BTreeMap, BTreeSet};

use crate::documents::rows;
use crate::tree::{none, read, sources};

/// Ids begin with one of these.
const FAMILIES: [&str; 11] =
    ["ARG", "BID", "CAT", "HTTP", "PLT", "RES", "SCH", "SEC", "SES", "STD", "UPS"];

/// `HTTP-05` of its two halves, if they are those of an id.
fn id(family: &str, number: &str) -> Option<String> {
    let family = family.to_uppercase();
    let is_number = number.len() == 2 && number.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && FAMILIES.contains(&family.as_str())).then(|| format!("{family}-{number}"))
}

/// The id in front of a test's name.
fn id_of(line: &str) -> Option<String> {
    let mut words = line.trim_start().strip_prefix("fn ")?.split('_');
    let id = id(words.next()?, words.next()?)?;
    words.next().map(|_| id)
}

/// The table: ids, and what stands beside each.
fn table() -> Vec<(String, String)> {
    let rows = rows(&read("tests/cases.md")).into_iter().filter(|row| row.len() == 3);
    let rows = rows.filter_map(|mut row| {
        let (family, number) = row[0].split_once('-')?;
        Some((id(family, number)?, row.swap_remove(2)))
    });
    rows.collect()
}

#[test]
fn every_case_has_the_tests_that_the_table_names() {
    let mut there = BTreeSet::new();
    for source in sources() {
        let Some(path) = source.path.strip_prefix("tests/") else { continue };
        let ids = source.text.lines().filter_map(id_of);
        there.extend(ids.map(|id| format!("{id} in {path}")));
    }
    assert!(there.len() > 80, "the tests were not read: {there:?}");
    let mut named = BTreeSet::new();
    for (id, tests) in table() {
        if !tests.starts_with("comes with ") {
            named.extend(tests.split(", ").map(|path| format!("{id} in {path}")));
        }
    }
    let missing = there.difference(&named).map(|each| format!("missing: {each}"));
    let made_up = named.difference(&there).map(|each| format!("no such test: {each}"));
    let advice = "make tests/cases.md true; a test's name begins with its id, as in `http_05_…`:";
    none(&missing.chain(made_up).collect::<Vec<_>>(), advice);
}

#[test]
fn no_case_is_forgotten() {
    let mut numbers: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for (id, _) in table() {
        let (family, number) = id.split_once('-').expect("an id has two halves");
        numbers.entry(family.to_owned()).or_default().push(number.parse().expect("digits"));
    }
    let families: Vec<&str> = numbers.keys().map(String::as_str).collect();
    assert_eq!(families, FAMILIES);
    for (family, found) in numbers {
        let all: Vec<u32> = (1..).take(found.len()).collect();
        assert_eq!(found, all, "{family} in tests/cases.md: each id once, in order");
    }
}
