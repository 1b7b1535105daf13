//! Bad input end to end: whatever is posted to `/mcp`, by a client of either era, is answered in
//! time with words about what was wrong, and the next good call is served as if nothing had been.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::gateway::Gateway;
use crate::support::http;
use crate::support::mcp::{LEGACY, MODERN};
use crate::support::peers::HttpServer;

/// Time for any answer.
const IN_TIME: Duration = Duration::from_secs(2);

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// What is to come of a body.
#[derive(Debug, Clone, Copy)]
enum Fate {
    /// An error whose message holds this.
    Refused(&'static str),
    /// The tool's result: odd, and still right.
    Served,
}

use Fate::{Refused, Served};

/// A client of one era, with a server behind the gateway.
struct Client {
    gateway: Gateway,
    headers: Vec<(String, String)>,
    is_modern: bool,
    _server: HttpServer,
    _folder: TempDir,
}

impl Client {
    fn of(era: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = HttpServer::ledger("server", &folder.path().join("runs"));
        let gateway = Gateway::start();
        gateway.add_server(&server.registration());
        let key = gateway.add_key("full").bearer();
        let is_modern = era == MODERN;
        let mut client =
            Self { gateway, headers: vec![], is_modern, _server: server, _folder: folder };
        client.add("Authorization", &key);
        client.add("Content-Type", "application/json");
        client.add("Accept", "application/json");
        if is_modern {
            client.add("Mcp-Method", "tools/call");
            client.add("Mcp-Name", "writes");
        } else {
            let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
            let reply = client.post(hello.as_bytes());
            client.add("Mcp-Session-Id", reply.header("mcp-session-id").unwrap());
        }
        client.add("MCP-Protocol-Version", era);
        client
    }

    fn add(&mut self, name: &str, value: &str) {
        self.headers.push((name.to_owned(), value.to_owned()));
    }

    fn post(&self, body: &[u8]) -> http::Reply {
        let address = self.gateway.address;
        let mut head = format!("POST /mcp HTTP/1.1\r\nHost: {address}\r\n");
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
        http::raw_bytes(address, &[head.as_bytes(), body].concat()).unwrap()
    }

    /// `params` with these members, and what every request of the era holds.
    fn params(&self, members: &str) -> String {
        match self.is_modern {
            true => format!(r#""params":{{{members},{META}}}"#),
            false => format!(r#""params":{{{members}}}"#),
        }
    }

    /// A call with other members than the usual ones.
    fn call(&self, envelope: &str, members: &str) -> String {
        format!(r#"{{{envelope},{}}}"#, self.params(members))
    }

    /// Posts a body, sees what came of it, and makes a good call.
    fn check(&self, what: &str, body: &[u8], fate: Fate) {
        let shown: String = String::from_utf8_lossy(body).chars().take(300).collect();
        let what = format!("{what}: {shown}");
        let started = Instant::now();
        let mut reply = self.post(body);
        let text = reply.text().unwrap();
        assert!(started.elapsed() < IN_TIME, "{what}: it took {:?}", started.elapsed());
        let answer: Value =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{what}: {error} in {text}"));
        assert_eq!(answer["jsonrpc"], "2.0", "{what}: {answer}");
        match fate {
            Served => {
                assert_eq!(reply.status, 200, "{what}: {answer}");
                assert_eq!(answer["result"]["content"][0]["text"], "good", "{what}: {answer}");
            }
            Refused(word) => {
                let status = reply.status;
                assert!(status == 200 || (400..500).contains(&status), "{what}: {status} {answer}");
                let said = match answer["error"]["message"].as_str() {
                    Some(said) => {
                        assert!(answer["error"]["code"].is_i64(), "{what}: {answer}");
                        assert!(answer.get("id").is_some(), "{what}: {answer}");
                        said
                    }
                    None => {
                        assert_eq!(answer["result"]["isError"], true, "{what}: {answer}");
                        answer["result"]["content"][0]["text"].as_str().unwrap()
                    }
                };
                assert!(said.contains(word), "{what}: nothing about `{word}` in {answer}");
            }
        }
        let good = self.call(ENVELOPE, CALL);
        let mut reply = self.post(good.as_bytes());
        let answer: Value = serde_json::from_str(&reply.text().unwrap()).unwrap();
        assert_eq!(answer["result"]["content"][0]["text"], "good", "after {what}: {answer}");
    }
}

/// The members of a good call.
const ENVELOPE: &str = r#""jsonrpc":"2.0","id":7,"method":"tools/call""#;
const CALL: &str = r#""name":"writes","arguments":{"id":"good"}"#;

fn both(test: impl Fn(&Client)) {
    for era in [LEGACY, MODERN] {
        test(&Client::of(era));
    }
}

fn deep(levels: usize) -> String {
    format!("{}1{}", "[".repeat(levels), "]".repeat(levels))
}

#[test]
fn p7_a_member_of_the_wrong_type_is_named() {
    let deep = deep(3000);
    both(|client| {
        let each = |name: &str, wrong: &[&str], make: &dyn Fn(&str) -> String, word| {
            for value in wrong.iter().copied().chain([deep.as_str()]) {
                client.check(name, make(value).as_bytes(), Refused(word));
            }
        };
        let envelope = |text: String| client.call(&text, CALL);
        each(
            "jsonrpc",
            &["null", "true", "2", "2.0", "[]", "{}", r#""1.0""#, r#""2.0 ""#],
            &|value| envelope(format!(r#""jsonrpc":{value},"id":7,"method":"tools/call""#)),
            "`jsonrpc`",
        );
        each(
            "id",
            &["null", "true", "1.5", "1e3", "1e999", "[7]", "{}"],
            &|value| envelope(format!(r#""jsonrpc":"2.0","id":{value},"method":"tools/call""#)),
            "`id`",
        );
        each(
            "method",
            &["null", "true", "5", "[]", "{}", r#""\ud800""#],
            &|value| envelope(format!(r#""jsonrpc":"2.0","id":7,"method":{value}"#)),
            "`method`",
        );
        each(
            "params",
            &["true", "5", "[]", r#""writes""#],
            &|value| format!(r#"{{{ENVELOPE},"params":{value}}}"#),
            "`params`",
        );
        each(
            "name",
            &["null", "true", "5", "[]", "{}", r#""\ud800""#, r#""writes\udc00""#],
            &|value| {
                client.call(ENVELOPE, &format!(r#""name":{value},"arguments":{{"id":"bad"}}"#))
            },
            "`params.name`",
        );
        each(
            "arguments",
            &["true", "5", "[]", r#""{}""#],
            &|value| client.call(ENVELOPE, &format!(r#""name":"writes","arguments":{value}"#)),
            "`params.arguments`",
        );
        each(
            "_meta",
            &["true", "5", "[]", r#""x""#],
            &|value| format!(r#"{{{ENVELOPE},"params":{{{CALL},"_meta":{value}}}}}"#),
            "`params._meta`",
        );
        each(
            "progressToken",
            &["true", "[]", "{}"],
            &|value| {
                let whole = format!(r#"{{{ENVELOPE},"params":{{{CALL},{META}}}}}"#);
                let token = format!(r#""_meta":{{"progressToken":{value},"#);
                let whole = whole.replace(r#""_meta":{"#, &token);
                match client.is_modern {
                    true => whole,
                    // Its version would make it a request of the other era.
                    false => whole.replace("io.modelcontextprotocol/", "example.com/"),
                }
            },
            "`params._meta.progressToken`",
        );
    });
}

#[test]
fn p7_missing_and_cut_bodies_are_told_what_is_missing() {
    both(|client| {
        let whole = client.call(ENVELOPE, CALL);
        for (what, missing, word) in [
            ("no jsonrpc", r#""jsonrpc":"2.0","#, "`jsonrpc`"),
            ("no method", r#","method":"tools/call""#, "`method`"),
            ("no name", r#""name":"writes","#, "`params.name`"),
        ] {
            let body = whole.replacen(missing, "", 1);
            assert_ne!(body, whole, "{what}");
            client.check(what, body.as_bytes(), Refused(word));
        }
        for cut in [1, whole.len() / 3, whole.len() / 2, whole.len() - 1] {
            client.check("cut", &whole.as_bytes()[..cut], Refused("JSON"));
        }
        for tail in ["}", " {}", "\0", ",", "\u{feff}"] {
            client.check("a tail", format!("{whole}{tail}").as_bytes(), Refused("JSON"));
        }
        let levels = "[".repeat(3000);
        client.check("unclosed", levels.as_bytes(), Refused("JSON"));
        client.check("members", format!("{{\"a\":{levels}").as_bytes(), Refused("JSON"));
        client.check("a batch", format!("[{whole}]").as_bytes(), Refused("batches"));
        client.check("only levels", deep(3000).as_bytes(), Refused("batches"));
    });
}

#[test]
fn p7_what_is_not_utf_8_is_told_so() {
    both(|client| {
        let whole = client.call(ENVELOPE, CALL);
        for place in ["tools/call", "writes", "good", "name", "jsonrpc"] {
            for wrong in
                [&b"\xff"[..], b"\xc3", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf8\x88\x80\x80\x80"]
            {
                let at = whole.find(place).unwrap() + 1;
                let body = [&whole.as_bytes()[..at], wrong, &whole.as_bytes()[at..]].concat();
                client.check(place, &body, Refused("UTF-8"));
            }
        }
        let utf_16: Vec<u8> = whole.encode_utf16().flat_map(u16::to_le_bytes).collect();
        client.check("UTF-16", &utf_16, Refused("UTF-8"));
    });
}

#[test]
fn p7_odd_names_lead_nowhere_and_are_shown_short() {
    let long = "x".repeat(1 << 20);
    both(|client| {
        // A modern client has to repeat the name in a header, which cannot hold these plainly.
        let word = if client.is_modern { "`params.name`" } else { "There is no tool" };
        for name in
            [r"writes\u0000", r"\u0000", "", " writes", r"\uD83D\uDE00", &long, r"..\/writes"]
        {
            let members = format!(r#""name":"{name}","arguments":{{"id":"bad"}}"#);
            client.check("name", client.call(ENVELOPE, &members).as_bytes(), Refused(word));
        }
        for method in [r"tools/call\u0000", "", "tools/calls", " tools/call", &long] {
            let envelope = format!(r#""jsonrpc":"2.0","id":7,"method":"{method}""#);
            client.check("method", client.call(&envelope, CALL).as_bytes(), Refused("method"));
        }
    });
}

#[test]
fn p7_what_is_odd_and_still_right_is_served() {
    let (deep, digits) = (deep(3000), "9".repeat(400));
    both(|client| {
        let arguments = |more: &str| {
            let members = format!(r#""name":"writes","arguments":{{"id":"good",{more}}}"#);
            client.call(ENVELOPE, &members)
        };
        for (what, body) in [
            ("a deep argument", arguments(&format!(r#""deep":{deep}"#))),
            ("a large exponent", arguments(r#""n":1e999,"m":-1E+400"#)),
            ("many digits", arguments(&format!(r#""n":{digits},"m":0.{digits}"#))),
            ("odd text", arguments(r#""nul":"\u0000","half":"\ud800","\u0000":1,"":2"#)),
            ("an argument twice", arguments(r#""id":"good""#)),
            ("a name twice", client.call(ENVELOPE, &format!(r#""name":"nowhere",{CALL}"#))),
            ("arguments twice", client.call(ENVELOPE, &format!(r#""arguments":[],{CALL}"#))),
            ("an id twice", client.call(&format!(r#""id":true,{ENVELOPE}"#), CALL)),
            ("a method twice", client.call(&format!(r#""method":5,{ENVELOPE}"#), CALL)),
            ("a version twice", client.call(&format!(r#""jsonrpc":1,{ENVELOPE}"#), CALL)),
            ("params twice", client.call(&format!(r#""params":9,{ENVELOPE}"#), CALL)),
            (
                "an unknown member",
                client.call(&format!(r#""\ud83d\ude00":{deep},{ENVELOPE}"#), CALL),
            ),
            ("white space", format!("\r\n\t {} \r\n", client.call(ENVELOPE, CALL))),
        ] {
            client.check(what, body.as_bytes(), Served);
        }
        for id in ["99999999999999999999999999", "-0", r#""\u0000""#, r#""\ud800""#, r#""""#] {
            let envelope = format!(r#""jsonrpc":"2.0","id":{id},"method":"tools/call""#);
            let text = client.post(client.call(&envelope, CALL).as_bytes()).text().unwrap();
            assert!(
                text.contains(&format!(r#""id":{id},"#)),
                "{id} is not kept as it stood: {text}"
            );
        }
        let whole = client.call(ENVELOPE, CALL);
        let answer: Value =
            serde_json::from_str(&client.post(whole.as_bytes()).text().unwrap()).unwrap();
        assert_eq!(answer["id"], json!(7));
    });
}
