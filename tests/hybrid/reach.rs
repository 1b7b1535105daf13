//! What is out of a group's reach does not exist for its apps (P44): whatever they ask, they get
//! what they would get if it were nowhere.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::gateway::Gateway;
use crate::support::mcp::Peer;
use crate::support::odd::Odd;

/// Names that a hidden tool and its server may have, near to those within reach and far.
const WORDS: [&str; 6] = ["mail", "send_mail", "sendmail", "weather", "mail__send", "zebra"];

fn tool(name: &str) -> String {
    format!(
        r#"{{"name":"{name}","description":"Sends zebras by {name}.","inputSchema":{{"type":"object","properties":{{"url":{{"type":"string"}}}}}}}}"#
    )
}

/// Every question of an app about `name`, with the answers as text.
fn answers(session: &mut impl Peer, name: &str) -> Vec<String> {
    let mut all = vec![session.request("tools/list", "{}").result().to_owned()];
    for form in [name.to_owned(), format!("hidden.{name}"), format!("mcp__hidden__{name}")] {
        let inner = json!({"name": form, "arguments": {}}).to_string();
        all.push(session.call("call_tool", &inner).0);
        all.push(session.call(&form, "{}").0);
    }
    for query in [name, "send zebras", "hidden", ""] {
        all.push(session.call("search_tools", &json!({"query": query}).to_string()).0);
    }
    all.push(session.call("list_mcpservers", "{}").0);
    all.push(session.call("get_tools_from_server", r#"{"server":"hidden"}"#).0);
    all
}

#[test]
fn p44_what_is_out_of_reach_answers_like_what_is_nowhere() {
    let gateway = Gateway::start();
    let seen = Odd::of(&[&tool("mail_zebras"), &tool("weather_now")]).start();
    gateway.add_server(&seen.registration("seen"));
    let mut number = 0u64;
    for word in WORDS {
        // Pseudo-random, and the same each time.
        number = number.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let name = if number >> 63 == 0 { word.to_owned() } else { format!("{word}_{number:x}") };
        let group = format!("g-{word}");
        gateway.post("/groups", &json!({"name": group, "servers": ["seen"]}));
        let mut session = gateway.session(&gateway.add_key(&group));
        let before = answers(&mut session, &name);
        // Now it is there, for others.
        let hidden = Odd::of(&[&tool(&name), &tool("other")]).start();
        gateway.add_server(&hidden.registration("hidden"));
        // Ids count up, so only they may differ.
        let ids = |text: &String| {
            let mut value: Value = serde_json::from_str(text).unwrap();
            value.as_object_mut().and_then(|members| members.remove("id"));
            value
        };
        let after = answers(&mut session, &name);
        for (was, is) in before.iter().zip(&after) {
            assert_eq!(ids(was), ids(is), "{name}");
        }
        gateway.api("DELETE", "/upstreams/hidden", &Value::Null);
    }
}

/// Not a bound on speed: the two times are taken in turn, and compared with each other.
#[test]
fn p44_and_takes_as_long() {
    let gateway = Gateway::start();
    let (seen, hidden) = (Odd::of(&[&tool("seen")]).start(), Odd::of(&[&tool("hidden")]).start());
    gateway.add_server(&seen.registration("a"));
    gateway.add_server(&hidden.registration("b"));
    gateway.post("/groups", &json!({"name": "one", "servers": ["a"]}));
    let mut session = gateway.session(&gateway.add_key("one"));
    let mut times: [Vec<Duration>; 2] = Default::default();
    for _ in 0..200 {
        for (times, name) in times.iter_mut().zip(["hidden", "nobody"]) {
            let begun = Instant::now();
            let inner = json!({"name": name, "arguments": {}}).to_string();
            assert!(session.call("call_tool", &inner).is_refusal());
            times.push(begun.elapsed());
        }
    }
    let [there, nowhere] = times.map(|mut times| {
        times.sort();
        times[times.len() / 2].as_secs_f64()
    });
    let ratio = there / nowhere;
    assert!((0.5..2.0).contains(&ratio), "{there} s against {nowhere} s");
}
