//! Hybrid lists as an app and its model meet them: four tools that search and call, what is told
//! beside a result, and what stays out of reach. Over scripted servers here, over all the real
//! ones in `hybrid/real.rs`.

mod reach;
mod real;
mod search;

use serde_json::{Value, json};

use crate::support::gateway::{Gateway, Key};
use crate::support::mcp::{MODERN, Message, Peer, Session, modern};
use crate::support::odd::Odd;
use crate::support::{SOON, eventually};

const OWN: [&str; 4] = ["search_tools", "call_tool", "list_mcpservers", "get_tools_from_server"];

const SEND: &str = r#"{"name":"send_mail","description":"Sends an e-mail to one or more people. Longer text.","inputSchema":{"type":"object","properties":{"to":{"type":"array","items":{"type":"string"}},"subject":{"type":"string"},"urgent":{"type":"boolean"}},"required":["to"],"additionalProperties":false}}"#;
const READ: &str = r#"{"name":"read_mail","description":"Shows the newest mail.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}"#;
const RAIN: &str = r#"{"name":"forecast","description":"Tells rain and temperature for the coming days.","inputSchema":{"type":"object","properties":{"days":{"type":"integer","minimum":1}}}}"#;

/// A gateway with a mail and a weather server.
fn house() -> (Gateway, Odd, Odd) {
    let (mail, weather) = (Odd::of(&[SEND, READ]).start(), Odd::of(&[RAIN]).start());
    let gateway = Gateway::start();
    gateway.add_server(&mail.registration("mail"));
    gateway.add_server(&weather.registration("weather"));
    (gateway, mail, weather)
}

fn through(session: &mut Session, name: &str, arguments: &str) -> Message {
    let arguments = format!(r#"{{"name":{},"arguments":{arguments}}}"#, json!(name));
    session.call("call_tool", &arguments)
}

fn is_error(answer: &Message) -> bool {
    serde_json::from_str::<Value>(answer.result()).unwrap()["isError"] == true
}

#[test]
fn p40_a_hybrid_list_holds_defaults_and_the_four() {
    let (gateway, _mail, _weather) = house();
    let change = json!({"defaults": ["forecast", "gone", "send_mail"]});
    let group = gateway.api("PATCH", "/groups/default", &change).1;
    assert_eq!((&group["sees"], &group["unresolved"]), (&json!(2), &json!(["gone"])));
    let mut session = gateway.session(&gateway.add_key("default"));
    let mut expect = vec!["forecast", "send_mail"];
    expect.extend(OWN);
    assert_eq!(session.tool_names(), expect);
    let search = &session.tools()[2].text;
    assert!(search.contains("Servers: mail, weather."), "{search}");
    // A tool that is not listed can be called by its own name all the same.
    assert_eq!(session.call("read_mail", "{}").text().lines().next(), Some("read_mail"));
    // In a direct list the four are not there.
    let mut direct = gateway.session(&gateway.add_key("full"));
    assert_eq!(direct.tool_names(), ["send_mail", "read_mail", "forecast"]);
    assert!(direct.call("search_tools", r#"{"query":"mail"}"#).is_refusal());
}

#[test]
fn p41_search_and_call_take_two_round_trips() {
    let (gateway, _mail, _weather) = house();
    let key = gateway.add_key("default");
    let mut session = gateway.session(&key);
    let found = session.call("search_tools", r#"{"query":"send an email"}"#).text();
    let call = found.lines().nth(1).unwrap();
    assert_eq!(call, r#"{"name":"send_mail","arguments":{"to":["…"]}}"#, "{found}");
    let expect =
        "  mail: Sends an e-mail to one or more people. Optional: subject: string, urgent: boolean";
    assert_eq!(found.lines().nth(2), Some(expect));
    let answer = session.call("call_tool", call);
    assert_eq!(answer.text(), "send_mail\nOther tools of `mail`: read_mail.", "P50");
    // Told once in a conversation, and not again after the client began anew.
    assert_eq!(session.call("call_tool", call).text(), "send_mail");
    assert_eq!(gateway.session(&key).call("call_tool", call).text(), "send_mail");
    let everything = session.call("search_tools", r#"{"query":""}"#).text();
    assert_eq!(everything.lines().count(), 3, "{everything}");
    let none = session.call("search_tools", r#"{"query":"zebra"}"#).text();
    assert!(none.starts_with("No tool found for `zebra`."), "{none}");
}

#[test]
fn p40_modern_clients_have_the_same_four() {
    let (gateway, _mail, _weather) = house();
    let key = gateway.add_key("default").bearer();
    let ask = |name: &str, arguments: Value| {
        let params = json!({"name": name, "arguments": arguments});
        modern(gateway.address, &key, "tools/call", params)
    };
    let listed = modern(gateway.address, &key, "tools/list", json!({}));
    assert!(OWN.iter().all(|name| listed.result().contains(&format!("\"{name}\""))), "{MODERN}");
    assert!(ask("search_tools", json!({"query": "rain"})).text().contains("forecast"));
    let call = json!({"name": "forecast", "arguments": {"days": "3"}});
    let told = "forecast\nArguments corrected before the call: `days`: \"3\" → 3.";
    assert_eq!(ask("call_tool", call.clone()).text(), told);
    // A name that leads nowhere is an error of the protocol only where it is called itself.
    assert!(ask("nowhere", json!({})).error().is_some());
    assert!(is_error(&ask("call_tool", json!({"name": "nowhere"}))));
}

#[test]
fn p32_other_forms_of_a_name_run_and_are_told() {
    let (gateway, _mail, _weather) = house();
    let mut session = gateway.session(&gateway.add_key("default"));
    for name in [
        "readMail",
        "read-mail",
        "mail.read_mail",
        "mail/read_mail",
        "mail:read_mail",
        "mail__read_mail",
        "mcp__mail__read_mail",
        "mail.ReadMail",
    ] {
        let text = through(&mut session, name, "{}").text();
        let told = format!("`{name}` is called `read_mail`; that ran.");
        assert!(text.starts_with("read_mail\n") && text.contains(&told), "{name}: {text}");
    }
    let missed = through(&mut session, "raed_mail", "{}");
    assert!(is_error(&missed));
    let expect = "There is no tool `raed_mail`. Did you mean `read_mail`?\nUsage: read_mail()\nExample arguments: {}";
    assert_eq!(missed.text(), expect);
}

#[test]
fn res_07_a_failure_is_told_as_one() {
    let (gateway, mail, _weather) = house();
    let mut session = gateway.session(&gateway.add_key("default"));
    for (tool, arguments, expect) in [
        (
            "call_tool",
            r#"{"name":"teleport"}"#,
            "There is no tool `teleport`. Find tools with search_tools.",
        ),
        ("call_tool", "{}", "- `name` is missing (string)"),
        ("call_tool", r#"{"name":"search_tools"}"#, "`search_tools` is called by itself"),
        (
            "call_tool",
            r#"{"name":"send_mail","arguments":{"subject":"x"}}"#,
            "- `to` is missing (string[])",
        ),
        ("send_mail", r#"{"to":["a"],"cc":"b"}"#, "- `cc` is not an argument"),
        ("search_tools", r#"{"query":["a"]}"#, "- `query` must be a string; you sent [\"a\"]"),
        ("get_tools_from_server", r#"{"server":"nail"}"#, "Did you mean `mail`?"),
    ] {
        let answer = session.call(tool, arguments);
        assert!(is_error(&answer), "{tool} {arguments}: {answer:?}");
        assert!(answer.text().contains(expect), "{tool} {arguments}: {}", answer.text());
    }
    assert_eq!(mail.calls("send_mail"), 0, "nothing refused reaches a server");
    // Arguments written beside the name are found.
    let beside = session.call("call_tool", r#"{"name":"send_mail","to":"a@b"}"#);
    let told = "Arguments corrected before the call: `to`: \"a@b\" → [\"a@b\"].";
    assert!(beside.text().contains(told), "{}", beside.text());
}

#[test]
fn res_08_no_address_or_secret_is_told() {
    let (gateway, mut mail, _weather) = house();
    let secret = json!({"url": mail.url("/mcp?token=S3CRET"), "headers": {"X-Key": "S3CRET"}});
    assert_eq!(gateway.api("PATCH", "/upstreams/mail", &secret).0, 200);
    let mut session = gateway.session(&gateway.add_key("default"));
    mail.refuse();
    eventually("mail to be down", SOON, || {
        (gateway.server("mail")["status"] == "down").then_some(())
    });
    let port = mail.address.port().to_string();
    for (tool, arguments) in [
        ("call_tool", r#"{"name":"read_mail"}"#),
        ("list_mcpservers", "{}"),
        ("search_tools", r#"{"query":"mail"}"#),
        ("get_tools_from_server", r#"{"server":"mail"}"#),
    ] {
        let text = session.call(tool, arguments).text();
        assert!(text.contains("down"), "{tool}: {text}");
        for hidden in ["S3CRET", &port, "127.0.0.1", "token"] {
            assert!(!text.contains(hidden), "{tool}: {text}");
        }
    }
}

#[test]
fn ses_03_what_search_finds_can_be_called_after_a_restart() {
    let (mut gateway, _mail, _weather) = house();
    let key = gateway.add_key("default");
    gateway.session(&key).call("read_mail", "{}");
    gateway.restart();
    let mut session = gateway.session(&key);
    let found = session.call("search_tools", r#"{"query":"newest mail"}"#).text();
    let call = found.lines().nth(1).unwrap();
    assert!(call.contains("read_mail"), "{found}");
    let text = session.call("call_tool", call).text();
    assert!(text.starts_with("read_mail"), "{text}");
}

#[test]
fn ses_04_a_known_tool_stays_known_while_its_server_is_away() {
    let (gateway, mut mail, _weather) = house();
    let mut session = gateway.session(&gateway.add_key("default"));
    assert!(!is_error(&through(&mut session, "read_mail", "{}")));
    mail.refuse();
    eventually("the outage to be told", SOON, || {
        let text = through(&mut session, "send_mail", r#"{"to":["a"]}"#).text();
        text.contains("Server `mail` is down").then_some(())
    });
    let unknown = through(&mut session, "teleport", "{}").text();
    assert!(unknown.starts_with("There is no tool"), "{unknown}");
    mail.accept();
    eventually("the server to be back", SOON, || {
        let text = through(&mut session, "read_mail", "{}").text();
        text.starts_with("read_mail").then_some(())
    });
}

#[test]
fn cat_07_names_are_looked_up_and_never_cut() {
    let gateway = Gateway::start();
    let (one, two) = (Odd::of(&["x", "y"]).start(), Odd::of(&["srv__x", "y"]).start());
    let hyphens = Odd::of(&["y"]).start();
    gateway.add_server(&one.registration("my__srv"));
    gateway.add_server(&two.registration("my"));
    gateway.add_server(&hyphens.registration("my-srv.x"));
    let mut session = gateway.session(&gateway.add_key("default"));
    for (name, expect) in [
        ("x", "x"),
        ("srv__x", "srv__x"),
        ("my__srv__y", "y"),
        ("my__y", "y"),
        ("my-srv_x__y", "y"),
        ("my-srv.x.y", "y"),
    ] {
        let text = through(&mut session, name, "{}").text();
        assert_eq!(text.lines().next(), Some(expect), "{name}: {text}");
    }
    // Two tools can be meant, so none runs.
    assert!(is_error(&through(&mut session, "my__srv__x", "{}")));
    assert_eq!((one.calls("y"), two.calls("y"), hyphens.calls("y")), (1, 1, 2));
}

#[test]
fn cat_10_a_clash_renames_and_never_fails() {
    let (mut gateway, tool) = (Gateway::start(), &["search"]);
    let (one, two, three) = (Odd::of(tool).start(), Odd::of(tool).start(), Odd::of(tool).start());
    gateway.add_server(&one.registration("one"));
    let defaults = |gateway: &Gateway| {
        let groups = gateway.get("/groups");
        groups[0]["defaults"].clone()
    };
    gateway.api("PATCH", "/groups/default", &json!({"defaults": ["search"]}));
    gateway.add_server(&two.registration("two"));
    assert_eq!(defaults(&gateway), json!(["one__search"]));
    let key = gateway.add_key("default");
    assert_eq!(gateway.session(&key).tool_names()[0], "one__search");
    gateway.api("DELETE", "/upstreams/two", &Value::Null);
    assert_eq!(gateway.session(&key).tool_names()[0], "search");
    gateway.add_server(&three.registration("three"));
    gateway.restart();
    assert_eq!(gateway.session(&key).tool_names()[0], "one__search");
    let audit = gateway.get("/audit").to_string();
    assert!(audit.contains("is now called `one__search`; it was `search`"), "{audit}");
    assert!(audit.contains("is now called `search`; it was `one__search`"), "{audit}");
}

#[test]
fn p42_a_client_that_follows_gets_the_tools_of_a_server_it_uses() {
    let (gateway, _mail, _weather) = house();
    let key = gateway.add_key("default");
    let mut quiet = gateway.session(&gateway.add_key("default"));
    let mut session = gateway.session(&key);
    assert_eq!(session.tool_names(), OWN);
    let mut stream = session.listen();
    through(&mut session, "read_mail", "{}");
    let event = loop {
        let event = stream.event().unwrap().unwrap();
        if !event.data.is_empty() {
            break event.data;
        }
    };
    assert!(event.contains("tools/list_changed"), "{event}");
    let grown = [&OWN[..], &["send_mail", "read_mail"]].concat();
    assert_eq!(session.tool_names(), grown);
    assert_eq!(session.tool_names(), grown, "the same until something changes");
    // Whoever does not follow keeps the list that it read.
    through(&mut quiet, "read_mail", "{}");
    assert_eq!(quiet.tool_names(), OWN);
}

#[test]
fn p54_a_blocked_page_names_another_tool() {
    let fetch = |name: &str| {
        format!(
            r#"{{"name":"{name}","description":"Fetches a web page and returns its text.","inputSchema":{{"type":"object","properties":{{"url":{{"type":"string"}}}},"required":["url"]}},"annotations":{{"readOnlyHint":true}}}}"#
        )
    };
    let blocked = Odd::of(&[&fetch("fetch")])
        .script(|request, _| match request.tool() {
            Some(_) => {
                let text = r#"{"content":[{"type":"text","text":"Failed: status code 403"}],"isError":true}"#;
                crate::support::odd::Answer::result(request, text).into()
            }
            None => crate::support::odd::Action::Usual,
        })
        .start();
    let browser = Odd::of(&[&fetch("open_page")]).start();
    let (gateway, _mail, _weather) = house();
    gateway.add_server(&blocked.registration("web"));
    gateway.add_server(&browser.registration("browser"));
    let mut session = gateway.session(&gateway.add_key("default"));
    let text = through(&mut session, "fetch", r#"{"url":"https://x/"}"#).text();
    let told = "`open_page` on server `browser` may do the same.";
    assert_eq!(text, format!("Failed: status code 403\n{told}"));
    // Nothing here does what a forecast does.
    let (_, mut weather) = (0, _weather);
    weather.refuse();
    eventually("weather to be down", SOON, || {
        let text = through(&mut session, "forecast", "{}").text();
        text.contains("is down").then(|| assert!(!text.contains("may do the same"), "{text}"))
    });
}

#[test]
fn notes_wait_for_a_client_that_is_there() {
    let (gateway, mail, _weather) = house();
    let key: Key = gateway.add_key("default");
    let mut session = gateway.session(&key);
    through(&mut session, "forecast", "{}");
    gateway.api("DELETE", "/upstreams/mail", &Value::Null);
    drop(mail);
    let text = through(&mut session, "forecast", "{}").text();
    assert_eq!(text, "forecast\nSince your last call: server `mail` was removed.");
    assert_eq!(through(&mut session, "forecast", "{}").text(), "forecast");
}
