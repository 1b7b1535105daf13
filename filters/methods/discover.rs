//! `server/discover`: what the manager is, for clients without a session (F69).

use protocol::Version;

use crate::methods::initialize::CAPABILITIES;
use crate::methods::simple;
use crate::rpc::{Parts, Request};

pub(crate) fn answer(request: &Request<'_>) -> Parts {
    let versions: Vec<String> =
        Version::ALL.iter().rev().map(|version| format!("\"{}\"", version.as_str())).collect();
    let result = format!(
        r#"{{"supportedVersions":[{}],"capabilities":{CAPABILITIES},"ttlMs":0,"cacheScope":"private"}}"#,
        versions.join(",")
    );
    simple::own(request, &result)
}
