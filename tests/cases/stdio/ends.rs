//! STD-03, 04, 07, 08: how local programs end, and what ends with them.

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::{Swept, own_word, rough, settle};
use crate::cases::call;
use crate::support::gateway::Gateway;
use crate::support::mcp::{Peer, Session};
use crate::support::peers::Local;
use crate::support::process::{children_with_word, with_word, zombies_of};
use crate::support::{SOON, eventually, http};

/// The rough server behind a shell that only waits for it, as `npx` and `uvx` do.
fn wrapped(words: &[&str]) -> Local {
    let server = Local::rough(words);
    // In the background a shell's child has no standard input unless it is given one.
    let script = r#"exec 3<&0; "$0" "$@" <&3 & wait"#;
    let args = [&["-c", script, server.command.as_str()][..]].concat();
    let args = args.into_iter().map(str::to_owned).chain(server.args).collect();
    Local { command: "/bin/sh".to_owned(), args, ..server }
}

/// A gateway whose link and one app's session run the wrapped server: two shells, two servers.
fn with_wrapped(words: &[&str], word: &str) -> (Gateway, Session, String) {
    let gateway = Gateway::start();
    gateway.add_server(&wrapped(&[words, &[word]].concat()).registration());
    let key = gateway.add_key("full");
    let mut session = gateway.session(&key);
    assert_eq!(session.call("t", "{}").text(), "t");
    settle(word, 4);
    (gateway, session, key.id)
}

#[test]
fn std_03_a_server_ends_with_the_program_that_wraps_it() {
    for (left, how) in [(0, "disable"), (0, "delete"), (2, "revoke")] {
        let word = own_word(how);
        let (gateway, _session, key) = with_wrapped(&[], &word);
        let status = match how {
            "disable" => gateway.api("PATCH", "/upstreams/rough", &json!({"enabled": false})).0,
            "delete" => gateway.api("DELETE", "/upstreams/rough", &Value::Null).0,
            _ => gateway.api("POST", &format!("/keys/{key}/revoke"), &Value::Null).0,
        };
        assert_eq!(status, 200, "{how}");
        settle(&word, left);
        eventually("no zombies", SOON, || (zombies_of(gateway.pid()) == 0).then_some(()));
    }
}

#[test]
fn std_03_a_server_that_does_not_listen_is_killed() {
    let word = own_word("stubborn");
    let (gateway, _session, _) = with_wrapped(&["stubborn"], &word);
    gateway.api("DELETE", "/upstreams/rough", &Value::Null);
    settle(&word, 0);
    eventually("no zombies", SOON, || (zombies_of(gateway.pid()) == 0).then_some(()));
}

#[test]
fn std_03_nothing_is_left_when_the_gateway_stops() {
    let word = own_word("stop");
    let (mut gateway, _session, _) = with_wrapped(&[], &word);
    gateway.stop();
    settle(&word, 0);
}

#[test]
fn std_03_nothing_is_left_when_the_gateway_is_killed() {
    // Also what neither the end of its input nor a polite request moves.
    for words in [&[][..], &["stubborn"]] {
        let word = own_word("killed");
        let _swept = Swept(&word);
        let (mut gateway, _session, _) = with_wrapped(words, &word);
        gateway.kill9();
        settle(&word, 0);
    }
}

#[test]
fn std_03_a_warden_that_is_killed_is_replaced_at_once() {
    let word = own_word("warden");
    let _swept = Swept(&word);
    let (mut gateway, _session, _) = with_wrapped(&["stubborn"], &word);
    let warden = || children_with_word(gateway.pid(), "warden");
    let first = warden();
    assert_eq!(first.len(), 1, "{first:?}");
    end(&first[0].to_string());
    // No local server starts or ends meanwhile.
    eventually("another warden", SOON, || {
        warden().first().is_some_and(|second| *second != first[0]).then_some(())
    });
    assert_eq!(zombies_of(gateway.pid()), 0);
    assert!(gateway.whole_log().contains("the warden of local servers has ended"));
    settle(&word, 4);
    gateway.kill9();
    settle(&word, 0);
}

#[test]
fn std_04_programs_of_apps_end_when_they_are_not_used() {
    let word = own_word("idle");
    let gateway = Gateway::start_as("sessions: {idle: 2s}\n", &[]);
    gateway.add_server(&Local::rough(&[&word]).registration());
    settle(&word, 1);
    let one = gateway.add_key("full");
    for _ in 0..20 {
        // One app, many sessions: half of them ended, half left.
        for end in [true, false] {
            let mut session = gateway.session(&one);
            assert_eq!(session.call("t", "{}").text(), "t");
            if end {
                let id = ("Mcp-Session-Id", session.id());
                let bearer = one.bearer();
                let headers = [("Authorization", bearer.as_str()), id];
                let reply = http::send(gateway.address, "DELETE", "/mcp", &headers, "").unwrap();
                assert_eq!(reply.status, 204);
            }
        }
    }
    assert!(with_word(&word).len() <= 2, "{:?}", with_word(&word));
    for _ in 0..6 {
        let mut session = gateway.session(&gateway.add_key("full"));
        assert_eq!(session.call("t", "{}").text(), "t");
    }
    assert!(with_word(&word).len() > 2, "each app has its own");
    settle(&word, 1);
    eventually("no zombies", SOON, || (zombies_of(gateway.pid()) == 0).then_some(()));
    assert_eq!(gateway.server("rough")["sessions"], 0);
    assert_eq!(gateway.server("rough")["status"], "connected");
}

fn end(pid: &str) {
    kill(Pid::from_raw(pid.parse().unwrap()), Signal::SIGKILL).unwrap();
}

#[test]
fn std_07_a_program_that_is_killed_is_started_again_and_its_calls_end_at_once() {
    let (gateway, mut session) = rough(&[]);
    let first = session.call("pid", "{}").text();
    end(&first);
    let second = eventually("a new process", SOON, || {
        let answer = session.call("pid", "{}");
        (!answer.is_refusal()).then(|| answer.text())
    });
    assert_ne!(first, second);

    let waiting: Vec<_> = (0..3)
        .map(|_| {
            let mut other = session.clone();
            std::thread::spawn(move || (other.call("hold", "{}"), Instant::now()))
        })
        .collect();
    // One that came only after the end would be held by the next process.
    eventually("calls that are held", SOON, || {
        let server = gateway.server("rough");
        let said = server["stderr"].as_array().unwrap();
        (said.iter().filter(|line| *line == "held").count() == 3).then_some(())
    });
    let killed = Instant::now();
    end(&second);
    for call in waiting {
        let (answer, at) = call.join().unwrap();
        assert!(answer.is_refusal(), "{answer:?}");
        let text = answer.text().to_lowercase();
        assert!(text.contains("outcome unknown") || text.contains("not run"), "{text}");
        assert!(at - killed < Duration::from_secs(5), "told after {:?}", at - killed);
    }
    eventually("a third process", SOON, || {
        let answer = session.call("pid", "{}");
        (!answer.is_refusal() && answer.text() != second).then_some(())
    });
}

#[test]
fn std_07_a_program_that_ends_at_once_is_started_at_a_growing_distance() {
    let folder = tempfile::tempdir().unwrap();
    let (log, broken) = (folder.path().join("starts"), folder.path().join("broken"));
    let words = [format!("starts={}", log.display()), format!("unless={}", broken.display())];
    let gateway = Gateway::start();
    gateway.add_server(&Local::rough(&[&words[0], &words[1]]).registration());
    let mut session = gateway.session(&gateway.add_key("full"));
    assert_eq!(session.call("t", "{}").text(), "t");
    std::fs::write(&broken, "").unwrap();
    with_word(&words[0]).iter().for_each(|process| end(&process.to_string()));
    eventually("a server that is down", SOON, || {
        (gateway.server("rough")["status"] == "down").then_some(())
    });
    let starts = || std::fs::metadata(&log).unwrap().len();
    let (before, started) = (starts(), Instant::now());
    eventually("pauses that grow", SOON, || {
        // Apps do not drive the attempts.
        assert!(session.call("t", "{}").is_refusal());
        (gateway.server("rough")["retry_in"].as_u64()? >= 3).then_some(())
    });
    let (more, took) = (starts() - before, started.elapsed());
    assert!((1..=6).contains(&more), "{more} starts in {took:?}");

    std::fs::remove_file(&broken).unwrap();
    gateway.post("/upstreams/rough/reconnect", &Value::Null);
    assert_eq!(session.call("t", "{}").text(), "t");
}

#[test]
fn std_08_a_program_or_a_client_that_leaves_costs_its_own_calls_only() {
    let (gateway, mut session) = rough(&[]);
    let mut other = Local::rough(&[]);
    other.name = "other".to_owned();
    gateway.add_server(&other.registration());
    let pid = gateway.pid();
    for round in 0..3 {
        // More than a pipe holds, to one that ends without reading it.
        let arguments = json!({ "fill": "x".repeat(100_000) }).to_string();
        let calls: Vec<_> = (0..5)
            .map(|number| {
                let (mut one, arguments) = (session.clone(), arguments.clone());
                let tool = if number == 0 { "rough__die" } else { "rough__t" };
                std::thread::spawn(move || one.call(tool, &arguments))
            })
            .collect();
        assert_eq!(session.call("other__t", "{}").text(), "t", "round {round}");
        for call in calls {
            // Those before and after its end may have been answered.
            let answer = call.join().unwrap();
            assert!(answer.is_refusal() || answer.text() == "t", "{answer:?}");
        }
        // Clients that leave before the answer comes.
        for _ in 0..20 {
            let mut socket = TcpStream::connect(gateway.address).unwrap();
            let request = session.post_raw(&call("9", "other__t", "{}"));
            socket.write_all(request.as_bytes()).unwrap();
        }
        eventually("a server that is used again", SOON, || {
            (session.call("rough__t", "{}").text() == "t").then_some(())
        });
    }
    assert_eq!(session.call("other__t", "{}").text(), "t");
    assert_eq!(gateway.pid(), pid);
    assert!(!gateway.log().contains("panicked"), "{}", gateway.log());
}
