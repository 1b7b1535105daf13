//! Every text of this crate that a model reads, as it reads it.

use insta::assert_snapshot;
use mcpm_coach::manager::{
    ManagerTool, Match, ServerLine, about_server, all_tools, matches, nothing_found, servers,
};
use mcpm_coach::{Schema, Verdict, refusal};

const ISSUE: &str = r#"{"type":"object","properties":{
    "owner":{"type":"string","description":"Repository owner"},
    "repo":{"type":"string","description":"Repository name"},
    "title":{"type":"string","description":"What the issue is called. Keep it short."},
    "state":{"type":"string","enum":["open","closed"]},
    "labels":{"type":"array","items":{"type":"string"}},
    "milestone":{"anyOf":[{"type":"integer","minimum":1},{"type":"null"}]}},
    "required":["owner","repo","title"],"additionalProperties":false}"#;

fn refused(sent: &str) -> String {
    let schema = Schema::compile(ISSUE);
    match schema.judge(sent) {
        Verdict::Refused(problems) => refusal::arguments("create_issue", &schema, &problems),
        other => format!("{other:?}"),
    }
}

#[test]
fn p52_a_refusal_says_everything_that_is_wrong() {
    assert_snapshot!(refused(r#"{"owner":"a","repo":"b"}"#), @r#"
`create_issue` was not run: a problem with its arguments.
- `title` is missing (string: What the issue is called. Keep it short.)
Usage: create_issue(owner: string, repo: string, title: string, state?: "open"|"closed", labels?: string[], milestone?: integer)
Example arguments: {"owner":"…","repo":"…","title":"…"}
"#);
    assert_snapshot!(refused(r#"{"owner":"a","repo":["b"],"titel":"x","state":"opne","milestone":"soon"}"#), @r#"
`create_issue` was not run: 5 problems with its arguments.
- `title` is missing (string: What the issue is called. Keep it short.)
- `repo` must be a string; you sent ["b"]
- `state` must be one of "open", "closed"; you sent "opne"; did you mean "open"?
- `milestone` must be an integer; you sent "soon"
- `titel` is not an argument; did you mean `title`?
Usage: create_issue(owner: string, repo: string, title: string, state?: "open"|"closed", labels?: string[], milestone?: integer)
Example arguments: {"owner":"…","repo":"…","title":"…"}
"#);
    assert_snapshot!(refused(r#"{"owner":"a","repo":"b","title":"x","milestone":0}"#), @r#"
`create_issue` was not run: a problem with its arguments.
- `milestone`: 0 is less than the minimum of 1
Usage: create_issue(owner: string, repo: string, title: string, state?: "open"|"closed", labels?: string[], milestone?: integer)
Example arguments: {"owner":"…","repo":"…","title":"…"}
"#);
}

#[test]
fn p40_the_four_tools() {
    let all = ManagerTool::ALL.map(|tool| tool.definition(["github", "browser"].into_iter()));
    assert_snapshot!(all.join("\n"), @r#"
{"name":"search_tools","description":"Finds tools by a few words on the task, and shows how to call them. Search here before you say that something cannot be done. Servers: github, browser.","inputSchema":{"type":"object","properties":{"query":{"type":"string"},"page":{"type":"integer","minimum":1}}},"annotations":{"readOnlyHint":true}}
{"name":"call_tool","description":"Runs a tool found by search_tools.","inputSchema":{"type":"object","properties":{"name":{"type":"string"},"arguments":{"type":"object"}},"required":["name"]}}
{"name":"list_mcpservers","description":"Lists the servers and what they are for.","inputSchema":{"type":"object","properties":{}},"annotations":{"readOnlyHint":true}}
{"name":"get_tools_from_server","description":"Lists all tools of a server.","inputSchema":{"type":"object","properties":{"server":{"type":"string"}},"required":["server"]},"annotations":{"readOnlyHint":true}}
"#);
    let none = ManagerTool::Search.definition([].into_iter());
    assert!(none.contains("Servers: (none now)."), "{none}");
}

#[test]
fn res_07_wrong_arguments_of_the_four_are_told() {
    assert_snapshot!(ManagerTool::Search.read(r#"{"query":["a"]}"#).unwrap_err(), @r#"
`search_tools` was not run: a problem with its arguments.
- `query` must be a string; you sent ["a"]
Usage: search_tools(query?: string, page?: integer)
Example arguments: {}
"#);
    assert_snapshot!(ManagerTool::Call.read(r#"{"arguments":{}}"#).unwrap_err(), @r#"
`call_tool` was not run: a problem with its arguments.
- `name` is missing (string)
Usage: call_tool(name: string, arguments?: object)
Example arguments: {"name":"…"}
"#);
    assert_eq!(
        ManagerTool::Search.read(r#"{"query":"a","page":"2"}"#),
        Ok(r#"{"query":"a","page":2}"#.to_owned())
    );
}

#[test]
fn p41_what_a_search_finds() {
    let schema = Schema::compile(ISSUE);
    let issue = Match {
        exposed: "create_issue",
        server: "github",
        description: "Create a new issue in a GitHub repository. It can have labels.",
        schema: &schema,
        trouble: "",
    };
    let time = Schema::compile(r#"{"type":"object","properties":{}}"#);
    let time = Match {
        exposed: "clock__now",
        server: "clock",
        description: "\n# Time\n\nTells the time in the zone of the computer that runs the server, which need not be that of the person who asks",
        schema: &time,
        trouble: "down now",
    };
    assert_snapshot!(matches(&[issue, time]), @r#"
Run one with call_tool:
{"name":"create_issue","arguments":{"owner":"…","repo":"…","title":"…"}}
  github: Create a new issue in a GitHub repository. Optional: state: "open"|"closed", labels: string[], milestone: integer
{"name":"clock__now","arguments":{}}
  clock: Tells the time in the zone of the computer that runs the server, which need not be that… (down now)
"#);
    assert_snapshot!(nothing_found("xyzzy"), @"No tool found for `xyzzy`. Try other words, an empty query for all tools, or list_mcpservers.");
}

#[test]
fn lists_in_short() {
    let tools = [("create_issue", "Create a new issue in a GitHub repository."), ("bare", "")];
    assert_snapshot!(about_server(tools.into_iter(), ""), @r#"
create_issue: Create a new issue in a GitHub…
bare
"#);
    assert_snapshot!(about_server([].into_iter(), "Server `git` is down."), @r#"
It has no tools now.
Server `git` is down.
"#);
    assert_snapshot!(all_tools(tools.into_iter(), 1, 3), @r#"
create_issue: Create a new issue in a GitHub…
bare
Page 1 of 3. Next: {"query":"","page":2}
"#);
    let all = [
        ServerLine {
            name: "github",
            about: "Works with repositories, issues and pull requests.",
            tools: 26,
            state: "connected",
        },
        ServerLine { name: "clock", about: "", tools: 1, state: "down" },
    ];
    assert_snapshot!(servers(&all), @r#"
github (26 tools, connected): Works with repositories, issues and pull requests.
clock (1 tool, down)
"#);
    assert_snapshot!(servers(&[]), @"There are no servers within your reach.");
}
