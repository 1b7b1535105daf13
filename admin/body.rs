//! What was sent, read field by field, so that a refusal can name the field.

use catalog::Secret;
use gateway::manage::Field;
use serde_json::{Map, Value};

use crate::error::Error;

/// The members of a JSON object that are not read yet.
#[derive(Debug)]
pub(crate) struct Fields(Map<String, Value>);

impl Fields {
    /// Reads a body that may hold the known fields and no others.
    pub(crate) fn parse(body: &[u8], known: &[&str]) -> Result<Self, Error> {
        if body.trim_ascii().is_empty() {
            return Err(Error::Bad("the body is empty; send a JSON object".to_owned()));
        }
        let value: Value = serde_json::from_slice(body)
            .map_err(|error| Error::Bad(format!("the body is not JSON: {error}")))?;
        let Value::Object(map) = value else {
            let kind = kind(&value);
            return Err(Error::Bad(format!("the body must be a JSON object, not {kind}")));
        };
        match map.keys().find(|name| !known.contains(&name.as_str())) {
            Some(name) => Err(Error::Bad(unknown(name, known))),
            None => Ok(Self(map)),
        }
    }

    /// A string, or null.
    pub(crate) fn text(&mut self, name: &str) -> Result<Field<String>, Error> {
        self.read(name, |value| string(name, value))
    }

    /// `true`, `false`, or null.
    pub(crate) fn flag(&mut self, name: &str) -> Result<Field<bool>, Error> {
        self.read(name, |value| match value {
            Value::Bool(flag) => Ok(flag),
            other => Err(wrong(name, "true or false", &other)),
        })
    }

    /// A whole number of 0 or more, or null.
    pub(crate) fn number(&mut self, name: &str) -> Result<Field<u64>, Error> {
        self.read(name, |value| match &value {
            Value::Number(number) => number.as_u64().ok_or_else(|| {
                Error::Bad(format!("`{name}` must be a whole number of 0 or more, not {number}"))
            }),
            other => Err(wrong(name, "a number", other)),
        })
    }

    /// An array of strings, or null.
    pub(crate) fn texts(&mut self, name: &str) -> Result<Field<Vec<String>>, Error> {
        self.read(name, |value| match value {
            Value::Array(list) => {
                let item = |(place, value)| string(&format!("{name}[{place}]"), value);
                list.into_iter().enumerate().map(item).collect()
            }
            other => Err(wrong(name, "an array of strings", &other)),
        })
    }

    /// An object of strings in its order, or null.
    pub(crate) fn pairs(&mut self, name: &str) -> Result<Field<Vec<(String, Secret)>>, Error> {
        self.read(name, |value| match value {
            Value::Object(map) => {
                let pair = |(key, value): (String, Value)| {
                    let value = string(&format!("{name}.{key}"), value)?;
                    Ok((key, Secret::new(value)))
                };
                map.into_iter().map(pair).collect()
            }
            other => Err(wrong(name, "an object of strings", &other)),
        })
    }

    fn read<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(Value) -> Result<T, Error>,
    ) -> Result<Field<T>, Error> {
        Ok(match self.0.remove(name) {
            None => Field::Keep,
            Some(Value::Null) => Field::Reset,
            Some(value) => Field::Set(read(value)?),
        })
    }
}

fn string(name: &str, value: Value) -> Result<String, Error> {
    match value {
        Value::String(text) => Ok(text),
        other => Err(wrong(name, "a string", &other)),
    }
}

/// The value itself is left out: it may be a secret in the wrong place.
fn wrong(name: &str, expected: &str, found: &Value) -> Error {
    Error::Bad(format!("`{name}` must be {expected}, not {}", kind(found)))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn unknown(name: &str, known: &[&str]) -> String {
    let near = |candidate: &&&str| strsim::jaro_winkler(name, candidate);
    let nearest = known.iter().max_by(|a, b| near(a).total_cmp(&near(b)));
    match nearest.filter(|nearest| near(nearest) > 0.8) {
        Some(nearest) => format!("there is no field `{name}`; did you mean `{nearest}`?"),
        None => {
            let known: Vec<_> = known.iter().map(|field| format!("`{field}`")).collect();
            format!("there is no field `{name}`; there are {}", known.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use gateway::manage::Field;

    use super::Fields;
    use crate::error::Error;

    const KNOWN: &[&str] = &["name", "enabled", "timeout_ms", "defaults", "headers"];

    fn read(body: &str) -> Result<String, Error> {
        let mut fields = Fields::parse(body.as_bytes(), KNOWN)?;
        let name = fields.text("name")?;
        let enabled = fields.flag("enabled")?;
        let timeout = fields.number("timeout_ms")?;
        let defaults = fields.texts("defaults")?;
        let headers = fields.pairs("headers")?;
        Ok(format!("{name:?} {enabled:?} {timeout:?} {defaults:?} {headers:?}"))
    }

    fn check(body: &str, expect: &str) {
        assert_eq!(read(body).unwrap_or_else(|error| error.to_string()), expect);
    }

    #[test]
    fn absent_null_and_set() {
        check("{}", "Keep Keep Keep Keep Keep");
        check(
            r#"{"name":null,"headers":null,"enabled":false,"timeout_ms":5,"defaults":["a"]}"#,
            r#"Reset Set(false) Set(5) Set(["a"]) Reset"#,
        );
        check(
            r#"{"headers":{"B":"1","A":"2"}}"#,
            r#"Keep Keep Keep Keep Set([("B", ***), ("A", ***)])"#,
        );
        assert_eq!(Field::Set(1).over(2, 3), 1);
    }

    #[test]
    fn refusals_name_the_field() {
        let bodies = [
            "",
            "{\"name\":",
            "[]",
            r#"{"naem":"x"}"#,
            r#"{"zzz":1}"#,
            r#"{"name":1}"#,
            r#"{"enabled":"true"}"#,
            r#"{"timeout_ms":-5}"#,
            r#"{"timeout_ms":1.5}"#,
            r#"{"timeout_ms":"5"}"#,
            r#"{"defaults":"a"}"#,
            r#"{"defaults":["a",1]}"#,
            r#"{"headers":{"X":null}}"#,
            r#"{"headers":["X"]}"#,
        ];
        let told: Vec<_> =
            bodies.iter().map(|body| read(body).expect_err("refused").to_string()).collect();
        insta::assert_snapshot!(told.join("\n"), @r"
        the body is empty; send a JSON object
        the body is not JSON: EOF while parsing a value at line 1 column 8
        the body must be a JSON object, not an array
        there is no field `naem`; did you mean `name`?
        there is no field `zzz`; there are `name`, `enabled`, `timeout_ms`, `defaults`, `headers`
        `name` must be a string, not a number
        `enabled` must be true or false, not a string
        `timeout_ms` must be a whole number of 0 or more, not -5
        `timeout_ms` must be a whole number of 0 or more, not 1.5
        `timeout_ms` must be a number, not a string
        `defaults` must be an array of strings, not a string
        `defaults[1]` must be a string, not a number
        `headers.X` must be a string, not null
        `headers` must be an object of strings, not an array
        ");
    }

    #[test]
    fn deep_nesting_is_an_error_not_an_overflow() {
        let deep = format!("{{\"name\":{}", "[".repeat(100_000));
        assert!(read(&deep).is_err());
        assert!(Fields::parse(b"{\"name\":\"\xff\"}", KNOWN).is_err());
    }
}
