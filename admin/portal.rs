//! The page, embedded in the program. It holds nothing: what it shows comes from the API,
//! after the token is entered.

use crate::answer::Answer;
use crate::error::Error;

/// Nothing but the page's own two files, talking to nobody but this manager.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(crate) async fn page() -> Result<Answer, Error> {
    let page = include_str!("../portal/index.html");
    let mut answer = Answer::text("text/html; charset=utf-8", page);
    answer.headers = vec![("content-security-policy", POLICY), ("referrer-policy", "no-referrer")];
    Ok(answer)
}

pub(crate) async fn script() -> Result<Answer, Error> {
    let script = include_str!("../portal/app.js");
    Ok(Answer::text("text/javascript; charset=utf-8", script))
}

pub(crate) async fn style() -> Result<Answer, Error> {
    let style = include_str!("../portal/app.css");
    Ok(Answer::text("text/css; charset=utf-8", style))
}
