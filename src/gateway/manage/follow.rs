//! What follows when tools are called by another name (P31): defaults that named them, and
//! the audit lines that say so. Pure.

use std::collections::HashMap;

use catalog::{Catalog, Group};
use store::{AuditKind, Change};

/// The changes that go with replacing `before` by `after`: one audit line for each renamed
/// tool, and groups whose defaults follow. `at` is in seconds since the Unix epoch.
///
/// Belongs into the same transaction as what renames the tools.
pub(crate) fn follow(before: &Catalog, after: &Catalog, groups: &[Group], at: i64) -> Vec<Change> {
    let renamed = after.renamed_since(before);
    let mut changes = Vec::new();
    for tool in &renamed {
        let message = format!(
            "tool `{}` of server `{}` is now called `{}`; it was `{}`",
            tool.tool, tool.server, tool.is, tool.was
        );
        changes.push(Change::Audit { kind: AuditKind::Rename, message, at });
    }
    // All at once: a name that one tool gives up may be the one that another takes.
    let names: HashMap<&str, &str> =
        renamed.iter().map(|tool| (tool.was.as_str(), tool.is.as_str())).collect();
    for group in groups {
        let mut moved = group.clone();
        for default in &mut moved.defaults {
            let Some(is) = names.get(default.as_str()) else { continue };
            let message = format!(
                "default `{default}` of group `{}` followed its tool and is now `{is}`",
                group.name
            );
            changes.push(Change::Audit { kind: AuditKind::Default, message, at });
            (*is).clone_into(default);
        }
        if moved != *group {
            changes.push(Change::SetGroup(moved));
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;

    use catalog::{Catalog, Group, GroupId, Known, Mode, Reach};
    use catalog::{Server, ServerId, Tool};
    use store::Change;

    use super::follow;

    fn catalog(servers: &[(i64, &str)]) -> Catalog {
        let tool = Arc::new(Tool::parse(r#"{"name":"open"}"#).expect("a tool"));
        let known = Known { tools: Arc::from([tool]), ..Known::default() };
        let known: HashMap<_, _> =
            servers.iter().map(|(id, _)| (ServerId(*id), known.clone())).collect();
        let servers = servers.iter().map(|(id, name)| Server {
            id: ServerId(*id),
            name: (*name).to_owned(),
            ..Server::default()
        });
        Catalog::build(servers.collect(), vec![], vec![], &[], &known)
    }

    #[test]
    fn defaults_follow_both_ways() {
        let one = catalog(&[(1, "a")]);
        let two = catalog(&[(1, "a"), (2, "b")]);
        let group = |default: &str| Group {
            id: GroupId(1),
            name: "pi".to_owned(),
            mode: Mode::Hybrid,
            defaults: vec![default.to_owned(), "other".to_owned()],
            adaptive_cap: None,
            reach: Reach::All,
        };
        for (before, after, was, is) in
            [(&one, &two, "open", "a__open"), (&two, &one, "a__open", "open")]
        {
            let changes = follow(before, after, &[group(was)], 7);
            let [Change::Audit { .. }, Change::Audit { message, .. }, Change::SetGroup(moved)] =
                &changes[..]
            else {
                panic!("{changes:?}")
            };
            assert_eq!(
                *message,
                format!("default `{was}` of group `pi` followed its tool and is now `{is}`")
            );
            assert_eq!(*moved, group(is));
        }
        assert!(follow(&two, &two, &[group("open")], 7).is_empty());
    }
}
