//! The one home of status codes: every refusal becomes `{"error": "…"}` here.

use bytes::Bytes;
use gateway::manage;
use http::header::{ALLOW, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{Response, StatusCode};
use serde::Serialize;

use crate::Unread;
use crate::answer;

/// Why a request was not carried out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A body or a path that does not read.
    #[error("{0}")]
    Bad(String),
    /// No token was sent.
    #[error("a token is needed; send `Authorization: Bearer <admin token>`")]
    NoToken,
    /// Another token was sent.
    #[error("this is not the admin token; app keys are not accepted here")]
    WrongToken,
    /// There is nothing to compare a token with.
    #[error("no admin token is configured; set `MCPM_ADMIN_TOKEN` and start again")]
    NotConfigured,
    /// A name that is not one of ours.
    #[error(
        "this host name is not served; use a name that `allowed_hosts` lists, or localhost on the \
         same computer"
    )]
    Host,
    /// A page of another origin than the settings allow.
    #[error("pages of this origin may not use the API; see `allowed_origins` in the settings")]
    Origin,
    /// No line of the table has that path.
    #[error("there is no endpoint `{0}`")]
    NoEndpoint(String),
    /// The path is there, the method is not.
    #[error("`{method}` is not possible here; possible are {allow}")]
    Method {
        /// What was asked.
        method: String,
        /// What could be.
        allow: String,
    },
    /// The body did not come.
    #[error("{}", unread(.0))]
    Unread(Unread),
    /// The use case said no.
    #[error(transparent)]
    Manage(#[from] manage::Error),
}

#[derive(Serialize)]
struct Body {
    error: String,
}

fn unread(why: &Unread) -> String {
    match why {
        Unread::TooLarge(limit) => format!("the body is larger than {limit} bytes"),
        Unread::Slow => "the body took too long".to_owned(),
        Unread::Broken => "the body broke off".to_owned(),
    }
}

impl Error {
    fn status(&self) -> StatusCode {
        match self {
            Self::Bad(_) => StatusCode::BAD_REQUEST,
            Self::NoToken | Self::WrongToken => StatusCode::UNAUTHORIZED,
            Self::NotConfigured => StatusCode::SERVICE_UNAVAILABLE,
            Self::Host | Self::Origin => StatusCode::FORBIDDEN,
            Self::NoEndpoint(_) => StatusCode::NOT_FOUND,
            Self::Method { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Self::Unread(Unread::TooLarge(_)) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Unread(Unread::Slow) => StatusCode::REQUEST_TIMEOUT,
            Self::Unread(Unread::Broken) => StatusCode::BAD_REQUEST,
            Self::Manage(error) => match error {
                manage::Error::Invalid { .. } | manage::Error::Refused(_) => {
                    StatusCode::BAD_REQUEST
                }
                manage::Error::NotFound { .. } => StatusCode::NOT_FOUND,
                manage::Error::Taken { .. } => StatusCode::CONFLICT,
                _ if error.is_trouble() => StatusCode::SERVICE_UNAVAILABLE,
                manage::Error::Random(_) | manage::Error::Store(_) => {
                    StatusCode::INTERNAL_SERVER_ERROR
                }
            },
        }
    }

    pub(crate) fn into_response(self) -> Response<Bytes> {
        let body = serde_json::to_vec(&Body { error: self.to_string() });
        let body = body.expect("a string is written to memory");
        let mut response = answer::response(self.status(), "application/json", body.into());
        let headers = response.headers_mut();
        match self {
            Self::NoToken | Self::WrongToken => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            Self::Method { allow, .. } => {
                let allow = HeaderValue::from_str(&allow);
                headers.insert(ALLOW, allow.expect("method names are visible ASCII"));
            }
            Self::Manage(error) if error.is_trouble() => {
                headers.insert(RETRY_AFTER, HeaderValue::from_static("5"));
            }
            _ => {}
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use gateway::manage;

    use super::Error;

    fn shown(error: Error) -> String {
        let response = error.into_response();
        let extra = ["www-authenticate", "allow"].into_iter().filter_map(|name| {
            let value = response.headers().get(name)?.to_str().ok()?;
            Some(format!(" {name}: {value}"))
        });
        let extra: String = extra.collect();
        let body = String::from_utf8_lossy(response.body());
        format!("{}{extra} {body}", response.status().as_u16())
    }

    #[test]
    fn every_refusal_is_json() {
        let invalid = manage::Error::Invalid { field: "mode".into(), message: "is odd".into() };
        let missing = manage::Error::NotFound { what: "group", name: "pi".into() };
        let taken = manage::Error::Taken { what: "group", name: "pi".into() };
        let method = Error::Method { method: "PUT".into(), allow: "GET, OPTIONS".into() };
        let errors = [
            Error::NoToken,
            Error::WrongToken,
            Error::NotConfigured,
            Error::Host,
            Error::Origin,
            Error::NoEndpoint("/x\"".into()),
            method,
            invalid.into(),
            missing.into(),
            taken.into(),
            manage::Error::Random("none".into()).into(),
        ];
        let shown: Vec<_> = errors.into_iter().map(shown).collect();
        insta::assert_snapshot!(shown.join("\n"), @r#"
        401 www-authenticate: Bearer {"error":"a token is needed; send `Authorization: Bearer <admin token>`"}
        401 www-authenticate: Bearer {"error":"this is not the admin token; app keys are not accepted here"}
        503 {"error":"no admin token is configured; set `MCPM_ADMIN_TOKEN` and start again"}
        403 {"error":"this host name is not served; use a name that `allowed_hosts` lists, or localhost on the same computer"}
        403 {"error":"pages of this origin may not use the API; see `allowed_origins` in the settings"}
        404 {"error":"there is no endpoint `/x\"`"}
        405 allow: GET, OPTIONS {"error":"`PUT` is not possible here; possible are GET, OPTIONS"}
        400 {"error":"`mode` is odd"}
        404 {"error":"there is no group `pi`"}
        409 {"error":"the name `pi` is taken by another group"}
        500 {"error":"the system's random source failed: none"}
        "#);
    }
}
