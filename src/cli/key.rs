//! `key`: one per app.

use catalog::KeyId;
use clap::Subcommand;
use gateway::manage::{Field, IssuedKey, KeyFields};

use super::{connect, say, table};
use crate::settings::Settings;

#[derive(Debug, Subcommand)]
pub(super) enum Key {
    /// Every key, without its secret
    List,
    /// Make a key; its secret is shown once
    Create {
        /// What to call it, such as "claude on the laptop"
        label: String,
        /// The group whose view it gets; without it the default group
        #[arg(long)]
        group: Option<String>,
    },
    /// Make a new secret for a key; the old one stops working, a revoked key works again
    Reissue {
        /// Id, as `key list` shows it
        id: i64,
    },
    /// Cut an app off; the key stays in the list
    Revoke {
        /// Id, as `key list` shows it
        id: i64,
    },
    /// Remove a key
    Delete {
        /// Id, as `key list` shows it
        id: i64,
    },
}

pub(super) async fn run(command: Key, settings: &Settings) -> anyhow::Result<()> {
    connect::with(settings, async |gateway| {
        match command {
            Key::List => {
                let row = |key: gateway::manage::KeyInfo| {
                    let state = if key.revoked { "revoked" } else { "live" };
                    let hint = format!("…{}", key.hint);
                    [key.id.0.to_string(), key.label, key.group, hint, state.to_owned()]
                };
                let rows: Vec<_> = gateway.keys().await?.into_iter().map(row).collect();
                let head = ["ID", "LABEL", "GROUP", "ENDS IN", "STATE"];
                table::lines(head, &rows).iter().for_each(|line| say(line));
            }
            Key::Create { label, group } => {
                let group = group.map_or(Field::Keep, Field::Set);
                let fields = KeyFields { group, label: Field::Set(label) };
                show(&gateway.create_key(fields).await?);
            }
            Key::Reissue { id } => show(&gateway.reissue_key(KeyId(id)).await?),
            Key::Revoke { id } => {
                let key = gateway.revoke_key(KeyId(id)).await?;
                say(&format!("revoked key {id} ({})", key.label));
            }
            Key::Delete { id } => {
                gateway.delete_key(KeyId(id)).await?;
                say(&format!("deleted key {id}"));
            }
        }
        Ok(())
    })
    .await
}

fn show(key: &IssuedKey) {
    say(&format!("key {} ({}) in group {}", key.id.0, key.label, key.group));
    say(key.secret.reveal());
    say("This is the only time that the secret is shown.");
}
