//! nginx as a second baseline, when there is one: a pass-through to both toys, set up for many
//! connections and without buffering, as one would put it before an MCP server.

use std::path::Path;
use std::process::Command;

use anyhow::Context;

use super::child::{Child, free_ports};
use super::machine;

/// A running nginx with one port per toy.
#[derive(Debug)]
pub(crate) struct Nginx {
    pub(crate) child: Child,
    pub(crate) json_port: u16,
    pub(crate) events_port: u16,
}

/// Whether there is an nginx on the path.
pub(crate) fn is_installed() -> bool {
    let directories = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&directories).any(|directory| directory.join("nginx").is_file())
}

/// Starts nginx before the two toys.
///
/// # Errors
/// When it does not start; shows its log.
pub(crate) async fn start(
    directory: &Path,
    json_toy: u16,
    events_toy: u16,
) -> anyhow::Result<Nginx> {
    let home = directory.join("nginx");
    std::fs::create_dir_all(&home)?;
    let [json_port, events_port] = free_ports()?;
    let servers = [("json", json_port, json_toy), ("events", events_port, events_toy)]
        .map(|(name, port, toy)| server(name, port, toy))
        .concat();
    let conf = home.join("nginx.conf");
    std::fs::write(&conf, configuration(&home, &servers)).context("failed to write nginx.conf")?;
    let mut command = Command::new("nginx");
    command.arg("-p").arg(&home).arg("-c").arg(&conf).arg("-e").arg("stderr");
    let mut child = Child::start("nginx", &mut command, directory)?.ask_to_stop();
    child.wait_for_port(json_port).await?;
    Ok(Nginx { child, json_port, events_port })
}

fn configuration(home: &Path, servers: &str) -> String {
    let (home, workers) = (home.display(), machine::cores());
    // All paths point into our directory: the built-in ones belong to the system's nginx.
    format!(
        "daemon off;
worker_processes {workers};
worker_rlimit_nofile 16384;
pid {home}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  client_body_temp_path {home}/body;
  proxy_temp_path {home}/proxy;
  fastcgi_temp_path {home}/fastcgi;
  uwsgi_temp_path {home}/uwsgi;
  scgi_temp_path {home}/scgi;
  keepalive_requests 1000000000;
{servers}}}
"
    )
}

fn server(name: &str, port: u16, toy: u16) -> String {
    format!(
        "  upstream {name} {{
    server 127.0.0.1:{toy};
    keepalive 512;
    keepalive_requests 1000000000;
  }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://{name};
      proxy_http_version 1.1;
      proxy_set_header Connection \"\";
      proxy_buffering off;
    }}
  }}
"
    )
}
