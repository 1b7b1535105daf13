//! P22, U10, U17: lists of servers: pages, changes, and servers that fail over one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::{before, modern};
use crate::support::mcp::Peer;
use crate::support::odd::{Action, Answer, Odd};
use crate::support::{SOON, eventually};

const LIST_CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;

/// Waits until the link hears what is said on its stream.
fn hears(odd: &Odd) {
    eventually("the link's stream", SOON, || {
        (!odd.requests(|request| request.method == "GET").is_empty()).then_some(())
    });
}

#[test]
fn p22_a_server_that_freezes_while_it_lists_is_noticed_soon() {
    let frozen = Arc::new(AtomicBool::new(false));
    let is_frozen = Arc::clone(&frozen);
    let odd = Odd::of(&["t"])
        .with_stream()
        .script(move |request, _| {
            match request.method == "POST" && is_frozen.load(Ordering::SeqCst) {
                true => Action::Hang,
                false => Action::Usual,
            }
        })
        .start();
    let (gateway, _session) = before(&odd);
    hears(&odd);
    frozen.store(true, Ordering::SeqCst);
    odd.say(LIST_CHANGED);
    eventually("a list that hangs", SOON, || (odd.count("tools/list") == 2).then_some(()));
    // The time-out of the list, and the next look at an idle server, are far away.
    eventually("a server that is no longer called connected", Duration::from_secs(7), || {
        (gateway.server("odd")["status"] != "connected").then_some(())
    });
}

#[test]
fn p22_a_flood_of_changes_is_read_in_few_lists_and_to_its_end() {
    let odd = Odd::of(&["t"]).with_stream().start();
    let (_gateway, mut session) = before(&odd);
    hears(&odd);
    for number in 0..500 {
        odd.set_tools(&[&format!("t{number}")]);
        odd.say(LIST_CHANGED);
    }
    eventually("the last state", SOON, || (session.tool_names() == ["t499"]).then_some(()));
    assert!(odd.count("tools/list") <= 5, "{} lists", odd.count("tools/list"));
}

#[test]
fn p22_a_change_during_a_list_is_read_by_the_next() {
    let (gate, lists) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let is_open = Arc::clone(&gate);
    let odd = Odd::of(&["one"])
        .with_stream()
        .script(move |request, state| {
            // The second list is made up at once and sent late.
            if request.rpc() != "tools/list" || lists.fetch_add(1, Ordering::SeqCst) != 1 {
                return Action::Usual;
            }
            let (answer, gate) = (state.usual(request), Arc::clone(&is_open));
            Action::talk(move |wire| {
                wire.until(|| gate.load(Ordering::SeqCst));
                wire.answer(&answer);
                true
            })
        })
        .start();
    let (gateway, mut session) = before(&odd);
    hears(&odd);
    odd.set_tools(&["two"]);
    odd.say(LIST_CHANGED);
    eventually("a list that is late", SOON, || (odd.count("tools/list") == 2).then_some(()));
    odd.set_tools(&["three"]);
    odd.say(LIST_CHANGED);
    gate.store(true, Ordering::SeqCst);
    eventually("the last state", SOON, || (session.tool_names() == ["three"]).then_some(()));
    assert_eq!(gateway.server("odd")["status"], "connected");
}

/// A server whose page for a cursor is what `page` makes of it.
fn paged(page: impl Fn(Option<&str>) -> Value + Send + Sync + 'static) -> Odd {
    Odd::of(&[])
        .script(move |request, _| match request.rpc() {
            "tools/list" => {
                let page = page(request.body["params"]["cursor"].as_str());
                Answer::result(request, &page.to_string()).into()
            }
            _ => Action::Usual,
        })
        .start()
}

fn tools(names: impl IntoIterator<Item = String>) -> Vec<Value> {
    names.into_iter().map(|name| json!({ "name": name })).collect()
}

#[test]
fn u17_an_empty_cursor_is_followed_and_null_is_none() {
    let odd = paged(|cursor| match cursor {
        None => json!({"tools": tools(["a".into()]), "nextCursor": ""}),
        Some("") => json!({"tools": tools(["b".into()]), "nextCursor": " "}),
        Some(_) => json!({"tools": tools(["c".into()]), "nextCursor": null}),
    });
    let (_gateway, mut session) = before(&odd);
    assert_eq!(session.tool_names(), ["a", "b", "c"]);
}

#[test]
fn u17_cursors_in_a_circle_end_the_list() {
    for circle in [&["x"][..], &["x", "y", ""]] {
        let odd = paged(move |cursor| {
            let place = circle.iter().position(|known| Some(*known) == cursor);
            let next = circle[place.map_or(0, |place| place + 1) % circle.len()];
            json!({"tools": tools([format!("t{}", cursor.unwrap_or("0"))]), "nextCursor": next})
        });
        let (gateway, mut session) = before(&odd);
        assert_eq!(session.tool_names().len(), circle.len() + 1);
        assert_eq!(odd.count("tools/list"), circle.len() + 1, "no page is read twice");
        assert!(gateway.whole_log().contains("repeats a cursor"));
    }
}

#[test]
fn u17_pages_without_end_are_cut() {
    let odd = paged(|cursor| {
        let page: u32 = cursor.map_or(0, |cursor| cursor.parse().unwrap());
        json!({"tools": tools([format!("t{page}")]), "nextCursor": (page + 1).to_string()})
    });
    let (gateway, mut session) = before(&odd);
    assert_eq!(session.tool_names().len(), 1000);
    assert_eq!(odd.count("tools/list"), 1000);
    assert!(gateway.whole_log().contains("does not end"));
}

#[test]
fn u17_twenty_thousand_tools_are_listed_in_order_and_can_be_called() {
    const ALL: usize = 20_000;
    const PAGE: usize = 500;
    let odd = paged(|cursor| {
        let start: usize = cursor.map_or(0, |cursor| cursor.parse().unwrap());
        let page = tools((start..start + PAGE).map(|number| format!("tool_{number}")));
        match start + PAGE < ALL {
            true => json!({"tools": page, "nextCursor": (start + PAGE).to_string()}),
            false => json!({ "tools": page }),
        }
    });
    let (gateway, mut session) = before(&odd);
    assert_eq!(gateway.server("odd")["tools"], ALL);
    let names = session.tool_names();
    assert_eq!(names.len(), ALL);
    for (number, name) in names.iter().enumerate() {
        assert_eq!(*name, format!("tool_{number}"));
    }
    for tool in ["tool_0", "tool_499", "tool_500", "tool_19999"] {
        assert_eq!(session.call(tool, "{}").text(), tool);
    }
}

/// Tools whose `x-mcp-header` is right, and wrong in every way; `good` and `plain` are to stay.
fn mirroring() -> Vec<String> {
    let tool = |name: &str, properties: Value| {
        json!({"name": name, "inputSchema": {"type": "object", "properties": properties}})
            .to_string()
    };
    let header = |header: Value| json!({"type": "string", "x-mcp-header": header});
    vec![
        tool("good", json!({"a": header(json!("A"))})),
        tool("empty", json!({"a": header(json!(""))})),
        tool("no_token", json!({"a": header(json!("A B"))})),
        tool("no_text", json!({"a": header(json!(5))})),
        tool("twice", json!({"a": header(json!("A")), "b": header(json!("a"))})),
        tool("a_list", json!({"a": {"type": "array", "x-mcp-header": "A"}})),
        tool("hidden", json!({"a": {"anyOf": [header(json!("A"))]}})),
        tool("plain", json!({"a": {"type": "string"}})),
    ]
}

#[test]
fn u10_tools_that_mirror_wrongly_are_left_out_of_a_modern_servers_list() {
    let mirroring = mirroring();
    let tools: Vec<&str> = mirroring.iter().map(String::as_str).collect();
    let odd = Odd::of(&tools).sessionless().script(modern).start();
    let (gateway, mut session) = before(&odd);
    assert_eq!(session.tool_names(), ["good", "plain"]);
    let log = gateway.whole_log();
    for tool in ["empty", "no_token", "no_text", "twice", "a_list", "hidden"] {
        let told = |line: &str| line.contains("x-mcp-header") && line.contains(tool);
        assert!(log.lines().any(told), "{tool}");
    }
    // To a server with sessions the word means nothing, as any other that is not known.
    let old = Odd::of(&tools).start();
    let (_gateway, mut session) = before(&old);
    assert_eq!(session.tool_names().len(), tools.len());
    assert_eq!(session.call("twice", r#"{"a":"x"}"#).text(), "twice");
}
