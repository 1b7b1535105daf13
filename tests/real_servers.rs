//! Real MCP servers behind the gateway: what a client gets through it is, byte for byte, what it
//! gets from the server itself.

use std::path::Path;
use std::process::Command;

use serde_json::json;
use tempfile::TempDir;

use crate::support::gateway::Gateway;
use crate::support::mcp::{Message, Peer, Session, Tool, modern};
use crate::support::peers::{HttpServer, Local};
use crate::support::stdio::StdioClient;

/// Makes the same calls directly and through the gateway, and compares the text of each `result`,
/// and of each listed tool.
fn check(registration: &serde_json::Value, direct: &mut dyn Peer, calls: &[(&str, &str)]) {
    let gateway = Gateway::start();
    gateway.add_server(registration);
    let mut through = gateway.session(&gateway.add_key("full"));
    same_tools(&direct.tools(), &through.tools());
    for (tool, arguments) in calls {
        let expected = direct.call(tool, arguments);
        let given = through.call(tool, arguments);
        assert_eq!(given.result(), expected.result(), "{tool} {arguments}");
    }
}

/// Every tool that the server lists is listed with the same text. A server may have more for a
/// client that can do more, and the gateway can.
fn same_tools(direct: &[Tool], through: &[Tool]) {
    assert!(!direct.is_empty(), "the server lists no tool");
    for tool in direct {
        let same = through.iter().find(|other| other.name == tool.name);
        assert_eq!(same, Some(tool));
    }
}

/// The server, asked in the era that the direct client asks in: a server of both may write the
/// same answer in two ways (the Python SDK escapes and orders differently).
fn in_legacy(registration: &serde_json::Value) -> serde_json::Value {
    let mut pinned = registration.clone();
    pinned["protocol"] = json!("legacy");
    pinned
}

fn check_local(server: &Local, direct: &Local, calls: &[(&str, &str)]) {
    check(&in_legacy(&server.registration()), &mut StdioClient::start(direct), calls);
}

#[test]
fn everything() {
    let server = Local::everything();
    check_local(
        &server,
        &server,
        &[
            ("echo", r#"{"message":"Grüß Gott, 世界 \"\\ \u2028 👩‍🚀"}"#),
            ("get-sum", r#"{"a":0.1,"b":0.2}"#),
            ("get-sum", r#"{"a":9007199254740991,"b":-1}"#),
            ("get-structured-content", r#"{"location":"Chicago"}"#),
            ("get-tiny-image", "{}"),
            ("get-annotated-message", r#"{"messageType":"error","includeImage":true}"#),
            ("get-resource-links", r#"{"count":3}"#),
        ],
    );
}

#[test]
fn memory() {
    let folder = tempfile::tempdir().unwrap();
    let behind = Local::memory(&folder.path().join("behind.jsonl"));
    let direct = Local::memory(&folder.path().join("direct.jsonl"));
    check_local(
        &behind,
        &direct,
        &[
            (
                "create_entities",
                r#"{"entities":[{"name":"Zoë","entityType":"person","observations":["likes 🍵","b. 1990"]},{"name":"MCP","entityType":"protocol","observations":[]}]}"#,
            ),
            (
                "create_relations",
                r#"{"relations":[{"from":"Zoë","to":"MCP","relationType":"speaks"}]}"#,
            ),
            ("search_nodes", r#"{"query":"Zoë"}"#),
            ("open_nodes", r#"{"names":["MCP","nobody"]}"#),
            ("read_graph", "{}"),
            ("delete_entities", r#"{"entityNames":["MCP"]}"#),
            ("read_graph", "{}"),
        ],
    );
}

#[test]
fn filesystem() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    std::fs::write(root.join("ünïcode.txt"), "first\nsecond\r\n\u{1f680} third\n").unwrap();
    std::fs::create_dir(root.join("sub")).unwrap();
    std::fs::write(root.join("sub/data.json"), "{\"n\": 12345678901234567890}\n").unwrap();
    let argument = |name: &str| json!({"path": root.join(name)}).to_string();
    let server = Local::filesystem(&root);
    check_local(
        &server,
        &server,
        &[
            ("read_text_file", &argument("ünïcode.txt")),
            ("read_text_file", &argument("sub/data.json")),
            ("list_directory", &argument("")),
            ("directory_tree", &argument("")),
            ("get_file_info", &argument("ünïcode.txt")),
            ("search_files", &json!({"path": root, "pattern": "**/*.json"}).to_string()),
            ("list_allowed_directories", "{}"),
            ("read_text_file", &argument("missing")),
            ("read_text_file", r#"{"path":"/etc/hostname"}"#),
        ],
    );
}

#[test]
fn time() {
    let arguments =
        r#"{"source_timezone":"UTC","time":"12:30","target_timezone":"Asia/Kathmandu"}"#;
    let gateway = Gateway::start();
    gateway.add_server(&in_legacy(&Local::time().registration()));
    let mut through = gateway.session(&gateway.add_key("full"));
    let mut direct = StdioClient::start(&Local::time());
    same_tools(&direct.tools(), &through.tools());
    // The answer names the day, which may change between two calls.
    let before = direct.call("convert_time", arguments);
    let given = through.call("convert_time", arguments);
    let after = direct.call("convert_time", arguments);
    assert!(given.text().contains("+5.75h"), "{given:?}");
    assert!([before.result(), after.result()].contains(&given.result()), "{given:?}");
}

#[test]
fn git() {
    let repository = repository();
    let argument = |rest: serde_json::Value| {
        let mut argument = json!({"repo_path": repository.path()});
        argument.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        argument.to_string()
    };
    let server = Local::git(repository.path());
    check_local(
        &server,
        &server,
        &[
            ("git_status", &argument(json!({}))),
            ("git_log", &argument(json!({"max_count": 5}))),
            ("git_show", &argument(json!({"revision": "HEAD"}))),
            ("git_diff_unstaged", &argument(json!({}))),
            ("git_branch", &argument(json!({"branch_type": "local"}))),
            ("git_show", &argument(json!({"revision": "no-such-revision"}))),
        ],
    );
}

const TYPESCRIPT_CALLS: &[(&str, &str)] = &[
    ("greet", r#"{"who":"Ann \u0001 \ud83d\ude80"}"#),
    ("numbers", "{}"),
    ("measure", r#"{"text":"👩‍🚀","unit":"bytes"}"#),
    ("fail", "{}"),
    ("slow", r#"{"steps":3,"step_ms":1}"#),
];

#[test]
fn typescript_sdk_of_both_eras() {
    let server = HttpServer::typescript("ts", "dual");
    check(
        &in_legacy(&server.registration()),
        &mut Session::open(server.address, ""),
        TYPESCRIPT_CALLS,
    );
}

#[test]
fn typescript_sdk_with_sessions() {
    let server = HttpServer::typescript("ts", "legacy");
    check(&server.registration(), &mut Session::open(server.address, ""), TYPESCRIPT_CALLS);
}

/// A server that knows only 2026-07-28, for a client that does not know it: what the newest
/// version adds to a result is left out, the rest is the server's.
#[test]
fn typescript_sdk_without_sessions() {
    let server = HttpServer::typescript("ts", "modern");
    let both = HttpServer::typescript("ts", "dual");
    check(&server.registration(), &mut Session::open(both.address, ""), TYPESCRIPT_CALLS);
}

#[test]
fn python_sdk() {
    let server = HttpServer::python("py");
    check(
        &in_legacy(&server.registration()),
        &mut Session::open(server.address, ""),
        &[
            (
                "add_integers",
                r#"{"left":123456789012345678901234567890,"right":-9223372036854775809}"#,
            ),
            ("big_integers", "{}"),
            ("describe_person", r#"{"person":{"name":"Zoë","languages":["日本語"]}}"#),
            ("reverse_text", r#"{"text":"ab👩‍🚀ü"}"#),
            ("blocks", "{}"),
            ("broken", "{}"),
        ],
    );
}

/// The same for a client of 2026-07-28: its results have fields of the hop, so what is the
/// server's is compared field by field.
#[test]
fn results_for_a_modern_client() {
    let server = HttpServer::python("py");
    let gateway = Gateway::start();
    gateway.add_server(&server.registration());
    let key = gateway.add_key("full");
    for (tool, arguments) in [
        ("big_integers", json!({})),
        ("reverse_text", json!({"text": "ab👩‍🚀ü"})),
        ("blocks", json!({})),
        ("broken", json!({})),
    ] {
        let params = json!({"name": tool, "arguments": arguments});
        let given = modern(gateway.address, &key.bearer(), "tools/call", params.clone());
        let expected = modern(server.address, "", "tools/call", params);
        for field in ["content", "structuredContent", "isError", "resultType"] {
            assert_eq!(part(&given, field), part(&expected, field), "{tool}: {field}");
        }
    }
}

/// The text of one field of a result.
fn part(message: &Message, field: &str) -> Option<String> {
    let mut fields: std::collections::HashMap<String, &serde_json::value::RawValue> =
        serde_json::from_str(message.result()).unwrap();
    fields.remove(field).map(|text| text.get().to_owned())
}

#[test]
fn all_of_them_behind_one_key() {
    let folder = tempfile::tempdir().unwrap();
    let repository = repository();
    let (ts, py) = (HttpServer::typescript("ts", "dual"), HttpServer::python("py"));
    let gateway = Gateway::start();
    for server in [
        Local::everything(),
        Local::memory(&folder.path().join("memory.jsonl")),
        Local::filesystem(folder.path()),
        Local::time(),
        Local::git(repository.path()),
    ] {
        gateway.add_server(&server.registration());
    }
    gateway.add_server(&ts.registration());
    gateway.add_server(&py.registration());

    let mut session = gateway.session(&gateway.add_key("full"));
    let names = session.tool_names();
    assert!(names.len() >= 40, "{} tools: {names:?}", names.len());
    let mut unique = names.clone();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), names.len(), "a name is listed twice: {names:?}");

    // One call to each, in one session.
    let memory = r#"{"entities":[{"name":"n","entityType":"t","observations":[]}]}"#;
    let time = r#"{"timezone":"UTC"}"#;
    let status = json!({"repo_path": repository.path()}).to_string();
    for (tool, arguments, expected) in [
        ("echo", r#"{"message":"hello"}"#, "hello"),
        ("create_entities", memory, "\"n\""),
        ("list_allowed_directories", "{}", folder.path().to_str().unwrap()),
        ("get_current_time", time, "UTC"),
        ("git_status", &status, "nothing is what it was.txt"),
        ("greet", r#"{"who":"Ann"}"#, "Grüß Gott, Ann!"),
        ("add_integers", r#"{"left":40,"right":2}"#, "42"),
        ("ts__whoami", "{}", "ts"),
        ("py__whoami", "{}", "py"),
    ] {
        let answer = session.call(tool, arguments);
        assert!(!answer.is_refusal() && answer.text().contains(expected), "{tool}: {answer:?}");
    }
}

/// A repository with two commits and an unstaged change, the same at every run.
pub(crate) fn repository() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("nothing is what it was.txt");
    git_command(folder.path(), &["init", "--quiet", "--initial-branch=main"]);
    for text in ["one\n", "one\ntwo: zwölf\n"] {
        std::fs::write(&file, text).unwrap();
        git_command(folder.path(), &["add", "."]);
        git_command(folder.path(), &["commit", "--quiet", "--message", text]);
    }
    std::fs::write(&file, "one\ntwo\nthree\n").unwrap();
    folder
}

fn git_command(folder: &Path, arguments: &[&str]) {
    let status = Command::new("git")
        .args(["-c", "user.name=Zoë", "-c", "user.email=zoe@example.org"])
        .args(["-c", "commit.gpgsign=false"])
        .args(arguments)
        .current_dir(folder)
        .env("GIT_AUTHOR_DATE", "2026-01-02T03:04:05Z")
        .env("GIT_COMMITTER_DATE", "2026-01-02T03:04:05Z")
        .status()
        .unwrap();
    assert!(status.success(), "git {arguments:?}");
}
