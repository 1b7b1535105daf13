//! Search with the real small model behind the real binary: what is found by meaning, at once
//! after a change, after a restart, and under load. And lists that learn.

use std::time::Duration;

use serde_json::{Value, json};

use super::{OWN, through};
use crate::support::eventually;
use crate::support::gateway::Gateway;
use crate::support::mcp::Peer;
use crate::support::odd::Odd;
use crate::support::peers::path;

/// Loading a model and embedding a few hundred texts, on a machine with much else to do.
const LONG: Duration = Duration::from_secs(120);

fn with_model() -> Gateway {
    let model = path(".cache/models/minilm");
    Gateway::start_as(&format!("search:\n  model: {model}\n"), &[])
}

fn search(gateway: &Gateway, query: &str) -> Value {
    gateway.post("/search", &json!({ "query": query }))
}

/// The tool that is found first, once everything can be found by its meaning.
fn best(gateway: &Gateway, query: &str) -> String {
    let found = eventually("search by meaning", LONG, || {
        let found = search(gateway, query);
        (found["mode"] == "semantic" && found["waiting"] == 0).then_some(found)
    });
    found["results"][0]["tool"].as_str().unwrap().to_owned()
}

fn tool(name: &str, description: &str) -> String {
    json!({"name": name, "description": description, "inputSchema": {"type": "object"}}).to_string()
}

#[test]
fn p62_other_words_are_found_before_the_answer_and_survive() {
    let odd = Odd::of(&[
        &tool("alpha", "Tells rain and temperature for the coming days."),
        &tool("beta", "Sends an e-mail."),
    ])
    .start();
    let mut gateway = with_model();
    gateway.add_server(&odd.registration("odd"));
    assert_eq!(best(&gateway, "will I need an umbrella"), "alpha");
    let mut session = gateway.session(&gateway.add_key("full"));

    let words = json!({"upstream": "odd", "tool": "beta", "title": "Zoo", "description": "Feeds the penguins and other birds with fish."});
    let changed = gateway.post("/overrides", &words);
    assert_eq!(
        (&changed["overridden"], &changed["server_says"]),
        (&json!(true), &json!("Sends an e-mail."))
    );
    // At once, and by its meaning.
    let found = search(&gateway, "give something to eat to the animals");
    assert_eq!((&found["mode"], &found["waiting"]), (&json!("semantic"), &json!(0)));
    assert_eq!(found["results"][0]["tool"], "beta");
    assert!(session.tools()[1].text.contains("Feeds the penguins"));
    // Renamed with its server, and after a restart.
    gateway.api("PATCH", "/upstreams/odd", &json!({"name": "zoo"}));
    gateway.restart();
    let all = gateway.get("/overrides");
    assert_eq!(all[0]["upstream"], "zoo");
    assert_eq!(best(&gateway, "give something to eat to the animals"), "beta");
    assert!(gateway.session(&gateway.add_key("full")).tools()[1].text.contains("\"Zoo\""));
    // Blank puts the server's own back; what is the server's own is no change.
    let back = json!({"upstream": "zoo", "tool": "beta", "title": "", "description": null});
    assert_eq!(gateway.post("/overrides", &back)["overridden"], false);
    assert_eq!(gateway.get("/overrides"), json!([]));
    let same = json!({"upstream": "zoo", "tool": "beta", "description": "Sends an e-mail. "});
    assert_eq!(gateway.post("/overrides", &same)["overridden"], false);
    for (body, expect) in [
        (json!({"upstream": "zoo"}), "`tool` must be given"),
        (json!({"upstream": "zoo", "tool": "gamma"}), "there is no tool `gamma`"),
        (json!({"upstream": "x", "tool": "beta"}), "there is no server `x`"),
        (
            json!({"upstream": "zoo", "tool": "beta", "title": "t".repeat(201)}),
            "`title` must have at most 200",
        ),
        (
            json!({"upstream": "zoo", "tool": "beta", "description": "t".repeat(16385)}),
            "`description` must have at most 16384",
        ),
    ] {
        let (status, answer) = gateway.api("POST", "/overrides", &body);
        assert!(status == 400 || status == 404, "{body}: {status}");
        assert!(answer["error"].as_str().unwrap().contains(expect), "{answer}");
    }
}

#[test]
fn p61_without_a_usable_model_words_answer_and_why_is_told() {
    let odd = Odd::of(&[&tool("forecast", "Tells rain and temperature.")]).start();
    let gateway = Gateway::start_with(&[("MCPM_SEARCH_MODEL", "/nowhere")]);
    gateway.add_server(&odd.registration("odd"));
    let found = eventually("the model to be given up", LONG, || {
        let found = search(&gateway, "rain");
        found["problem"].as_str().is_some_and(|why| why.contains("/nowhere")).then_some(found)
    });
    assert_eq!(
        (&found["mode"], &found["results"][0]["tool"]),
        (&json!("lexical"), &json!("forecast"))
    );
    for (body, expect) in [
        (json!({}), "`query` must be given"),
        (json!({"query": 5}), "`query` must be a string"),
        (json!({"query": "x", "page": 0}), "`page` must be 1 or more"),
        (json!({"query": "x", "page_size": 101}), "`page_size` must be 1–100, not 101"),
    ] {
        let (status, answer) = gateway.api("POST", "/search", &body);
        assert_eq!(status, 400, "{body}");
        assert!(answer["error"].as_str().unwrap().contains(expect), "{answer}");
    }
    let far = json!({"query": "rain", "page": u64::MAX, "page_size": 100});
    assert_eq!(gateway.post("/search", &far)["results"], json!([]));
}

#[test]
fn plt_04_searches_and_calls_go_on_while_descriptions_are_embedded() {
    let long = "Weighs stones. ".repeat(1400);
    let mut tools: Vec<String> = (0..400)
        .map(|n| tool(&format!("tool_{n}"), &format!("Counts things of kind {n}.")))
        .collect();
    tools.push(tool("stones", &long));
    let tools: Vec<&str> = tools.iter().map(String::as_str).collect();
    let (odd, other) = (Odd::of(&tools).start(), Odd::of(&["quick"]).start());
    let gateway = with_model();
    gateway.add_server(&other.registration("other"));
    gateway.add_server(&odd.registration("odd"));
    let key = gateway.add_key("default");
    let before = threads(gateway.pid());
    std::thread::scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| {
                let mut session = gateway.session(&key);
                for _ in 0..3 {
                    let found = session.call("search_tools", r#"{"query":"weigh stones"}"#).text();
                    assert!(found.lines().count() > 1, "{found}");
                    let text = through(&mut session, "quick", "{}").text();
                    assert!(text.starts_with("quick"), "{text}");
                }
            });
        }
    });
    // One thread embeds, however many ask; what else there is are those that may block.
    assert!(threads(gateway.pid()) <= before + 16, "{before} threads before");
    assert_eq!(best(&gateway, "weigh stones"), "stones");
}

fn threads(pid: i32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().count()
}

#[test]
fn p43_an_adaptive_list_learns_and_a_restart_forgets_nothing() {
    let odd = Odd::of(&["a", "b", "c"]).start();
    let mut gateway = Gateway::start();
    gateway.add_server(&odd.registration("odd"));
    gateway.post("/groups", &json!({"name": "learning", "mode": "adaptive", "defaults": ["c"]}));
    let key = gateway.add_key("learning");
    let base = [&["c"], &OWN[..]].concat();
    let mut session = gateway.session(&key);
    through(&mut session, "a", "{}");
    assert_eq!(session.tool_names(), base, "a second use is needed");
    for name in ["a", "b", "b", "c", "c"] {
        through(&mut session, name, "{}");
    }
    let names = session.tool_names();
    let learned = |names: &[String]| {
        let mut names = names[base.len()..].to_vec();
        names.sort();
        names
    };
    assert_eq!(names[..base.len()], base);
    assert_eq!(learned(&names), ["a", "b"]);
    assert_eq!(session.tool_names(), names, "the same bytes until something changes");
    let ranking = gateway.get(&format!("/keys/{}/adaptive", key.id));
    assert_eq!((&ranking["listed"], &ranking["cap"]), (&json!(true), &json!(10)));
    let tools = ranking["tools"].as_array().unwrap();
    let picked = |tool: &Value| (tool["exposed"].clone(), tool["picked"].clone());
    assert!(tools.iter().map(picked).any(|tool| tool == (json!("c"), json!(false))), "{ranking}");
    assert!(tools.iter().map(picked).any(|tool| tool == (json!("a"), json!(true))), "{ranking}");
    // A smaller cap picks anew at once.
    gateway.api("PATCH", "/groups/learning", &json!({"adaptive_cap": 1}));
    assert_eq!(session.tool_names().len(), base.len() + 1);
    gateway.api("PATCH", "/groups/learning", &json!({"adaptive_cap": null}));
    gateway.restart();
    eventually("what was learned", LONG, || {
        let names = gateway.session(&key).tool_names();
        (names.len() == base.len() + 2).then(|| assert_eq!(learned(&names), ["a", "b"]))
    });
    // Learned in every mode, listed where the group says so.
    let direct = gateway.add_key("full");
    let mut session = gateway.session(&direct);
    for _ in 0..2 {
        session.call("b", "{}");
    }
    assert_eq!(gateway.get(&format!("/keys/{}/adaptive", direct.id))["listed"], false);
    gateway.api("PATCH", &format!("/keys/{}", direct.id), &json!({"group": "learning"}));
    assert_eq!(learned(&gateway.session(&direct).tool_names()), ["b"]);
    assert_eq!(gateway.api("GET", "/keys/999/adaptive", &Value::Null).0, 404);
}
