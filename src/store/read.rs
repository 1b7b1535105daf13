//! Rows back into the domain's values.

use std::collections::BTreeMap;
use std::time::Duration;

use catalog::{
    Group, GroupId, Key, KeyId, Known, Mode, Override, Pinned, Reach, Secret, Server, ServerId,
    Transport,
};
use rusqlite::{Connection, OptionalExtension, Row};
use serde::de::DeserializeOwned;

use crate::change::Fault;
use crate::error::{Error, Noun};
use crate::model::{AuditKind, AuditLine, PastCall, State, StoredVector};

/// Everything but catalogs. The caller holds a transaction, so that it is one moment.
pub(crate) fn state(connection: &Connection) -> Result<State, Fault> {
    let seeded = connection
        .query_row("SELECT 1 FROM meta WHERE name = 'seeded'", [], |_| Ok(()))
        .optional()?
        .is_some();
    Ok(State {
        groups: groups(connection)?,
        servers: rows(connection, "SELECT * FROM servers ORDER BY id", server)?,
        keys: rows(connection, "SELECT * FROM keys ORDER BY id", key)?,
        overrides: rows(connection, "SELECT * FROM overrides ORDER BY server_id, tool", words)?,
        seeded,
    })
}

/// Last known catalogs, in server id order; unreadable ones are left out, since a catalog is
/// only a memory of what its server will say again.
pub(crate) fn known(connection: &Connection) -> Result<Vec<(ServerId, Known)>, Fault> {
    let texts = rows(connection, "SELECT * FROM known ORDER BY server_id", |row| {
        Ok((row.get::<_, i64>("server_id")?, row.get::<_, String>("catalog")?))
    })?;
    let read = |(id, text): (i64, String)| match Known::from_text(&text) {
        Ok(known) => Some((ServerId(id), known)),
        Err(error) => {
            tracing::warn!(server = id, %error, "last known catalog does not read; left out");
            None
        }
    };
    Ok(texts.into_iter().filter_map(read).collect())
}

/// The nonces of ended sessions, in the order of their end.
pub(crate) fn ended_sessions(connection: &Connection) -> Result<Vec<u64>, Fault> {
    rows(connection, "SELECT nonce FROM ended_sessions ORDER BY id", |row| {
        Ok(row.get::<_, i64>(0)?.cast_unsigned())
    })
}

/// The newest lines, newest first.
pub(crate) fn audit(connection: &Connection, limit: u32) -> Result<Vec<AuditLine>, Fault> {
    let sql = format!("SELECT * FROM audit ORDER BY id DESC LIMIT {limit}");
    rows(connection, &sql, |row| {
        let id = row.get("id")?;
        let kind: String = row.get("kind")?;
        let kind =
            AuditKind::parse(&kind).ok_or_else(|| unknown(Noun::AuditLine, id, "kind", &kind))?;
        Ok(AuditLine { id, at: row.get("at")?, kind, message: row.get("message")? })
    })
}

/// The vectors that are kept.
pub(crate) fn vectors(connection: &Connection) -> Result<Vec<StoredVector>, Fault> {
    rows(connection, "SELECT * FROM vectors ORDER BY id", |row| {
        let bytes: Vec<u8> = row.get("vector")?;
        let (numbers, _) = bytes.as_chunks();
        let values = numbers.iter().map(|number| f32::from_le_bytes(*number)).collect();
        Ok(StoredVector { model: row.get("model")?, text: row.get("text")?, values })
    })
}

/// The last calls of keys that reached their tools, oldest first.
pub(crate) fn past_calls(connection: &Connection, most: u32) -> Result<Vec<PastCall>, Fault> {
    let sql = format!(
        "SELECT * FROM (
             SELECT usage.id, key_id, server_id, name, at_ms FROM usage
             JOIN usage_tools ON usage_tools.id = tool_id
             WHERE key_id IS NOT NULL AND outcome IN ('ok', 'tool_error')
             ORDER BY usage.id DESC LIMIT {most}
         ) ORDER BY id"
    );
    rows(connection, &sql, |row| {
        let (key, server) = (KeyId(row.get("key_id")?), ServerId(row.get("server_id")?));
        Ok(PastCall { key, server, tool: row.get("name")?, at_ms: row.get("at_ms")? })
    })
}

fn words(row: &Row<'_>) -> Result<Override, Fault> {
    Ok(Override {
        server: ServerId(row.get("server_id")?),
        tool: row.get("tool")?,
        title: row.get("title")?,
        description: row.get("description")?,
    })
}

fn groups(connection: &Connection) -> Result<Vec<Group>, Fault> {
    let mut chosen: BTreeMap<i64, Vec<ServerId>> = BTreeMap::new();
    let pairs = rows(connection, "SELECT group_id, server_id FROM group_servers", |row| {
        Ok((row.get(0)?, ServerId(row.get(1)?)))
    })?;
    for (group, server) in pairs {
        chosen.entry(group).or_default().push(server);
    }
    rows(connection, "SELECT * FROM groups ORDER BY id", |row| {
        let id = row.get("id")?;
        let mode: String = row.get("mode")?;
        let reach = match row.get("reach_all")? {
            true => Reach::All,
            false => Reach::Only(chosen.remove(&id).unwrap_or_default()),
        };
        Ok(Group {
            id: GroupId(id),
            name: row.get("name")?,
            mode: Mode::parse(&mode).ok_or_else(|| unknown(Noun::Group, id, "mode", &mode))?,
            defaults: list(row, Noun::Group, id, "defaults")?,
            adaptive_cap: row.get("adaptive_cap")?,
            reach,
        })
    })
}

fn server(row: &Row<'_>) -> Result<Server, Fault> {
    let id = row.get("id")?;
    let transport: String = row.get("transport")?;
    let transport = match transport.as_str() {
        "http" => Transport::Http {
            url: row.get("url")?,
            headers: secrets(row, id, "headers")?,
            ca_file: row.get("ca_file")?,
        },
        "stdio" => Transport::Stdio {
            command: row.get("command")?,
            args: list(row, Noun::Server, id, "args")?,
            env: secrets(row, id, "env")?,
            cwd: row.get("cwd")?,
        },
        other => return Err(unknown(Noun::Server, id, "transport", other)),
    };
    let protocol: String = row.get("protocol")?;
    Ok(Server {
        id: ServerId(id),
        name: row.get("name")?,
        transport,
        description: row.get("description")?,
        enabled: row.get("enabled")?,
        shared: row.get("shared")?,
        timeout: time(row, "timeout_ms")?,
        call_timeout: time(row, "call_timeout_ms")?,
        protocol: Pinned::parse(&protocol)
            .ok_or_else(|| unknown(Noun::Server, id, "protocol", &protocol))?,
    })
}

fn key(row: &Row<'_>) -> Result<Key, Fault> {
    Ok(Key {
        id: KeyId(row.get("id")?),
        group: GroupId(row.get("group_id")?),
        label: row.get("label")?,
        hint: row.get("hint")?,
        hash: row.get("hash")?,
        created_at: row.get("created_at")?,
        last_used_at: row.get("last_used_at")?,
        revoked: row.get("revoked")?,
    })
}

fn rows<T>(
    connection: &Connection,
    sql: &str,
    mut read: impl FnMut(&Row<'_>) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    let mut statement = connection.prepare(sql)?;
    let mut found = statement.query([])?;
    let mut list = Vec::new();
    while let Some(row) = found.next()? {
        list.push(read(row)?);
    }
    Ok(list)
}

fn secrets(row: &Row<'_>, id: i64, column: &str) -> Result<Vec<(String, Secret)>, Fault> {
    let plain: Vec<(String, String)> = list(row, Noun::Server, id, column)?;
    Ok(plain.into_iter().map(|(name, value)| (name, Secret::new(value))).collect())
}

fn list<T: DeserializeOwned>(
    row: &Row<'_>,
    what: Noun,
    id: i64,
    column: &str,
) -> Result<Vec<T>, Fault> {
    let text: String = row.get(column)?;
    // The parser's own words may quote a secret.
    serde_json::from_str(&text)
        .map_err(|_| damaged(what, id, format!("`{column}` is not the JSON list it should be")))
}

fn time(row: &Row<'_>, column: &str) -> Result<Duration, Fault> {
    let millis: i64 = row.get(column)?;
    Ok(Duration::from_millis(millis.unsigned_abs()))
}

fn unknown(what: Noun, id: i64, column: &str, word: &str) -> Fault {
    damaged(what, id, format!("`{column}` is `{word}`"))
}

fn damaged(what: Noun, id: i64, why: String) -> Fault {
    Fault::Told(Error::Damaged { what, id, why })
}
