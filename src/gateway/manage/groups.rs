//! Groups as people see and change them.

use std::collections::HashSet;

use catalog::{Catalog, Group, GroupId, Mode, Reach, View};
use fields::{Field, check};
use store::{AuditKind, Change, Noun};

use super::Error;
use super::turn::Turn;
use crate::Gateway;

/// What may be said of a group (P44).
#[derive(Debug, Clone, Default)]
pub struct GroupFields {
    /// Unique, 1–64 characters.
    pub name: Field<String>,
    /// `direct`, `hybrid` (the default) or `adaptive`.
    pub mode: Field<String>,
    /// Exposed tool names.
    pub defaults: Field<Vec<String>>,
    /// 1–50; reset is the default of 10.
    pub adaptive_cap: Field<u64>,
    /// Names of servers within reach; reset is all of them, new ones too.
    pub servers: Field<Vec<String>>,
}

/// A group and what its apps get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupInfo {
    /// Its name.
    pub name: String,
    /// Shape of the tool list.
    pub mode: Mode,
    /// Tools kept in hybrid and adaptive lists.
    pub defaults: Vec<String>,
    /// Learned tools listed; `None` is the default of 10.
    pub adaptive_cap: Option<u8>,
    /// Servers within reach, in registration order; `None` is all.
    pub servers: Option<Vec<String>>,
    /// Defaults that lead nowhere right now.
    pub unresolved: Vec<String>,
    /// Tools of servers in the list that its apps get, learned ones aside.
    pub sees: usize,
    /// Its keys, revoked ones too.
    pub keys: usize,
}

impl Gateway {
    /// Every group, in creation order.
    pub fn groups(&self) -> Vec<GroupInfo> {
        let catalog = self.catalog();
        catalog.views().iter().map(|view| info(&catalog, view)).collect()
    }

    /// Adds a group.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the field; [`Error::Taken`] for a name in use.
    pub async fn create_group(&self, fields: GroupFields) -> Result<GroupInfo, Error> {
        if !matches!(fields.name, Field::Set(_)) {
            return Err(Error::invalid("name", "must be given"));
        }
        let mut turn = self.turn().await?;
        let blank = Group {
            id: GroupId(0),
            name: String::new(),
            mode: Mode::Hybrid,
            defaults: Vec::new(),
            adaptive_cap: None,
            reach: Reach::All,
        };
        let group = merge(&turn, &blank, fields)?;
        let name = group.name.clone();
        turn.push(Change::AddGroup(group));
        turn.audit(AuditKind::Group, format!("group `{name}` was added"));
        let id = GroupId(turn.commit().await?);
        self.group_info(id, &name)
    }

    /// Changes a group. Its keys stay with it, whatever it is called.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Invalid`], [`Error::Taken`]; [`Error::Refused`] for
    /// another name for the default group, which the settings know by its name.
    pub async fn patch_group(&self, name: &str, fields: GroupFields) -> Result<GroupInfo, Error> {
        let mut turn = self.turn().await?;
        let was = turn.group(name)?.clone();
        let group = merge(&turn, &was, fields)?;
        if group.name != was.name {
            self.refuse_default(&was.name, "renaming")?;
            let message = format!("group `{}` is now called `{}`", was.name, group.name);
            turn.audit(AuditKind::Edit, message);
        }
        let changed = changed(&was, &group);
        if !changed.is_empty() {
            let message = format!("group `{}` was changed: {}", group.name, changed.join(", "));
            turn.audit(AuditKind::Group, message);
        }
        let name = group.name.clone();
        if group != was {
            turn.push(Change::SetGroup(group));
        }
        turn.commit().await?;
        self.group_info(was.id, &name)
    }

    /// Removes a group with its keys; answers how many those were.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Refused`] for the default group.
    pub async fn delete_group(&self, name: &str) -> Result<usize, Error> {
        let mut turn = self.turn().await?;
        let id = turn.group(name)?.id;
        self.refuse_default(name, "deleting")?;
        let keys = turn.state.keys.iter().filter(|key| key.group == id).count();
        turn.push(Change::RemoveGroup(id));
        let with = match keys {
            0 => String::new(),
            1 => " with its key".to_owned(),
            keys => format!(" with its {keys} keys"),
        };
        turn.audit(AuditKind::Group, format!("group `{name}` was removed{with}"));
        turn.commit().await?;
        Ok(keys)
    }

    fn group_info(&self, id: GroupId, name: &str) -> Result<GroupInfo, Error> {
        let catalog = self.catalog();
        let view = catalog.view(id).ok_or_else(|| Error::not_found(Noun::Group, name))?;
        Ok(info(&catalog, view))
    }

    fn refuse_default(&self, name: &str, doing: &str) -> Result<(), Error> {
        if name != self.options.default_group {
            return Ok(());
        }
        Err(Error::Refused(format!(
            "group `{name}` is the `default_group` of the settings, which keys made without a \
             group and callers without a key belong to; set another one there before {doing} it"
        )))
    }
}

fn merge(turn: &Turn<'_>, was: &Group, fields: GroupFields) -> Result<Group, Error> {
    let name = match fields.name {
        Field::Keep => was.name.clone(),
        Field::Set(name) => check::name(&name)?,
        Field::Reset => return Err(Error::invalid("name", "must not be null")),
    };
    let mode = fields.mode.try_map(|word| {
        Mode::parse(&word).ok_or_else(|| {
            let message = format!("must be `direct`, `hybrid` or `adaptive`, not `{word}`");
            Error::invalid("mode", message)
        })
    })?;
    let defaults = fields.defaults.try_map(check::defaults)?;
    let cap = fields.adaptive_cap.try_map(|cap| match u8::try_from(cap) {
        Ok(cap @ 1..=50) => Ok(Some(cap)),
        _ => Err(Error::invalid("adaptive_cap", format!("must be 1–50 or null, not {cap}"))),
    })?;
    let reach = fields.servers.try_map(|names| reach(turn, &names))?;
    Ok(Group {
        id: was.id,
        name,
        mode: mode.over(was.mode, Mode::Hybrid),
        defaults: defaults.over(was.defaults.clone(), Vec::new()),
        adaptive_cap: cap.over(was.adaptive_cap, None),
        reach: reach.over(was.reach.clone(), Reach::All),
    })
}

fn reach(turn: &Turn<'_>, names: &[String]) -> Result<Reach, Error> {
    let mut ids = Vec::with_capacity(names.len());
    for name in names {
        let server = turn.server(name.trim()).map_err(|_| {
            let known: Vec<_> =
                turn.state.servers.iter().map(|server| format!("`{}`", server.name)).collect();
            let known = if known.is_empty() { "there are none".into() } else { known.join(", ") };
            Error::invalid("servers", format!("holds `{name}`, which is no server ({known})"))
        })?;
        ids.push(server.id);
    }
    // The order of the database, so that the same set compares as equal.
    ids.sort_unstable();
    ids.dedup();
    Ok(Reach::Only(ids))
}

fn changed(was: &Group, is: &Group) -> Vec<&'static str> {
    let differs = [
        ("mode", was.mode != is.mode),
        ("defaults", was.defaults != is.defaults),
        ("adaptive_cap", was.adaptive_cap != is.adaptive_cap),
        ("servers", was.reach != is.reach),
    ];
    differs.into_iter().filter_map(|(name, differs)| differs.then_some(name)).collect()
}

fn info(catalog: &Catalog, view: &View) -> GroupInfo {
    let group = &view.group;
    let mut found = HashSet::new();
    let mut unresolved = Vec::new();
    for default in &group.defaults {
        match view.resolve(default) {
            Some(tool) => drop(found.insert(tool.exposed)),
            None => unresolved.push(default.clone()),
        }
    }
    GroupInfo {
        name: group.name.clone(),
        mode: group.mode,
        defaults: group.defaults.clone(),
        adaptive_cap: group.adaptive_cap,
        servers: match &group.reach {
            Reach::All => None,
            Reach::Only(_) => {
                Some(view.servers().iter().map(|listed| listed.server.name.clone()).collect())
            }
        },
        sees: match group.mode {
            Mode::Direct => view.tools(),
            Mode::Hybrid | Mode::Adaptive => found.len(),
        },
        unresolved,
        keys: catalog.keys().iter().filter(|key| key.group == group.id).count(),
    }
}
