//! `/upstreams`, `/test-connection` and `/tools`: with a real server, with none, with bad input.

use serde_json::{Value, json};

use super::{NOWHERE, group, patch, refused, sentences};
use crate::support::gateway::Gateway;
use crate::support::peers::HttpServer;

#[test]
fn servers_from_first_to_last() {
    let ts = HttpServer::typescript("ts", "dual");
    let gateway = Gateway::start();
    let made = gateway.add_server(&json!({
        "name": "ts", "serverUrl": ts.url(), "headers": {"X-Two": "2", "X-One": "1"}
    }));
    let fields: Vec<_> = made.as_object().unwrap().keys().map(String::as_str).collect();
    for field in [
        "name",
        "url",
        "description",
        "headers",
        "enabled",
        "shared",
        "timeout_ms",
        "status",
        "error",
        "down_for",
        "retry_in",
        "tools",
        "sessions",
        "overridden",
        "server_says",
    ] {
        assert!(fields.contains(&field), "no {field} in {made}");
    }
    assert_eq!(made["url"], ts.url());
    assert_eq!(made["headers"].to_string(), r#"{"X-Two":"2","X-One":"1"}"#, "in their order");
    assert_eq!((&made["timeout_ms"], &made["call_timeout_ms"]), (&json!(30_000), &json!(600_000)));
    assert_eq!((&made["error"], &made["overridden"]), (&Value::Null, &json!(false)));
    assert!(made["tools"].as_u64().unwrap() >= 7, "{made}");

    let told =
        patch(&gateway, "/upstreams/ts", &json!({"description": " Says hello. ", "shared": true}));
    assert_eq!((&told["description"], &told["overridden"]), (&json!("Says hello."), &json!(true)));
    let blank = patch(&gateway, "/upstreams/ts", &json!({"description": "", "headers": null}));
    assert_eq!(
        (&blank["description"], &blank["overridden"]),
        (&made["server_says"], &json!(false))
    );
    assert_eq!((&blank["headers"], &blank["status"]), (&json!({}), &json!("connected")));

    let off = patch(&gateway, "/upstreams/ts", &json!({"enabled": false}));
    assert_eq!((&off["status"], &off["tools"]), (&json!("disabled"), &json!(0)));
    refused(
        &gateway,
        ("POST", "/upstreams/ts/reconnect", Value::Null),
        (400, "server `ts` is disabled; enable it first"),
    );
    let on = patch(&gateway, "/upstreams/ts", &json!({"enabled": true}));
    assert_eq!((&on["status"], &on["tools"]), (&json!("connected"), &made["tools"]));
    let fresh = gateway.post("/upstreams/ts/reconnect", &Value::Null);
    assert_eq!((&fresh["status"], &fresh["tools"]), (&json!("connected"), &made["tools"]));

    let (status, answer) = gateway.api("DELETE", "/upstreams/ts", &Value::Null);
    assert_eq!((status, answer), (200, json!({"ok": true})));
    assert_eq!(gateway.get("/upstreams"), json!([]));
    assert_eq!(gateway.get("/tools"), json!([]));
}

#[test]
fn a_server_that_cannot_be_reached_is_kept_and_told_of() {
    let gateway = Gateway::start();
    let made =
        gateway.post("/upstreams", &json!({"name": "gone", "url": NOWHERE, "timeout_ms": 2000}));
    assert_eq!(made["status"], "down", "{made}");
    assert!(made["error"].is_string() && made["down_for"].is_u64(), "{made}");
    let trial = gateway.post("/test-connection", &json!({"url": NOWHERE}));
    assert_eq!(trial["ok"], false);
    assert!(trial["error"].is_string(), "{trial}");
    let missing = gateway.post(
        "/upstreams",
        &json!({"name": "env", "url": NOWHERE, "headers": {"X-A": "${MCPM_NO_SUCH}"}}),
    );
    assert_eq!(missing["status"], "down");
    assert!(missing["error"].as_str().unwrap().contains("MCPM_NO_SUCH"), "{missing}");
}

#[test]
fn a_trial_saves_nothing() {
    let ts = HttpServer::typescript("ts", "dual");
    let gateway = Gateway::start();
    let trial = gateway.post("/test-connection", &json!({"url": ts.url(), "headers": {}}));
    assert_eq!((&trial["ok"], &trial["server"]), (&json!(true), &json!("ts")));
    assert!(trial["tools"].as_u64().unwrap() >= 7, "{trial}");
    assert_eq!(gateway.get("/upstreams"), json!([]));
}

#[test]
fn bad_servers_are_told_what_is_wrong() {
    let gateway = Gateway::start();
    gateway.post("/upstreams", &json!({"name": "here", "url": NOWHERE, "enabled": false}));
    let post =
        |body: Value, expect: (u16, &str)| refused(&gateway, ("POST", "/upstreams", body), expect);
    post(json!({"url": NOWHERE}), (400, "`name` must be given"));
    post(
        json!({"name": "here", "url": NOWHERE}),
        (409, "the name `here` is taken by another server"),
    );
    post(
        json!({"name": "x"}),
        (400, "`url` or `command` must be given: where the server answers, or what to run"),
    );
    post(
        json!({"name": "x", "url": "host/mcp"}),
        (400, "`url` must be a whole address such as `http://host:8940/mcp`, not `host/mcp`"),
    );
    post(
        json!({"name": "x", "url": NOWHERE, "headers": {"A": 1}}),
        (400, "`headers.A` must be a string, not a number"),
    );
    post(
        json!({"name": "x", "url": NOWHERE, "headers": {"Host": "h"}}),
        (400, "`headers.Host` is set by the manager itself; leave it out"),
    );
    post(
        json!({"name": "x", "url": NOWHERE, "timeout_ms": 1}),
        (400, "`timeout_ms` must be 100–600000 (milliseconds), not 1"),
    );
    post(
        json!({"name": "x", "command": "npx", "args": "-y"}),
        (400, "`args` must be an array of strings, not a string"),
    );
    post(
        json!({"name": "x", "url": NOWHERE, "env": {"A": "1"}}),
        (400, "`env` is for servers that run a `command`; this one has a `url`"),
    );
    for path in ["/upstreams/no", "/upstreams/no/reconnect"] {
        let method = if path.ends_with("reconnect") { "POST" } else { "PATCH" };
        refused(&gateway, (method, path, json!({})), (404, "there is no server `no`"));
    }
    assert_eq!(gateway.get("/upstreams").as_array().unwrap().len(), 1, "nothing was changed");
}

#[test]
fn tools_and_the_names_that_two_servers_share() {
    let (ts, other) = (HttpServer::typescript("ts", "dual"), HttpServer::typescript("o", "dual"));
    let gateway = Gateway::start();
    gateway.add_server(&ts.registration());
    let tools = gateway.get("/tools");
    let greet = tools.as_array().unwrap().iter().find(|tool| tool["tool"] == "greet").unwrap();
    assert_eq!(
        *greet,
        json!({
            "exposed": "greet", "upstream": "ts", "tool": "greet", "title": "Greet",
            "description": "Greets someone: “Grüß Gott”, 你好, مرحبا", "overridden": false,
            "server_says": "Greets someone: “Grüß Gott”, 你好, مرحبا", "arguments": ["who"]
        })
    );
    patch(&gateway, "/groups/default", &json!({"defaults": ["greet", "nowhere"]}));

    gateway.add_server(&json!({"name": "Küche 2", "url": other.url()}));
    let both = group(&gateway, "default");
    assert_eq!((&both["defaults"], &both["sees"]), (&json!(["ts__greet", "nowhere"]), &json!(1)));
    assert_eq!(both["unresolved"], json!(["nowhere"]));
    let renamed = gateway.get("/audit")["renamed"].clone();
    let greet = renamed.as_array().unwrap().iter().find(|tool| tool["tool"] == "greet").unwrap();
    let holders = json!([
        {"upstream": "ts", "name": "ts__greet"},
        {"upstream": "Küche 2", "name": "K_che_2__greet"}
    ]);
    assert_eq!(greet["servers"], holders);

    // Another name for the server carries its place in groups and defaults along.
    patch(&gateway, "/groups/full", &json!({"servers": ["ts"]}));
    let moved = patch(&gateway, "/upstreams/ts", &json!({"name": "hello"}));
    assert_eq!((&moved["name"], &moved["status"]), (&json!("hello"), &json!("connected")));
    assert_eq!(group(&gateway, "full")["servers"], json!(["hello"]));
    assert_eq!(group(&gateway, "default")["defaults"], json!(["hello__greet", "nowhere"]));

    gateway.api("DELETE", "/upstreams/K%C3%BCche%202", &Value::Null);
    assert_eq!(group(&gateway, "default")["defaults"], json!(["greet", "nowhere"]));
    assert_eq!(gateway.get("/audit")["renamed"], json!([]));
    assert_eq!(sentences(&gateway, "edit"), ["server `ts` is now called `hello`"]);
    assert_eq!(
        sentences(&gateway, "default"),
        [
            "default `hello__greet` of group `default` followed its tool and is now `greet`",
            "default `ts__greet` of group `default` followed its tool and is now `hello__greet`",
            "default `greet` of group `default` followed its tool and is now `ts__greet`",
        ]
    );
}
