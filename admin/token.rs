//! Who may ask: the admin token, and the metrics token beside it. An app's key opens nothing
//! here (P4).

use catalog::Secret;
use gateway::Gateway;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::error::Error;
use crate::routes::Access;

/// Lets a request through or says why not.
pub(crate) fn check(gateway: &Gateway, headers: &HeaderMap, access: Access) -> Result<(), Error> {
    let options = &gateway.options;
    let accepted = match access {
        Access::Anyone => return Ok(()),
        Access::Metrics if options.metrics_public => return Ok(()),
        Access::Metrics => [&options.admin_token, &options.metrics_token],
        Access::Admin => [&options.admin_token, &None],
    };
    let accepted: Vec<&Secret> = accepted.into_iter().flatten().collect();
    let checked = one_of(headers, &accepted);
    match checked {
        Err(Error::NoToken) => gateway.metrics.auth_failure("no_admin_token"),
        Err(Error::WrongToken) => gateway.metrics.auth_failure("wrong_admin_token"),
        _ => {}
    }
    checked
}

fn one_of(headers: &HeaderMap, accepted: &[&Secret]) -> Result<(), Error> {
    // An empty token would open the door to an empty header.
    let accepted = || accepted.iter().filter(|token| !token.reveal().is_empty());
    if accepted().next().is_none() {
        return Err(Error::NotConfigured);
    }
    let given = bearer(headers).ok_or(Error::NoToken)?;
    let given = Sha256::digest(given);
    // Hashes have one length, and all are compared, so the time taken tells nothing.
    let mut right = subtle::Choice::from(0);
    for token in accepted() {
        right |= Sha256::digest(token.reveal()).as_slice().ct_eq(given.as_slice());
    }
    if right.into() { Ok(()) } else { Err(Error::WrongToken) }
}

/// The token of `Authorization: Bearer …`; the scheme's case does not matter.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use catalog::Secret;
    use http::HeaderMap;
    use http::header::{AUTHORIZATION, HeaderValue};

    use super::one_of;

    fn check(header: Option<&str>, accepted: &[&str], expect: &str) {
        let mut headers = HeaderMap::new();
        if let Some(header) = header {
            headers.insert(AUTHORIZATION, HeaderValue::from_str(header).expect("a header"));
        }
        let accepted: Vec<_> = accepted.iter().map(|token| Secret::new(*token)).collect();
        let accepted: Vec<_> = accepted.iter().collect();
        let result =
            one_of(&headers, &accepted).map_or_else(|e| format!("{e:?}"), |()| "ok".into());
        assert_eq!(result, expect, "{header:?}");
    }

    #[test]
    fn only_the_token_opens() {
        let tokens = ["admin", "metrics"];
        check(Some("Bearer admin"), &tokens, "ok");
        check(Some("bearer  metrics "), &tokens, "ok");
        check(Some("Bearer admi"), &tokens, "WrongToken");
        check(Some("Bearer adminn"), &tokens, "WrongToken");
        check(Some("Basic admin"), &tokens, "NoToken");
        check(Some("Bearer "), &tokens, "NoToken");
        check(None, &tokens, "NoToken");
    }

    #[test]
    fn without_a_configured_token_nothing_opens() {
        check(Some("Bearer "), &[], "NotConfigured");
        check(Some("Bearer x"), &[""], "NotConfigured");
        check(None, &[], "NotConfigured");
    }
}
