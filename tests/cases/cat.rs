//! CAT: the catalog, names, and news of changes.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{LIST_CHANGED, before, result};
use crate::support::gateway::Gateway;
use crate::support::http::Reply;
use crate::support::mcp::{Peer, Session};
use crate::support::odd::{Action, Answer, Odd};
use crate::support::{SOON, eventually};

#[test]
fn cat_01_one_bad_server_costs_the_others_nothing() {
    let good = Odd::of(&["t"]).start();
    let locked = Odd::of(&["u"]).script(|_, _| Answer::empty(401).into()).start();
    let broken = Odd::of(&["v"])
        .script(|request, _| match request.rpc() {
            "tools/list" => Answer::json("{\"tools\": nonsense").into(),
            _ => Action::Usual,
        })
        .start();
    let gateway = Gateway::start();
    for (name, odd) in [("broken", &broken), ("good", &good), ("locked", &locked)] {
        gateway.post("/upstreams", &odd.registration(name));
    }
    let mut session = gateway.session(&gateway.add_key("full"));
    assert_eq!(session.tool_names(), ["t"]);
    assert_eq!(session.call("t", "{}").text(), "t");
    assert_eq!(gateway.server("good")["status"], "connected");
    let error = |name: &str| {
        let server = gateway.server(name);
        assert_ne!(server["status"], "connected", "{server}");
        server["error"].as_str().unwrap_or_else(|| panic!("no error in {server}")).to_owned()
    };
    assert!(error("locked").contains("401"), "{}", error("locked"));
    assert!(error("broken").contains("not MCP"), "{}", error("broken"));
}

#[test]
fn cat_02_a_server_that_never_answers_holds_up_nobody() {
    let silent = Odd::of(&["s"]).early(|_, _| Action::Hang).start();
    let good = Odd::of(&["t"]).start();
    let mut gateway = Gateway::start();
    gateway.add_server(&good.registration("good"));
    let registration = json!({"name": "silent", "url": silent.url("/mcp"), "timeout_ms": 10_000, "enabled": false});
    gateway.post("/upstreams", &registration);
    let key = gateway.add_key("full");
    std::thread::scope(|scope| {
        let enabling =
            scope.spawn(|| gateway.api("PATCH", "/upstreams/silent", &json!({"enabled": true})));
        eventually("a request that nobody answers", SOON, || (silent.total() > 0).then_some(()));
        let started = Instant::now();
        let mut session = gateway.session(&key);
        assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
        assert_eq!(session.tool_names(), ["t"]);
        assert_eq!(session.call("t", "{}").text(), "t");
        assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
        silent.close_connections();
        enabling.join().unwrap();
    });
    gateway.stop();
    let started = Instant::now();
    gateway.start_again();
    assert_eq!(gateway.session(&key).tool_names(), ["t"]);
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}

#[test]
fn cat_03_every_page_is_read() {
    let odd = Odd::of(&[])
        .script(|request, _| {
            if request.rpc() != "tools/list" {
                return Action::Usual;
            }
            let cursor = request.body["params"]["cursor"].as_str().unwrap_or("0");
            let start: usize = cursor.parse().unwrap();
            let end = (start + 50).min(120);
            let tools: Vec<_> = (start..end).map(|n| json!({"name": format!("t{n}")})).collect();
            let page = match end < 120 {
                true => json!({"tools": tools, "nextCursor": end.to_string()}),
                false => json!({"tools": tools}),
            };
            Answer::result(request, &page.to_string()).into()
        })
        .start();
    let (gateway, mut session) = before(&odd);
    let names = session.tool_names();
    assert_eq!(names.len(), 120, "{names:?}");
    assert_eq!(gateway.server("odd")["tools"], 120);
    for tool in ["t0", "t50", "t119"] {
        assert_eq!(session.call(tool, "{}").text(), tool);
    }
}

#[test]
fn cat_04_every_name_is_one_that_clients_take() {
    let long = "a".repeat(70);
    let odd_names = [long.as_str(), "a.b", "a:b", "a/b", "a b", "", "🚀 start", "plain"];
    let described: Vec<String> =
        odd_names.iter().map(|name| json!({"name": name}).to_string()).collect();
    let described: Vec<&str> = described.iter().map(String::as_str).collect();
    let odd = Odd::of(&described).start();
    let (gateway, mut session) = before(&odd);
    let names = session.tool_names();
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    for name in &names {
        assert!((1..=64).contains(&name.len()) && name.chars().all(allowed), "{name:?}");
    }
    let mut unique = names.clone();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), odd_names.len(), "{names:?}");

    // Which is which is in the API; the server is asked for its own name.
    let tools = gateway.get("/tools");
    for tool in tools.as_array().unwrap() {
        let (exposed, own) = (tool["exposed"].as_str().unwrap(), tool["tool"].as_str().unwrap());
        assert_eq!(session.call(exposed, "{}").text(), own, "{exposed}");
        if !own.is_empty() {
            assert_eq!(session.call(own, "{}").text(), own, "by its own name");
        }
    }
    assert!(names.contains(&"plain".to_owned()), "{names:?}");
    gateway.post("/upstreams/odd/reconnect", &Value::Null);
    assert_eq!(session.tool_names(), names, "names are stable");
}

/// Every message that comes on the stream until it ends.
fn rest(stream: &mut Reply) -> Vec<String> {
    let events = std::iter::from_fn(|| stream.event().ok().flatten());
    events.map(|event| event.data).filter(|data| !data.is_empty()).collect()
}

fn news(stream: &mut Reply) -> String {
    stream.event().unwrap().expect("news on the stream").data
}

#[test]
fn cat_05_a_change_is_taken_in_and_told_once() {
    let odd = Odd::of(&["grow"])
        .with_stream()
        .script(|request, state| {
            if request.tool() != Some("grow") {
                return Action::Usual;
            }
            state.set_tools(&["grow", "one", "two"]);
            let answer = state.usual(request).message();
            Action::events(move |wire| {
                wire.event(LIST_CHANGED);
                wire.event(&answer);
            })
        })
        .start();
    let gateway = Gateway::start();
    gateway.add_server(&odd.registration("odd"));
    gateway.post("/groups", &json!({"name": "none", "mode": "direct", "servers": []}));
    let (key, other) = (gateway.add_key("full"), gateway.add_key("none"));
    let (mut session, outside) = (gateway.session(&key), gateway.session(&other));
    assert!(declares_changes(&session));
    let (mut stream, mut elsewhere) = (session.listen(), outside.listen());
    eventually("the link's stream", SOON, || {
        (!odd.requests(|request| request.method == "GET").is_empty()).then_some(())
    });
    odd.set_tools(&["grow", "one"]);
    odd.say(LIST_CHANGED);
    assert!(news(&mut stream).contains("notifications/tools/list_changed"));
    assert_eq!(session.tool_names(), ["grow", "one"], "told when it is there");

    assert_eq!(session.call("grow", "{}").text(), "grow");
    assert!(news(&mut stream).contains("notifications/tools/list_changed"));
    assert_eq!(session.tool_names(), ["grow", "one", "two"]);

    // A third change closes the account: nothing came twice before it.
    odd.set_tools(&["grow"]);
    odd.say(LIST_CHANGED);
    eventually("the third change", SOON, || (session.tool_names() == ["grow"]).then_some(()));
    assert!(news(&mut stream).contains("notifications/tools/list_changed"));
    for key in [&key, &other] {
        gateway.post(&format!("/keys/{}/revoke", key.id), &json!({}));
    }
    assert_eq!(rest(&mut stream), Vec::<String>::new(), "told more than once");
    assert_eq!(rest(&mut elsewhere), Vec::<String>::new(), "told to whom it is nothing");
}

/// Whether `initialize` says that the list may change.
fn declares_changes(session: &Session) -> bool {
    let params = crate::support::mcp::initialize_params();
    let body = format!(r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{params}}}"#);
    let hello: Value = serde_json::from_str(&session.post(&body).text().unwrap()).unwrap();
    hello["result"]["capabilities"]["tools"]["listChanged"] == true
}

#[test]
fn cat_06_a_late_server_is_announced_once() {
    let mut odd = Odd::of(&["t"]).start();
    odd.refuse();
    let gateway = Gateway::start();
    let late = gateway.post("/upstreams", &odd.registration("odd"));
    assert_eq!(late["status"], "down");
    let key = gateway.add_key("full");
    let mut session = gateway.session(&key);
    let mut stream = session.listen();
    assert_eq!(session.tool_names(), Vec::<String>::new());
    odd.accept();
    assert!(news(&mut stream).contains("notifications/tools/list_changed"));
    assert_eq!(session.tool_names(), ["t"]);
    eventually("a server that is connected", SOON, || {
        (gateway.server("odd")["status"] == "connected").then_some(())
    });
    assert_eq!(session.call("t", "{}").text(), "t");
    gateway.post(&format!("/keys/{}/revoke", key.id), &json!({}));
    assert_eq!(rest(&mut stream), Vec::<String>::new(), "told more than once");
}

#[test]
fn cat_08_the_list_is_the_same_bytes_across_reconnects_and_restarts() {
    let (a, b) = (Odd::of(&["z", "m", "same", "a"]), Odd::of(&["y", "same", "b"]));
    let (a, b) = (a.start(), b.start());
    let mut gateway = Gateway::start();
    gateway.add_server(&b.registration("b"));
    gateway.add_server(&a.registration("a"));
    let key = gateway.add_key("full");
    let list =
        |gateway: &Gateway| gateway.session(&key).request("tools/list", "{}").result().to_owned();
    let first = list(&gateway);
    for round in 0..20 {
        if round % 7 == 6 {
            gateway.restart();
        } else {
            let server = if round % 2 == 0 { "a" } else { "b" };
            gateway.post(&format!("/upstreams/{server}/reconnect"), &Value::Null);
        }
        assert_eq!(list(&gateway), first, "round {round}");
    }
}

#[test]
fn cat_09_the_list_is_one_page_and_other_cursors_are_refused() {
    let odd = Odd::of(&["t"]).start();
    let (_gateway, mut session) = before(&odd);
    for cursor in [r#""8""#, r#""bogus""#, "5", r#""""#] {
        let answer = session.request("tools/list", &format!(r#"{{"cursor":{cursor}}}"#));
        assert_eq!(answer.error().unwrap()["code"], -32602, "{cursor}");
    }
    let answer = session.request("tools/list", r#"{"cursor":null}"#);
    let page = result(&answer);
    assert_eq!(page["tools"][0]["name"], "t");
    assert!(page.get("nextCursor").is_none(), "{page}");
}
