//! `${NAME}` and `${NAME:-default}` in header, environment and URL values (P21).

use std::sync::Arc;

/// Where the values come from: the process's environment, and the `.env` file with it.
pub type Lookup = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Replaces the references in each value.
///
/// # Errors
/// The name of every variable that is not set and has no default.
pub fn expand<'a>(
    values: impl IntoIterator<Item = &'a str>,
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<String>, Vec<String>> {
    let mut missing = Vec::new();
    let expanded = values.into_iter().map(|v| expand_one(v, lookup, &mut missing)).collect();
    if missing.is_empty() { Ok(expanded) } else { Err(missing) }
}

fn expand_one(
    value: &str,
    lookup: &dyn Fn(&str) -> Option<String>,
    missing: &mut Vec<String>,
) -> String {
    let mut out = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(start) = rest.find("${") {
        out.push_str(&rest[..start]);
        let after = &rest[start + 2..];
        let Some(end) = after.find('}') else {
            out.push_str(&rest[start..]);
            return out;
        };
        let (name, default) = match after[..end].split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (&after[..end], None),
        };
        match lookup(name).or_else(|| default.map(str::to_owned)) {
            Some(found) => out.push_str(&found),
            None if !missing.iter().any(|known| known == name) => missing.push(name.to_owned()),
            None => {}
        }
        rest = &after[end + 1..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::expand;

    fn lookup(name: &str) -> Option<String> {
        (name == "SET").then(|| "value".to_owned())
    }

    #[test]
    fn references_and_defaults() {
        let values = ["Bearer ${SET}", "${NOT:-d}x", "$SET ${", "${NOT:-}"];
        let expanded = expand(values, &lookup).expect("all set");
        assert_eq!(expanded, ["Bearer value", "dx", "$SET ${", ""]);
    }

    #[test]
    fn missing_names_are_all_told() {
        let missing = expand(["${A} ${B}", "${A}"], &lookup);
        assert_eq!(missing, Err(vec!["A".to_owned(), "B".to_owned()]));
    }
}
