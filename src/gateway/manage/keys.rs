//! Keys as people see and change them. A secret leaves here once, when it is made.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use catalog::{GroupId, Key, KeyHash, KeyId, Secret};
use fields::{Field, check};
use sha2::{Digest, Sha256};
use store::{AuditKind, Change};

use super::Error;
use super::turn::Turn;
use crate::Gateway;

/// What may be said of a key.
#[derive(Debug, Clone, Default)]
pub struct KeyFields {
    /// The group's name; reset is the settings' default group.
    pub group: Field<String>,
    /// What the operator calls it; at most 200 characters.
    pub label: Field<String>,
}

/// A key as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyInfo {
    /// Its identity.
    pub id: KeyId,
    /// What the operator calls it.
    pub label: String,
    /// The name of its group.
    pub group: String,
    /// The end of its secret.
    pub hint: String,
    /// Seconds since the Unix epoch.
    pub created_at: i64,
    /// Seconds since the Unix epoch.
    pub last_used_at: Option<i64>,
    /// Refused everywhere.
    pub revoked: bool,
}

/// A key whose secret was just made.
#[derive(Debug, Clone)]
pub struct IssuedKey {
    /// Its identity.
    pub id: KeyId,
    /// The only time that it can be read.
    pub secret: Secret,
    /// What the operator calls it.
    pub label: String,
    /// The name of its group.
    pub group: String,
}

impl Gateway {
    /// Every key, in order of creation; `last_used_at` lags by a second at most.
    ///
    /// # Errors
    /// As the database fails.
    pub async fn keys(&self) -> Result<Vec<KeyInfo>, Error> {
        let state = self.store.load().await?;
        let group = |id: GroupId| {
            let found = state.groups.iter().find(|group| group.id == id);
            found.map(|group| group.name.clone()).unwrap_or_default()
        };
        Ok(state.keys.iter().map(|key| info(key, group(key.group))).collect())
    }

    /// Makes a key; without a group, in the settings' default group.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the field.
    pub async fn create_key(&self, fields: KeyFields) -> Result<IssuedKey, Error> {
        let mut turn = self.turn().await?;
        let (group, label) = self.merge(&turn, None, fields)?;
        let (secret, hash, hint) = mint()?;
        turn.push(Change::AddKey(Key {
            id: KeyId(0),
            group,
            label: label.clone(),
            hint,
            hash,
            created_at: turn.now,
            last_used_at: None,
            revoked: false,
        }));
        let group = group_name(&turn, group);
        let message = format!("a key{} was made in group `{group}`", titled(&label));
        turn.audit(AuditKind::Key, message);
        let id = KeyId(turn.commit().await?);
        Ok(IssuedKey { id, secret, label, group })
    }

    /// Moves a key to another group or gives it another label.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Invalid`].
    pub async fn patch_key(&self, id: KeyId, fields: KeyFields) -> Result<KeyInfo, Error> {
        let mut turn = self.turn().await?;
        let was = turn.key(id)?.clone();
        let (group, label) = self.merge(&turn, Some(&was), fields)?;
        let key = Key { group, label, ..was.clone() };
        if key.label != was.label {
            let message = format!("key {} is now labelled `{}`", named(&was), key.label);
            turn.audit(AuditKind::Edit, message);
        }
        if key.group != was.group {
            let message = format!(
                "key {} was moved from group `{}` to `{}`",
                named(&key),
                group_name(&turn, was.group),
                group_name(&turn, key.group)
            );
            turn.audit(AuditKind::Key, message);
        }
        if key != was {
            turn.push(Change::SetKey(key.clone()));
        }
        let group = group_name(&turn, key.group);
        turn.commit().await?;
        Ok(info(&key, group))
    }

    /// Cuts a key off; it stays in the list. Doing so twice is harmless.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn revoke_key(&self, id: KeyId) -> Result<KeyInfo, Error> {
        let mut turn = self.turn().await?;
        let was = turn.key(id)?.clone();
        let key = Key { revoked: true, ..was.clone() };
        if key != was {
            turn.push(Change::SetKey(key.clone()));
            turn.audit(AuditKind::Key, format!("key {} was revoked", named(&key)));
        }
        let group = group_name(&turn, key.group);
        turn.commit().await?;
        Ok(info(&key, group))
    }

    /// A new secret for the same key: the old one stops working, a revoked key lives again.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn reissue_key(&self, id: KeyId) -> Result<IssuedKey, Error> {
        let mut turn = self.turn().await?;
        let (secret, hash, hint) = mint()?;
        let key = Key { hash, hint, revoked: false, ..turn.key(id)?.clone() };
        turn.push(Change::SetKey(key.clone()));
        turn.audit(AuditKind::Key, format!("key {} was given a new secret", named(&key)));
        let group = group_name(&turn, key.group);
        turn.commit().await?;
        Ok(IssuedKey { id, secret, label: key.label, group })
    }

    /// Removes a key; its usage stays.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn delete_key(&self, id: KeyId) -> Result<(), Error> {
        let mut turn = self.turn().await?;
        let message = format!("key {} was removed", named(turn.key(id)?));
        turn.push(Change::RemoveKey(id));
        turn.audit(AuditKind::Key, message);
        turn.commit().await?;
        Ok(())
    }

    fn merge(
        &self,
        turn: &Turn<'_>,
        was: Option<&Key>,
        fields: KeyFields,
    ) -> Result<(GroupId, String), Error> {
        let find = |name: &str| {
            turn.group(name).map(|group| group.id).map_err(|_| {
                let known: Vec<_> =
                    turn.state.groups.iter().map(|group| format!("`{}`", group.name)).collect();
                let message = format!("is `{name}`, which is no group ({})", known.join(", "));
                Error::invalid("group", message)
            })
        };
        let group = match (fields.group, was) {
            (Field::Set(name), _) => find(name.trim())?,
            (Field::Keep, Some(key)) => key.group,
            (Field::Keep | Field::Reset, _) => find(&self.options.default_group)?,
        };
        let label = fields.label.try_map(|label| check::label(&label))?;
        let current = was.map(|key| key.label.clone()).unwrap_or_default();
        Ok((group, label.over(current, String::new())))
    }
}

/// A fresh secret with its hash and its hint.
fn mint() -> Result<(Secret, KeyHash, String), Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| Error::Random(error.to_string()))?;
    let secret = format!("mcpm_{}", URL_SAFE_NO_PAD.encode(bytes));
    let hash = Sha256::digest(&secret).into();
    let hint = secret[secret.len() - 4..].to_owned();
    Ok((Secret::new(secret), hash, hint))
}

fn info(key: &Key, group: String) -> KeyInfo {
    KeyInfo {
        id: key.id,
        label: key.label.clone(),
        group,
        hint: key.hint.clone(),
        created_at: key.created_at,
        last_used_at: key.last_used_at,
        revoked: key.revoked,
    }
}

fn group_name(turn: &Turn<'_>, id: GroupId) -> String {
    let found = turn.state.groups.iter().find(|group| group.id == id);
    found.map(|group| group.name.clone()).unwrap_or_default()
}

fn named(key: &Key) -> String {
    format!("{}{}", key.id.0, titled(&key.label))
}

fn titled(label: &str) -> String {
    if label.is_empty() { String::new() } else { format!(" `{label}`") }
}
