//! The readers of messages and of event streams, against models that are slower and simpler.
//! `fuzz/` runs the same checks on bytes that a fuzzer makes up.

mod events;
mod message;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// JSON text of any kind, well-formed but for what is odd on purpose.
fn json() -> impl Strategy<Value = String> {
    let odd = [
        "null",
        "true",
        "0",
        "-0",
        "1.0",
        "1.5e3",
        "1e999",
        "99999999999999999999",
        "-7",
        "\"\"",
        r#""\u0000""#,
        r#""\ud800""#,
        r#""\ud83c\udf89""#,
        r#""é \" \\ \n""#,
        "{}",
        "[ ]",
        "01",
        "+1",
    ];
    let leaf = prop_oneof![
        select(odd.to_vec()).prop_map(str::to_owned),
        any::<String>().prop_map(|text| serde_json::to_string(&text).expect("a string")),
        any::<i64>().prop_map(|number| number.to_string()),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let key = select(vec!["a", "name", "_meta", "id", "method", "a"]);
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(|items| format!("[{}]", items.join(" , "))),
            vec((key, inner), 0..4).prop_map(|members| {
                let members = members.iter().map(|(key, value)| format!("\"{key}\" : {value}"));
                format!("{{{}}}", members.collect::<Vec<_>>().join(","))
            }),
        ]
    })
}

/// Objects with the members that matter, right, wrong, twice, or not there.
fn message() -> impl Strategy<Value = String> {
    let member = prop_oneof![
        4 => Just(r#""jsonrpc":"2.0""#.to_owned()),
        1 => select(vec![r#""jsonrpc":"2\u002e0""#, r#""jsonrpc":"1.0""#, r#""jsonrpc":2.0"#])
            .prop_map(str::to_owned),
        4 => select(vec!["7", "\"a\"", "0", "-3", "null"]).prop_map(|id| format!("\"id\":{id}")),
        1 => json().prop_map(|id| format!("\"id\" :{id}")),
        3 => any::<String>().prop_map(|method| {
            format!("\"method\":{}", serde_json::to_string(&method).expect("a string"))
        }),
        1 => json().prop_map(|method| format!("\"m\\u0065thod\":{method}")),
        2 => json().prop_map(|params| format!("\"params\":{params}")),
        1 => json().prop_map(|params| format!("\"params\":{{\"name\":{params}}}")),
        1 => json().prop_map(|result| format!("\"result\":{result}")),
        1 => json().prop_map(|error| format!("\"error\":{error}")),
    ];
    vec(member, 0..7).prop_map(|members| format!("{{{}}}", members.join(", ")))
}

/// What happens to bytes on a bad day.
#[derive(Debug, Clone)]
enum Mutation {
    Set(u8),
    Insert(u8),
    Remove(usize),
    Repeat(usize),
    End,
}

fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let mutation = prop_oneof![
        any::<u8>().prop_map(Mutation::Set),
        select(b"\"\\{}[]:,0\0\xff u".to_vec()).prop_map(Mutation::Insert),
        (1..9_usize).prop_map(Mutation::Remove),
        (1..9_usize).prop_map(Mutation::Repeat),
        Just(Mutation::End),
    ];
    (message(), vec((any::<prop::sample::Index>(), mutation), 1..5)).prop_map(|(text, changes)| {
        let mut bytes = text.into_bytes();
        for (place, mutation) in changes {
            let at = place.index(bytes.len() + 1);
            let to = |count: usize| (at + count).min(bytes.len());
            match mutation {
                Mutation::Set(byte) if at < bytes.len() => bytes[at] = byte,
                Mutation::Set(byte) | Mutation::Insert(byte) => bytes.insert(at, byte),
                Mutation::Remove(count) => drop(bytes.drain(at..to(count))),
                Mutation::Repeat(count) => {
                    let again = bytes[at..to(count)].to_vec();
                    bytes.splice(at..at, again);
                }
                Mutation::End => bytes.truncate(at),
            }
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn messages_are_read_as_the_model_reads_them(text in message()) {
        message::check(text.as_bytes());
    }

    #[test]
    fn mutated_messages_are_read_as_the_model_reads_them(bytes in mutated()) {
        message::check(&bytes);
    }

    #[test]
    fn batches_are_read_as_the_model_reads_them(texts in vec(prop_oneof![message(), json()], 0..5)) {
        message::check(format!(" [{}]", texts.join(",")).as_bytes());
    }

    #[test]
    fn any_bytes_are_read_as_the_model_reads_them(bytes in vec(any::<u8>(), 0..200)) {
        message::check(&bytes);
        events::check(&bytes, &[1, 2, 7]);
    }

    #[test]
    fn events_are_the_same_however_the_bytes_are_cut(
        parts in vec(select(events::PARTS.to_vec()), 0..40),
        cuts in vec(1..9_usize, 1..6),
    ) {
        events::check(&parts.concat(), &cuts);
    }
}

#[test]
fn an_endless_line_is_refused_before_it_fills_the_memory() {
    for line in [&b"data: xxxxxxxx"[..], b"xxxxxxxxxxxxxx", b"data:xxxxxxx\n", b": xxxxxxxxxx"] {
        let mut reader = mcpm_protocol::sse::Reader::new(1000);
        let taken = (0..1000).take_while(|_| reader.push(line, |_| ()).is_ok()).count();
        assert!(taken * line.len() < 2500, "{taken} times {:?}", String::from_utf8_lossy(line));
    }
}
