//! `group`: what apps see.

use clap::Subcommand;
use gateway::manage::{Field, GroupFields, GroupInfo};

use super::{connect, say, table};
use crate::settings::Settings;

#[derive(Debug, Subcommand)]
pub(super) enum Group {
    /// Every group
    List,
    /// Add a group
    Create {
        /// Its name
        name: String,
        /// direct, hybrid or adaptive
        #[arg(long, default_value = "hybrid")]
        mode: String,
        /// A server within its reach (repeat for more); without it all servers, new ones too
        #[arg(long = "server", value_name = "NAME")]
        servers: Vec<String>,
    },
    /// Remove a group and its keys
    Delete {
        /// Its name
        name: String,
    },
}

pub(super) async fn run(command: Group, settings: &Settings) -> anyhow::Result<()> {
    connect::with(settings, async |gateway| {
        match command {
            Group::List => {
                let row = |group: GroupInfo| {
                    let servers = group.servers.map_or("all".to_owned(), |names| names.join(", "));
                    let mode = group.mode.as_str().to_owned();
                    [group.name, mode, servers, group.sees.to_string(), group.keys.to_string()]
                };
                let rows: Vec<_> = gateway.groups().into_iter().map(row).collect();
                let head = ["NAME", "MODE", "SERVERS", "TOOLS", "KEYS"];
                table::lines(head, &rows).iter().for_each(|line| say(line));
            }
            Group::Create { name, mode, servers } => {
                let servers = if servers.is_empty() { Field::Keep } else { Field::Set(servers) };
                let fields = GroupFields {
                    name: Field::Set(name),
                    mode: Field::Set(mode),
                    servers,
                    ..GroupFields::default()
                };
                let group = gateway.create_group(fields).await?;
                say(&format!("added group {}", group.name));
            }
            Group::Delete { name } => {
                let keys = gateway.delete_group(&name).await?;
                say(&format!("deleted group {name} and {keys} keys"));
            }
        }
        Ok(())
    })
    .await
}
