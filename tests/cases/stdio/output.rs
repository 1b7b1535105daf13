//! STD-01, 02, 05: what local programs print.

use serde_json::{Value, json};

use super::{rough, said};
use crate::support::gateway::Gateway;
use crate::support::mcp::Peer;
use crate::support::peers::Local;
use crate::support::process::memory;
use crate::support::{SOON, eventually};

#[test]
fn std_01_lines_that_are_no_message_are_passed_over_and_the_first_is_shown() {
    let (gateway, mut session) = rough(&["noisy"]);
    let first = session.call("pid", "{}").text();
    for _ in 0..5 {
        assert_eq!(session.call("t", "{}").text(), "t");
    }
    assert_eq!(session.call("pid", "{}").text(), first, "the process was started anew");
    let server = gateway.server("rough");
    assert_eq!((&server["status"], &server["error"]), (&json!("connected"), &Value::Null));
    let said = said(&gateway, "rough");
    assert!(said.iter().any(|line| line.contains("Server 1.0 is ready.")), "{said:?}");
    assert!(said.len() < 20, "not all of it: {said:?}");
    // How many there were is told when the program ends.
    gateway.api("DELETE", "/upstreams/rough", &Value::Null);
    eventually("the number of them in the log", SOON, || {
        let log = gateway.whole_log();
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let counts = lines.filter_map(|line| line["fields"]["strays"].as_u64());
        counts.max().filter(|most| *most >= 60)
    });
}

#[test]
fn std_01_a_byte_order_mark_before_the_first_message_is_none_of_it() {
    let gateway = Gateway::start();
    let mut registration = Local::rough(&["bom"]).registration();
    registration["timeout_ms"] = json!(2000);
    gateway.add_server(&registration);
    let mut session = gateway.session(&gateway.add_key("full"));
    assert_eq!(session.call("t", "{}").text(), "t");
}

#[test]
fn std_02_a_talkative_program_never_stalls_and_its_last_words_are_kept() {
    let (gateway, mut session) = rough(&[]);
    for lines in [true, false] {
        for _ in 0..3 {
            let arguments = json!({"size": 1 << 20, "lines": lines}).to_string();
            assert_eq!(session.call("errors", &arguments).text(), "said");
        }
        // It is read beside the answers.
        let said = eventually("what it said", SOON, || {
            Some(said(&gateway, "rough")).filter(|said| !said.is_empty())
        });
        let size: usize = said.iter().map(String::len).sum();
        assert!(size <= 128 << 10, "{size} bytes are kept");
        assert!(said[0].starts_with("eeee"), "{}", said[0]);
    }
}

#[test]
fn std_05_a_long_line_is_read_however_it_is_cut() {
    const SIZE: usize = 8 << 20;
    let (_gateway, mut session) = rough(&[]);
    let answer = session.call("pieces", &json!({ "size": SIZE }).to_string()).text();
    assert_eq!(answer.len(), SIZE);
    assert!(answer.as_bytes().chunks(16).all(|part| part == b"0123456789abcdef"));
    assert_eq!(session.call("t", "{}").text(), "t");
}

#[test]
fn std_05_a_line_without_an_end_is_cut_and_told() {
    /// In KiB.
    const LIMIT: usize = 64 << 10;
    let gateway = Gateway::start();
    gateway.add_server(&Local::rough(&[]).registration());
    let mut session = gateway.session(&gateway.add_key("full"));
    assert_eq!(session.call("t", "{}").text(), "t");
    let before = memory(gateway.pid());
    for round in 1..=3 {
        let answer = session.call("endless", "{}");
        assert!(answer.is_refusal(), "{answer:?}");
        assert!(answer.text().contains("longer than"), "the reason is told: {answer:?}");
        // A buffer that grows is there twice for a moment, and the allocator of each thread gives
        // back what it had only after a while.
        let grown = memory(gateway.pid()).saturating_sub(before);
        assert!(grown < 8 * LIMIT, "{grown} KiB more in round {round}, the limit is {LIMIT}");
        eventually("an answer of a new process", SOON, || {
            (session.call("t", "{}").text() == "t").then_some(())
        });
    }
}
