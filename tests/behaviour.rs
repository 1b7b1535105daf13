//! What an operator and an app see of the gateway over time: views, keys, names, outages, restarts.

use std::time::Duration;

use serde_json::json;

use crate::support::gateway::Gateway;
use crate::support::mcp::{Peer, Session};
use crate::support::peers::{HttpServer, Local, path};
use crate::support::process::is_alive;
use crate::support::{SOON, eventually, http};

/// Long enough for a few attempts with growing pauses between them.
const RECONNECTED: Duration = Duration::from_secs(40);

#[test]
fn two_keys_in_two_groups_see_two_lists() {
    let (ts, py) = (HttpServer::typescript("ts", "dual"), HttpServer::python("py"));
    let gateway = Gateway::start();
    gateway.add_server(&ts.registration());
    gateway.add_server(&py.registration());
    gateway.post("/groups", &json!({"name": "few", "mode": "direct", "servers": ["py"]}));
    gateway.post("/groups", &json!({"name": "none", "mode": "direct", "servers": []}));

    let mut all = gateway.session(&gateway.add_key("full"));
    let mut few = gateway.session(&gateway.add_key("few"));
    let mut none = gateway.session(&gateway.add_key("none"));
    let (all_names, few_names) = (all.tool_names(), few.tool_names());
    assert!(all_names.contains(&"greet".to_owned()), "{all_names:?}");
    assert!(all_names.contains(&"reverse_text".to_owned()), "{all_names:?}");
    assert!(few_names.contains(&"reverse_text".to_owned()), "{few_names:?}");
    assert!(!few_names.contains(&"greet".to_owned()), "{few_names:?}");
    assert_eq!(none.tool_names(), Vec::<String>::new());

    // What is out of reach cannot be called, and cannot be told from what does not exist.
    let greeting = r#"{"who":"Ann"}"#;
    assert!(all.call("greet", greeting).text().contains("Ann"));
    let out_of_reach = few.call("greet", greeting);
    assert!(out_of_reach.is_refusal(), "{out_of_reach:?}");
    let nowhere = few.call("greed", greeting);
    let shape = |message: &str| message.replace("greed", "greet").replace("\"id\":4", "\"id\":3");
    assert_eq!(shape(&out_of_reach.0), shape(&nowhere.0));
    let prefixed = few.call("ts__greet", greeting);
    assert!(prefixed.is_refusal() && !prefixed.0.contains("Gott"), "{prefixed:?}");
}

#[test]
fn a_revoked_key_is_cut_off_at_once() {
    let py = HttpServer::python("py");
    let gateway = Gateway::start();
    gateway.add_server(&py.registration());
    let key = gateway.add_key("full");
    let mut session = gateway.session(&key);
    let mut other = gateway.session(&gateway.add_key("full"));
    assert!(session.call("reverse_text", r#"{"text":"ab"}"#).text().contains("ba"));
    let mut stream = session.listen();

    gateway.post(&format!("/keys/{}/revoke", key.id), &json!({}));

    let reply = session.post(r#"{"jsonrpc":"2.0","id":9,"method":"tools/list"}"#);
    assert_eq!(reply.status, 401);
    assert!(reply.header("www-authenticate").is_some_and(|value| value.starts_with("Bearer")));
    assert!(stream.ends_within(SOON), "the stream of a revoked key is still open");
    assert!(other.call("reverse_text", r#"{"text":"ab"}"#).text().contains("ba"));
}

#[test]
fn a_name_on_two_servers_answers_for_each() {
    let (ts, py) = (HttpServer::typescript("ts", "dual"), HttpServer::python("py"));
    let gateway = Gateway::start();
    gateway.add_server(&ts.registration());
    let mut session = gateway.session(&gateway.add_key("full"));
    assert_eq!(session.call("whoami", "{}").text(), "ts");

    gateway.add_server(&py.registration());
    let names = session.tool_names();
    assert!(!names.contains(&"whoami".to_owned()), "{names:?}");
    assert!(names.contains(&"greet".to_owned()), "a unique name stays: {names:?}");
    // What happened meanwhile is told once (P55).
    let told = "ts\nSince your last call: server `py` was added.";
    for (server, expect) in [("ts", told), ("py", "py"), ("ts", "ts")] {
        let name = format!("{server}__whoami");
        assert!(names.contains(&name), "{names:?}");
        assert_eq!(session.call(&name, "{}").text(), expect);
    }

    // When one of them goes, the other has its plain name again.
    let (status, _) = gateway.api("DELETE", "/upstreams/py", &json!(null));
    assert_eq!(status, 200);
    assert!(session.tool_names().contains(&"whoami".to_owned()));
    let told = "ts\nSince your last call: server `py` was removed.";
    assert_eq!(session.call("whoami", "{}").text(), told);
}

#[test]
fn a_server_that_comes_back_is_used_again() {
    let mut ts = HttpServer::typescript("ts", "dual");
    let gateway = Gateway::start();
    gateway.add_server(&ts.registration());
    let mut session = gateway.session(&gateway.add_key("full"));
    let before = session.tool_names();
    assert_eq!(session.call("whoami", "{}").text(), "ts");

    ts.kill();
    eventually("a server that is seen to be down", SOON, || {
        (gateway.server("ts")["status"] != "connected").then_some(())
    });
    let answer = session.call("whoami", "{}");
    assert!(answer.is_refusal() && answer.text().contains("ts"), "{answer:?}");
    assert_eq!(session.tool_names(), before, "a server that is down stays listed");

    ts.start_again();
    eventually("the same call in the same session", RECONNECTED, || {
        let answer = session.call("whoami", "{}");
        (!answer.is_refusal() && answer.text() == "ts").then_some(())
    });
    eventually("a server that is seen to be connected", SOON, || {
        (gateway.server("ts")["status"] == "connected").then_some(())
    });
}

/// A local server that writes down its process id, so that a test can end it.
fn local_with_pid_file(folder: &std::path::Path) -> (Local, std::path::PathBuf) {
    let file = folder.join("pid");
    let script = format!(
        "echo $$ > '{0}.new' && mv '{0}.new' '{0}' && exec '{1}' --local-timezone UTC",
        file.display(),
        path(".cache/servers/bin/mcp-server-time")
    );
    (Local::new("time", "/bin/sh", &["-c", &script]), file)
}

fn pid(file: &std::path::Path) -> i32 {
    std::fs::read_to_string(file).unwrap().trim().parse().unwrap()
}

#[test]
fn a_local_server_that_dies_is_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let (local, file) = local_with_pid_file(folder.path());
    let gateway = Gateway::start();
    gateway.add_server(&local.registration());
    let mut session = gateway.session(&gateway.add_key("full"));
    let arguments = r#"{"timezone":"UTC"}"#;
    assert!(session.call("get_current_time", arguments).text().contains("UTC"));

    let killed = pid(&file);
    let process = nix::unistd::Pid::from_raw(killed);
    nix::sys::signal::kill(process, nix::sys::signal::Signal::SIGKILL).unwrap();
    eventually("the end of the killed process, with nothing left of it", SOON, || {
        (!std::path::Path::new(&format!("/proc/{killed}")).exists()).then_some(())
    });
    eventually("an answer from a new process", RECONNECTED, || {
        let answer = session.call("get_current_time", arguments);
        (!answer.is_refusal() && pid(&file) != killed).then_some(())
    });
}

#[test]
fn no_local_server_outlives_the_gateway() {
    for how in [Gateway::stop, Gateway::kill9] {
        let folder = tempfile::tempdir().unwrap();
        let (local, file) = local_with_pid_file(folder.path());
        let mut gateway = Gateway::start();
        gateway.add_server(&local.registration());
        let child = pid(&file);
        assert!(is_alive(child));
        how(&mut gateway);
        eventually("the end of the local server", SOON, || (!is_alive(child)).then_some(()));
    }
}

#[test]
fn a_new_tool_is_listed_without_anyone_asking() {
    let ts = HttpServer::typescript("ts", "dual");
    let gateway = Gateway::start();
    gateway.add_server(&ts.registration());
    let mut session = gateway.session(&gateway.add_key("full"));
    let mut stream = session.listen();
    assert_eq!(session.call("add_tool", "{}").text(), "added_1");
    eventually("the new tool in the list", RECONNECTED, || {
        session.tool_names().contains(&"added_1".to_owned()).then_some(())
    });
    assert_eq!(session.call("added_1", "{}").text(), "added_1");
    let note = std::iter::from_fn(|| stream.event().unwrap()).find(|event| !event.data.is_empty());
    let note = note.expect("a note on the stream");
    assert!(note.data.contains("notifications/tools/list_changed"), "{note:?}");
}

/// Everything that was set up, as the API shows it, without what changes by itself.
fn settings(gateway: &Gateway) -> serde_json::Value {
    let servers: Vec<_> = gateway
        .get("/upstreams")
        .as_array()
        .unwrap()
        .iter()
        .map(|server| {
            json!([server["name"], server["url"], server["command"], server["description"]])
        })
        .collect();
    let keys: Vec<_> = gateway
        .get("/keys")
        .as_array()
        .unwrap()
        .iter()
        .map(|key| json!([key["id"], key["label"], key["group"], key["hint"], key["created_at"]]))
        .collect();
    let groups: Vec<_> = gateway
        .get("/groups")
        .as_array()
        .unwrap()
        .iter()
        .map(|group| {
            json!([
                group["name"],
                group["mode"],
                group["servers"],
                group["defaults"],
                group["keys"]
            ])
        })
        .collect();
    json!({"servers": servers, "keys": keys, "groups": groups})
}

/// Sets up a little of everything, ends the gateway with `end`, and looks for it after a start.
fn check_second_start(end: fn(&mut Gateway)) {
    let (ts, time) = (HttpServer::typescript("ts", "dual"), Local::time());
    let mut gateway = Gateway::start();
    gateway.add_server(&ts.registration());
    gateway.add_server(&time.registration());
    gateway.post("/groups", &json!({"name": "few", "mode": "direct", "servers": ["ts"]}));
    let (key, few) = (gateway.add_key("full"), gateway.add_key("few"));
    let (before, list) = (settings(&gateway), gateway.session(&key).tools());
    assert!(list.iter().any(|tool| tool.name == "greet"));

    end(&mut gateway);

    assert_eq!(settings(&gateway), before);
    let mut session = gateway.session(&key);
    // The last known list is there before any server has been reached.
    assert_eq!(session.tools(), list);
    eventually("an answer from each server", RECONNECTED, || {
        let (one, two) = (
            session.call("whoami", "{}"),
            session.call("get_current_time", r#"{"timezone":"UTC"}"#),
        );
        (!one.is_refusal() && !two.is_refusal()).then_some(())
    });
    assert_eq!(session.tools(), list);
    assert!(!gateway.session(&few).tool_names().contains(&"get_current_time".to_owned()));
}

#[test]
fn a_second_start_finds_everything() {
    check_second_start(Gateway::restart);
}

#[test]
fn a_start_after_a_power_cut_finds_everything() {
    check_second_start(|gateway| {
        gateway.kill9();
        gateway.start_again();
    });
}

#[test]
fn a_session_goes_on_after_a_restart() {
    let ts = HttpServer::typescript("ts", "dual");
    let mut gateway = Gateway::start();
    gateway.add_server(&ts.registration());
    let mut session: Session = gateway.session(&gateway.add_key("full"));
    assert_eq!(session.call("whoami", "{}").text(), "ts");
    gateway.restart();
    eventually("an answer in the session from before", RECONNECTED, || {
        (session.call("whoami", "{}").text() == "ts").then_some(())
    });
}

#[test]
fn without_a_key_there_is_nothing() {
    let gateway = Gateway::start();
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let json = ("Content-Type", "application/json");
    for headers in [vec![json], vec![json, ("Authorization", "Bearer no-such-key")]] {
        let reply = http::send(gateway.address, "POST", "/mcp", &headers, body).unwrap();
        assert_eq!(reply.status, 401);
        assert!(reply.header("www-authenticate").is_some_and(|value| value.starts_with("Bearer")));
    }
    // An app's key is no admin token.
    let key = gateway.add_key("full").bearer();
    let headers = [("Authorization", key.as_str())];
    let reply = http::send(gateway.address, "GET", "/api/v1/keys", &headers, "").unwrap();
    assert_eq!(reply.status, 401);
}
