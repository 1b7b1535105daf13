//! What is wrong with arguments, a phrase for each problem, in words that say what to send.

use jsonschema::Validator;
use jsonschema::error::{ValidationError, ValidationErrorKind as Kind};
use serde_json::Value;

use crate::cut;
use crate::nearest::{nearest, normal};
use crate::schema::Schema;

/// Problems that are told; the rest is counted.
const MOST: usize = 8;

/// Characters of what was sent, or is said of an argument, that are shown.
const SHOWN: usize = 60;

/// Every problem of `value`, which is not valid under `whole`; at least one.
pub(crate) fn all(schema: &Schema, whole: &Validator, value: &Value) -> Vec<String> {
    let mut told: Vec<String> = Vec::new();
    let mut more = 0;
    for error in whole.iter_errors(value) {
        for text in one(schema, &error) {
            match told.len() {
                _ if told.contains(&text) => {}
                MOST => more += 1,
                _ => told.push(text),
            }
        }
    }
    // A name that the schema does not know, where one that it wants is missing, was perhaps meant
    // for it, whether or not others are allowed.
    if told.iter().any(|text| text.contains("` is missing")) {
        let names: Vec<String> = schema.arguments().into_iter().map(|each| each.name).collect();
        let sent = value.as_object().into_iter().flat_map(|members| members.keys());
        for extra in sent.filter(|name| !names.contains(name)) {
            let text = unknown(schema, &[], extra);
            if told.len() < MOST && !told.contains(&text) {
                told.push(text);
            }
        }
    }
    if more > 0 {
        told.push(format!("{more} more problems"));
    }
    if told.is_empty() {
        told.push("they do not fit the schema".to_owned());
    }
    told
}

fn one(schema: &Schema, error: &ValidationError<'_>) -> Vec<String> {
    let path: Vec<String> = steps(&error.instance_path().to_string());
    let name = named(&path);
    let sent = || format!("you sent {}", cut(&error.instance().to_string(), SHOWN));
    match error.kind() {
        Kind::Required { property } => {
            let missing = property.as_str().unwrap_or_default();
            let mut whole = path.clone();
            whole.push(missing.to_owned());
            vec![format!("`{}` is missing{}", named_plain(&whole), hint(schema, &whole))]
        }
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            unexpected.iter().map(|extra| unknown(schema, &path, extra)).collect()
        }
        // The one form that was meant, if it is clear which: its own problems say more.
        Kind::AnyOf { context } | Kind::OneOfNotValid { context }
            if meant(error, context).is_some() =>
        {
            let errors = meant(error, context).into_iter().flatten();
            errors.flat_map(|error| one(schema, error)).collect()
        }
        Kind::Type { .. } | Kind::AnyOf { .. } | Kind::OneOfNotValid { .. } => {
            let expected = schema.expected(&path).map(|(kind, _)| kind);
            let wanted = match expected.filter(|kind| kind != "any") {
                Some(kind) => with_article(kind),
                None => "of another form".to_owned(),
            };
            vec![format!("{name} must be {wanted}; {}", sent())]
        }
        Kind::Enum { options } => {
            let all: Vec<String> =
                options.as_array().into_iter().flatten().map(Value::to_string).collect();
            let sent_text = error.instance().to_string();
            let meant = nearest(&sent_text, all.iter().map(String::as_str));
            let meant = meant.map(|word| format!("; did you mean {word}?")).unwrap_or_default();
            let shown = all.iter().take(12).cloned().collect::<Vec<_>>().join(", ");
            let dots = if all.len() > 12 { ", …" } else { "" };
            vec![format!("{name} must be one of {shown}{dots}; {}{meant}", sent())]
        }
        Kind::Constant { expected_value } => {
            vec![format!("{name} must be {expected_value}; {}", sent())]
        }
        Kind::OneOfMultipleValid { .. } => {
            vec![format!("{name} fits more than one of its forms; leave out what is not needed")]
        }
        Kind::FalseSchema => vec![format!("{name} must be left out")],
        _ => vec![format!("{name}: {}", cut(&error.to_string(), 2 * SHOWN))],
    }
}

/// The errors of the only branch that takes values of the kind that was sent.
fn meant<'e>(
    whole: &ValidationError<'_>,
    branches: &'e [Vec<ValidationError<'static>>],
) -> Option<&'e Vec<ValidationError<'static>>> {
    let wrong_kind = |error: &ValidationError<'_>| {
        matches!(error.kind(), Kind::Type { .. }) && error.instance_path() == whole.instance_path()
    };
    let mut fitting = branches.iter().filter(|errors| !errors.iter().any(wrong_kind));
    fitting.next().filter(|_| fitting.next().is_none())
}

fn with_article(kind: String) -> String {
    match kind.as_str() {
        "string" | "number" | "boolean" => format!("a {kind}"),
        "integer" | "object" => format!("an {kind}"),
        _ => kind,
    }
}

/// A name that the schema does not have.
fn unknown(schema: &Schema, path: &[String], extra: &str) -> String {
    let mut whole = path.to_vec();
    whole.push(extra.to_owned());
    let known: Vec<String> = match path {
        [] => schema.arguments().into_iter().map(|argument| argument.name).collect(),
        _ => Vec::new(),
    };
    let same = known.iter().find(|name| normal(name) == normal(extra));
    let meant =
        same.map(String::as_str).or_else(|| nearest(extra, known.iter().map(|n| n.as_str())));
    let meant = meant.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
    format!("`{}` is not an argument{meant}", named_plain(&whole))
}

/// What an argument should be, in brackets.
fn hint(schema: &Schema, path: &[String]) -> String {
    match schema.expected(path) {
        Some((kind, said)) if said.is_empty() => format!(" ({kind})"),
        Some((kind, said)) => {
            let opening = said.lines().next().unwrap_or_default();
            format!(" ({kind}: {})", cut(opening.trim(), SHOWN))
        }
        None => String::new(),
    }
}

fn steps(pointer: &str) -> Vec<String> {
    let plain = |step: &str| step.replace("~1", "/").replace("~0", "~");
    pointer.split('/').skip(1).map(plain).collect()
}

fn named(path: &[String]) -> String {
    if path.is_empty() { "the whole".to_owned() } else { format!("`{}`", named_plain(path)) }
}

fn named_plain(path: &[String]) -> String {
    let mut out = String::new();
    for step in path {
        if step.bytes().all(|byte| byte.is_ascii_digit()) && !out.is_empty() {
            out.push_str(&format!("[{step}]"));
        } else {
            if !out.is_empty() {
                out.push('.');
            }
            out.push_str(&cut(step, SHOWN));
        }
    }
    out
}
