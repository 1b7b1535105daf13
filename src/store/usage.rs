//! Writes what was queued behind, many items in one transaction.

use std::collections::HashMap;

use rusqlite::{Connection, params};

use crate::model::{Behind, ENDED_SESSIONS, StoredVector, VECTORS};

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
    let mut ended = Vec::new();
    let mut vectors = Vec::new();
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
            Behind::SessionEnded { nonce, at } => ended.push((*nonce, *at)),
            Behind::Vector(vector) => vectors.push(vector),
        }
    }
    for (key, at) in used {
        touch.execute(params![at, key.0])?;
    }
    if !vectors.is_empty() {
        keep_vectors(connection, &vectors, VECTORS)?;
    }
    if ended.is_empty() { Ok(()) } else { end_sessions(connection, &ended, ENDED_SESSIONS) }
}

/// Keeps vectors, and forgets the oldest of more than `most`.
fn keep_vectors(
    connection: &Connection,
    vectors: &[&StoredVector],
    most: usize,
) -> rusqlite::Result<()> {
    let sql = "INSERT OR REPLACE INTO vectors (model, text, vector) VALUES (?1, ?2, ?3)";
    let mut add = connection.prepare_cached(sql)?;
    for StoredVector { model, text, values } in vectors {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        add.execute(params![model, text, bytes])?;
    }
    let newest = connection.last_insert_rowid();
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    connection
        .prepare_cached("DELETE FROM vectors WHERE id <= ?1")?
        .execute([newest.saturating_sub(most)])?;
    Ok(())
}

/// Notes ended sessions, and forgets the oldest of more than `most`.
fn end_sessions(
    connection: &Connection,
    ended: &[(u64, i64)],
    most: usize,
) -> rusqlite::Result<()> {
    let mut add =
        connection.prepare_cached("INSERT INTO ended_sessions (nonce, at) VALUES (?1, ?2)")?;
    for (nonce, at) in ended {
        add.execute(params![nonce.cast_signed(), at])?;
    }
    let newest = connection.last_insert_rowid();
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    connection
        .prepare_cached("DELETE FROM ended_sessions WHERE id <= ?1")?
        .execute([newest.saturating_sub(most)])?;
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

#[cfg(test)]
mod tests {
    use super::{end_sessions, keep_vectors};
    use crate::model::StoredVector;
    use crate::{read, schema};

    #[test]
    fn f24_the_oldest_ended_sessions_are_forgotten_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let connection = schema::open(&path, std::time::Duration::ZERO).unwrap();
        for nonce in [7, u64::MAX, 8, 9] {
            end_sessions(&connection, &[(nonce, 1)], 3).unwrap();
        }
        assert_eq!(read::ended_sessions(&connection).unwrap(), [u64::MAX, 8, 9]);
    }

    #[test]
    fn p62_vectors_come_back_and_the_oldest_are_forgotten_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let connection = schema::open(&path, std::time::Duration::ZERO).unwrap();
        let vector = |text: u8| StoredVector {
            model: [1; 32],
            text: [text; 32],
            values: [0.5, -1.0, f32::from(text)].into(),
        };
        let all = [vector(1), vector(2), vector(3), vector(2)];
        for each in &all {
            keep_vectors(&connection, &[each], 2).unwrap();
        }
        assert_eq!(read::vectors(&connection).unwrap(), [vector(3), vector(2)]);
    }
}
