//! `check`: everything that a start would trip over, without starting.

use super::say;
use crate::settings::Settings;
use port::Tls;

pub(super) fn run(settings: &Settings) -> anyhow::Result<()> {
    let scheme = match settings.tls() {
        Some((cert, key)) => {
            Tls::read(cert, key)?;
            "https"
        }
        None => "http",
    };
    let boot = &settings.boot;
    let address = std::net::SocketAddr::new(boot.host, boot.port);
    say(&format!("endpoint      {scheme}://{address}/mcp"));
    say(&format!("database      {}", boot.db.display()));
    let admin = if settings.admin_token.is_some() { "set" } else { "not set: the API answers 503" };
    say(&format!("admin token   {admin}"));
    let key = if boot.require_key_for_mcp { "needed" } else { "not needed" };
    say(&format!("app key       {key}"));
    let (servers, groups) = (settings.upstreams.len(), settings.groups.len());
    say(&format!("seed          {servers} servers, {groups} groups (for a fresh database only)"));
    if !boot.host.is_loopback() && settings.tls().is_none() {
        say("note          keys cross the network unencrypted; set tls_cert and tls_key");
    }
    if !boot.host.is_loopback() && boot.allowed_hosts.is_none() {
        say("note          any host name is served; allowed_hosts would narrow it");
    }
    say("ok");
    Ok(())
}
