//! The manager as a process: started with a fresh database, told of the toys and asked for a key,
//! all through the interfaces that an operator has.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail};
use serde::Deserialize;
use serde_json::{Value, json};

use super::child::Child;
use crate::wire::{Connection, Endpoint};

/// Known to nobody but this run's process, which listens on loopback only.
const ADMIN_TOKEN: &str = "loadtest-admin-token-0123456789abcdef";
/// The group in direct mode that exists from the start.
const GROUP: &str = "full";

/// A running manager and the way in.
#[derive(Debug)]
pub(crate) struct Gateway {
    pub(crate) child: Child,
    pub(crate) endpoint: Endpoint,
}

/// How long sessions stay in memory when the point is to see them leave it.
pub(crate) const IDLE: Duration = Duration::from_secs(5);

impl Gateway {
    /// Starts the program and connects it to the toys, given as name and port.
    ///
    /// # Errors
    /// When it does not start, cannot reach a toy, or gives no key.
    pub(crate) async fn start(
        program: &Path,
        directory: &Path,
        toys: &[(&str, u16)],
    ) -> anyhow::Result<Self> {
        let conf = "{host: 127.0.0.1, port: 0, db: load.db}";
        let child = launch(program, directory, &format!("boot: {conf}\n"))?;
        Self::set_up(child, toys).await
    }

    /// As [`Gateway::start`], with sessions that leave memory after [`IDLE`].
    ///
    /// # Errors
    /// As [`Gateway::start`].
    pub(crate) async fn forgetful(
        program: &Path,
        directory: &Path,
        toys: &[(&str, u16)],
    ) -> anyhow::Result<Self> {
        let idle = IDLE.as_secs();
        let conf = format!(
            "boot: {{host: 127.0.0.1, port: 0, db: load.db}}\n\
             sessions: {{idle: {idle}s, client_idle: {idle}s}}\n\
             limits: {{sessions_per_key: 100000}}\n"
        );
        Self::set_up(launch(program, directory, &conf)?, toys).await
    }

    async fn set_up(mut child: Child, toys: &[(&str, u16)]) -> anyhow::Result<Self> {
        let address = child.wait_for_log(listening).await?;
        let base = format!("http://{address}");
        match connect(&base, toys).await {
            Ok(endpoint) => Ok(Self { child, endpoint }),
            Err(error) => bail!("{error:#}\n{}", child.log_tail()),
        }
    }
}

/// Starts the program with that conf file, in a folder that is the same each time.
///
/// # Errors
/// When it cannot be started.
pub(crate) fn launch(program: &Path, directory: &Path, conf: &str) -> anyhow::Result<Child> {
    let home = directory.join("gateway");
    std::fs::create_dir_all(&home)?;
    std::fs::write(home.join("load.yaml"), conf)?;
    let program = program.canonicalize().with_context(|| format!("no {program:?}"))?;
    let mut command = Command::new(program);
    command
        .args(["serve", "--config", "load.yaml"])
        .current_dir(&home)
        .env("MCPM_ADMIN_TOKEN", ADMIN_TOKEN)
        .env("MCPM_LOG_FORMAT", "json")
        // As the baseline and nginx: no line per request. The line that says where it listens
        // stays.
        .env("MCPM_LOG_LEVEL", "info,access=off");
    Ok(Child::start("gateway", &mut command, directory)?.ask_to_stop())
}

async fn connect(base: &str, toys: &[(&str, u16)]) -> anyhow::Result<Endpoint> {
    for (name, port) in toys {
        let url = format!("http://127.0.0.1:{port}/mcp");
        let upstream =
            post(base, "/upstreams", &json!({"name": name, "url": url, "protocol": "legacy"}))
                .await?;
        if upstream["status"] != "connected" {
            bail!("the manager did not connect to `{name}`: {upstream}");
        }
    }
    let key = post(base, "/keys", &json!({"group": GROUP, "label": "load"})).await?;
    let key = key["key"].as_str().with_context(|| format!("no key in {key}"))?;
    Endpoint::new(&format!("{base}/mcp"), Some(key.to_owned()))
}

/// One POST to the management API, on a connection of its own.
async fn post(base: &str, path: &str, body: &Value) -> anyhow::Result<Value> {
    let endpoint = Endpoint::new(&format!("{base}/api/v1{path}"), Some(ADMIN_TOKEN.to_owned()))?;
    let mut connection = Connection::open(&endpoint).await?;
    let request = endpoint.request("POST", "accept: application/json\r\n", &body.to_string());
    let head = connection.send(&request).await?;
    let answer = connection.body(&head).await?;
    let text = String::from_utf8_lossy(&answer);
    if !matches!(head.status, 200 | 201) {
        bail!("POST {path} was answered with {}: {text}", head.status);
    }
    serde_json::from_str(&text).with_context(|| format!("POST {path} was answered with {text}"))
}

#[derive(Deserialize)]
struct LogLine {
    fields: LogFields,
}

#[derive(Deserialize)]
struct LogFields {
    message: String,
    address: Option<String>,
}

/// The address in the log line that says the manager listens.
fn listening(log: &str) -> Option<String> {
    log.lines()
        .filter_map(|line| serde_json::from_str::<LogLine>(line).ok())
        .find(|line| line.fields.message == "listening")
        .and_then(|line| line.fields.address)
}

#[cfg(test)]
mod tests {
    use super::listening;

    #[test]
    fn the_address_is_found_among_other_lines() {
        let log = "not json\n{\"fields\":{\"message\":\"starting\"}}\n\
                   {\"level\":\"INFO\",\"fields\":{\"message\":\"listening\",\"address\":\"127.0.0.1:5\"}}\n";
        assert_eq!(listening(log).as_deref(), Some("127.0.0.1:5"));
        assert_eq!(listening("{\"fields\":{\"message\":\"liste"), None);
    }
}
