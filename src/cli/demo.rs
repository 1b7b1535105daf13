//! `demo`: the manager at work in one command, with nothing to set up and nothing left
//! behind.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use anyhow::Context as _;
use catalog::Secret;
use clap::Args;
use gateway::Gateway;
use gateway::manage::{Field, KeyFields, ServerFields};
use protocol::{Version, json, message};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::say;
use super::serve::until_told_to_stop;
use crate::settings::{Env, Level, Settings};
use crate::{boot, logging};

/// What the shown call notes.
const NOTE: &str = r#"{"title":"Milk","text":"Two litres, on the way home."}"#;

/// Show the manager at work.
#[derive(Debug, Args)]
pub(super) struct Demo {
    /// Where to listen, on this computer only; 0 takes any free port
    #[arg(long, default_value_t = 8899)]
    port: u16,
    /// End after showing one call, instead of serving until Ctrl-C
    #[arg(long)]
    once: bool,
}

pub(super) async fn run(demo: &Demo) -> anyhow::Result<()> {
    let folder = tempfile::tempdir().context("failed to make a folder for the demo's database")?;
    let mut settings = Settings { env: Env::process(), ..Settings::default() };
    settings.boot.host = IpAddr::V4(Ipv4Addr::LOCALHOST);
    settings.boot.port = demo.port;
    settings.boot.db = folder.path().join("demo.db");
    settings.admin_token = Some(random()?);
    settings.log.level = Level("warn,rmcp=error".to_owned());
    let _logging = logging::start(&settings.log)?;
    let running = boot::start(&settings)
        .await
        .context("failed to start the demo (try `mcp-manager demo --port 0`)")?;
    let stop = CancellationToken::new();
    let servers = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let notes = servers.local_addr()?;
    let serving = tokio::spawn(::demo::serve_http(servers, stop.clone()));
    let gateway = &running.gateway;
    add_servers(gateway, notes).await?;
    let fields = KeyFields { group: Field::Set("full".into()), label: Field::Set("demo".into()) };
    let key = gateway.create_key(fields).await?;
    let endpoint = format!("http://{}/mcp", running.address);
    let token = settings.admin_token.as_ref().map_or("", Secret::reveal);
    introduce(gateway, running.address, key.secret.reveal()).await?;
    say(&connecting(&endpoint, key.secret.reveal(), token));
    if !demo.once {
        say("\nServing until Ctrl-C. Nothing is kept.");
        until_told_to_stop().await?;
    }
    running.stop().await;
    stop.cancel();
    let _ = serving.await;
    Ok(())
}

/// One server over HTTP, one as a local process.
async fn add_servers(gateway: &Gateway, notes: SocketAddr) -> anyhow::Result<()> {
    let own = std::env::current_exe().context("failed to find this program's own file")?;
    let text = |text: &str| Field::Set(text.to_owned());
    gateway
        .create_server(ServerFields {
            name: text("notes"),
            url: Field::Set(format!("http://{notes}/mcp")),
            description: text("Short notes: add, list, search, delete."),
            ..ServerFields::default()
        })
        .await?;
    gateway
        .create_server(ServerFields {
            name: text("clock"),
            command: Field::Set(own.to_string_lossy().into_owned()),
            args: Field::Set(vec!["demo-clock".to_owned()]),
            description: text("The time, and sums with dates."),
            ..ServerFields::default()
        })
        .await?;
    Ok(())
}

/// Shows the servers and one call, made as any app would make it.
async fn introduce(gateway: &Gateway, address: SocketAddr, key: &str) -> anyhow::Result<()> {
    say("MCP-Manager is running with two servers behind it:\n");
    for info in gateway.servers() {
        let how = match &info.server.transport {
            catalog::Transport::Http { .. } => "HTTP",
            catalog::Transport::Stdio { .. } => "a local process",
        };
        say(&format!("  {:<6} {} over {how}, {} tools", info.server.name, info.status, info.tools));
    }
    let body = call("add_note", NOTE);
    let answer = post(address, key, "add_note", &body).await?;
    say("\nOne call through the endpoint, made as an app makes it:\n");
    say(&format!("  → add_note {NOTE}"));
    say(&format!("  ← {}", first_text(&answer)?));
    Ok(())
}

/// Everything a person needs to go on, ready to paste.
fn connecting(endpoint: &str, key: &str, token: &str) -> String {
    let portal = endpoint.strip_suffix("mcp").unwrap_or(endpoint);
    format!(
        "\nendpoint     {endpoint}\nkey          {key}\nportal       {portal}\nadmin token  {token}\n\n\
         Claude Code:\n\n  claude mcp add --transport http mcp-manager {endpoint} --header \"Authorization: Bearer {key}\"\n\n\
         Or by hand:\n\n  curl -s {endpoint} -H 'Authorization: Bearer {key}' -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \
         -H 'MCP-Protocol-Version: {}' -H 'Mcp-Method: tools/call' -H 'Mcp-Name: now' -d '{}'",
        Version::NEWEST.as_str(),
        call("now", "{}")
    )
}

/// A `tools/call` of the newest version, which needs no session.
fn call(tool: &str, arguments: &str) -> String {
    let params = format!(
        r#"{{"name":{},"arguments":{arguments},"_meta":{{"io.modelcontextprotocol/protocolVersion":"{}","io.modelcontextprotocol/clientCapabilities":{{}}}}}}"#,
        json::quoted(tool),
        Version::NEWEST.as_str()
    );
    message::request("1", "tools/call", Some(&params))
}

async fn post(address: SocketAddr, key: &str, tool: &str, body: &str) -> anyhow::Result<String> {
    let mut stream = tokio::net::TcpStream::connect(address).await?;
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\n\
         Content-Type: application/json\r\nAccept: application/json\r\n\
         MCP-Protocol-Version: {}\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        Version::NEWEST.as_str(),
        body.len()
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
    body.context("failed to read the demo's own answer")
}

/// The text of a result's first content block.
fn first_text(answer: &str) -> anyhow::Result<String> {
    let answer: serde_json::Value = serde_json::from_str(answer)?;
    let text = answer["result"]["content"][0]["text"].as_str();
    Ok(text.with_context(|| format!("the demo's call failed: {answer}"))?.to_owned())
}

fn random() -> anyhow::Result<Secret> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("no random numbers: {error}"))?;
    Ok(Secret::new(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()))
}
