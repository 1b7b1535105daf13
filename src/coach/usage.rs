//! How a tool is called, in few words: its arguments with their types, a call to copy.

use protocol::json;
use serde_json::{Map, Value};

use crate::cut;
use crate::schema::Schema;

/// How deep examples and types are spelt out.
const DEPTH: usize = 4;

/// Values of an enumeration that are spelt out.
const CHOICES: usize = 6;

/// Characters of one spelt-out value.
const VALUE: usize = 24;

/// One argument of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument {
    /// Its name.
    pub name: String,
    /// Whether a call must have it.
    pub required: bool,
    /// Its type in a word: `string`, `integer[]`, `"asc"|"desc"`; `any` when nothing is said.
    pub kind: String,
    /// What the schema says of it; empty when nothing.
    pub description: String,
}

impl Schema {
    /// The arguments in the schema's order.
    pub fn arguments(&self) -> Vec<Argument> {
        let root = self.root();
        let node = resolved(root, root, DEPTH);
        let Some(properties) = node.get("properties").and_then(Value::as_object) else {
            return Vec::new();
        };
        let required = required(node);
        let argument = |(name, schema): (&String, &Value)| Argument {
            name: name.clone(),
            required: required.contains(&name.as_str()),
            kind: kind(root, schema, DEPTH),
            description: said(root, schema),
        };
        properties.iter().map(argument).collect()
    }

    /// Arguments to copy: what is required, with values that show what is meant. A JSON object.
    pub fn example(&self) -> String {
        example(self.root(), self.root(), DEPTH)
    }

    /// `name(required: type, optional?: type)`, with at most `most` optional arguments.
    pub fn line(&self, name: &str, most: usize) -> String {
        let all = self.arguments();
        let mut words: Vec<String> = all
            .iter()
            .filter(|argument| argument.required)
            .map(|argument| format!("{}: {}", argument.name, argument.kind))
            .collect();
        let optional: Vec<_> = all.iter().filter(|argument| !argument.required).collect();
        let shown = optional.iter().take(most);
        words.extend(shown.map(|argument| format!("{}?: {}", argument.name, argument.kind)));
        if optional.len() > most {
            words.push(format!("{} more optional", optional.len() - most));
        }
        format!("{name}({})", words.join(", "))
    }

    /// The type of the argument at a place of the arguments (`["filter", "tags", "0"]`), and
    /// what is said of it; `None` where the schema says nothing plain.
    pub(crate) fn expected(&self, path: &[String]) -> Option<(String, String)> {
        let root = self.root();
        let mut at = root;
        for step in path {
            let node = resolved(root, at, DEPTH);
            let properties = node.get("properties").and_then(|all| all.get(step));
            at = properties.or_else(|| node.get("items"))?;
        }
        Some((kind(root, at, DEPTH), said(root, at)))
    }
}

/// A schema's own words, behind references and the one way that it can be when not null.
fn resolved<'a>(root: &'a Value, schema: &'a Value, depth: usize) -> &'a Map<String, Value> {
    static EMPTY: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    let Some(node) = schema.as_object() else { return &EMPTY };
    let Some(depth) = depth.checked_sub(1) else { return node };
    if node.contains_key("properties") {
        return node;
    }
    if let Some(target) = node.get("$ref").and_then(Value::as_str)
        && let Some(target) = target.strip_prefix('#').and_then(|place| root.pointer(place))
    {
        return resolved(root, target, depth);
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let branches = node.get(keyword).and_then(Value::as_array).into_iter().flatten();
        let is_null = |branch: &&Value| branch.get("type").and_then(Value::as_str) == Some("null");
        let mut ways = branches.filter(|branch| !is_null(branch));
        if let (Some(only), None) = (ways.next(), ways.next()) {
            return resolved(root, only, depth);
        }
    }
    node
}

fn required(node: &Map<String, Value>) -> Vec<&str> {
    let all = node.get("required").and_then(Value::as_array).into_iter().flatten();
    all.filter_map(Value::as_str).collect()
}

/// What is said of an argument where it stands, else where its reference leads.
fn said(root: &Value, schema: &Value) -> String {
    let of = |text: Option<&Value>| text.and_then(Value::as_str).unwrap_or_default().to_owned();
    match of(schema.get("description")) {
        words if words.is_empty() => of(resolved(root, schema, DEPTH).get("description")),
        words => words,
    }
}

/// The type in a word.
fn kind(root: &Value, schema: &Value, depth: usize) -> String {
    let node = resolved(root, schema, depth);
    let Some(depth) = depth.checked_sub(1) else { return "any".to_owned() };
    if let Some(values) = node.get("enum").and_then(Value::as_array) {
        let values: Vec<_> = values.iter().filter(|value| !value.is_null()).collect();
        let mut words: Vec<_> =
            values.iter().take(CHOICES).map(|v| cut(&v.to_string(), VALUE).into_owned()).collect();
        if values.len() > CHOICES {
            words.push("…".to_owned());
        }
        return words.join("|");
    }
    if let Some(value) = node.get("const") {
        return cut(&value.to_string(), VALUE).into_owned();
    }
    match node.get("type") {
        Some(Value::String(one)) => named(root, node, one, depth),
        Some(Value::Array(several)) => {
            let words = several.iter().filter_map(Value::as_str).filter(|word| *word != "null");
            let words: Vec<_> = words.map(|word| named(root, node, word, depth)).collect();
            words.join("|")
        }
        _ if node.contains_key("properties") => "object".to_owned(),
        _ if node.contains_key("items") => named(root, node, "array", depth),
        _ => {
            let of = |key: &str| node.get(key).and_then(Value::as_array);
            let branches = of("anyOf").or_else(|| of("oneOf")).into_iter().flatten();
            let mut words: Vec<String> = Vec::new();
            for branch in branches.take(CHOICES) {
                let word = kind(root, branch, depth);
                if word != "null" && !words.contains(&word) {
                    words.push(word);
                }
            }
            if words.is_empty() { "any".to_owned() } else { words.join("|") }
        }
    }
}

fn named(root: &Value, node: &Map<String, Value>, kind_name: &str, depth: usize) -> String {
    match (kind_name, node.get("items")) {
        ("array", Some(items)) => match kind(root, items, depth) {
            several if several.contains('|') => format!("({several})[]"),
            one => format!("{one}[]"),
        },
        ("array", None) => "any[]".to_owned(),
        (word, _) => word.to_owned(),
    }
}

/// A value to copy, raw JSON.
fn example(root: &Value, schema: &Value, depth: usize) -> String {
    let node = resolved(root, schema, depth);
    let Some(depth) = depth.checked_sub(1) else { return "{}".to_owned() };
    if let Some(given) = given(node) {
        return given;
    }
    if node.contains_key("properties") || node.get("type").and_then(Value::as_str) == Some("object")
    {
        let properties = node.get("properties").and_then(Value::as_object);
        let required = required(node);
        let wanted = properties.into_iter().flatten();
        let wanted = wanted.filter(|(name, _)| required.contains(&name.as_str()));
        let member = |(name, schema): (&String, &Value)| {
            format!("{}:{}", json::quoted(name), example(root, schema, depth))
        };
        return format!("{{{}}}", wanted.map(member).collect::<Vec<_>>().join(","));
    }
    let number = |key: &str| node.get(key).filter(|value| value.is_number()).map(Value::to_string);
    let word = kind(root, schema, depth + 1);
    match word.split('|').next().unwrap_or_default() {
        "integer" | "number" => number("minimum").unwrap_or_else(|| "1".to_owned()),
        "boolean" => "true".to_owned(),
        "null" => "null".to_owned(),
        "object" => "{}".to_owned(),
        list if list.ends_with("[]") || list.starts_with('(') => match node.get("items") {
            Some(items) => format!("[{}]", example(root, items, depth)),
            None => "[]".to_owned(),
        },
        _ => "\"…\"".to_owned(),
    }
}

/// A value that the schema itself gives, if it is short.
fn given(node: &Map<String, Value>) -> Option<String> {
    let first = |key: &str| node.get(key).and_then(Value::as_array).and_then(|all| all.first());
    let value = node.get("const").or_else(|| first("enum")).or_else(|| first("examples"))?;
    Some(value.to_string()).filter(|text| text.chars().count() <= VALUE)
}
