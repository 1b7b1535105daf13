//! SEC-01, 02, 03: sessions belong to keys, and keys end.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::status;
use crate::cases::{before, call};
use crate::support::gateway::{ADMIN_TOKEN, Gateway};
use crate::support::mcp::{Peer, Session};
use crate::support::odd::{Action, Answer, Odd};
use crate::support::{SOON, eventually, http};

#[test]
fn sec_01_a_session_of_another_key_is_one_that_does_not_exist() {
    let odd = Odd::of(&["t"]).start();
    let gateway = Gateway::start();
    gateway.add_server(&odd.registration("odd"));
    let mut own = gateway.session(&gateway.add_key("full"));
    let other = gateway.add_key("full").bearer();
    let made_up = "made-up";
    for method in ["POST", "GET", "DELETE"] {
        let theirs = status(&gateway, method, &other, own.id());
        assert_eq!(theirs, status(&gateway, method, &other, made_up), "{method}");
        assert_eq!(theirs, 404, "{method}");
    }
    // Not a word of it to the one who tried, a line to the operator.
    eventually("a line in the log", SOON, || {
        gateway.log().contains("with another key than its own").then_some(())
    });
    assert_eq!(own.call("t", "{}").text(), "t", "its owner is not affected");
    assert_eq!(own.listen().status, 200);
}

/// A server whose tool counts the calls of each of its sessions.
fn counting() -> Odd {
    let counts: Mutex<HashMap<String, u32>> = Mutex::default();
    Odd::of(&["count"])
        .script(move |request, _| match request.tool() {
            Some(_) => {
                let session = request.header("mcp-session-id").unwrap().to_owned();
                let mut counts = counts.lock().unwrap();
                let count = counts.entry(session).or_default();
                *count += 1;
                Answer::text(request, &count.to_string()).into()
            }
            None => Action::Usual,
        })
        .start()
}

/// What the sessions count when they take turns, three times.
fn turns(sessions: &mut [Session]) -> Vec<Vec<String>> {
    let round = |_| sessions.iter_mut().map(|session| session.call("count", "{}").text()).collect();
    (0..3).map(round).collect()
}

#[test]
fn sec_02_each_key_has_its_own_session_on_a_server_unless_its_group_shares_one() {
    let odd = counting();
    let gateway = Gateway::start();
    gateway.add_server(&odd.registration("odd"));
    for group in ["one", "two"] {
        gateway.post("/groups", &json!({"name": group, "mode": "direct"}));
    }
    let keys = ["one", "one", "two"].map(|group| gateway.add_key(group));
    let mut sessions: Vec<Session> = keys.iter().map(|key| gateway.session(key)).collect();
    assert_eq!(turns(&mut sessions), [["1", "1", "1"], ["2", "2", "2"], ["3", "3", "3"]]);
    // Two conversations of one key are one app.
    assert_eq!(gateway.session(&keys[0]).call("count", "{}").text(), "4");

    gateway.api("PATCH", "/upstreams/odd", &json!({"shared": true}));
    assert_eq!(turns(&mut sessions), [["1", "2", "1"], ["3", "4", "2"], ["5", "6", "3"]]);
}

/// A server whose call never ends.
fn holding() -> Odd {
    Odd::of(&["hold", "t"])
        .script(|request, _| match request.tool() {
            Some("hold") => Action::Hang,
            _ => Action::Usual,
        })
        .start()
}

#[test]
fn sec_03_a_revoked_key_is_out_at_once_with_all_that_it_had() {
    let odd = holding();
    let gateway = Gateway::start();
    gateway.add_server(&odd.registration("odd"));
    let key = gateway.add_key("full");
    let mut session = gateway.session(&key);
    let mut other = gateway.session(&gateway.add_key("full"));
    assert_eq!(session.call("t", "{}").text(), "t");
    assert_eq!(other.call("t", "{}").text(), "t");
    let mut stream = session.listen();
    let caller = session.clone();
    let ended = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&ended);
    std::thread::spawn(move || {
        let request = caller.post_raw(&call("9", "hold", "{}"));
        let _cut_or_answered = http::raw(caller.address, &request).map(|mut reply| reply.text());
        told.store(true, Ordering::SeqCst);
    });
    eventually("the call", SOON, || (odd.calls("hold") == 1).then_some(()));
    let open = odd.sessions();

    gateway.post(&format!("/keys/{}/revoke", key.id), &json!({}));

    for method in ["POST", "GET", "DELETE"] {
        assert_eq!(status(&gateway, method, &key.bearer(), session.id()), 401, "{method}");
    }
    assert!(stream.ends_within(SOON), "the stream of a revoked key is still open");
    eventually("the end of the call", SOON, || ended.load(Ordering::SeqCst).then_some(()));
    eventually("the end of its session on the server", SOON, || {
        (odd.sessions() == open - 1).then_some(())
    });
    assert_eq!(other.call("t", "{}").text(), "t", "others are not affected");
}

#[test]
fn sec_03_nothing_but_a_living_key_opens_the_door() {
    let (gateway, session) = before(&Odd::of(&["t"]).start());
    let key = gateway.add_key("full");
    let good = key.bearer();
    let id = gateway.session(&key).id().to_owned();
    assert_eq!(status(&gateway, "POST", &good, &id), 200);
    let secret = &key.secret;
    let (head, tail) = secret.split_at(secret.len() - 1);
    let other = if tail == "A" { "B" } else { "A" };
    for bad in [
        String::new(),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        format!("Bearer {}", secret.to_uppercase()),
        format!("Bearer {}", secret.to_lowercase()),
        format!("Bearer {head}"),
        format!("Bearer {head}{other}"),
        format!("Bearer {secret}x"),
        format!("Bearer {secret} {secret}"),
        format!("Basic {secret}"),
        secret.clone(),
        format!("Bearer {ADMIN_TOKEN}"),
        "Bearer mcpm_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA".to_owned(),
    ] {
        assert_eq!(status(&gateway, "POST", &bad, &id), 401, "{bad}");
        assert_eq!(status(&gateway, "GET", &bad, &id), 401, "{bad}");
    }
    // A key opens nothing but its own door.
    for path in ["/api/v1/keys", "/api/v1/audit", "/metrics"] {
        let headers = [("Authorization", good.as_str())];
        let reply = http::send(gateway.address, "GET", path, &headers, "").unwrap();
        assert_eq!(reply.status, 401, "{path}");
    }
    // The word before the secret is of no case, and what is reissued replaces it.
    assert_eq!(status(&gateway, "POST", &format!("bearer {secret}"), &id), 200);
    let again = gateway.post(&format!("/keys/{}/reissue", key.id), &Value::Null);
    assert_eq!(status(&gateway, "POST", &good, &id), 401);
    let fresh = format!("Bearer {}", again["key"].as_str().unwrap());
    assert_ne!(status(&gateway, "POST", &fresh, &id), 401);
    assert_eq!(session.clone().request("ping", "{}").result(), "{}");
}
