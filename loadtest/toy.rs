//! A toy MCP server that costs next to nothing, so that the difference between two rows is the
//! proxy's. It speaks streamable HTTP of 2025-11-25 and 2026-07-28 well enough for a client that
//! behaves; it checks no headers and remembers no sessions. `answer` makes the JSON, `catalog` the tools.
//!
//! | request | answer |
//! |---|---|
//! | POST `initialize` | result, with a new `Mcp-Session-Id` |
//! | POST `server/discover`, `ping`, `tools/list`, `tools/call` | result |
//! | POST notification or response | 202 |
//! | GET with `Mcp-Session-Id` | event stream that stays open |
//! | DELETE | 200 |

mod answer;
mod body;
mod catalog;

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

use answer::{Answer, Answerer};
use body::Body;

const SESSION_HEADER: &str = "mcp-session-id";

/// Options of `toy`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Port to listen on, on 127.0.0.1.
    #[arg(long)]
    port: u16,
    /// How many tools to list.
    #[arg(long, default_value_t = 10)]
    tools: usize,
    /// Put this and `_` before each tool's name, to tell two toys apart.
    #[arg(long)]
    prefix: Option<String>,
    /// Answer calls as an event stream of one message instead of JSON.
    #[arg(long)]
    sse: bool,
    /// Worker threads.
    #[arg(long, default_value_t = 1)]
    workers: usize,
}

/// Serves until the process is killed.
///
/// # Errors
/// When the port is taken.
pub(crate) fn main(args: &Args) -> anyhow::Result<()> {
    crate::limits::raise_open_files()?;
    // A single thread that needs no other is cheaper than a pool of one.
    let mut builder = match args.workers {
        0 | 1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    if args.workers > 1 {
        builder.worker_threads(args.workers);
    }
    let runtime = builder.enable_all().build().context("failed to start a runtime")?;
    let tools = catalog::tools(args.tools, args.prefix.as_deref());
    let toy = Toy { answerer: Answerer::new(&tools), sse: args.sse, sessions: AtomicU64::new(0) };
    runtime.block_on(serve(args.port, Arc::new(toy)))
}

async fn serve(port: u16, toy: Arc<Toy>) -> anyhow::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .await
        .with_context(|| format!("failed to bind port {port}"))?;
    loop {
        // A failed accept (out of files, or the client is gone again) is that client's alone.
        if let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(converse(stream, Arc::clone(&toy)));
        }
    }
}

/// One connection. Its end, whatever the reason, is the client's to notice.
async fn converse(stream: TcpStream, toy: Arc<Toy>) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let toy = Arc::clone(&toy);
        async move { Ok::<_, Infallible>(toy.respond(request).await) }
    });
    let _ = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

struct Toy {
    answerer: Answerer,
    sse: bool,
    sessions: AtomicU64,
}

impl Toy {
    async fn respond(&self, request: Request<hyper::body::Incoming>) -> Response<Body> {
        match *request.method() {
            Method::POST => match request.into_body().collect().await {
                Ok(body) => self.post(&body.to_bytes()),
                Err(_) => empty(StatusCode::BAD_REQUEST),
            },
            Method::GET if request.headers().contains_key(SESSION_HEADER) => {
                typed("text/event-stream", Body::Open(Some(Bytes::from_static(b": open\n\n"))))
            }
            Method::GET => empty(StatusCode::BAD_REQUEST),
            Method::DELETE => empty(StatusCode::OK),
            _ => {
                let mut response = empty(StatusCode::METHOD_NOT_ALLOWED);
                response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, POST, DELETE"));
                response
            }
        }
    }

    fn post(&self, body: &[u8]) -> Response<Body> {
        match self.answerer.answer(body) {
            Answer::Nothing => empty(StatusCode::ACCEPTED),
            Answer::Refused(text) => {
                let mut response = typed("application/json", Body::whole(text.into()));
                *response.status_mut() = StatusCode::BAD_REQUEST;
                response
            }
            Answer::Session(text) => {
                let number = self.sessions.fetch_add(1, Ordering::Relaxed);
                let mut response = typed("application/json", Body::whole(text.into()));
                if let Ok(id) = HeaderValue::from_str(&format!("toy-{number}")) {
                    response.headers_mut().insert(SESSION_HEADER, id);
                }
                response
            }
            Answer::Call(text) if self.sse => {
                let event = format!("event: message\ndata: {text}\n\n");
                typed("text/event-stream", Body::streamed(event.into()))
            }
            Answer::Call(text) | Answer::Plain(text) => {
                typed("application/json", Body::whole(text.into()))
            }
        }
    }
}

fn typed(content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::whole(Bytes::new()));
    *response.status_mut() = status;
    response
}
