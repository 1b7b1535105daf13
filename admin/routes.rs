//! The table of endpoints, and the way from a path to its line.
//!
//! | method | path | does |
//! |---|---|---|
//! | GET | `/api/v1/groups` | lists groups |
//! | POST | `/api/v1/groups` | adds a group |
//! | PATCH | `/api/v1/groups/{name}` | changes a group |
//! | DELETE | `/api/v1/groups/{name}` | removes a group and its keys |
//! | GET | `/api/v1/upstreams` | lists servers |
//! | POST | `/api/v1/upstreams` | adds a server, waits for the first attempt |
//! | PATCH | `/api/v1/upstreams/{name}` | changes a server, waits for the attempt |
//! | DELETE | `/api/v1/upstreams/{name}` | removes a server |
//! | POST | `/api/v1/upstreams/{name}/reconnect` | drops every session, opens a fresh link |
//! | POST | `/api/v1/test-connection` | tries a server that is not registered |
//! | GET | `/api/v1/tools` | lists every tool |
//! | GET | `/api/v1/overrides` | lists other words for tools |
//! | POST | `/api/v1/overrides` | gives a tool other words, or its server's back |
//! | POST | `/api/v1/search` | tools that fit a task |
//! | GET | `/api/v1/keys` | lists keys |
//! | POST | `/api/v1/keys` | makes a key; its secret is shown this once |
//! | PATCH | `/api/v1/keys/{id}` | moves or labels a key |
//! | DELETE | `/api/v1/keys/{id}` | removes a key |
//! | POST | `/api/v1/keys/{id}/revoke` | cuts a key off |
//! | POST | `/api/v1/keys/{id}/reissue` | a new secret for the same key |
//! | GET | `/api/v1/keys/{id}/adaptive` | what a key's app has learned |
//! | GET | `/api/v1/audit` | what was changed, in sentences |
//! | GET | `/metrics` | metrics in Prometheus' text format |
//! | GET | `/livez` | 200 while the process runs |
//! | GET | `/readyz` | 200 with what does not work, if anything |
//! | GET | `/`, `/app.js`, `/app.css` | the page |

use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use gateway::Gateway;
use http::Method;

use crate::answer::Answer;
use crate::error::Error;
use crate::{audit, groups, health, keys, overrides, portal, tools, upstreams};

/// One endpoint.
pub(crate) struct Route {
    method: Method,
    /// Segments; the one in braces is taken from the request, percent-decoded.
    path: &'static str,
    pub(crate) access: Access,
    pub(crate) run: Run,
}

/// Who may ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Everyone: there is nothing in it.
    Anyone,
    /// Holders of the admin token.
    Admin,
    /// Holders of the admin or the metrics token, or everyone where the settings say so.
    Metrics,
}

/// What an endpoint is given.
pub(crate) struct Input {
    /// The segment that the path's braces stand for; empty where it has none.
    pub(crate) name: String,
    /// The whole body.
    pub(crate) body: Bytes,
}

type Run = fn(&Gateway, Input) -> Running<'_>;
type Running<'a> = Pin<Box<dyn Future<Output = Result<Answer, Error>> + Send + 'a>>;

/// The line that a request leads to.
pub(crate) struct Found {
    pub(crate) route: &'static Route,
    pub(crate) name: String,
}

static ROUTES: &[Route] = &[
    api(Method::GET, "/api/v1/groups", |g, _| Box::pin(groups::list(g))),
    api(Method::POST, "/api/v1/groups", |g, i| Box::pin(groups::create(g, i))),
    api(Method::PATCH, "/api/v1/groups/{name}", |g, i| Box::pin(groups::patch(g, i))),
    api(Method::DELETE, "/api/v1/groups/{name}", |g, i| Box::pin(groups::delete(g, i))),
    api(Method::GET, "/api/v1/upstreams", |g, _| Box::pin(upstreams::list(g))),
    api(Method::POST, "/api/v1/upstreams", |g, i| Box::pin(upstreams::create(g, i))),
    api(Method::PATCH, "/api/v1/upstreams/{name}", |g, i| Box::pin(upstreams::patch(g, i))),
    api(Method::DELETE, "/api/v1/upstreams/{name}", |g, i| Box::pin(upstreams::delete(g, i))),
    api(Method::POST, "/api/v1/upstreams/{name}/reconnect", |g, i| {
        Box::pin(upstreams::reconnect(g, i))
    }),
    api(Method::POST, "/api/v1/test-connection", |g, i| Box::pin(upstreams::test(g, i))),
    api(Method::GET, "/api/v1/tools", |g, _| Box::pin(tools::list(g))),
    api(Method::GET, "/api/v1/overrides", |g, _| Box::pin(overrides::list(g))),
    api(Method::POST, "/api/v1/overrides", |g, i| Box::pin(overrides::set(g, i))),
    api(Method::POST, "/api/v1/search", |g, i| Box::pin(tools::search(g, i))),
    api(Method::GET, "/api/v1/keys", |g, _| Box::pin(keys::list(g))),
    api(Method::POST, "/api/v1/keys", |g, i| Box::pin(keys::create(g, i))),
    api(Method::PATCH, "/api/v1/keys/{id}", |g, i| Box::pin(keys::patch(g, i))),
    api(Method::DELETE, "/api/v1/keys/{id}", |g, i| Box::pin(keys::delete(g, i))),
    api(Method::POST, "/api/v1/keys/{id}/revoke", |g, i| Box::pin(keys::revoke(g, i))),
    api(Method::POST, "/api/v1/keys/{id}/reissue", |g, i| Box::pin(keys::reissue(g, i))),
    api(Method::GET, "/api/v1/keys/{id}/adaptive", |g, i| Box::pin(tools::learned(g, i))),
    api(Method::GET, "/api/v1/audit", |g, _| Box::pin(audit::list(g))),
    Route {
        method: Method::GET,
        path: "/metrics",
        access: Access::Metrics,
        run: |g, _| Box::pin(health::metrics(g)),
    },
    open("/livez", |_, _| Box::pin(health::live())),
    open("/readyz", |g, _| Box::pin(health::ready(g))),
    open("/", |_, _| Box::pin(portal::page())),
    open("/app.js", |_, _| Box::pin(portal::script())),
    open("/app.css", |_, _| Box::pin(portal::style())),
];

const fn api(method: Method, path: &'static str, run: Run) -> Route {
    Route { method, path, access: Access::Admin, run }
}

const fn open(path: &'static str, run: Run) -> Route {
    Route { method: Method::GET, path, access: Access::Anyone, run }
}

/// Whether any endpoint has that path.
pub(crate) fn is_path(path: &str) -> bool {
    ROUTES.iter().any(|route| matched(route.path, path).is_some())
}

/// The endpoint of a request; `HEAD` is served as `GET`.
pub(crate) fn find(method: &Method, path: &str) -> Result<Found, Error> {
    let wanted = if method == Method::HEAD { &Method::GET } else { method };
    let mut allowed = Vec::new();
    for route in ROUTES {
        let Some(name) = matched(route.path, path) else { continue };
        if route.method != *wanted {
            allowed.push(route.method.as_str());
            continue;
        }
        let name = decoded(name).ok_or_else(|| {
            Error::Bad(format!("the path segment `{name}` is not percent-encoded UTF-8"))
        })?;
        return Ok(Found { route, name });
    }
    if allowed.is_empty() {
        return Err(Error::NoEndpoint(path.to_owned()));
    }
    if allowed.contains(&"GET") {
        allowed.push("HEAD");
    }
    allowed.push("OPTIONS");
    Err(Error::Method { method: method.to_string(), allow: allowed.join(", ") })
}

/// The raw text in the place of the braces, empty where there are none; `None` when the path
/// is another one. A slash at the end makes no difference.
fn matched<'a>(pattern: &str, path: &'a str) -> Option<&'a str> {
    let path = if path.len() > 1 { path.strip_suffix('/').unwrap_or(path) } else { path };
    let mut segments = path.split('/');
    let mut name = "";
    for part in pattern.split('/') {
        let segment = segments.next()?;
        if part.starts_with('{') && !segment.is_empty() {
            name = segment;
        } else if part != segment {
            return None;
        }
    }
    segments.next().is_none().then_some(name)
}

fn decoded(segment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.bytes();
    while let Some(byte) = rest.next() {
        let byte = match byte {
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let (high, low) = (digit(rest.next())?, digit(rest.next())?);
                u8::try_from(high * 16 + low).ok()?
            }
            other => other,
        };
        bytes.push(byte);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::{ROUTES, find};

    fn check(method: Method, path: &str, expect: &str) {
        let found = match find(&method, path) {
            Ok(found) => format!("{} {:?}", found.route.path, found.name),
            Err(error) => error.to_string(),
        };
        assert_eq!(found, expect);
    }

    #[test]
    fn paths_lead_to_lines() {
        check(Method::GET, "/", "/ \"\"");
        check(Method::HEAD, "/api/v1/groups", "/api/v1/groups \"\"");
        check(Method::GET, "/api/v1/groups/", "/api/v1/groups \"\"");
        check(
            Method::PATCH,
            "/api/v1/groups/M%C3%BCll%20%2F1",
            "/api/v1/groups/{name} \"Müll /1\"",
        );
        check(Method::POST, "/api/v1/keys/7/revoke", "/api/v1/keys/{id}/revoke \"7\"");
    }

    #[test]
    fn other_paths_and_methods_are_told() {
        check(Method::GET, "/api/v1/group", "there is no endpoint `/api/v1/group`");
        check(Method::PATCH, "/api/v1/groups//", "there is no endpoint `/api/v1/groups//`");
        check(
            Method::PUT,
            "/api/v1/groups",
            "`PUT` is not possible here; possible are GET, POST, HEAD, OPTIONS",
        );
        check(
            Method::GET,
            "/api/v1/keys/7",
            "`GET` is not possible here; possible are PATCH, DELETE, OPTIONS",
        );
        for bad in ["%", "%4", "%zz", "%ff"] {
            let expect = format!("the path segment `{bad}` is not percent-encoded UTF-8");
            check(Method::DELETE, &format!("/api/v1/groups/{bad}"), &expect);
        }
    }

    #[test]
    fn the_doc_table_is_the_table() {
        let doc = include_str!("routes.rs");
        for route in ROUTES {
            let line = format!("//! | {} |", route.method);
            let path = format!("`{}`", route.path);
            assert!(doc.lines().any(|l| l.starts_with(&line) && l.contains(&path)), "{path}");
        }
    }
}
