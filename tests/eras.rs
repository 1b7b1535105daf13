//! What clients of 2026-07-28 get that older ones do not, and the other way round. Named after the
//! rules of the protocol.

use std::io::Write as _;
use std::net::{Shutdown, TcpStream};

use serde_json::{Value, json};

use crate::support::gateway::Gateway;
use crate::support::mcp::{LEGACY, MODERN, Peer as _, modern};
use crate::support::odd::{Action, Answer, Odd, Request};
use crate::support::{SOON, eventually, http};

const VERSIONS: [&str; 5] = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// A modern request's body, of any version.
fn body(method: &str, params: &str, version: &str) -> String {
    let comma = if params.is_empty() { "" } else { "," };
    format!(
        r#"{{"jsonrpc":"2.0","id":"m","method":"{method}","params":{{{params}{comma}"_meta":{{"io.modelcontextprotocol/protocolVersion":"{version}","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
    )
}

/// Sends a POST with these headers beside the usual ones.
fn post(gateway: &Gateway, key: &str, more: &[(&str, &str)], body: &str) -> http::Reply {
    let mut headers = vec![
        ("Authorization", key),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
    ];
    headers.retain(|(usual, _)| !more.iter().any(|(name, _)| name == usual));
    headers.extend(more);
    http::send(gateway.address, "POST", "/mcp", &headers, body).unwrap()
}

fn answer(mut reply: http::Reply) -> (u16, Value) {
    (reply.status, serde_json::from_str(&reply.text().unwrap()).unwrap())
}

#[test]
fn f63_a_version_that_is_not_served_is_told_which_are() {
    let gateway = Gateway::start();
    let key = gateway.add_key("full").bearer();
    let ask = |header: &str, body: &str| {
        let more = [("MCP-Protocol-Version", header), ("Mcp-Method", "tools/list")];
        answer(post(&gateway, &key, &more, body))
    };
    let bare = r#"{"jsonrpc":"2.0","id":"m","method":"tools/list"}"#;
    let empty = r#"{"jsonrpc":"2.0","id":"m","method":"tools/list","params":{"_meta":{}}}"#;
    for (header, body) in [
        ("2099-01-01", body("tools/list", "", "2099-01-01").as_str()),
        ("2099-01-01", bare),
        ("2099-01-01", empty),
        ("foo", bare),
    ] {
        let (status, answer) = ask(header, body);
        let error = &answer["error"];
        assert_eq!((status, &error["code"]), (400, &json!(-32022)), "{answer}");
        assert_eq!(error["data"], json!({"supported": VERSIONS, "requested": header}));
        assert_eq!(answer["id"], "m");
    }
    // An older version has no requests without a session.
    let (status, answer) = ask(LEGACY, &body("tools/list", "", LEGACY));
    assert_eq!((status, &answer["error"]["code"]), (400, &json!(-32022)), "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("initialize"), "{answer}");
    // Two that differ are a mismatch, whatever they are.
    assert_eq!(ask("2099-01-01", &body("tools/list", "", MODERN)).1["error"]["code"], -32020);
    // `initialize` agrees on one by its parameters (F20).
    let hello = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}}"#,
        crate::support::mcp::initialize_params()
    );
    assert_eq!(ask("2099-01-01", &hello).0, 200);
    let discovered = modern(gateway.address, &key, "server/discover", json!({}));
    let discovered: Value = serde_json::from_str(discovered.result()).unwrap();
    assert_eq!(discovered["supportedVersions"], json!(VERSIONS));
}

/// Codes of a server, by the names of the tools that answer with them.
const CODES: [(&str, i64, i64); 6] = [
    ("c32002", -32002, -32602),
    ("c32042", -32042, -32603),
    ("c32000", -32000, -32603),
    ("c32001", -32001, -32603),
    ("c32019", -32019, -32603),
    ("c31000", -31000, -31000),
];

#[test]
fn f13_no_old_code_reaches_a_modern_client() {
    let odd = Odd::of(&CODES.map(|(name, ..)| name))
        .script(|request, _| match request.tool() {
            Some(tool) => {
                let code = tool.replace('c', "-");
                let error =
                    format!(r#"{{"code":{code},"message":"of the server","data":{{"n":1}}}}"#);
                Answer::error(request, &error).into()
            }
            None => Action::Usual,
        })
        .start();
    let gateway = Gateway::start();
    gateway.add_server(&odd.registration("odd"));
    let key = gateway.add_key("full");
    let mut session = gateway.session(&key);
    for (tool, of_server, told) in CODES {
        let params = json!({"name": tool, "arguments": {}});
        let new = modern(gateway.address, &key.bearer(), "tools/call", params).error().unwrap();
        let old = session.call(tool, "{}").error().unwrap();
        let error = |code: i64| json!({"code": code, "message": "of the server", "data": {"n": 1}});
        assert_eq!((new, old), (error(told), error(of_server)), "{tool}");
    }
    // Nor do the manager's own.
    let list = body("tools/list", "", MODERN);
    let version = ("MCP-Protocol-Version", MODERN);
    let method = ("Mcp-Method", "tools/list");
    let bearer = key.bearer();
    for (status, more) in [
        (401, &[version, method, ("Authorization", "Bearer wrong")][..]),
        (403, &[version, method, ("Origin", "https://evil.example")]),
        (406, &[version, method, ("Accept", "text/html")]),
        (415, &[version, method, ("Content-Type", "text/plain")]),
    ] {
        let (found, answer) = answer(post(&gateway, &bearer, more, &list));
        assert_eq!((found, &answer["error"]["code"]), (status, &json!(-32600)), "{answer}");
    }
    let (_, old) = answer(post(&gateway, "Bearer wrong", &[], &list));
    assert_eq!(old["error"]["code"], -32000, "{old}");
    let get = [("Authorization", bearer.as_str()), version];
    let (status, answer) = answer(http::send(gateway.address, "GET", "/mcp", &get, "").unwrap());
    assert_eq!((status, &answer["error"]["code"]), (405, &json!(-32600)), "{answer}");
}

/// A server that says this of itself.
fn saying(instructions: &'static str) -> Odd {
    Odd::of(&["t"])
        .script(move |request, state| match request.rpc() {
            "initialize" => {
                let usual = state.usual(request);
                let told = Value::from(instructions).to_string();
                let text = usual.message();
                let whole = text
                    .replace(r#""serverInfo""#, &format!(r#""instructions":{told},"serverInfo""#));
                Answer { body: whole.into_bytes(), ..usual }.into()
            }
            _ => Action::Usual,
        })
        .start()
}

#[test]
fn a11_and_f69_instructions_are_those_of_the_servers_in_reach() {
    let (a, b) = (saying("Ask a."), saying("Beware of b."));
    let gateway = Gateway::start();
    gateway.add_server(&a.registration("a"));
    gateway.add_server(&b.registration("b"));
    gateway.post("/groups", &json!({"name": "only-a", "mode": "direct", "servers": ["a"]}));
    let told = |group: &str| {
        let key = gateway.add_key(group).bearer();
        let discovered = modern(gateway.address, &key, "server/discover", json!({}));
        let discovered: Value = serde_json::from_str(discovered.result()).unwrap();
        let info = &discovered["_meta"]["io.modelcontextprotocol/serverInfo"];
        assert_eq!(info["name"], "mcp-manager", "{discovered}");
        let hello = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}}"#,
            crate::support::mcp::initialize_params()
        );
        let opened = answer(post(&gateway, &key, &[], &hello)).1;
        assert_eq!(opened["result"]["instructions"], discovered["instructions"]);
        discovered["instructions"].as_str().unwrap().to_owned()
    };
    let all = told("full");
    assert!(all.contains("# Server `a`\nAsk a.") && all.contains("# Server `b`\nBeware"), "{all}");
    assert_eq!(all, told("full"), "the same bytes until something changes");
    let one = told("only-a");
    assert!(one.ends_with("# Server `a`\nAsk a.") && !one.contains("`b`"), "{one}");
}

#[test]
fn p13_older_clients_are_spared_what_they_throw_on_and_nothing_else() {
    let odd = Odd::of(&[
        r#"{"name":"list","inputSchema":{"type":"object"},"outputSchema":{"type":"array"},"y":1}"#,
        r#"{"name":"fine","inputSchema":{"type":"object"},"outputSchema":{"type":"object","z":1}}"#,
        r#"{"name":"icon","inputSchema":{"type":"object"},"icons":[{"sizes":"any"},{"src":"u"}],"execution":{"taskSupport":5}}"#,
    ])
    .script(|request, _| match request.tool() {
        Some("list") => {
            Answer::result(request, r#"{"structuredContent":[1,2],"content":[],"y":1}"#).into()
        }
        Some("fine") => {
            Answer::result(request, r#"{"structuredContent":{"a":1e400},"content":[]}"#).into()
        }
        _ => Action::Usual,
    })
    .start();
    let gateway = Gateway::start();
    gateway.add_server(&odd.registration("odd"));
    let key = gateway.add_key("full");
    let mut session = gateway.session(&key);
    let icon =
        r#"{"name":"icon","inputSchema":{"type":"object"},"icons":[{"src":"u"}],"execution":{}}"#;
    let fine =
        r#"{"name":"fine","inputSchema":{"type":"object"},"outputSchema":{"type":"object","z":1}}"#;
    let list = r#"{"name":"list","inputSchema":{"type":"object"},"y":1}"#;
    let listed: Vec<String> = session.tools().into_iter().map(|tool| tool.text).collect();
    assert_eq!(listed, [list, fine, icon]);
    let new = modern(gateway.address, &key.bearer(), "tools/list", json!({}));
    assert!(new.result().contains(r#""outputSchema":{"type":"array"}"#), "{}", new.0);
    let result = session.call("list", "{}");
    let told: Value = serde_json::from_str(result.result()).unwrap();
    assert_eq!(told, json!({"content": [{"type": "text", "text": "[1,2]"}], "y": 1}));
    assert_eq!(
        session.call("fine", "{}").result(),
        r#"{"structuredContent":{"a":1e400},"content":[]}"#
    );
    let call = json!({"name": "list", "arguments": {}});
    let new = modern(gateway.address, &key.bearer(), "tools/call", call);
    assert!(new.result().contains(r#""structuredContent":[1,2]"#), "{}", new.0);
}

#[test]
fn f80_what_may_be_cached_is_said_to_modern_clients_alone() {
    let odd = Odd::of(&["t"]).start();
    let gateway = Gateway::start();
    gateway.add_server(&odd.registration("odd"));
    let key = gateway.add_key("full");
    for method in [
        "server/discover",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
    ] {
        let answer = modern(gateway.address, &key.bearer(), method, json!({}));
        let result: Value = serde_json::from_str(answer.result()).unwrap();
        assert!(
            result["ttlMs"].is_u64() && result["cacheScope"] == "private",
            "{method}: {result}"
        );
        assert_eq!(result["resultType"], "complete", "{method}");
    }
    let mut session = gateway.session(&key);
    for method in ["tools/list", "prompts/list"] {
        let text = session.request(method, "{}").0;
        assert!(!text.contains("ttlMs") && !text.contains("resultType"), "{text}");
    }
}

#[test]
fn f67_arguments_in_headers_are_compared_with_the_body() {
    let odd = Odd::of(&[
        r#"{"name":"t","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"n":{"type":"integer","x-mcp-header":"N"}}}}"#,
    ])
    .start();
    let gateway = Gateway::start();
    gateway.add_server(&odd.registration("odd"));
    let key = gateway.add_key("full").bearer();
    let ask = |arguments: &str, more: &[(&str, &str)]| {
        let mut headers =
            vec![("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/call"), ("Mcp-Name", "t")];
        headers.extend(more);
        let params = format!(r#""name":"t","arguments":{arguments}"#);
        let (status, answer) =
            answer(post(&gateway, &key, &headers, &body("tools/call", &params, MODERN)));
        (status, answer["error"]["code"].as_i64())
    };
    let (region, n) = (("Mcp-Param-Region", "eu"), ("Mcp-Param-N", "7"));
    let both = r#"{"region":"eu","n":7}"#;
    assert_eq!(ask(both, &[region, n]), (200, None));
    assert_eq!(ask(both, &[("mcp-param-region", "=?base64?ZXU=?="), n]), (200, None));
    assert_eq!(ask("{}", &[("Mcp-Param-Other", "x")]), (200, None));
    let ran = odd.ran("t");
    for more in [&[region][..], &[("Mcp-Param-Region", "us"), n], &[region, ("Mcp-Param-N", "8")]] {
        assert_eq!(ask(both, more), (400, Some(-32020)), "{more:?}");
    }
    assert_eq!(odd.calls("t"), ran, "none of those reached the server");
    let mut session = gateway.session(&gateway.add_key("full"));
    assert_eq!(session.call("t", both).text(), "t", "older clients send no such headers");
}

/// A server whose calls of `t` say when the other side is gone.
fn watching() -> Odd {
    let script = |request: &Request, _: &_| match request.tool() {
        Some("t") => Action::Hang,
        _ => Action::Usual,
    };
    Odd::of(&["t"]).script(script).start()
}

#[test]
fn f72_a_modern_client_cancels_by_closing_and_an_older_one_does_not() {
    let odd = watching();
    let gateway = Gateway::start();
    gateway.add_server(&odd.registration("odd"));
    let key = gateway.add_key("full");
    let session = gateway.session(&key);
    let old =
        r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"t","arguments":{}}}"#;
    let mut stream = TcpStream::connect(gateway.address).unwrap();
    stream.write_all(session.post_raw(old).as_bytes()).unwrap();
    eventually("the older client's call", SOON, || (odd.calls("t") == 1).then_some(()));
    stream.shutdown(Shutdown::Both).unwrap();

    let call = body("tools/call", r#""name":"t","arguments":{}"#, MODERN);
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: {}\r\nContent-Type: application/json\r\nMCP-Protocol-Version: {MODERN}\r\nMcp-Method: tools/call\r\nMcp-Name: t\r\nContent-Length: {}\r\n\r\n{call}",
        gateway.address,
        key.bearer(),
        call.len()
    );
    let mut stream = TcpStream::connect(gateway.address).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    eventually("the modern client's call", SOON, || (odd.calls("t") == 2).then_some(()));
    stream.shutdown(Shutdown::Both).unwrap();
    // Which of the two is cancelled is told by its id at the server.
    let calls = odd.requests(|request| request.tool() == Some("t"));
    let cancelled = eventually("a cancellation", SOON, || {
        odd.requests(|request| request.rpc() == "notifications/cancelled").pop()
    });
    assert_eq!(&cancelled.body["params"]["requestId"], calls[1].id());
    assert_eq!(odd.count("notifications/cancelled"), 1);
}

#[test]
fn f79_a_subscription_ends_with_its_result_when_the_manager_stops() {
    let mut gateway = Gateway::start();
    let key = gateway.add_key("full").bearer();
    let listen =
        body("subscriptions/listen", r#""notifications":{"toolsListChanged":true}"#, MODERN);
    let headers = [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "subscriptions/listen")];
    let mut reply = post(&gateway, &key, &headers, &listen);
    let first = reply.event().unwrap().unwrap();
    assert!(first.data.contains("subscriptions/acknowledged"), "{first:?}");
    gateway.stop();
    let last: Value = serde_json::from_str(&reply.event().unwrap().unwrap().data).unwrap();
    assert_eq!((&last["id"], &last["result"]["resultType"]), (&json!("m"), &json!("complete")));
    let meta = &last["result"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/subscriptionId"], "m", "{last}");
    assert_eq!(reply.event().unwrap(), None);
}
