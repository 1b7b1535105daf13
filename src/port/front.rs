//! The life of a request: host, route, edge, log. What happens in between is the edges'
//! business (`filters` for apps, `admin` for people).

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use bytes::Bytes;
use filters::mcp::Mcp;
use filters::{Client, Hosts, Refusal, Report, Rest, STALLED, Verdict};
use gateway::Gateway;
use pingora_core::protocols::http::server::Session as Http;
use pingora_core::upstreams::peer::HttpPeer;
use pingora_core::{Error, ErrorType, Result};
use pingora_http::{RequestHeader, ResponseHeader};
use pingora_proxy::{FailToProxy, ProxyHttp, Session};
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::Limits;
use crate::line;

/// Serves every request of the one port.
#[derive(Debug)]
pub struct Front {
    mcp: Mcp,
    /// In bytes.
    head_limit: usize,
    requests: TaskTracker,
}

/// One request, for its log line.
#[derive(Debug)]
pub struct Context {
    started: Instant,
    report: Report,
    /// Held until the request is over, so that a stop can wait for it.
    _running: TaskTrackerToken,
}

/// What a request's log line says beside its report.
struct Asked<'a> {
    method: &'a http::Method,
    path: &'a str,
}

impl Front {
    /// Serves what `hosts` lets in, within `limits`.
    pub fn new(gateway: Arc<Gateway>, hosts: Hosts, limits: &Limits) -> Self {
        let (body_limit, body_time, idle) = (limits.body, limits.body_time, limits.idle);
        let mcp = Mcp { gateway, hosts: Arc::new(hosts), body_limit, body_time, idle };
        Self { mcp, head_limit: limits.head, requests: TaskTracker::new() }
    }

    /// Counts running requests.
    pub fn requests(&self) -> TaskTracker {
        self.requests.clone()
    }

    /// The names that are served.
    pub(crate) fn hosts(&self) -> Arc<Hosts> {
        self.mcp.hosts.clone()
    }

    /// Host first, before anything is looked up; then the route (P2).
    async fn serve(&self, http: &mut Http, report: &mut Report) -> Result<()> {
        let header = http.req_header();
        if head_size(header) > self.head_limit {
            report.method = "refused";
            let refusal = Refusal::LargeHead(self.head_limit);
            return Client::new(http, report, self.mcp.idle).refuse(&refusal).await;
        }
        if self.mcp.hosts.host(&header.uri, &header.headers) != Verdict::Pass {
            self.mcp.gateway.metrics.auth_failure("host");
            report.method = "refused";
            if admin::owns(header.uri.path()) {
                let head_only = header.method == http::Method::HEAD;
                return self.write(http, report, admin::wrong_host(), head_only).await;
            }
            return Client::new(http, report, self.mcp.idle).refuse(&Refusal::Host).await;
        }
        if filters::mcp::owns(header.uri.path()) {
            return filters::mcp::serve(&self.mcp, http, report).await;
        }
        report.method = if admin::owns(header.uri.path()) { "admin" } else { "unknown" };
        // Boxed, so that its future does not make that of a call larger.
        Box::pin(self.admin(http, report)).await
    }

    /// Hands a whole request to the admin edge, which knows nothing of connections.
    async fn admin(&self, http: &mut Http, report: &mut Report) -> Result<()> {
        let header = http.req_header();
        let (mut request, ()) = http::Request::new(()).into_parts();
        request.method = header.method.clone();
        request.uri = header.uri.clone();
        request.headers = header.headers.clone();
        let head_only = header.method == http::Method::HEAD;
        let body = async {
            let read = filters::read_body(http, self.mcp.body_limit, self.mcp.body_time).await;
            read.map_err(|refusal| match refusal {
                Refusal::TooLarge(limit) => admin::Unread::TooLarge(limit),
                Refusal::SlowBody(_) => admin::Unread::Slow,
                _ => admin::Unread::Broken,
            })
        };
        let answer = admin::handle(&self.mcp.gateway, request, body).await;
        self.write(http, report, answer, head_only).await
    }

    async fn write(
        &self,
        http: &mut Http,
        report: &mut Report,
        answer: http::Response<Bytes>,
        head_only: bool,
    ) -> Result<()> {
        let (parts, body) = answer.into_parts();
        // What was refused unread, the client may still be sending.
        filters::drain_body(http).await;
        report.status = parts.status.as_u16();
        let mut response = ResponseHeader::build(parts.status, Some(parts.headers.len() + 1))?;
        for (name, value) in &parts.headers {
            response.append_header(name.clone(), value.clone())?;
        }
        if parts.status != http::StatusCode::NO_CONTENT {
            response.insert_header(http::header::CONTENT_LENGTH, body.len())?;
        }
        filters::stay_open(http, self.mcp.idle);
        http.set_write_timeout(Some(STALLED));
        http.write_response_header(Box::new(response)).await?;
        if !head_only {
            http.write_response_body(body, false).await?;
        }
        http.write_response_body(Bytes::new(), true).await
    }
}

#[async_trait]
impl ProxyHttp for Front {
    type CTX = Context;

    fn new_ctx(&self) -> Context {
        let report = Report { method: "none", era: "none", ..Report::default() };
        Context { started: Instant::now(), report, _running: self.requests.token() }
    }

    /// Everything is answered here, over pingora's own connectors where a server is asked.
    async fn request_filter(&self, session: &mut Session, context: &mut Context) -> Result<bool> {
        line::passed();
        // A request that is sent early waits for its turn, and is not taken for the end of
        // the client.
        session.downstream_session.set_pipelining_enabled(true);
        self.serve(&mut session.downstream_session, &mut context.report).await?;
        Ok(true)
    }

    async fn upstream_peer(&self, _: &mut Session, _: &mut Context) -> Result<Box<HttpPeer>> {
        Err(Error::explain(ErrorType::InternalError, "every request is answered by the filter"))
    }

    /// Errors are broken clients: there is nobody to answer, and the connection goes.
    async fn fail_to_proxy(&self, _: &mut Session, _: &Error, _: &mut Context) -> FailToProxy {
        FailToProxy { error_code: 0, can_reuse_downstream: false }
    }

    fn suppress_error_log(&self, _: &Session, _: &Context, _: &Error) -> bool {
        true
    }

    /// One line per request, without anything secret (SEC-05): our own view of the peer, no
    /// forwarded headers, no query.
    async fn logging(&self, session: &mut Session, error: Option<&Error>, context: &mut Context) {
        line::rest();
        let Some(rest) = context.report.rest.take() else {
            let header = session.req_header();
            let peer = || session.client_addr().map(ToString::to_string);
            let asked = Asked { method: &header.method, path: header.uri.path() };
            return tell(&self.mcp.gateway, context, &asked, peer, error.is_some());
        };
        // The connection goes on in a task of its own, with its place among all of them.
        let (place, running) = (line::take_place(), self.requests.token());
        let report = std::mem::take(&mut context.report);
        let context = Context { started: context.started, report, _running: running };
        let gateway = self.mcp.gateway.clone();
        tokio::spawn(async move {
            let Rest { peer, path, run } = rest;
            let broken = run.await.is_err();
            drop(place);
            let asked = Asked { method: &http::Method::GET, path: &path };
            tell(&gateway, &context, &asked, || peer, broken);
        });
    }
}

/// Counts a request that is over, and writes its line.
fn tell(
    gateway: &Gateway,
    context: &Context,
    asked: &Asked<'_>,
    peer: impl FnOnce() -> Option<String>,
    broken: bool,
) {
    let Context { started, report, .. } = context;
    let took = started.elapsed();
    gateway.metrics.request(report.method, report.era, report.status, took);
    if !tracing::enabled!(target: "access", tracing::Level::INFO) {
        return;
    }
    let path: String = asked.path.chars().take(200).collect();
    tracing::info!(
        target: "access",
        peer = peer(),
        http = asked.method.as_str(),
        path,
        status = report.status,
        method = report.method,
        era = report.era,
        key = report.key,
        tool = report.tool,
        ms = took.as_secs_f64() * 1000.0,
        broken,
        "request"
    );
}

/// Bytes of a request's head, about as it was sent.
fn head_size(header: &RequestHeader) -> usize {
    let lines = header.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    header.raw_path().len() + lines.sum::<usize>()
}
