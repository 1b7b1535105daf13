//! `server/discover`: what the manager is, for clients without a session (F69).

use bytes::Bytes;
use pingora_core::Result;
use protocol::{Era, Version, bridge};

use crate::methods::initialize::CAPABILITIES;
use crate::reply::Client;
use crate::rpc::Request;

pub(crate) async fn serve(request: &Request<'_>, client: &mut Client<'_>) -> Result<()> {
    let versions: Vec<String> =
        Version::ALL.iter().rev().map(|version| format!("\"{}\"", version.as_str())).collect();
    let result = format!(
        r#"{{"supportedVersions":[{}],"capabilities":{CAPABILITIES},"ttlMs":0,"cacheScope":"private"}}"#,
        versions.join(",")
    );
    let result = bridge::own_result(&result, Era::Modern, request.gateway.own_info());
    request.answer(client, Bytes::from(result)).await
}
