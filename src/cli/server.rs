//! `server`: what stands behind the manager.

use catalog::{Secret, Transport};
use clap::{Args, Subcommand};
use gateway::manage::{Field, ServerFields, ServerInfo};

use super::{connect, say, table};
use crate::settings::Settings;

#[derive(Debug, Subcommand)]
pub(super) enum Server {
    /// Every server
    List,
    /// Add a server: `add NAME --url URL`, or `add NAME -- COMMAND ARGS`
    Add(Add),
    /// Connect to a registered server once and count its tools
    Test {
        /// Its name
        name: String,
    },
    /// Turn a server on
    Enable {
        /// Its name
        name: String,
    },
    /// Turn a server off; its settings stay
    Disable {
        /// Its name
        name: String,
    },
    /// Remove a server
    Remove {
        /// Its name
        name: String,
    },
}

#[derive(Debug, Args)]
pub(super) struct Add {
    /// Its name
    name: String,
    /// Where it answers over streamable HTTP
    #[arg(long, conflicts_with = "command", required_unless_present = "command")]
    url: Option<String>,
    /// Sent with each request, as `Name: value`; `${NAME}` takes the manager's environment
    #[arg(long = "header", value_name = "HEADER", requires = "url")]
    headers: Vec<String>,
    /// For the process, as NAME=value; `${NAME}` takes the manager's environment
    #[arg(long = "env", value_name = "VARIABLE", requires = "command")]
    env: Vec<String>,
    /// What models are told it is for
    #[arg(long)]
    description: Option<String>,
    /// One session for each group instead of one for each key
    #[arg(long)]
    shared: bool,
    /// The process to run, after `--`
    #[arg(last = true)]
    command: Vec<String>,
}

pub(super) async fn run(command: Server, settings: &Settings) -> anyhow::Result<()> {
    connect::with(settings, async |gateway| {
        match command {
            Server::List => {
                let rows: Vec<_> = gateway.servers().into_iter().map(row).collect();
                let head = ["NAME", "STATE", "TOOLS", "WHERE"];
                table::lines(head, &rows).iter().for_each(|line| say(line));
            }
            Server::Add(add) => {
                let name = add.name.clone();
                gateway.create_server(fields(add)?).await?;
                say(&format!("added server {name}; `mcp-manager server test {name}` tries it"));
            }
            Server::Test { name } => {
                let found = gateway.test_registered(&name).await?;
                let tested = found.map_err(|why| anyhow::anyhow!("server {name}: {why}"))?;
                say(&format!("server {name}: ok, {} tools ({})", tested.tools, tested.server));
            }
            Server::Enable { name } => {
                let enabled = Field::Set(true);
                let fields = ServerFields { enabled, ..ServerFields::default() };
                gateway.patch_server(&name, fields).await?;
                say(&format!("server {name} is on"));
            }
            Server::Disable { name } => {
                let enabled = Field::Set(false);
                let fields = ServerFields { enabled, ..ServerFields::default() };
                gateway.patch_server(&name, fields).await?;
                say(&format!("server {name} is off"));
            }
            Server::Remove { name } => {
                gateway.delete_server(&name).await?;
                say(&format!("removed server {name}"));
            }
        }
        Ok(())
    })
    .await
}

fn row(info: ServerInfo) -> [String; 4] {
    let place = match &info.server.transport {
        // A query may hold a secret.
        Transport::Http { url, .. } => url.split('?').next().unwrap_or_default().to_owned(),
        Transport::Stdio { command, args, .. } => format!("{command} {}", args.join(" ")),
    };
    // Only a serving manager knows whether a server is up; tools are those it last listed.
    let state = if info.server.enabled { "on" } else { "off" };
    [info.server.name.clone(), state.to_owned(), info.tools.to_string(), place]
}

fn fields(add: Add) -> anyhow::Result<ServerFields> {
    let pair = |text: &str, sign: char, what: &str| -> anyhow::Result<(String, Secret)> {
        let (name, value) = text
            .split_once(sign)
            .ok_or_else(|| anyhow::anyhow!("a {what} must have `{sign}` after its name"))?;
        Ok((name.trim().to_owned(), Secret::new(value.trim())))
    };
    let all = |list: &[String], sign, what| -> anyhow::Result<Field<Vec<(String, Secret)>>> {
        let pairs: anyhow::Result<Vec<_>> = list.iter().map(|t| pair(t, sign, what)).collect();
        Ok(if list.is_empty() { Field::Keep } else { Field::Set(pairs?) })
    };
    let mut command = add.command.into_iter();
    Ok(ServerFields {
        name: Field::Set(add.name),
        url: add.url.map_or(Field::Keep, Field::Set),
        headers: all(&add.headers, ':', "header")?,
        env: all(&add.env, '=', "variable")?,
        command: command.next().map_or(Field::Keep, Field::Set),
        args: Field::Set(command.collect()),
        description: add.description.map_or(Field::Keep, Field::Set),
        shared: Field::Set(add.shared),
        ..ServerFields::default()
    })
}
