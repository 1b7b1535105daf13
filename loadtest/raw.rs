//! The baseline: Pingora passing HTTP through, as its own quick start does it. What the manager
//! costs beyond this is what it does with MCP.

use anyhow::Context;
use async_trait::async_trait;
use pingora_core::Result;
use pingora_core::server::Server;
use pingora_core::server::configuration::ServerConf;
use pingora_core::upstreams::peer::HttpPeer;
use pingora_proxy::{ProxyHttp, Session, http_proxy_service};
use std::net::{Ipv4Addr, SocketAddr};

/// Above the connections of any row, so that no call of the measurement pays for a new one.
const POOL: usize = 4096;

/// Options of `raw`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Port to listen on, on 127.0.0.1.
    #[arg(long)]
    port: u16,
    /// Loopback port to pass everything to.
    #[arg(long)]
    to: u16,
    /// Worker threads; one per core when left out.
    #[arg(long)]
    workers: Option<usize>,
}

/// Serves until the process is told to stop.
///
/// # Errors
/// When the port is taken: Pingora itself would only log it and go on without a listener.
pub(crate) fn main(args: &Args) -> anyhow::Result<()> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port));
    drop(
        std::net::TcpListener::bind(address)
            .with_context(|| format!("failed to bind {address}"))?,
    );
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let conf = ServerConf {
        threads: args.workers.unwrap_or(cores),
        upstream_keepalive_pool_size: POOL,
        grace_period_seconds: Some(0),
        graceful_shutdown_timeout_seconds: Some(0),
        ..ServerConf::default()
    };
    let mut server = Server::new_with_opt_and_conf(None, conf);
    server.bootstrap();
    let to = SocketAddr::from((Ipv4Addr::LOCALHOST, args.to));
    let mut service = http_proxy_service(&server.configuration, PassThrough { to });
    service.add_tcp(&address.to_string());
    server.add_service(service);
    server.run_forever()
}

struct PassThrough {
    to: SocketAddr,
}

#[async_trait]
impl ProxyHttp for PassThrough {
    type CTX = ();

    fn new_ctx(&self) {}

    async fn upstream_peer(
        &self,
        _session: &mut Session,
        _ctx: &mut Self::CTX,
    ) -> Result<Box<HttpPeer>> {
        Ok(Box::new(HttpPeer::new(self.to, false, String::new())))
    }
}
