//! The management API as an operator's scripts see it: every endpoint's shape, what bad input is
//! told, who is let in, and what other origins get.

use std::process::{Command, Stdio};
use std::thread;

use serde_json::{Value, json};

use crate::support::gateway::Gateway;
use crate::support::http::{self, Reply};
use crate::support::peers::HttpServer;
use crate::support::process::Process;

/// Refused at once: nothing listens on the discard port.
const NOWHERE: &str = "http://127.0.0.1:9/mcp";

fn refused(gateway: &Gateway, request: (&str, &str, Value), expect: (u16, &str)) {
    let (method, path, body) = request;
    let (status, answer) = gateway.api(method, path, &body);
    assert_eq!((status, answer), (expect.0, json!({"error": expect.1})), "{method} {path} {body}");
}

fn group(gateway: &Gateway, name: &str) -> Value {
    let groups = gateway.get("/groups");
    let found = groups.as_array().unwrap().iter().find(|group| group["name"] == name);
    found.unwrap_or_else(|| panic!("no group {name} in {groups}")).clone()
}

fn patch(gateway: &Gateway, path: &str, body: &Value) -> Value {
    let (status, answer) = gateway.api("PATCH", path, body);
    assert_eq!(status, 200, "PATCH {path} {body} gave {answer}");
    answer
}

fn sentences(gateway: &Gateway, kind: &str) -> Vec<String> {
    let audit = gateway.get("/audit");
    let events = audit["events"].as_array().unwrap();
    let found = events.iter().filter(|event| event["kind"] == kind);
    found.map(|event| event["message"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn groups_from_first_to_last() {
    let gateway = Gateway::start();
    let fresh = |name: &str, mode: &str| {
        json!({
            "name": name, "mode": mode, "defaults": [], "adaptive_cap": null, "servers": null,
            "unresolved": [], "sees": 0, "keys": 0
        })
    };
    assert_eq!(
        gateway.get("/groups"),
        json!([fresh("default", "hybrid"), fresh("full", "direct")])
    );

    let made = gateway
        .post("/groups", &json!({"name": " pi ", "mode": "adaptive", "defaults": ["a", "a"]}));
    assert_eq!((&made["name"], &made["defaults"]), (&json!("pi"), &json!(["a"])));
    assert_eq!(made["unresolved"], json!(["a"]));
    assert_eq!(gateway.post("/groups", &json!({"name": "Küche 1"}))["mode"], "hybrid");

    let changed = patch(
        &gateway,
        "/groups/pi",
        &json!({"adaptive_cap": 50, "servers": [], "mode": "direct"}),
    );
    assert_eq!((&changed["adaptive_cap"], &changed["servers"]), (&json!(50), &json!([])));
    assert_eq!(changed["defaults"], json!(["a"]), "kept over a switch to direct");
    let reset = patch(&gateway, "/groups/pi", &json!({"adaptive_cap": null, "servers": null}));
    assert_eq!((&reset["adaptive_cap"], &reset["servers"]), (&Value::Null, &Value::Null));
    assert_eq!(
        patch(&gateway, "/groups/K%C3%BCche%201", &json!({"name": "Küche"}))["name"],
        "Küche"
    );

    gateway.add_key("pi");
    let other = gateway.add_key("pi");
    gateway.post(&format!("/keys/{}/revoke", other.id), &Value::Null);
    assert_eq!(group(&gateway, "pi")["keys"], 2);
    let (status, answer) = gateway.api("DELETE", "/groups/pi", &Value::Null);
    assert_eq!((status, answer), (200, json!({"ok": true, "deleted_keys": 2})));
    assert_eq!(gateway.get("/keys"), json!([]));
    assert_eq!(
        sentences(&gateway, "group"),
        [
            "group `pi` was removed with its 2 keys",
            "group `pi` was changed: adaptive_cap, servers",
            "group `pi` was changed: mode, adaptive_cap, servers",
            "group `Küche 1` was added",
            "group `pi` was added",
        ]
    );
}

#[test]
fn bad_groups_are_told_what_is_wrong() {
    let gateway = Gateway::start();
    let post =
        |body: Value, expect: (u16, &str)| refused(&gateway, ("POST", "/groups", body), expect);
    post(Value::Null, (400, "the body is empty; send a JSON object"));
    post(json!([]), (400, "the body must be a JSON object, not an array"));
    post(json!({"mode": "direct"}), (400, "`name` must be given"));
    post(json!({"name": "a/b"}), (400, "`name` must not hold `/`"));
    post(
        json!({"name": "x", "mdoe": "direct"}),
        (400, "there is no field `mdoe`; did you mean `mode`?"),
    );
    post(
        json!({"name": "x", "mode": "fast"}),
        (400, "`mode` must be `direct`, `hybrid` or `adaptive`, not `fast`"),
    );
    post(
        json!({"name": "x", "adaptive_cap": 51}),
        (400, "`adaptive_cap` must be 1–50 or null, not 51"),
    );
    post(
        json!({"name": "x", "adaptive_cap": "5"}),
        (400, "`adaptive_cap` must be a number, not a string"),
    );
    post(
        json!({"name": "x", "servers": ["no"]}),
        (400, "`servers` holds `no`, which is no server (there are none)"),
    );
    post(json!({"name": "full"}), (409, "the name `full` is taken by another group"));

    refused(&gateway, ("PATCH", "/groups/no", json!({})), (404, "there is no group `no`"));
    refused(
        &gateway,
        ("PATCH", "/groups/full", json!({"name": "default"})),
        (409, "the name `default` is taken by another group"),
    );
    let (status, answer) = gateway.api("DELETE", "/groups/default", &Value::Null);
    assert_eq!(status, 400);
    assert!(answer["error"].as_str().unwrap().contains("`default_group`"), "{answer}");
    assert_eq!(gateway.get("/groups").as_array().unwrap().len(), 2, "nothing was changed");
    assert_eq!(gateway.get("/audit")["events"], json!([]));
}

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
            "exposed": "greet", "upstream": "ts", "tool": "greet",
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

#[test]
fn keys_from_first_to_last() {
    let gateway = Gateway::start();
    let made = gateway.post("/keys", &json!({"group": "full", "label": "pi on the laptop"}));
    let secret = made["key"].as_str().unwrap();
    assert!(secret.starts_with("mcpm_") && secret.len() == 48, "{secret}");
    assert_eq!(made, json!({"id": 1, "key": secret, "label": "pi on the laptop", "group": "full"}));

    let listed = gateway.get("/keys")[0].clone();
    let created = listed["created_at"].as_str().unwrap();
    assert!(created.ends_with('Z') && created.starts_with("20"), "{created}");
    let expect = json!({
        "id": 1, "label": "pi on the laptop", "group": "full", "hint": secret[44..],
        "created_at": created, "last_used_at": null, "revoked": false
    });
    assert_eq!(listed, expect);
    assert_eq!(gateway.post("/keys", &json!({}))["group"], "default", "without a group");

    let moved = patch(&gateway, "/keys/1", &json!({"group": "default", "label": null}));
    assert_eq!((&moved["group"], &moved["label"]), (&json!("default"), &json!("")));
    assert_eq!(gateway.post("/keys/1/revoke", &Value::Null), json!({"ok": true}));
    assert_eq!(gateway.get("/keys")[0]["revoked"], true);
    let again = gateway.post("/keys/1/reissue", &Value::Null);
    assert_ne!(again["key"], secret);
    assert_eq!(gateway.get("/keys")[0]["revoked"], false);
    let (status, answer) = gateway.api("DELETE", "/keys/1", &Value::Null);
    assert_eq!((status, answer), (200, json!({"ok": true})));
    assert_eq!(gateway.get("/keys").as_array().unwrap().len(), 1);

    refused(&gateway, ("POST", "/keys/1/revoke", Value::Null), (404, "there is no key `1`"));
    refused(&gateway, ("PATCH", "/keys/x", json!({})), (404, "there is no key `x`"));
    refused(
        &gateway,
        ("POST", "/keys", json!({"group": "no"})),
        (400, "`group` is `no`, which is no group (`default`, `full`)"),
    );
    let audit = gateway.get("/audit").to_string();
    assert!(!audit.contains("mcpm_"), "SEC-05: {audit}");
}

#[test]
fn only_the_admin_token_opens_the_api() {
    let gateway = Gateway::start();
    let key = gateway.add_key("full");
    let ask = |bearer: &str| {
        let headers = [("Authorization", bearer), ("Origin", "https://ui.example")];
        http::send(gateway.address, "GET", "/api/v1/keys", &headers, "").unwrap()
    };
    for bearer in ["Bearer wrong", "Basic eA==", "Bearer ", &key.bearer()] {
        let mut reply = ask(bearer);
        assert_eq!(reply.status, 401, "{bearer}");
        assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
        assert_eq!(reply.header("access-control-allow-origin"), Some("*"), "HTTP-06");
        assert!(reply.text().unwrap().starts_with(r#"{"error":""#));
    }
    // What is not there looks the same from outside.
    let unknown = http::send(gateway.address, "GET", "/api/v1/no", &[], "").unwrap();
    assert_eq!(unknown.status, 401);
    assert_eq!(gateway.api("GET", "/no", &Value::Null).0, 404);
}

#[test]
fn http_03_preflight_passes_without_a_token() {
    let gateway = Gateway::start();
    let headers = [
        ("Origin", "https://ui.example"),
        ("Access-Control-Request-Method", "PATCH"),
        ("Access-Control-Request-Headers", "authorization, mcp-session-id"),
    ];
    let reply = http::send(gateway.address, "OPTIONS", "/api/v1/keys", &headers, "").unwrap();
    assert_eq!(reply.status, 204);
    let header = |name: &str| reply.header(name).unwrap_or_default().to_ascii_lowercase();
    assert_eq!(header("access-control-allow-origin"), "*");
    for name in ["authorization", "mcp-session-id", "mcp-protocol-version", "last-event-id"] {
        assert!(header("access-control-allow-headers").contains(name), "{name}");
    }
    for method in ["get", "post", "patch", "delete"] {
        assert!(header("access-control-allow-methods").contains(method), "{method}");
    }
    assert!(header("access-control-expose-headers").contains("mcp-session-id"));
}

#[test]
fn other_methods_health_metrics_and_the_page() {
    let gateway = Gateway::start();
    assert_eq!(gateway.api("PUT", "/groups", &json!({})).0, 405);
    let get = |path: &str| http::send(gateway.address, "GET", path, &[], "").unwrap();
    let json =
        |mut reply: Reply| -> Value { serde_json::from_str(&reply.text().unwrap()).unwrap() };
    assert_eq!(json(get("/livez")), json!({"ok": true}));
    assert_eq!(json(get("/readyz"))["status"], "ok");
    assert_eq!(get("/metrics").status, 401);
    let mut page = get("/");
    assert_eq!(page.status, 200);
    assert_eq!(page.header("cache-control"), Some("no-store"));
    assert!(
        page.header("content-security-policy")
            .is_some_and(|policy| policy.starts_with("default-src 'none'"))
    );
    assert!(page.text().unwrap().contains("Admin token"));
    for (path, kind) in [("/app.js", "text/javascript"), ("/app.css", "text/css")] {
        assert!(get(path).header("content-type").is_some_and(|found| found.starts_with(kind)));
    }
}

#[test]
fn metrics_open_to_the_admin_token() {
    let gateway = Gateway::start();
    gateway.post("/upstreams", &json!({"name": "gone", "url": NOWHERE, "timeout_ms": 2000}));
    let headers = [("Authorization", "Bearer the-admin-token-of-the-tests")];
    let metrics =
        || http::send(gateway.address, "GET", "/metrics", &headers, "").unwrap().text().unwrap();
    let text = metrics();
    assert!(text.contains("mcpm_build_info{version="), "{text}");
    assert!(text.contains("mcpm_server_up{server=\"gone\"} 0"), "{text}");
    gateway.api("DELETE", "/upstreams/gone", &Value::Null);
    assert!(!metrics().contains("gone"), "PLT-01: series of removed servers go");
}

#[test]
fn without_a_configured_token_everything_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("mcp-manager.yaml");
    let database = folder.path().join("mcp-manager.db");
    std::fs::write(&config, format!("boot:\n  port: 0\n  db: {}\n", database.display())).unwrap();
    let mut process = Process::start(
        Command::new(env!("CARGO_BIN_EXE_mcp-manager"))
            .args(["serve", "--config"])
            .arg(&config)
            .current_dir(folder.path())
            .env_clear()
            .env("MCPM_LOG_FORMAT", "json")
            .stdin(Stdio::null())
            .stderr(Stdio::piped()),
    );
    let address = process.line("a gateway that listens", |line| {
        let line: Value = serde_json::from_str(line).ok()?;
        let fields = line.get("fields").filter(|fields| fields["message"] == "listening")?;
        fields["address"].as_str()?.parse().ok()
    });
    for path in ["/api/v1/keys", "/api/v1/no", "/metrics"] {
        for headers in [&[][..], &[("Authorization", "Bearer x")][..]] {
            assert_eq!(
                http::send(address, "GET", path, headers, "").unwrap().status,
                503,
                "{path}"
            );
        }
    }
    assert_eq!(http::send(address, "GET", "/livez", &[], "").unwrap().status, 200);
}

#[test]
fn plt_02_many_writers_lose_nothing() {
    let gateway = Gateway::start();
    gateway.post("/groups", &json!({"name": "busy"}));
    let changes = [
        json!({"mode": "adaptive"}),
        json!({"adaptive_cap": 7}),
        json!({"defaults": ["one"]}),
        json!({"servers": []}),
    ];
    thread::scope(|scope| {
        for change in &changes {
            scope.spawn(|| patch(&gateway, "/groups/busy", change));
        }
        for _ in 0..46 {
            scope.spawn(|| gateway.add_key("busy"));
        }
    });
    let busy = group(&gateway, "busy");
    assert_eq!((&busy["mode"], &busy["adaptive_cap"]), (&json!("adaptive"), &json!(7)));
    assert_eq!((&busy["defaults"], &busy["servers"]), (&json!(["one"]), &json!([])));
    assert_eq!(busy["keys"], 46);
}
