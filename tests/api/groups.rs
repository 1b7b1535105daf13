//! `/groups`, and writers that meet there.

use std::thread;

use serde_json::{Value, json};

use super::{group, patch, refused, sentences};
use crate::support::gateway::Gateway;

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
