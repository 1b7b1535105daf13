//! Slips as models make them, a line each in `slips.jsonl`: what a tool takes, what was sent,
//! and what it must be read as. `want` is `null` for what must be refused and `"same"` for
//! what must pass untouched.

use mcpm_coach::{Schema, Verdict};
use serde_json::Value;

const TABLE: &str = include_str!("slips.jsonl");

/// Share of slips with one reading that must be mended, in percent.
const MENDED: usize = 100;

struct Slip {
    id: String,
    schema: String,
    sent: String,
    want: Value,
}

fn table() -> Vec<Slip> {
    let row = |line: &str| {
        let row: Value = serde_json::from_str(line).expect("a row is JSON");
        let text = |key: &str| row.get(key).expect("each row has each member").to_string();
        let id = row["id"].as_str().expect("`id` is a string").to_owned();
        Slip { id, schema: text("schema"), sent: text("sent"), want: row["want"].clone() }
    };
    TABLE.lines().map(row).collect()
}

#[test]
fn slips_with_one_reading_are_mended_and_no_others() {
    let (mut slips, mut mended) = (0, 0);
    let (mut missed, mut wrong) = (Vec::new(), Vec::new());
    for slip in table() {
        let verdict = Schema::compile(&slip.schema).judge(&slip.sent);
        let told = format!("{}: {} → {verdict:?}, not {}", slip.id, slip.sent, slip.want);
        match (&slip.want, verdict) {
            (Value::String(_), Verdict::Fits) | (Value::Null, Verdict::Refused(_)) => {}
            (Value::String(_) | Value::Null, _) => wrong.push(told),
            (want, Verdict::Mended { arguments, .. }) => {
                slips += 1;
                let got: Value = serde_json::from_str(&arguments).expect("JSON");
                if got == *want {
                    mended += 1;
                } else {
                    wrong.push(told);
                }
            }
            (_, Verdict::Fits) => wrong.push(told),
            (_, Verdict::Refused(_)) => {
                slips += 1;
                missed.push(told);
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    let missed_text = missed.join("\n");
    assert!(mended * 100 >= slips * MENDED, "{mended} of {slips} mended:\n{missed_text}");
    assert!(slips >= 150, "only {slips} slips in the table");
}
