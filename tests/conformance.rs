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
    failures: Vec<Finding>,
    warnings: Vec<Finding>,
}

/// One check that did not pass.
struct Finding {
    check: String,
    text: String,
}

/// A line of the list of expected failures.
struct Expected {
    scenario: String,
    /// One check of the scenario; else all of them.
    check: Option<String>,
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
        let found = offences_of(scenario, &expected);
        let verdict = match (found.is_empty(), scenario.failures.is_empty()) {
            (true, true) => "passed",
            (true, false) => "failed as expected",
            (false, _) => "NOT AS EXPECTED",
        };
        let Scenario { name, passed, failures, warnings } = scenario;
        println!("{cell}  {name}: {verdict}, {passed} checks passed, {} failed", failures.len());
        for Finding { check, text } in failures.iter().chain(warnings) {
            println!("    {check}: {text}");
        }
        offences.extend(found);
    }
    assert!(scenarios.len() > 25, "{cell}: the suite ran only {} scenarios", scenarios.len());
    assert!(offences.is_empty(), "{cell}, see expected-failures.txt:\n{}", offences.join("\n"));
}

/// Failures that are not in the list, and lines of the list that came to nothing.
fn offences_of(scenario: &Scenario, expected: &[Expected]) -> Vec<String> {
    let name = &scenario.name;
    let lines: Vec<_> = expected.iter().filter(|line| line.scenario == *name).collect();
    let covers = |line: &Expected, failure: &Finding| {
        line.check.as_ref().is_none_or(|check| *check == failure.check)
    };
    let unlisted =
        scenario.failures.iter().filter(|failure| !lines.iter().any(|line| covers(line, failure)));
    let unlisted =
        unlisted.map(|failure| format!("{name}:{} failed: {}", failure.check, failure.text));
    let idle =
        lines.iter().filter(|line| !scenario.failures.iter().any(|failure| covers(line, failure)));
    let idle = idle.map(|line| {
        let check = line.check.as_ref().map(|check| format!(":{check}")).unwrap_or_default();
        format!("{name}{check} passed, but is in the list")
    });
    unlisted.chain(idle).collect()
}

/// The lines that are true in this cell: `SCENARIO[:CHECK] [CELL…]  # REASON`.
fn expected_failures(cell: &str) -> Vec<Expected> {
    let text = std::fs::read_to_string(path("conformance/expected-failures.txt")).unwrap();
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let entries = lines.filter_map(|line| {
        let (what, reason) = line.split_once('#').unwrap_or_default();
        assert!(!reason.trim().is_empty(), "no reason: {line}");
        let mut words = what.split_whitespace();
        let name = words.next().unwrap_or_default();
        let (scenario, check) =
            name.split_once(':').map_or((name, None), |(name, check)| (name, Some(check)));
        let cells: Vec<_> = words.collect();
        let entry = Expected { scenario: scenario.to_owned(), check: check.map(str::to_owned) };
        (cells.is_empty() || cells.contains(&cell)).then_some(entry)
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
        return Scenario::unchecked(name, &format!("it did not finish: {said}"));
    };
    let checks: Vec<Value> = serde_json::from_str(&checks).unwrap();
    let with = |status: &'static str| checks.iter().filter(move |check| check["status"] == status);
    let passed = with("SUCCESS").filter(|check| check["id"] != EVERYWHERE).count();
    let failures: Vec<_> = with("FAILURE").map(finding).collect();
    let warnings: Vec<_> = with("WARNING").map(finding).collect();
    if passed == 0 && failures.is_empty() {
        let said = with("WARNING").chain(with("INFO")).map(|check| finding(check).text);
        return Scenario::unchecked(name, &said.collect::<Vec<_>>().join("\n      "));
    }
    Scenario { name: name.to_owned(), passed, failures, warnings }
}

impl Scenario {
    /// One that came to no verdict of its own, which is not a good one.
    fn unchecked(name: &str, why: &str) -> Self {
        let text = format!("nothing was checked: {why}");
        let failures = vec![Finding { check: "all".to_owned(), text }];
        Self { name: name.to_owned(), passed: 0, failures, warnings: Vec::new() }
    }
}

/// What was wrong, and the beginning of what the suite noted.
fn finding(check: &Value) -> Finding {
    let message = check["errorMessage"].as_str().or(check["description"].as_str());
    let details: String = match &check["details"] {
        Value::Null => String::new(),
        details => details.to_string().chars().take(DETAILS).collect(),
    };
    Finding {
        check: check["id"].as_str().unwrap_or_default().to_owned(),
        text: format!("{}\n      {details}", message.unwrap_or_default()),
    }
}
