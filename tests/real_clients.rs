//! Real MCP clients in front of the gateway: each lists the tools of two servers with one key and
//! calls one of them. What a client prints is its own; each test says how to read it.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::gateway::{Gateway, Key};
use crate::support::mcp::{LEGACY, MODERN, Peer};
use crate::support::odd::{Action, Answer, Odd};
use crate::support::peers::{HttpServer, Local, node, path};
use crate::support::stdio::StdioClient;

const TOOL: &str = "measure";
const TEXT: &str = "Grüße, 世界 👩‍🚀";

/// A gateway with two servers behind it, and a key to all of both.
struct Front {
    gateway: Gateway,
    key: Key,
    _servers: [HttpServer; 2],
}

impl Front {
    fn start() -> Self {
        let servers = [HttpServer::typescript("ts", "dual"), HttpServer::python("py")];
        let gateway = Gateway::start();
        for server in &servers {
            gateway.add_server(&server.registration());
        }
        let key = gateway.add_key("full");
        Self { gateway, key, _servers: servers }
    }

    /// Runs one of our small programs on a client library: it prints one line of JSON.
    fn run(&self, program: &[&str], mode: &[&str]) -> Value {
        let arguments = json!({"text": TEXT}).to_string();
        let mut command = Command::new(program[0]);
        command.args(&program[1..]);
        command.args([&self.gateway.url(), &self.key.secret, TOOL, &arguments]).args(mode);
        let output = output(command);
        serde_json::from_str(&output).unwrap_or_else(|error| panic!("{error} in {output}"))
    }

    /// Runs a client that is a program of its own.
    fn run_program(&self, name: &str, arguments: &[&str]) -> Value {
        let home = tempfile::tempdir().unwrap();
        let mut command = Command::new(node());
        command.arg(cli(name)).args(arguments);
        command.env("HOME", home.path()).env("XDG_CONFIG_HOME", home.path());
        command.current_dir(home.path());
        let output = output(command);
        serde_json::from_str(&output).unwrap_or_else(|error| panic!("{error} in {output}"))
    }
}

/// Where the program of a package starts.
fn cli(name: &str) -> String {
    path(&format!(
        "clients/cli/node_modules/{}",
        match name {
            "inspector" => "@modelcontextprotocol/inspector/clients/launcher/build/index.js",
            "mcporter" => "mcporter/dist/cli.js",
            "mcp-remote" => "mcp-remote/dist/proxy.js",
            other => panic!("no program {other}"),
        }
    ))
}

/// What a successful command printed.
fn output(mut command: Command) -> String {
    let bin = path(".cache/bin");
    let search = format!("{bin}:{}", std::env::var("PATH").unwrap());
    let output = command.env("PATH", search).stdin(Stdio::null()).output().unwrap();
    let (printed, log) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{printed}\n{log}", output.status);
    printed.into_owned()
}

fn check_tools(names: &[&str]) {
    for name in ["measure", "numbers", "add_integers", "ts__whoami", "py__whoami"] {
        assert!(names.contains(&name), "no {name} in {names:?}");
    }
}

/// The list and the result of one of our own programs.
fn check(answer: &Value, version: Option<&str>) {
    let names: Vec<_> =
        answer["tools"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    check_tools(&names);
    check_result(&answer["result"]);
    if let Some(version) = version {
        assert_eq!(answer["version"], version);
    }
}

fn check_result(result: &Value) {
    let expected = json!({"text": TEXT, "unit": "code_points", "length": 13});
    assert_eq!(result["structuredContent"], expected, "{result}");
    assert_eq!(result["content"][0]["text"].as_str(), Some(expected.to_string().as_str()));
}

#[test]
fn typescript_sdk_1() {
    check(&Front::start().run(&[&node(), &path("clients/ts1/client.mjs")], &[]), Some(LEGACY));
}

/// A newer server's tools and results would have these clients refuse the whole list, or throw.
#[test]
fn p13_older_sdks_take_lists_and_results_of_newer_servers() {
    let odd = Odd::of(&[
        r#"{"name":"list","inputSchema":{"type":"object"},"outputSchema":{"type":"array","items":true}}"#,
        r#"{"name":"odd","inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"a":true}},"icons":[{"sizes":"any"},{"src":"data:,","theme":1}],"execution":{"taskSupport":"maybe"},"newer":{"x":1}}"#,
    ])
    .script(|request, _| match request.tool() {
        Some(_) => {
            let result = r#"{"content":[{"type":"text","text":"[1]"}],"structuredContent":[1]}"#;
            Answer::result(request, result).into()
        }
        None => Action::Usual,
    })
    .start();
    let gateway = Gateway::start();
    gateway.add_server(&odd.registration("odd"));
    let key = gateway.add_key("full");
    for program in [
        [node(), path("clients/ts1/client.mjs")],
        [path(".cache/py1/bin/python"), path("clients/py1/client.py")],
    ] {
        let mut command = Command::new(&program[0]);
        command.args([&program[1], &gateway.url(), &key.secret, "list", "{}"]);
        let printed = output(command);
        let answer: Value = serde_json::from_str(&printed).unwrap();
        assert_eq!(answer["tools"], json!(["list", "odd"]), "{answer}");
        assert_eq!(answer["result"]["content"][0]["text"], "[1]", "{answer}");
    }
}

#[test]
fn typescript_sdk_2_auto() {
    let program = [node(), path("clients/ts2/client.mjs")];
    check(&Front::start().run(&[&program[0], &program[1]], &["auto"]), Some(MODERN));
}

#[test]
fn typescript_sdk_2_legacy() {
    let program = [node(), path("clients/ts2/client.mjs")];
    check(&Front::start().run(&[&program[0], &program[1]], &["legacy"]), Some(LEGACY));
}

#[test]
fn python_sdk_1() {
    let program = [path(".cache/py1/bin/python"), path("clients/py1/client.py")];
    check(&Front::start().run(&[&program[0], &program[1]], &[]), Some(LEGACY));
}

#[test]
fn python_sdk_2_auto() {
    let program = [path(".cache/py2/bin/python"), path("clients/py2/client.py")];
    check(&Front::start().run(&[&program[0], &program[1]], &["auto"]), Some(MODERN));
}

#[test]
fn python_sdk_2_legacy() {
    let program = [path(".cache/py2/bin/python"), path("clients/py2/client.py")];
    check(&Front::start().run(&[&program[0], &program[1]], &["legacy"]), Some(LEGACY));
}

#[test]
fn fastmcp() {
    let program = [path(".cache/py2/bin/python"), path("clients/py2/fastmcp_client.py")];
    check(&Front::start().run(&[&program[0], &program[1]], &[]), None);
}

/// The Inspector's command line, as a client of this era.
fn check_inspector(era: &str) {
    let front = Front::start();
    let (url, header) = (front.gateway.url(), format!("Authorization: {}", front.key.bearer()));
    let common = ["--cli", &url, "--transport", "http", "--protocol-era", era, "--header", &header];
    let run = |more: &[&str]| front.run_program("inspector", &[&common[..], more].concat());

    let list = run(&["--method", "tools/list"]);
    check_tools(&names(&list));
    let argument = format!("text={TEXT}");
    check_result(&run(&["--method", "tools/call", "--tool-name", TOOL, "--tool-arg", &argument]));
}

#[test]
fn inspector_legacy() {
    check_inspector("legacy");
}

#[test]
fn inspector_auto() {
    check_inspector("auto");
}

#[test]
fn mcporter() {
    let front = Front::start();
    let (url, header) = (front.gateway.url(), format!("Authorization={}", front.key.bearer()));
    let common = ["--allow-http", "--header", &header];
    let run = |first: &[&str]| front.run_program("mcporter", &[first, &common[..]].concat());

    check_tools(&names(&run(&["list", &url, "--json"])));
    let target = format!("{url}.{TOOL}");
    let result = run(&["call", &target, &format!("text={TEXT}"), "--output", "json"]);
    // It prints the structured content alone.
    check_result(&json!({"structuredContent": result, "content": [{"text": result.to_string()}]}));
}

/// A bridge for clients that can only start a command: stdio in front, HTTP behind.
#[test]
fn mcp_remote() {
    let front = Front::start();
    let home = tempfile::tempdir().unwrap();
    let header = format!("Authorization: {}", front.key.bearer());
    let url = front.gateway.url();
    let program = cli("mcp-remote");
    let arguments = [program.as_str(), &url, "--allow-http", "--header", &header];
    let bridge = Local::new("mcp-remote", &node(), &arguments)
        .with_env("HOME", home.path().to_str().unwrap())
        .with_env("MCP_REMOTE_CONFIG_DIR", home.path().to_str().unwrap());
    let mut client = StdioClient::start(&bridge);
    let names = client.tool_names();
    check_tools(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let answer = client.call(TOOL, &json!({"text": TEXT}).to_string());
    check_result(&serde_json::from_str(answer.result()).unwrap());
}

/// The names in a printed `tools/list`.
fn names(list: &Value) -> Vec<&str> {
    list["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect()
}
