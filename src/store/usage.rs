//! Writes what was queued behind, many items in one transaction.

use std::collections::HashMap;

use rusqlite::{Connection, params};

use crate::model::Behind;

/// Writes the items. The caller holds the transaction.
pub(crate) fn write(connection: &Connection, items: &[Behind]) -> rusqlite::Result<()> {
    let mut add = connection.prepare_cached(
        "INSERT INTO usage (at_ms, key_id, tool_id, outcome, latency_us)
         VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    let mut touch = connection.prepare_cached(
        "UPDATE keys SET last_used_at = ?1 WHERE id = ?2 AND ifnull(last_used_at, -1) < ?1",
    )?;
    let mut tools = HashMap::new();
    let mut used = HashMap::new();
    for item in items {
        match item {
            Behind::Usage { key, server, tool, outcome, latency, at_ms } => {
                let tool_id = match tools.get(&(*server, tool.as_str())) {
                    Some(id) => *id,
                    None => {
                        let id = tool_id(connection, server.0, tool)?;
                        tools.insert((*server, tool.as_str()), id);
                        id
                    }
                };
                let latency = i64::try_from(latency.as_micros()).unwrap_or(i64::MAX);
                let key = key.map(|key| key.0);
                add.execute(params![at_ms, key, tool_id, outcome.as_str(), latency])?;
            }
            // A busy key is used in nearly every item; one update of it is enough.
            Behind::KeyUsed { key, at } => {
                let latest = used.entry(*key).or_insert(*at);
                *latest = (*latest).max(*at);
            }
        }
    }
    for (key, at) in used {
        touch.execute(params![at, key.0])?;
    }
    Ok(())
}

fn tool_id(connection: &Connection, server: i64, tool: &str) -> rusqlite::Result<i64> {
    connection
        .prepare_cached("INSERT OR IGNORE INTO usage_tools (server_id, name) VALUES (?1, ?2)")?
        .execute(params![server, tool])?;
    connection
        .prepare_cached("SELECT id FROM usage_tools WHERE server_id = ?1 AND name = ?2")?
        .query_row(params![server, tool], |row| row.get(0))
}
