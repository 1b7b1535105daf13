//! The name that was probably meant.

/// Below this likeness two names have nothing to do with each other.
const LIKE: f64 = 0.82;

/// Names longer than this, in bytes, are nobody's slip.
const LONGEST: usize = 128;

/// The name that is most like `wanted`, if one is like it at all. Case and separators count
/// less than letters.
pub fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if wanted.len() > LONGEST {
        return None;
    }
    let wanted = plain(wanted);
    let mut best: Option<(f64, &str)> = None;
    for name in names {
        let other = plain(name);
        let likeness = if other == wanted { 1.0 } else { likeness(&wanted, &other) };
        if likeness >= LIKE && best.is_none_or(|(known, _)| likeness > known) {
            best = Some((likeness, name));
        }
    }
    best.map(|(_, name)| name)
}

/// A name without case and separators, by which two spellings of one name are the same.
pub fn normal(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// 0–1. Swapped and missing letters cost little, another beginning much; short names must be
/// closer.
fn likeness(one: &str, other: &str) -> f64 {
    let longest = one.chars().count().max(other.chars().count());
    let edits = strsim::damerau_levenshtein(one, other);
    if edits > 1 + longest / 5 {
        return 0.0;
    }
    strsim::jaro_winkler(one, other)
}

fn plain(name: &str) -> String {
    name.to_lowercase().replace(['-', '.', ' ', '/', ':'], "_")
}

#[cfg(test)]
mod tests {
    use super::nearest;

    fn check(wanted: &str, names: &[&str], expect: Option<&str>) {
        assert_eq!(nearest(wanted, names.iter().copied()), expect, "{wanted}");
    }

    #[test]
    fn the_nearest_name_is_found_or_none() {
        let names =
            ["create_issue", "create_pull_request", "list_issues", "navigate", "screenshot"];
        check("creat_isue", &names, Some("create_issue"));
        check("create_isseu", &names, Some("create_issue"));
        check("screnshot", &names, Some("screenshot"));
        check("screenshots", &names, Some("screenshot"));
        check("list_issue", &names, Some("list_issues"));
        check("navgate", &names, Some("navigate"));
        check("delete_repository", &names, None);
        check("x", &names, None);
        check("", &names, None);
        check(&"n".repeat(5000), &names, None);
    }
}
