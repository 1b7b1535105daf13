//! `/keys`, and what the audit tells of them.

use serde_json::{Value, json};

use super::{patch, refused};
use crate::support::gateway::Gateway;

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
