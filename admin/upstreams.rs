//! `/upstreams`: the servers behind, and the trial of one that is not registered.

use std::time::Duration;

use catalog::{Secret, Transport};
use gateway::Gateway;
use gateway::manage::{Field, ServerFields, ServerInfo};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::answer::Answer;
use crate::body::Fields;
use crate::error::Error;
use crate::routes::Input;

#[derive(Serialize)]
struct Upstream<'a> {
    name: &'a str,
    url: Option<&'a str>,
    headers: Map<String, Value>,
    ca_file: Option<&'a str>,
    command: Option<&'a str>,
    args: &'a [String],
    env: Map<String, Value>,
    cwd: Option<&'a str>,
    description: &'a str,
    overridden: bool,
    server_says: &'a str,
    enabled: bool,
    shared: bool,
    timeout_ms: u64,
    call_timeout_ms: u64,
    protocol: &'static str,
    status: &'static str,
    error: Option<&'a str>,
    /// Whole seconds.
    down_for: Option<u64>,
    /// Whole seconds, rounded up.
    retry_in: Option<u64>,
    tools: usize,
    sessions: usize,
    stderr: &'a [String],
}

#[derive(Serialize)]
struct Worked {
    ok: bool,
    tools: usize,
    server: String,
}

#[derive(Serialize)]
struct Failed {
    ok: bool,
    error: String,
}

pub(crate) async fn list(gateway: &Gateway) -> Result<Answer, Error> {
    let servers = gateway.servers();
    let upstreams: Vec<_> = servers.iter().map(Upstream::of).collect();
    Ok(Answer::json(&upstreams))
}

pub(crate) async fn create(gateway: &Gateway, input: Input) -> Result<Answer, Error> {
    let server = gateway.create_server(fields(&input)?).await?;
    Ok(Answer::json(&Upstream::of(&server)))
}

pub(crate) async fn patch(gateway: &Gateway, input: Input) -> Result<Answer, Error> {
    let server = gateway.patch_server(&input.name, fields(&input)?).await?;
    Ok(Answer::json(&Upstream::of(&server)))
}

pub(crate) async fn delete(gateway: &Gateway, input: Input) -> Result<Answer, Error> {
    gateway.delete_server(&input.name).await?;
    Ok(Answer::done())
}

pub(crate) async fn reconnect(gateway: &Gateway, input: Input) -> Result<Answer, Error> {
    let server = gateway.reconnect_server(&input.name).await?;
    Ok(Answer::json(&Upstream::of(&server)))
}

pub(crate) async fn test(gateway: &Gateway, input: Input) -> Result<Answer, Error> {
    Ok(match gateway.test_server(fields(&input)?).await? {
        Ok(tested) => {
            Answer::json(&Worked { ok: true, tools: tested.tools, server: tested.server })
        }
        Err(error) => Answer::json(&Failed { ok: false, error }),
    })
}

fn fields(input: &Input) -> Result<ServerFields, Error> {
    let known = [
        "name",
        "url",
        "serverUrl",
        "headers",
        "ca_file",
        "command",
        "args",
        "env",
        "cwd",
        "description",
        "enabled",
        "shared",
        "timeout_ms",
        "call_timeout_ms",
        "protocol",
    ];
    let mut body = Fields::parse(&input.body, &known)?;
    let url = match (body.text("url")?, body.text("serverUrl")?) {
        (Field::Set(_), Field::Set(_)) => {
            let message = "`url` and `serverUrl` are the same field; send one of them";
            return Err(Error::Bad(message.to_owned()));
        }
        (Field::Keep, other) | (Field::Reset, other @ Field::Set(_)) => other,
        (url, _) => url,
    };
    Ok(ServerFields {
        name: body.text("name")?,
        url,
        headers: body.pairs("headers")?,
        ca_file: body.text("ca_file")?,
        command: body.text("command")?,
        args: body.texts("args")?,
        env: body.pairs("env")?,
        cwd: body.text("cwd")?,
        description: body.text("description")?,
        enabled: body.flag("enabled")?,
        shared: body.flag("shared")?,
        timeout_ms: body.number("timeout_ms")?,
        call_timeout_ms: body.number("call_timeout_ms")?,
        protocol: body.text("protocol")?,
    })
}

impl<'a> Upstream<'a> {
    fn of(info: &'a ServerInfo) -> Self {
        let server = &*info.server;
        let mut upstream = Self {
            name: &server.name,
            url: None,
            headers: Map::new(),
            ca_file: None,
            command: None,
            args: &[],
            env: Map::new(),
            cwd: None,
            description: info.description(),
            overridden: info.overridden(),
            server_says: &info.server_says,
            enabled: server.enabled,
            shared: server.shared,
            timeout_ms: millis(server.timeout),
            call_timeout_ms: millis(server.call_timeout),
            protocol: server.protocol.as_str(),
            status: info.status,
            error: info.error.as_deref(),
            down_for: info.down_for.map(|time| time.as_secs()),
            retry_in: info.retry_in.map(|time| time.as_millis().div_ceil(1000) as u64),
            tools: info.tools,
            sessions: info.sessions,
            stderr: &info.stderr,
        };
        match &server.transport {
            Transport::Http { url, headers, ca_file } => {
                upstream.url = Some(url);
                upstream.headers = shown(headers);
                upstream.ca_file = ca_file.as_deref();
            }
            Transport::Stdio { command, args, env, cwd } => {
                upstream.command = Some(command);
                upstream.args = args;
                upstream.env = shown(env);
                upstream.cwd = cwd.as_deref();
            }
        }
        upstream
    }
}

/// Values are shown so that an editor can show them: whoever holds the admin token may set
/// them anyway.
fn shown(pairs: &[(String, Secret)]) -> Map<String, Value> {
    let pair =
        |(name, value): &(String, Secret)| (name.clone(), Value::String(value.reveal().to_owned()));
    pairs.iter().map(pair).collect()
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
