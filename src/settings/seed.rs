//! The first-run seed: servers and groups as the conf file lists them, checked, and as the
//! catalog's values.

use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

use catalog::{Group, GroupId, Mode, Pinned, Reach, Secret, Server, ServerId, Transport};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};

use super::Settings;
use super::error::{Fault, nearest};
use super::place::{Step, Way};
use super::text::{self, FromText};

/// One server of the seed.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Upstream {
    /// Unique, up to 64 characters.
    pub(crate) name: String,
    /// Streamable HTTP address; serverUrl is taken too. ${NAME} and ${NAME:-default} come from
    /// the environment when the manager connects.
    #[serde(alias = "serverUrl")]
    pub(crate) url: Option<String>,
    /// Or a local program, which speaks over its standard input and output. Wins over url.
    pub(crate) command: Option<String>,
    /// Its arguments.
    #[serde(deserialize_with = "text::section")]
    pub(crate) args: Vec<String>,
    /// Its environment variables; values may hold ${NAME}.
    #[serde(deserialize_with = "text::section")]
    pub(crate) env: Pairs,
    /// Its working directory.
    pub(crate) cwd: Option<String>,
    /// What models are told that it is for; empty leaves the server's own words.
    pub(crate) description: Option<String>,
    /// Sent with every request, for servers behind a login; values may hold ${NAME}.
    #[serde(deserialize_with = "text::section")]
    pub(crate) headers: Pairs,
    /// false keeps it in the list without connecting.
    #[serde(deserialize_with = "text::value")]
    pub(crate) enabled: bool,
    /// true gives a group one session there, instead of each app its own.
    #[serde(deserialize_with = "text::value")]
    pub(crate) shared: bool,
    /// For connecting, listing and health checks: 100 to 600000.
    #[serde(deserialize_with = "timeout")]
    pub(crate) timeout_ms: Duration,
    /// For one call, renewed by its progress: 100 to 86400000.
    #[serde(deserialize_with = "call_timeout")]
    pub(crate) call_timeout_ms: Duration,
    /// A certificate authority (PEM) trusted for this server, beside the system's.
    pub(crate) ca_file: Option<String>,
    /// auto finds out what the server speaks; legacy or modern pins it.
    #[serde(deserialize_with = "text::value")]
    pub(crate) protocol: Pinned,
}

impl Default for Upstream {
    fn default() -> Self {
        Self {
            name: String::new(),
            url: None,
            command: None,
            args: Vec::new(),
            env: Pairs::default(),
            cwd: None,
            description: None,
            headers: Pairs::default(),
            enabled: true,
            shared: false,
            timeout_ms: Server::TIMEOUT,
            call_timeout_ms: Server::CALL_TIMEOUT,
            ca_file: None,
            protocol: Pinned::Auto,
        }
    }
}

/// One group of the seed.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SeedGroup {
    /// Unique, up to 64 characters; `default` and `full` change the groups that are there.
    pub(crate) name: String,
    /// direct lists every tool, hybrid the defaults and search, adaptive also what is used.
    #[serde(deserialize_with = "text::value")]
    pub(crate) mode: Mode,
    /// Tools that stay in hybrid and adaptive lists.
    #[serde(deserialize_with = "text::section")]
    pub(crate) defaults: Vec<String>,
    /// How many learned tools an adaptive list holds, 1 to 50; null is 10.
    #[serde(deserialize_with = "cap")]
    pub(crate) adaptive_cap: Option<u8>,
    /// Servers within reach, by name; null is all, new ones too.
    pub(crate) servers: Option<Vec<String>>,
}

impl Default for SeedGroup {
    fn default() -> Self {
        Self {
            name: String::new(),
            mode: Mode::Hybrid,
            defaults: Vec::new(),
            adaptive_cap: None,
            servers: None,
        }
    }
}

impl SeedGroup {
    /// The groups that every fresh database holds (P45).
    pub(super) fn usual() -> Vec<Self> {
        let group = |name: &str, mode| Self { name: name.to_owned(), mode, ..Self::default() };
        vec![group("default", Mode::Hybrid), group("full", Mode::Direct)]
    }

    /// The group as the catalog has it, without an id. `id_of` tells the servers' ids; names
    /// that it does not know are left out, so nothing is reached by accident.
    pub(crate) fn to_group(&self, id_of: impl Fn(&str) -> Option<ServerId>) -> Group {
        let reach = match &self.servers {
            None => Reach::All,
            Some(names) => Reach::Only(names.iter().filter_map(|name| id_of(name)).collect()),
        };
        Group {
            id: GroupId(0),
            name: self.name.clone(),
            mode: self.mode,
            defaults: self.defaults.clone(),
            adaptive_cap: self.adaptive_cap,
            reach,
        }
    }
}

impl Upstream {
    fn server(&self) -> Server {
        let transport = match &self.command {
            Some(command) => Transport::Stdio {
                command: command.clone(),
                args: self.args.clone(),
                env: self.env.0.clone(),
                cwd: self.cwd.clone(),
            },
            None => Transport::Http {
                url: self.url.clone().unwrap_or_default(),
                headers: self.headers.0.clone(),
                ca_file: self.ca_file.clone(),
            },
        };
        Server {
            id: ServerId(0),
            name: self.name.clone(),
            transport,
            description: self.description.clone().unwrap_or_default(),
            enabled: self.enabled,
            shared: self.shared,
            timeout: self.timeout_ms,
            call_timeout: self.call_timeout_ms,
            protocol: self.protocol,
        }
    }
}

impl Settings {
    /// The seed's servers in the file's order, without ids.
    pub(crate) fn seed_servers(&self) -> Vec<Server> {
        self.upstreams.iter().map(Upstream::server).collect()
    }

    /// The seed's groups in the file's order; they name servers, see [`SeedGroup::to_group`].
    pub(crate) fn seed_groups(&self) -> &[SeedGroup] {
        &self.groups
    }

    /// What the types cannot say: names, and what refers to them.
    pub(super) fn check_seed(&self) -> Result<(), Fault> {
        let servers: Vec<&str> = self.upstreams.iter().map(|each| each.name.as_str()).collect();
        let groups: Vec<&str> = self.groups.iter().map(|each| each.name.as_str()).collect();
        check_names("upstreams", &servers)?;
        check_names("groups", &groups)?;
        for (index, upstream) in self.upstreams.iter().enumerate() {
            let fault = |step: Option<&str>, why: &str| {
                let steps = ["upstreams".into(), index.into()].into_iter();
                let way = Way(steps.chain(step.map(Step::from)).collect());
                Err(Fault { way, why: why.to_owned() })
            };
            match (&upstream.command, &upstream.url) {
                (Some(command), _) if command.is_empty() => fault(Some("command"), "is empty")?,
                (Some(_), _) => {}
                (None, None) => fault(None, "has neither `url` nor `command`; add one")?,
                // `${NAME}` may stand for any part of an address.
                (None, Some(url))
                    if ["http://", "https://", "${"].iter().all(|p| !url.starts_with(p)) =>
                {
                    fault(Some("url"), "must start with http:// or https://")?;
                }
                (None, Some(_)) => {}
            }
        }
        for (index, group) in self.groups.iter().enumerate() {
            for (place, name) in group.servers.iter().flatten().enumerate() {
                if servers.contains(&name.as_str()) {
                    continue;
                }
                let hint = match nearest(name, &servers) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "add it to `upstreams`".to_owned(),
                };
                let why = format!("names `{name}`, which is not in `upstreams`; {hint}");
                let way = ["groups".into(), index.into(), "servers".into(), place.into()];
                return Err(Fault { way: Way(way.into()), why });
            }
        }
        Ok(())
    }
}

fn check_names(section: &str, names: &[&str]) -> Result<(), Fault> {
    let mut seen = HashSet::new();
    for (index, name) in names.iter().enumerate() {
        let why = match name.trim() {
            "" => "is missing or empty",
            trimmed if trimmed != *name => "starts or ends with a space",
            _ if name.chars().count() > 64 => "is longer than 64 characters",
            _ if !seen.insert(*name) => "is the name of an earlier entry too; names are unique",
            _ => continue,
        };
        let way = Way(vec![section.into(), index.into(), "name".into()]);
        return Err(Fault { way, why: why.to_owned() });
    }
    Ok(())
}

/// Names and secret values, in the file's order.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Pairs(pub(crate) Vec<(String, Secret)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(PairsVisitor)
    }
}

struct PairsVisitor;

impl<'de> Visitor<'de> for PairsVisitor {
    type Value = Pairs;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a mapping of names to values")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Pairs, A::Error> {
        let mut list = Vec::new();
        while let Some((name, value)) = entries.next_entry::<String, String>()? {
            list.push((name, Secret::new(value)));
        }
        Ok(Pairs(list))
    }
}

struct Timeout(Duration);

impl FromText for Timeout {
    const EXPECTED: &'static str = "milliseconds from 100 to 600000";
    fn from_text(text: &str) -> Option<Self> {
        millis(text, 600_000).map(Self)
    }
}

struct CallTimeout(Duration);

impl FromText for CallTimeout {
    const EXPECTED: &'static str = "milliseconds from 100 to 86400000";
    fn from_text(text: &str) -> Option<Self> {
        millis(text, 86_400_000).map(Self)
    }
}

struct Cap(Option<u8>);

impl FromText for Cap {
    const EXPECTED: &'static str = "a whole number from 1 to 50, or null";
    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok().filter(|cap| (1..=50).contains(cap)).map(|cap| Self(Some(cap)))
    }
    fn absent() -> Option<Self> {
        Some(Self(None))
    }
}

fn millis(text: &str, most: u64) -> Option<Duration> {
    let millis = text.parse().ok().filter(|millis| (100..=most).contains(millis))?;
    Some(Duration::from_millis(millis))
}

fn timeout<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    text::value::<D, Timeout>(deserializer).map(|time| time.0)
}

fn call_timeout<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    text::value::<D, CallTimeout>(deserializer).map(|time| time.0)
}

fn cap<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u8>, D::Error> {
    text::value::<D, Cap>(deserializer).map(|cap| cap.0)
}
