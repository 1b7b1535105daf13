//! `/keys`: one per app. The secret is in the answer that makes it, and nowhere else.

use catalog::KeyId;
use gateway::Gateway;
use gateway::manage::{self, IssuedKey, KeyFields, KeyInfo};
use serde::Serialize;

use crate::answer::{self, Answer};
use crate::body::Fields;
use crate::error::Error;
use crate::routes::Input;

#[derive(Serialize)]
struct Key {
    id: i64,
    label: String,
    group: String,
    hint: String,
    created_at: String,
    last_used_at: Option<String>,
    revoked: bool,
}

#[derive(Serialize)]
struct Issued<'a> {
    id: i64,
    key: &'a str,
    label: &'a str,
    group: &'a str,
}

pub(crate) async fn list(gateway: &Gateway) -> Result<Answer, Error> {
    let keys: Vec<_> = gateway.keys().await?.into_iter().map(Key::from).collect();
    Ok(Answer::json(&keys))
}

pub(crate) async fn create(gateway: &Gateway, input: Input) -> Result<Answer, Error> {
    let key = gateway.create_key(fields(&input)?).await?;
    Ok(issued(&key))
}

pub(crate) async fn patch(gateway: &Gateway, input: Input) -> Result<Answer, Error> {
    let key = gateway.patch_key(id(&input)?, fields(&input)?).await?;
    Ok(Answer::json(&Key::from(key)))
}

pub(crate) async fn revoke(gateway: &Gateway, input: Input) -> Result<Answer, Error> {
    gateway.revoke_key(id(&input)?).await?;
    Ok(Answer::done())
}

pub(crate) async fn reissue(gateway: &Gateway, input: Input) -> Result<Answer, Error> {
    let key = gateway.reissue_key(id(&input)?).await?;
    Ok(issued(&key))
}

pub(crate) async fn delete(gateway: &Gateway, input: Input) -> Result<Answer, Error> {
    gateway.delete_key(id(&input)?).await?;
    Ok(Answer::done())
}

fn fields(input: &Input) -> Result<KeyFields, Error> {
    let mut body = Fields::parse(&input.body, &["group", "label"])?;
    Ok(KeyFields { group: body.text("group")?, label: body.text("label")? })
}

/// What is no number is no key's id.
pub(crate) fn id(input: &Input) -> Result<KeyId, Error> {
    let missing = || manage::Error::NotFound { what: "key", name: input.name.clone() };
    Ok(KeyId(input.name.parse().map_err(|_| missing())?))
}

fn issued(key: &IssuedKey) -> Answer {
    Answer::json(&Issued {
        id: key.id.0,
        key: key.secret.reveal(),
        label: &key.label,
        group: &key.group,
    })
}

impl From<KeyInfo> for Key {
    fn from(key: KeyInfo) -> Self {
        Self {
            id: key.id.0,
            label: key.label,
            group: key.group,
            hint: key.hint,
            created_at: answer::time(key.created_at),
            last_used_at: key.last_used_at.map(answer::time),
            revoked: key.revoked,
        }
    }
}
