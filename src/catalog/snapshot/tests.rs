//! Small catalogs, and what groups see of them.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Catalog, Known};
use crate::model::{Group, GroupId, Mode, Reach, Server, ServerId, Transport};
use crate::tool::Tool;

pub(crate) fn server(id: i64, name: &str) -> Server {
    Server {
        id: ServerId(id),
        name: name.into(),
        transport: Transport::Http { url: "http://h/mcp".into(), headers: vec![], ca_file: None },
        ..Server::default()
    }
}

pub(crate) fn group(id: i64, name: &str, reach: Reach) -> Group {
    Group {
        id: GroupId(id),
        name: name.into(),
        mode: Mode::Direct,
        defaults: vec![],
        adaptive_cap: None,
        reach,
    }
}

pub(crate) fn known(tools: &[&str]) -> Known {
    let tool = |name: &&str| {
        let text = format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}}}}"#);
        Arc::new(Tool::parse(&text).expect("a usable tool"))
    };
    Known { tools: tools.iter().map(tool).collect(), ..Known::default() }
}

fn two(first: &[&str], second: &[&str]) -> Catalog {
    let known = HashMap::from([(ServerId(1), known(first)), (ServerId(2), known(second))]);
    let groups = vec![
        group(1, "all", Reach::All),
        group(2, "one", Reach::Only(vec![ServerId(1)])),
        group(3, "none", Reach::Only(vec![])),
    ];
    Catalog::build(vec![server(1, "a"), server(2, "b")], groups, vec![], &[], &known)
}

fn listed(catalog: &Catalog, group: &str) -> String {
    let view = catalog.view_by_name(group).expect("a group");
    String::from_utf8(view.list(protocol::Era::Legacy).to_vec()).expect("UTF-8")
}

#[test]
fn p44_groups_list_only_what_they_reach() {
    let catalog = two(&["x", "y"], &["z"]);
    let tool = |name: &str| format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}}}}"#);
    assert_eq!(listed(&catalog, "all"), format!("[{},{},{}]", tool("x"), tool("y"), tool("z")));
    assert_eq!(listed(&catalog, "one"), format!("[{},{}]", tool("x"), tool("y")));
    assert_eq!(listed(&catalog, "none"), "[]");
}

#[test]
fn p32_a_tool_answers_to_its_own_name_where_one_reachable_server_has_it() {
    let catalog = two(&["x"], &["x", "z"]);
    let all = catalog.view_by_name("all").expect("a group");
    let one = catalog.view_by_name("one").expect("a group");
    assert_eq!(all.resolve("a__x").map(|r| r.server.name.as_str()), Some("a"));
    assert!(all.resolve("x").is_none());
    assert_eq!(one.resolve("x").map(|r| r.server.name.as_str()), Some("a"));
    assert!(one.resolve("b__x").is_none() && one.resolve("z").is_none());
}

#[test]
fn p31_renames_are_told_both_ways() {
    let (alone, together) = (two(&["x"], &[]), two(&["x"], &["x"]));
    let told = together.renamed_since(&alone);
    assert_eq!(told.len(), 1);
    assert_eq!((told[0].was.as_str(), told[0].is.as_str()), ("x", "a__x"));
    assert_eq!(alone.renamed_since(&together)[0].is, "x");
}

#[test]
fn cat_08_lists_are_the_same_bytes() {
    assert_eq!(listed(&two(&["x", "y"], &["z"]), "all"), listed(&two(&["x", "y"], &["z"]), "all"));
}

#[test]
fn known_survives_the_database() {
    let mut known = known(&["x", "ü"]);
    known.says = Some("a \"quoted\" word".into());
    assert_eq!(Known::from_text(&known.to_text()), Ok(known));
}
