//! A run as a model would make it, over all the real servers and with the real model: what stands
//! in the README comes from here.

use std::path::Path;
use std::time::Duration;

use serde_json::json;

use crate::real_servers::repository;
use crate::support::eventually;
use crate::support::gateway::Gateway;
use crate::support::mcp::{Peer, Session};
use crate::support::peers::{HttpServer, Local, path};

/// Writes down what is asked and answered.
struct Transcript {
    session: Session,
    text: String,
}

impl Transcript {
    fn call(&mut self, tool: &str, arguments: &serde_json::Value) -> String {
        let answer = self.session.call(tool, &arguments.to_string()).text();
        self.text.push_str(&format!("> {tool} {arguments}\n{answer}\n\n"));
        answer
    }

    fn search(&mut self, words: &str) -> String {
        self.call("search_tools", &json!({"query": words}))
    }

    fn through(&mut self, name: &str, arguments: serde_json::Value) -> String {
        self.call("call_tool", &json!({"name": name, "arguments": arguments}))
    }
}

/// The name in the first call to copy of a search's answer.
fn first(found: &str) -> String {
    let call: serde_json::Value = serde_json::from_str(found.lines().nth(1).unwrap()).unwrap();
    call["name"].as_str().unwrap().to_owned()
}

fn add_local_servers(gateway: &Gateway, files: &Path, repository: &Path) {
    std::fs::write(files.join("poem.txt"), "Roses are red.\n").unwrap();
    for local in [
        Local::everything(),
        Local::memory(&files.join("memory.jsonl")),
        Local::filesystem(files),
        Local::time(),
        Local::git(repository),
    ] {
        gateway.add_server(&local.registration());
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "the transcript is what the README shows of it")]
fn a_model_finds_and_calls_real_tools() {
    let model = path(".cache/models/minilm");
    let gateway = Gateway::start_with(&[("MCPM_SEARCH_MODEL", &model)]);
    let (folder, repository) = (tempfile::tempdir().unwrap(), repository());
    let files = folder.path().canonicalize().unwrap();
    add_local_servers(&gateway, &files, repository.path());
    let mut notes = HttpServer::typescript("ts", "dual");
    let python = HttpServer::python("py");
    gateway.add_server(&notes.registration());
    gateway.add_server(&python.registration());
    let key = gateway.add_key("default");
    let mut run = Transcript { session: gateway.session(&key), text: String::new() };
    eventually("search by meaning", Duration::from_secs(120), || {
        let found = gateway.post("/search", &json!({"query": "clock"}));
        let waiting = found["waiting"].as_u64();
        (found["mode"] == "semantic" && waiting == Some(0)).then_some(())
    });

    // Search, then call: two round trips.
    let found = run.search("what is the time in another city");
    assert!(["convert_time", "get_current_time"].contains(&first(&found).as_str()), "{found}");
    let noon =
        json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Kathmandu"});
    let answer = run.through("convert_time", noon);
    assert!(answer.contains("17:45") && answer.contains("get_current_time"), "{answer}");

    // A name that is not quite right runs, or says which was meant.
    let answer = run.through("git.logs", json!({"repo_path": repository.path()}));
    assert!(answer.contains("git_log"), "{answer}");
    let answer = run.through("gitLog", json!({"repo_path": repository.path(), "max_count": "1"}));
    assert!(answer.contains("`gitLog` is called `git_log`; that ran."), "{answer}");
    assert!(answer.contains("`max_count`: \"1\" → 1"), "{answer}");

    // A wrong argument is refused here, with what to send.
    let answer = run.through("read_text_file", json!({"file": files.join("poem.txt")}));
    assert!(answer.contains("`path` is missing"), "{answer}");
    assert!(answer.contains("`file` is not an argument"), "{answer}");
    let answer = run.through("read_text_file", json!({"path": files.join("poem.txt")}));
    assert!(answer.contains("Roses are red."), "{answer}");

    // A server goes down, and comes back.
    let answer = run.through("whoami", json!({}));
    let both = "Several servers have a tool `whoami`: call one of `ts__whoami`, `py__whoami`.";
    assert_eq!(answer, both);
    assert!(run.through("ts__whoami", json!({})).starts_with("ts"));
    notes.kill();
    let answer = eventually("the outage", Duration::from_secs(20), || {
        let answer = run.session.call("call_tool", r#"{"name":"ts__whoami"}"#).text();
        answer.contains("Server `ts` is down").then_some(answer)
    });
    run.text.push_str(&format!("> call_tool {{\"name\":\"ts__whoami\"}}\n{answer}\n\n"));
    assert!(answer.contains("`py__whoami` on server `py` may do the same."), "{answer}");
    notes.start_again();
    let answer = eventually("its return", Duration::from_secs(20), || {
        let answer = run.session.call("call_tool", r#"{"name":"py__whoami"}"#).text();
        answer.contains("server `ts` is back").then_some(answer)
    });
    run.text.push_str(&format!("> call_tool {{\"name\":\"py__whoami\"}}\n{answer}\n\n"));
    assert!(answer.starts_with("py"), "{answer}");
    assert!(run.through("ts__whoami", json!({})).starts_with("ts"));
    let servers = run.call("list_mcpservers", &json!({}));
    assert_eq!(servers.lines().count(), 7, "{servers}");
    println!("{}", run.text);
}
