//! `x-mcp-header`: arguments that a tool wants mirrored into HTTP headers (F67, U9, U10).

use serde_json::Value;

use crate::headers;
use crate::json::{self, Members};

/// The header parameters that an input schema declares, as (property path, header name);
/// nested properties are joined with `/` escaped as in JSON Pointer.
///
/// # Errors
/// Says which rule the annotations break; the tool is then not offered.
pub fn declared(schema: &str) -> Result<Vec<(String, String)>, &'static str> {
    if !schema.contains("x-mcp-header") {
        return Ok(Vec::new());
    }
    let Ok(schema) = serde_json::from_str::<Value>(schema) else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    reach(&schema, "", &mut found)?;
    if found.len() != count(&schema) {
        return Err("the property cannot be reached by `properties` alone");
    }
    let mut names: Vec<_> = found.iter().map(|(_, name)| name.to_ascii_lowercase()).collect();
    names.sort_unstable();
    names.dedup();
    if names.len() != found.len() { Err("the same header name twice") } else { Ok(found) }
}

/// Checks the headers of a call against its arguments; `header` looks one up by full name.
///
/// # Errors
/// Names the header that is missing or differs.
pub fn verify<'h>(
    declared: &[(String, String)],
    arguments: Option<&str>,
    header: impl Fn(&str) -> Option<&'h str>,
) -> Result<(), String> {
    for (path, name) in declared {
        let Some(expected) = argument(arguments, path) else { continue };
        let full = format!("{}{}", headers::PARAM_PREFIX, name.to_ascii_lowercase());
        let sent = header(&full).and_then(headers::decode);
        if !sent.is_some_and(|sent| expected.is(&sent)) {
            return Err(format!("header `Mcp-Param-{name}` must repeat the argument `{path}`"));
        }
    }
    Ok(())
}

/// The headers to send along with a call.
pub fn build(declared: &[(String, String)], arguments: Option<&str>) -> Vec<(String, String)> {
    declared
        .iter()
        .filter_map(|(path, name)| {
            let value = argument(arguments, path)?;
            Some((format!("{}{}", headers::PARAM_PREFIX, name), headers::encode(&value.text)))
        })
        .collect()
}

fn reach(
    schema: &Value,
    path: &str,
    found: &mut Vec<(String, String)>,
) -> Result<(), &'static str> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Ok(());
    };
    for (key, property) in properties {
        let path = format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
        if let Some(name) = property.get("x-mcp-header") {
            let name = name.as_str().ok_or("the header name must be a string")?;
            if name.is_empty() || !name.bytes().all(is_token) {
                return Err("the header name must be an HTTP token");
            }
            if !matches!(
                property.get("type").and_then(Value::as_str),
                Some("string" | "integer" | "boolean")
            ) {
                return Err("the property must be a string, an integer or a boolean");
            }
            found.push((path.clone(), name.to_owned()));
        }
        reach(property, &path, found)?;
    }
    Ok(())
}

/// How many annotations there are anywhere. A property that is itself called
/// `x-mcp-header` has a schema (an object) for a value and is not one.
fn count(value: &Value) -> usize {
    match value {
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| {
                usize::from(key == "x-mcp-header" && !value.is_object()) + count(value)
            })
            .sum(),
        Value::Array(list) => list.iter().map(count).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// An argument as header text.
struct Argument {
    text: String,
    is_number: bool,
}

impl Argument {
    /// Integers compare as numbers (`1.0` is `1`), everything else as text.
    fn is(&self, sent: &str) -> bool {
        let number = |text: &str| text.parse::<f64>().ok().filter(|n| n.abs() < 2f64.powi(53));
        sent == self.text
            || self.is_number
                && matches!((number(sent), number(&self.text)), (Some(a), Some(b)) if a == b)
    }
}

/// The argument at a path; `None` when absent, null or not a scalar.
fn argument(arguments: Option<&str>, path: &str) -> Option<Argument> {
    let mut raw = arguments?.to_owned();
    for step in path.split('/').skip(1) {
        let key = step.replace("~1", "/").replace("~0", "~");
        let next = Members::parse(&raw).ok()?.get(&key)?.to_owned();
        raw = next;
    }
    match raw.as_bytes().first()? {
        b'"' => {
            json::string(&raw).map(|text| Argument { text: text.into_owned(), is_number: false })
        }
        b'{' | b'[' | b'n' => None,
        b't' | b'f' => Some(Argument { text: raw, is_number: false }),
        _ => Some(Argument { text: raw, is_number: true }),
    }
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::{build, declared, verify};

    const SCHEMA: &str = r#"{"type":"object","properties":{"text":{"type":"string","x-mcp-header":"Text"},"o":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}}}}"#;

    #[test]
    fn declared_paths() {
        let paths = declared(SCHEMA).expect("valid annotations");
        assert_eq!(paths, [("/text".into(), "Text".into()), ("/o/n".into(), "N".into())]);
    }

    #[test]
    fn built_and_verified() {
        let paths = declared(SCHEMA).expect("valid annotations");
        let arguments = Some(r#"{"text":"ü","o":{"n":5}}"#);
        let built = build(&paths, arguments);
        assert_eq!(built[0], ("mcp-param-Text".into(), "=?base64?w7w=?=".into()));
        let find = |name: &str| {
            built.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
        };
        assert_eq!(verify(&paths, arguments, find), Ok(()));
        assert!(verify(&paths, arguments, |_| None).is_err());
        assert_eq!(verify(&paths, Some(r#"{"text":null}"#), |_| None), Ok(()));
    }

    #[test]
    fn broken_annotations() {
        for property in [
            r#"{"type":"string","x-mcp-header":""}"#,
            r#"{"type":"string","x-mcp-header":"a b"}"#,
            r#"{"type":"array","x-mcp-header":"A"}"#,
            r#"{"anyOf":[{"type":"string","x-mcp-header":"A"}]}"#,
        ] {
            let schema = format!(r#"{{"properties":{{"p":{property}}}}}"#);
            assert!(declared(&schema).is_err(), "{property}");
        }
        let twice = r#"{"properties":{"a":{"type":"string","x-mcp-header":"X"},"b":{"type":"string","x-mcp-header":"x"}}}"#;
        assert!(declared(twice).is_err());
    }
}
