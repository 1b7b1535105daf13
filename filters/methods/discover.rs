//! `server/discover`: what the manager is, for clients without a session (F69).

use protocol::Version;

use crate::methods::initialize::{self, CAPABILITIES};
use crate::methods::simple;
use crate::rpc::{Parts, Request};

pub(crate) fn answer(request: &Request<'_>) -> Parts {
    let result = format!(
        r#"{{"supportedVersions":{},"capabilities":{CAPABILITIES},"instructions":{},"ttlMs":0,"cacheScope":"private"}}"#,
        Version::served(),
        initialize::instructions(request),
    );
    simple::own(request, &result)
}
