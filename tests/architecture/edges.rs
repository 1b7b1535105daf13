//! Which crate may use which, and which packages have one home. Cargo enforces what the
//! manifests say; these tests say what the manifests may say.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{Metadata, MetadataCommand, Package};

use crate::tree::{bare, files, none, read, sources};

/// The picture in ARCHITECTURE.md, edge by edge. Arrows point down only: a crate uses none
/// that stands above it here.
const EDGES: [(&str, &[&str]); 22] = [
    ("mcp-manager", &["catalog", "demo", "filters", "gateway", "port", "protocol", "store"]),
    ("port", &["admin", "filters", "gateway"]),
    ("filters", &["gateway", "protocol"]),
    ("admin", &["catalog", "gateway"]),
    (
        "gateway",
        &[
            "catalog",
            "coach",
            "conversation",
            "fields",
            "finder",
            "metrics",
            "protocol",
            "store",
            "upstream",
        ],
    ),
    ("finder", &["catalog", "search"]),
    ("conversation", &["adaptive", "catalog", "coach", "protocol"]),
    ("metrics", &["catalog", "store"]),
    ("upstream", &["catalog", "protocol", "transport"]),
    ("transport", &["catalog", "process", "protocol"]),
    ("process", &["catalog"]),
    ("store", &["catalog"]),
    ("fields", &["catalog"]),
    ("catalog", &["coach", "protocol"]),
    ("adaptive", &[]),
    ("bench", &["coach", "search"]),
    ("search", &[]),
    ("coach", &["protocol"]),
    ("protocol", &[]),
    ("demo", &[]),
    ("fixture", &[]),
    ("loadtest", &[]),
];

/// Packages, by the start of their name, and the crates that may use them. What a large
/// dependency is good for stays behind one face.
const HOMES: [(&str, &[&str]); 13] = [
    ("pingora", &["filters", "loadtest", "port", "transport"]),
    ("rmcp", &["demo", "fixture"]),
    ("axum", &["demo", "fixture"]),
    ("rusqlite", &["store"]),
    ("prometheus", &["admin", "metrics"]),
    ("rustls", &["mcp-manager", "port", "transport"]),
    ("ort", &["search"]),
    ("tokenizers", &["search"]),
    ("jsonschema", &["coach"]),
    ("hyper", &["loadtest"]),
    ("clap", &["bench", "fixture", "loadtest", "mcp-manager"]),
    ("anyhow", &["bench", "demo", "fixture", "loadtest", "mcp-manager", "port"]),
    ("nix", &["loadtest", "mcp-manager", "process"]),
];

/// Built apart, with a fuzzer's flags: no member of the workspace, and its versions are its own.
const APART: &str = "fuzz/Cargo.toml";

/// What a crate without I/O, clock or waiting has no use for.
const IMPURE: [&str; 9] =
    ["async-trait", "futures", "getrandom", "jiff", "mio", "nix", "tokio", "tokio-util", "tracing"];

fn metadata() -> Metadata {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let mut command = MetadataCommand::new();
    command.manifest_path(manifest).no_deps();
    command.exec().expect("`cargo metadata` reads the workspace")
}

/// A crate's name in code: that of its folder.
fn short(name: &str) -> &str {
    name.strip_prefix("mcpm-").unwrap_or(name)
}

/// Each crate with what it depends on, for building, running and testing.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let of = |package: &Package| {
        let all = package.dependencies.iter().map(|each| short(&each.name).to_owned());
        (short(&package.name).to_owned(), all.collect())
    };
    metadata().packages.iter().map(of).collect()
}

#[test]
fn crates_use_each_other_as_the_picture_says() {
    let built = dependencies();
    let names: Vec<&str> = EDGES.iter().map(|(name, _)| *name).collect();
    let mut offences = Vec::new();
    for (name, uses) in &built {
        let drawn = EDGES.iter().find(|(drawn, _)| drawn == name).map_or(&[][..], |(_, to)| to);
        let ours = uses.iter().map(String::as_str).filter(|used| names.contains(used));
        let ours: BTreeSet<&str> = ours.collect();
        let drawn: BTreeSet<&str> = drawn.iter().copied().collect();
        offences.extend(ours.difference(&drawn).map(|to| format!("{name} → {to} is not drawn")));
        offences.extend(drawn.difference(&ours).map(|to| format!("{name} → {to} is not built")));
    }
    none(&offences, "draw the edge in EDGES and in ARCHITECTURE.md, or do without it:");
}

#[test]
fn arrows_point_down_only() {
    let place = |name: &str| EDGES.iter().position(|(known, _)| *known == name);
    let up = EDGES.iter().flat_map(|(from, to)| {
        let upwards = to.iter().filter(move |to| place(to) <= place(from));
        upwards.map(move |to| format!("{from} → {to}"))
    });
    none(&up.collect::<Vec<_>>(), "move what both need into a lower crate:");
}

#[test]
fn the_two_edges_see_neither_each_other_nor_what_is_behind_the_gateway() {
    let built = dependencies();
    let mut offences = Vec::new();
    for (edge, other) in [("filters", "admin"), ("admin", "filters")] {
        let uses = built.get(edge).expect("the crate is in the workspace");
        for hidden in [other, "store", "upstream", "rusqlite", "pingora-proxy", "reqwest", "hyper"]
        {
            if uses.contains(hidden) {
                offences.push(format!("{edge} → {hidden}"));
            }
        }
    }
    none(&offences, "ask the gateway instead, with a new use case if there is none:");
}

#[test]
fn each_card_package_has_its_home() {
    let mut offences = Vec::new();
    let built = dependencies();
    for (package, homes) in HOMES {
        let belongs = |name: &str| name == package || name.starts_with(&format!("{package}-"));
        let found = built.iter().filter(|(_, uses)| uses.iter().any(|used| belongs(used)));
        let found: BTreeSet<&str> = found.map(|(name, _)| name.as_str()).collect();
        let homes: BTreeSet<&str> = homes.iter().copied().collect();
        if found != homes {
            offences.push(format!("{package}: in {found:?}, at home in {homes:?}"));
        }
    }
    none(&offences, "use it through the crate that is its home, or change HOMES with a reason:");
}

#[test]
fn pure_crates_depend_on_nothing_that_waits_or_asks_the_system() {
    let built = dependencies();
    let mut offences = Vec::new();
    for name in ["protocol", "coach", "adaptive", "catalog", "fields"] {
        let uses = built.get(name).expect("the crate is in the workspace");
        offences.extend(
            IMPURE
                .iter()
                .filter(|each| uses.contains(**each))
                .map(|each| format!("{name} → {each}")),
        );
    }
    none(&offences, "pass values in instead; time, randomness and I/O belong to the callers:");
}

#[test]
fn every_crate_is_a_member_named_after_its_folder() {
    let metadata = metadata();
    let root = metadata.workspace_root.as_str();
    let mut members = BTreeSet::new();
    let mut offences = Vec::new();
    for package in &metadata.packages {
        let manifest = package.manifest_path.as_str();
        let path = manifest.strip_prefix(root).unwrap_or(manifest).trim_start_matches('/');
        members.insert(path.to_owned());
        let folder = path.trim_end_matches("Cargo.toml").trim_end_matches('/');
        let folder = folder.rsplit('/').next().unwrap_or_default();
        let fits = if folder.is_empty() { "mcp-manager" } else { &format!("mcpm-{folder}") };
        if package.name.as_str() != fits {
            offences.push(format!("{path} is called {}, not {fits}", package.name));
        }
        if !read(path).contains("[lints]\nworkspace = true\n") {
            offences.push(format!("{path} lacks `[lints] workspace = true`"));
        }
    }
    let strays = files("Cargo.toml").into_iter();
    let strays = strays.filter(|path| !members.contains(path) && path != APART);
    offences.extend(strays.map(|path| format!("{path} is not in `members` of the workspace")));
    none(&offences, "make it right in the manifests:");
}

#[test]
fn versions_stand_in_the_workspace_alone() {
    let mut offences = Vec::new();
    for path in files("Cargo.toml").into_iter().filter(|path| path != APART) {
        let mut within = false;
        for line in read(&path).lines() {
            if line.starts_with('[') {
                within = line == "[dependencies]" || line == "[dev-dependencies]";
            } else if within && line.contains('=') && !line.ends_with(".workspace = true") {
                offences.push(format!("{path}: {line}"));
            }
        }
    }
    none(&offences, "put the version into [workspace.dependencies] and write `.workspace = true`:");
}

#[test]
fn no_dependency_is_there_for_nothing() {
    let metadata = metadata();
    let all = sources();
    let mut used = BTreeSet::new();
    let mut offences = Vec::new();
    let folder = |package: &Package| -> String {
        let manifest = package.manifest_path.as_str();
        let path = manifest.strip_prefix(metadata.workspace_root.as_str()).unwrap_or(manifest);
        path.trim_start_matches('/').trim_end_matches("Cargo.toml").to_owned()
    };
    let folders: Vec<String> = metadata.packages.iter().map(folder).collect();
    for (package, own) in metadata.packages.iter().zip(&folders) {
        // The root's folder holds every other crate's.
        let inside = |path: &str| {
            let nested =
                folders.iter().any(|f| f.len() > own.len() && path.starts_with(f.as_str()));
            path.starts_with(own.as_str()) && !nested
        };
        let ours = all.iter().filter(|source| inside(&source.path));
        let texts: Vec<String> = ours.map(|source| bare(&source.text)).collect();
        for dependency in &package.dependencies {
            let name = dependency.rename.as_ref().unwrap_or(&dependency.name);
            used.insert(name.clone());
            let path = format!("{}::", name.replace('-', "_"));
            if !texts.iter().any(|text| begins_a_path(text, &path)) {
                offences.push(format!("{own}Cargo.toml: {name}"));
            }
        }
    }
    let mut within = false;
    for line in read("Cargo.toml").lines() {
        if line.starts_with('[') {
            within = line == "[workspace.dependencies]";
        } else if within
            && let Some((name, _)) = line.split_once(" = ")
            && !line.starts_with('#')
            && !used.contains(name)
        {
            offences.push(format!("[workspace.dependencies]: {name}"));
        }
    }
    none(&offences, "nothing uses these; take them out of the manifests:");
}

/// Whether `path` stands in a text, and not as the end of a longer name.
fn begins_a_path(text: &str, path: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(path).any(|(at, _)| !text[..at].ends_with(is_name))
}
