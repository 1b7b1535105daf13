//! STD-06, 09, 10: how local programs start, and what is left of those that do not.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{own_word, settle};
use crate::support::gateway::{ADMIN_TOKEN, Gateway};
use crate::support::mcp::Peer;
use crate::support::peers::Local;
use crate::support::process::{open_files, settled_files, zombies_of};
use crate::support::{SOON, eventually};

#[test]
fn std_06_a_program_gets_its_own_variables_and_few_others() {
    let gateway = Gateway::start_with(&[
        ("LANG", "C.UTF-8"),
        ("TMPDIR", "/tmp"),
        ("MCPM_METRICS_TOKEN", "the-metrics-token"),
        ("TOKEN_OF_ANOTHER", "secret-of-another"),
        ("OWN_SOURCE", "own-secret"),
    ]);
    let own = Local::rough(&[]).with_env("OWN", "${OWN_SOURCE}").with_env("LITERAL", "a b");
    gateway.add_server(&own.registration());
    let mut another = Local::rough(&[]).with_env("ANOTHERS", "${TOKEN_OF_ANOTHER}");
    another.name = "another".to_owned();
    gateway.add_server(&another.registration());
    let mut session = gateway.session(&gateway.add_key("full"));
    let text = session.call("rough__env", "{}").text();
    let seen: Value = serde_json::from_str(&text).unwrap();
    for (name, value) in
        [("OWN", "own-secret"), ("LITERAL", "a b"), ("LANG", "C.UTF-8"), ("TMPDIR", "/tmp")]
    {
        assert_eq!(seen[name], value, "{text}");
    }
    for name in ["PATH", "HOME"] {
        assert!(seen[name].as_str().is_some_and(|value| !value.is_empty()), "{name}: {text}");
    }
    for secret in [ADMIN_TOKEN, "the-metrics-token", "secret-of-another"] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    assert!(!text.contains("MCPM_") && !text.contains("OWN_SOURCE"), "{text}");
}

#[test]
fn std_09_a_start_that_fails_leaves_nothing() {
    let gateway = Gateway::start();
    for how in ["refuse", "quit", "mute"] {
        let word = own_word(how);
        let mut registration = Local::rough(&[how, &word]).registration();
        registration["timeout_ms"] = json!(if how == "mute" { 300 } else { 5000 });
        let server = gateway.post("/upstreams", &registration);
        assert_ne!(server["status"], "connected", "{server}");
        assert!(server["error"].is_string(), "{server}");
        settle(&word, 0);
        let files = settled_files(gateway.pid());
        for _ in 0..5 {
            gateway.post("/upstreams/rough/reconnect", &Value::Null);
            gateway.api("POST", "/test-connection", &registration);
        }
        gateway.api("DELETE", "/upstreams/rough", &Value::Null);
        settle(&word, 0);
        eventually("no zombies", SOON, || (zombies_of(gateway.pid()) == 0).then_some(()));
        eventually("as few open files as before", SOON, || {
            (open_files(gateway.pid()) <= files + 3).then_some(())
        });
    }
}

#[test]
fn std_10_a_slow_start_is_waited_for_and_holds_up_nobody() {
    let gateway = Gateway::start();
    let mut quick = Local::rough(&[]);
    quick.name = "quick".to_owned();
    gateway.add_server(&quick.registration());
    let mut session = gateway.session(&gateway.add_key("full"));
    std::thread::scope(|scope| {
        // Longer than the first question to a server of unknown kind is waited for.
        let slow = scope.spawn(|| {
            let started = Instant::now();
            (gateway.post("/upstreams", &Local::rough(&["late=5.5"]).registration()), started)
        });
        eventually("a server that is connecting", SOON, || {
            let servers = gateway.get("/upstreams");
            let slow = servers.as_array()?.iter().find(|server| server["name"] == "rough")?;
            (slow["status"] == "connecting").then_some(())
        });
        let mut hurried = Local::rough(&["late=60"]);
        hurried.name = "hurried".to_owned();
        let mut registration = hurried.registration();
        registration["timeout_ms"] = json!(300);
        let server = gateway.post("/upstreams", &registration);
        assert_eq!(server["status"], "down", "each has its own limit: {server}");
        let asked = Instant::now();
        assert_eq!(session.call("t", "{}").text(), "t");
        assert!(asked.elapsed() < Duration::from_secs(1), "{:?}", asked.elapsed());
        let (server, started) = slow.join().unwrap();
        assert_eq!((&server["status"], &server["tools"]), (&json!("connected"), &json!(8)));
        assert!(started.elapsed() > Duration::from_secs(5));
    });
    assert_eq!(session.call("quick__t", "{}").text(), "t");
}
