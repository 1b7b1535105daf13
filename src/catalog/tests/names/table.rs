//! What must hold of the names of any servers and tools.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use mcpm_catalog::{
    Catalog, Group, GroupId, Known, Mode, Reach, Server, ServerId, Tool, Transport,
};

/// Lists these (server, tool) pairs in two orders; panics where a name does not fit, is there
/// twice, depends on the order or does not lead back.
pub(crate) fn check(pairs: &[(String, String)], order: u64) {
    let one = named(pairs);
    let mut other = pairs.to_vec();
    let last = other.len().max(1);
    for place in 0..other.len() {
        let step = order.rotate_left(place as u32 * 11) as usize % last;
        other.swap(place, (place + step) % last);
    }
    assert_eq!(one, named(&other), "names depend on the order");
}

/// Each pair's name, by way of a catalog.
fn named(pairs: &[(String, String)]) -> BTreeMap<(String, String), String> {
    let mut servers: Vec<Server> = Vec::new();
    let mut tools: HashMap<ServerId, Vec<Arc<Tool>>> = HashMap::new();
    for (server, tool) in pairs {
        let known = servers.iter().find(|known| known.name == *server).map(|known| known.id);
        let id = known.unwrap_or_else(|| {
            let id = ServerId(servers.len() as i64 + 1);
            servers.push(self::server(id, server));
            id
        });
        let of_server = tools.entry(id).or_default();
        let name = protocol::json::quoted(tool);
        // What a server may not call a tool is not listed, and a name is listed once.
        if let Ok(parsed) =
            Tool::parse(&format!(r#"{{"name":{name},"inputSchema":{{"type":"object"}}}}"#))
            && of_server.iter().all(|known| known.name != parsed.name)
        {
            of_server.push(Arc::new(parsed));
        }
    }
    let known: HashMap<_, _> = tools
        .into_iter()
        .map(|(id, tools)| (id, Known { tools: tools.into(), ..Known::default() }))
        .collect();
    let group = Group {
        id: GroupId(1),
        name: "all".into(),
        mode: Mode::Direct,
        defaults: vec![],
        adaptive_cap: None,
        reach: Reach::All,
    };
    let catalog = Catalog::build(servers, vec![group], vec![], &[], &known);
    let view = catalog.view(GroupId(1)).expect("the group");
    let mut seen = BTreeSet::new();
    let mut names = BTreeMap::new();
    for listed in catalog.servers() {
        for (tool, name) in listed.known.tools.iter().zip(&listed.exposed) {
            let fits = (1..=64).contains(&name.len())
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
            assert!(fits, "{name:?}");
            assert!(seen.insert(name.clone()), "{name} is there twice");
            let found = view.resolve(name).expect("a listed name leads somewhere");
            let back = (found.server.name.as_str(), found.tool.name.as_str());
            assert_eq!(back, (listed.server.name.as_str(), tool.name.as_str()), "{name}");
            names.insert((listed.server.name.clone(), tool.name.clone()), name.to_string());
        }
    }
    names
}

fn server(id: ServerId, name: &str) -> Server {
    Server {
        id,
        name: name.into(),
        transport: Transport::Http { url: "http://h/mcp".into(), headers: vec![], ca_file: None },
        ..Server::default()
    }
}
