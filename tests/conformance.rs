//! The official MCP conformance suite, in front of the gateway with our fixture server behind it:
//! both eras in front, each over a server of either era. What does not pass yet stands in
//! `conformance/expected-failures.txt` with its reason; a scenario that is listed and passes, or fails
//! and is not listed, fails the test of its cell. To pass, a scenario must have checked something.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::gateway::Gateway;
use crate::support::mcp::{LEGACY, MODERN};
use crate::support::peers::{node, path};
use crate::support::process::Process;

/// For one scenario, in milliseconds.
const TIMEOUT: &str = "20000";
/// The check that every scenario makes beside its own: messages are as the schema says.
const EVERYWHERE: &str = "wire-schema-valid";
/// How much of what the suite noted of a check is shown, in characters.
const DETAILS: usize = 800;

#[test]
fn sessions_in_front_of_a_legacy_server() {
    check(LEGACY, "legacy");
}

#[test]
fn sessions_in_front_of_a_modern_server() {
    check(LEGACY, "modern");
}

#[test]
fn no_sessions_in_front_of_a_legacy_server() {
    check(MODERN, "legacy");
}

#[test]
fn no_sessions_in_front_of_a_modern_server() {
    check(MODERN, "modern");
}

/// What the suite found in one scenario.
struct Scenario {
    name: String,
    passed: usize,
    failures: Vec<String>,
    warnings: Vec<String>,
}

/// Runs the scenarios of this version against a gateway with a server of this era behind it, and
/// compares with what is expected to fail.
#[expect(clippy::print_stdout, reason = "the table of scenarios is what this test is for")]
fn check(version: &str, era: &str) {
    let cell = format!("{version}/{era}");
    let expected = expected_failures(&cell);
    let mut offences = Vec::new();
    let scenarios = run(version, era);
    for scenario in &scenarios {
        let reason = expected.iter().find(|(name, _)| *name == scenario.name);
        let verdict = match (scenario.failures.is_empty(), reason) {
            (true, None) => "passed",
            (false, Some(_)) => "failed as expected",
            (true, Some(_)) => "PASSED, BUT IS LISTED",
            (false, None) => "FAILED",
        };
        let Scenario { name, passed, failures, warnings } = scenario;
        println!("{cell}  {name}: {verdict}, {passed} checks passed, {} failed", failures.len());
        for said in warnings.iter().chain(failures) {
            println!("    {said}");
        }
        if failures.is_empty() == reason.is_some() {
            offences.push(format!("{name}: {verdict}\n    {}", failures.join("\n    ")));
        }
    }
    assert!(scenarios.len() > 25, "{cell}: the suite ran only {} scenarios", scenarios.len());
    assert!(offences.is_empty(), "{cell}, see expected-failures.txt:\n{}", offences.join("\n"));
}

/// Scenarios that may fail in this cell, with the reason. A line is `NAME [CELL…]  # REASON`; without a
/// cell it is true in all of them.
fn expected_failures(cell: &str) -> Vec<(String, String)> {
    let file = path("conformance/expected-failures.txt");
    let text = std::fs::read_to_string(file).unwrap();
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let entries = lines.filter_map(|line| {
        let (what, reason) = line.split_once('#').unwrap_or_else(|| panic!("no reason: {line}"));
        let mut words = what.split_whitespace();
        let name = words.next().unwrap_or_else(|| panic!("no scenario: {line}"));
        let cells: Vec<_> = words.collect();
        let applies = cells.is_empty() || cells.contains(&cell);
        applies.then(|| (name.to_owned(), reason.trim().to_owned()))
    });
    entries.collect()
}

fn run(version: &str, era: &str) -> Vec<Scenario> {
    let (_fixture, url) = start(Command::new(fixture()).args(["--era", era]));
    let gateway = Gateway::start();
    gateway.add_server(&json!({"name": "fixture", "url": url, "protocol": era}));
    let key = gateway.add_key("full");
    let forwarder = path("conformance/forward.mjs");
    let (_forwarder, front) =
        start(Command::new(node()).args([&forwarder, &gateway.url(), &key.bearer()]));

    let results = tempfile::tempdir().unwrap();
    let suite = path("conformance/node_modules/@modelcontextprotocol/conformance/dist/index.js");
    let output = Command::new(node())
        .args([&suite, "server", "--suite", "all", "--url", &front, "--spec-version", version])
        .args(["--timeout", TIMEOUT, "--output-dir"])
        .arg(results.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (printed, log) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let names = printed.lines().filter_map(|line| line.strip_prefix("=== Running scenario: "));
    let names: Vec<_> = names.map(|name| name.trim_end_matches(" ===")).collect();
    assert!(!names.is_empty(), "the suite ran nothing: {}\n{printed}\n{log}", output.status);
    names.into_iter().map(|name| scenario(name, results.path(), &log)).collect()
}

/// A server of ours that prints its URL when it is ready.
fn start(command: &mut Command) -> (Process, String) {
    let mut process = Process::start(command.stdin(Stdio::null()).stdout(Stdio::piped()));
    let url = process.line("a URL", |line| line.starts_with("http://").then(|| line.to_owned()));
    (process, url)
}

/// The fixture's binary lies beside the gateway's: both are members of the workspace.
fn fixture() -> std::path::PathBuf {
    let binary = Path::new(env!("CARGO_BIN_EXE_mcp-manager")).with_file_name("mcpm-fixture");
    assert!(
        binary.exists(),
        "no fixture: run with `--workspace`, or build `-p mcpm-fixture` first"
    );
    binary
}

/// Reads what the suite wrote about one scenario, in a folder called `server-NAME-TIME`.
fn scenario(name: &str, results: &Path, log: &str) -> Scenario {
    let checks = std::fs::read_dir(results).unwrap().find_map(|folder| {
        let folder = folder.unwrap();
        let called = folder.file_name().into_string().unwrap();
        let time = called.strip_prefix(&format!("server-{name}-"))?;
        // Another scenario's name may begin with this one's; a time begins with its year.
        time.starts_with(|first: char| first.is_ascii_digit()).then_some(())?;
        std::fs::read_to_string(folder.path().join("checks.json")).ok()
    });
    let Some(checks) = checks else {
        let said = log.lines().find(|line| line.contains(name)).unwrap_or("nothing was said");
        let failures = vec![format!("did not finish: {said}")];
        return Scenario { name: name.to_owned(), passed: 0, failures, warnings: Vec::new() };
    };
    let checks: Vec<Value> = serde_json::from_str(&checks).unwrap();
    let with = |status: &'static str| checks.iter().filter(move |check| check["status"] == status);
    let passed: Vec<_> = with("SUCCESS").filter(|check| check["id"] != EVERYWHERE).collect();
    let mut failures: Vec<_> = with("FAILURE").map(said).collect();
    if passed.is_empty() && failures.is_empty() {
        failures.push("what it is about was not checked".to_owned());
        failures.extend(
            with("INFO")
                .filter_map(|check| check["details"]["message"].as_str())
                .map(str::to_owned),
        );
    }
    Scenario {
        name: name.to_owned(),
        passed: passed.len(),
        failures,
        warnings: with("WARNING").map(said).collect(),
    }
}

/// One check in a line or two: what was wrong, and the beginning of what the suite noted.
fn said(check: &Value) -> String {
    let message = check["errorMessage"].as_str().or(check["description"].as_str());
    let details = match &check["details"] {
        Value::Null => String::new(),
        details => {
            format!("\n      {}", details.to_string().chars().take(DETAILS).collect::<String>())
        }
    };
    let status = check["status"].as_str().unwrap_or_default().to_lowercase();
    let id = check["id"].as_str().unwrap_or_default();
    format!("{status} {id}: {}{details}", message.unwrap_or_default())
}
