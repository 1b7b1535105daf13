//! `/groups`: what each app sees.

use gateway::Gateway;
use gateway::manage::{GroupFields, GroupInfo};
use serde::Serialize;

use crate::answer::Answer;
use crate::body::Fields;
use crate::error::Error;
use crate::routes::Input;

#[derive(Serialize)]
struct Group {
    name: String,
    mode: &'static str,
    defaults: Vec<String>,
    adaptive_cap: Option<u8>,
    servers: Option<Vec<String>>,
    unresolved: Vec<String>,
    sees: usize,
    keys: usize,
}

#[derive(Serialize)]
struct Deleted {
    ok: bool,
    deleted_keys: usize,
}

pub(crate) async fn list(gateway: &Gateway) -> Result<Answer, Error> {
    let groups: Vec<_> = gateway.groups().into_iter().map(Group::from).collect();
    Ok(Answer::json(&groups))
}

pub(crate) async fn create(gateway: &Gateway, input: Input) -> Result<Answer, Error> {
    let group = gateway.create_group(fields(&input)?).await?;
    Ok(Answer::json(&Group::from(group)))
}

pub(crate) async fn patch(gateway: &Gateway, input: Input) -> Result<Answer, Error> {
    let group = gateway.patch_group(&input.name, fields(&input)?).await?;
    Ok(Answer::json(&Group::from(group)))
}

pub(crate) async fn delete(gateway: &Gateway, input: Input) -> Result<Answer, Error> {
    let deleted_keys = gateway.delete_group(&input.name).await?;
    Ok(Answer::json(&Deleted { ok: true, deleted_keys }))
}

fn fields(input: &Input) -> Result<GroupFields, Error> {
    let known = ["name", "mode", "defaults", "adaptive_cap", "servers"];
    let mut body = Fields::parse(&input.body, &known)?;
    Ok(GroupFields {
        name: body.text("name")?,
        mode: body.text("mode")?,
        defaults: body.texts("defaults")?,
        adaptive_cap: body.number("adaptive_cap")?,
        servers: body.texts("servers")?,
    })
}

impl From<GroupInfo> for Group {
    fn from(group: GroupInfo) -> Self {
        Self {
            name: group.name,
            mode: group.mode.as_str(),
            defaults: group.defaults,
            adaptive_cap: group.adaptive_cap,
            servers: group.servers,
            unresolved: group.unresolved,
            sees: group.sees,
            keys: group.keys,
        }
    }
}
