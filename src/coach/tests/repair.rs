//! Properties of the verdict on arguments: what is valid passes as it is, what is mended is
//! valid, and nothing that is sent or declared can bring it down.

use mcpm_coach::{Schema, Verdict};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// A schema, and a value that is valid under it.
#[derive(Debug, Clone)]
struct Pair {
    schema: Value,
    value: Value,
}

fn pair(schema: Value, value: impl Into<Value>) -> Pair {
    Pair { schema, value: value.into() }
}

fn text() -> impl Strategy<Value = String> {
    // What looks like something else is what is at stake.
    prop_oneof![
        "[ -~]{0,12}",
        Just("5".to_owned()),
        Just("true".to_owned()),
        Just("null".to_owned()),
        Just("[1]".to_owned()),
        Just("{\"a\":1}".to_owned()),
        Just("OPEN".to_owned()),
        any::<String>().prop_map(|text| text.chars().take(20).collect()),
    ]
}

fn leaf() -> impl Strategy<Value = Pair> {
    prop_oneof![
        text().prop_map(|t| pair(json!({"type": "string"}), t)),
        any::<i64>().prop_map(|n| pair(json!({"type": "integer"}), n)),
        (-1e15..1e15f64).prop_map(|n| pair(json!({"type": "number"}), n)),
        any::<bool>().prop_map(|b| pair(json!({"type": "boolean"}), b)),
        Just(pair(json!({"anyOf": [{"type": "integer"}, {"type": "null"}]}), Value::Null)),
        Just(pair(json!({"type": ["string", "null"]}), Value::Null)),
        Just(pair(json!({"enum": ["open", "OPEN", "closed"]}), "OPEN")),
        Just(pair(json!({"const": "Page"}), "Page")),
        text().prop_map(|t| pair(json!({}), t)),
        text().prop_map(|t| pair(
            json!({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
            t
        )),
        any::<u32>().prop_map(|n| pair(json!({"$ref": "#/$defs/Count"}), n)),
    ]
}

fn nested() -> impl Strategy<Value = Pair> {
    leaf().prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            (inner.clone(), 0..3usize).prop_map(|(item, count)| {
                let values = vec![item.value.clone(); count];
                pair(json!({"type": "array", "items": item.schema}), values)
            }),
            prop::collection::vec((inner, any::<bool>(), any::<bool>()), 0..4).prop_map(object),
        ]
    })
}

/// Members, each with whether it is required and whether it is sent.
fn object(members: Vec<(Pair, bool, bool)>) -> Pair {
    let (mut properties, mut required, mut value) = (Map::new(), Vec::new(), Map::new());
    for (number, (member, needed, sent)) in members.into_iter().enumerate() {
        let name = format!("member_{number}");
        if needed || sent {
            value.insert(name.clone(), member.value);
        }
        if needed {
            required.push(Value::from(name.clone()));
        }
        properties.insert(name, member.schema);
    }
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), properties.into());
    schema.insert("required".to_owned(), required.into());
    Pair { schema: schema.into(), value: value.into() }
}

fn arguments() -> impl Strategy<Value = Pair> {
    prop::collection::vec((nested(), any::<bool>(), any::<bool>()), 0..5).prop_map(|members| {
        let mut whole = object(members);
        whole.schema["$defs"] = json!({"Count": {"type": "integer", "minimum": 0}});
        whole
    })
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((keyword(), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn keyword() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "type",
        "properties",
        "items",
        "anyOf",
        "oneOf",
        "allOf",
        "$ref",
        "required",
        "enum",
        "a",
        "member_0",
        "not",
        "if",
        "additionalProperties",
        "prefixItems",
        "const",
        "minimum",
    ])
    .prop_map(str::to_owned)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn what_is_valid_is_never_touched(whole in arguments()) {
        let schema = Schema::compile(&whole.schema.to_string());
        prop_assert_eq!(schema.judge(&whole.value.to_string()), Verdict::Fits);
    }

    #[test]
    fn what_is_mended_is_valid(whole in arguments(), sent in any_json()) {
        let schema = Schema::compile(&whole.schema.to_string());
        let mut value = whole.value;
        // One member replaced by anything.
        if let Some(members) = value.as_object_mut()
            && let Some(first) = members.values_mut().next()
        {
            *first = sent;
        }
        match schema.judge(&value.to_string()) {
            Verdict::Mended { arguments, changes } => {
                prop_assert!(!changes.is_empty());
                prop_assert_eq!(schema.judge(&arguments), Verdict::Fits);
            }
            Verdict::Refused(problems) => prop_assert!(!problems.is_empty()),
            Verdict::Fits => {}
        }
    }

    #[test]
    fn no_schema_and_no_arguments_bring_it_down(schema in any_json(), sent in any_json()) {
        let schema = Schema::compile(&schema.to_string());
        let _ = schema.judge(&sent.to_string());
        let _ = (schema.line("x", 5), schema.example());
    }
}

#[test]
fn schemas_in_a_circle_end() {
    let circles = [
        json!({"$ref": "#"}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"anyOf": [{"$ref": "#"}, {"type": "null"}]}),
        json!({"properties": {"x": {"$ref": "#"}}, "required": ["x"]}),
        json!({"type": "object", "properties": {"x": {"items": {"$ref": "#/properties/x"}, "type": "array"}}}),
        json!({"not": {"$ref": "#"}}),
    ];
    for schema in circles {
        let schema = Schema::compile(&schema.to_string());
        let deep = format!("{{\"x\":{}1{}}}", "[".repeat(100), "]".repeat(100));
        for sent in ["{}", r#"{"x":"1"}"#, r#"{"x":{"x":{"x":"[1]"}}}"#, &deep] {
            let _ = schema.judge(sent);
        }
        let _ = (schema.line("x", 5), schema.example());
    }
}

#[test]
fn what_cannot_be_checked_passes() {
    let check = |schema: &str, sent: &str| {
        assert_eq!(Schema::compile(schema).judge(sent), Verdict::Fits, "{schema}");
    };
    let integer = r#"{"properties":{"n":{"type":"integer"}}}"#;
    let deep = format!("{{\"n\":{}{}}}", "[".repeat(3000), "]".repeat(3000));
    check(integer, &deep);
    check(integer, r#"{"n":1e400}"#);
    check("not json", r#"{"n":"x"}"#);
    check(&"[".repeat(3000), r#"{"n":"x"}"#);
    check(r#"{"properties":{"n":{"pattern":"("}}}"#, r#"{"n":"x"}"#);
    check(
        r#"{"$schema":"https://example.com/unknown","properties":{"n":{"type":"integer"}}}"#,
        r#"{"n":"x"}"#,
    );
    check(r##"{"properties":{"n":{"$ref":"#/$defs/missing"}}}"##, r#"{"n":"x"}"#);
}

#[test]
fn only_what_is_changed_is_written_anew() {
    let schema = Schema::compile(
        r#"{"type":"object","properties":{"n":{"type":"integer"},"big":{"type":"number"},"s":{"type":"string"},"o":{"type":"object"}}}"#,
    );
    let sent = r#"{"big":12345678901234567890.50,"n":"5","s":"\u00fc\/","o":{"z" : 1e2,"a":[ ]}}"#;
    let Verdict::Mended { arguments, changes } = schema.judge(sent) else { panic!("not mended") };
    assert_eq!(
        arguments,
        r#"{"big":12345678901234567890.50,"n":5,"s":"\u00fc\/","o":{"z" : 1e2,"a":[ ]}}"#
    );
    assert_eq!(changes, ["`n`: \"5\" → 5"]);
}
