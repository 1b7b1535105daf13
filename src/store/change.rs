//! What each [`Change`] does to the tables. The caller holds the transaction.

use catalog::{Group, GroupId, Key, KeyId, Override, Reach, Secret, Server, ServerId, Transport};
use rusqlite::{Connection, ErrorCode, Params, ToSql, ffi, params};

use crate::error::{Error, Noun};
use crate::model::{Change, added};

/// Why one change failed, before it is known which file it was.
#[derive(Debug)]
pub(crate) enum Fault {
    /// A failure that already says all.
    Told(Error),
    /// A failure of the database.
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

/// Makes the changes in order; answers a row id for each.
pub(crate) fn apply(connection: &Connection, changes: &[Change]) -> Result<Vec<i64>, Fault> {
    let mut ids = Vec::with_capacity(changes.len());
    for change in changes {
        let id = one(connection, change, &ids)?;
        ids.push(id);
    }
    Ok(ids)
}

fn one(connection: &Connection, change: &Change, ids: &[i64]) -> Result<i64, Fault> {
    match change {
        Change::AddGroup(group) => add_group(connection, group, ids),
        Change::SetGroup(group) => set_group(connection, group, ids),
        Change::RemoveGroup(GroupId(id)) => remove(connection, "groups", Noun::Group, *id),
        Change::AddServer(server) => add_server(connection, server),
        Change::SetServer(server) => set_server(connection, server),
        Change::RemoveServer(ServerId(id)) => {
            let sql =
                "INSERT INTO gone_servers (id, name) SELECT id, name FROM servers WHERE id = ?1";
            connection.prepare_cached(sql)?.execute([id])?;
            remove(connection, "servers", Noun::Server, *id)
        }
        Change::AddKey(key) => add_key(connection, key),
        Change::SetKey(key) => set_key(connection, key),
        Change::RemoveKey(KeyId(id)) => remove(connection, "keys", Noun::Key, *id),
        Change::SetOverride(words) => set_override(connection, words),
        Change::SetKnown(ServerId(id), known) => {
            let sql = "INSERT OR REPLACE INTO known (server_id, catalog) VALUES (?1, ?2)";
            insert(connection, sql, params![id, known.to_text()])
                .map_err(|error| dangling(error, Noun::Server, *id))?;
            Ok(*id)
        }
        Change::Audit { kind, message, at } => {
            let sql = "INSERT INTO audit (at, kind, message) VALUES (?1, ?2, ?3)";
            Ok(insert(connection, sql, params![at, kind.as_str(), message])?)
        }
        Change::Seeded => {
            let sql = "INSERT OR REPLACE INTO meta (name, value) VALUES ('seeded', 1)";
            connection.execute(sql, [])?;
            Ok(0)
        }
    }
}

fn set_override(connection: &Connection, words: &Override) -> Result<i64, Fault> {
    let Override { server: ServerId(id), tool, title, description } = words;
    if title.is_none() && description.is_none() {
        let sql = "DELETE FROM overrides WHERE server_id = ?1 AND tool = ?2";
        connection.prepare_cached(sql)?.execute(params![id, tool])?;
        return Ok(*id);
    }
    let sql = "INSERT OR REPLACE INTO overrides (server_id, tool, title, description)
        VALUES (?1, ?2, ?3, ?4)";
    connection
        .prepare_cached(sql)?
        .execute(params![id, tool, title, description])
        .map_err(|error| dangling(error, Noun::Server, *id))?;
    Ok(*id)
}

fn add_group(connection: &Connection, group: &Group, ids: &[i64]) -> Result<i64, Fault> {
    let sql = "INSERT INTO groups (name, mode, defaults, adaptive_cap, reach_all)
        VALUES (?1, ?2, ?3, ?4, ?5)";
    let id = insert(connection, sql, group_values(group)?)
        .map_err(|error| taken(error, Noun::Group, &group.name))?;
    reach(connection, id, &group.reach, ids)?;
    Ok(id)
}

fn set_group(connection: &Connection, group: &Group, ids: &[i64]) -> Result<i64, Fault> {
    let id = group.id.0;
    let sql = "UPDATE groups SET name = ?1, mode = ?2, defaults = ?3, adaptive_cap = ?4,
        reach_all = ?5 WHERE id = ?6";
    let (name, mode, defaults, cap, all) = group_values(group)?;
    let found = execute(connection, sql, params![name, mode, defaults, cap, all, id])
        .map_err(|error| taken(error, Noun::Group, &group.name))?;
    present(found, Noun::Group, id)?;
    execute(connection, "DELETE FROM group_servers WHERE group_id = ?1", [id])?;
    reach(connection, id, &group.reach, ids)?;
    Ok(id)
}

type GroupValues<'a> = (&'a str, &'static str, String, Option<u8>, bool);

fn group_values(group: &Group) -> Result<GroupValues<'_>, Fault> {
    let all = group.reach == Reach::All;
    Ok((&group.name, group.mode.as_str(), text(&group.defaults)?, group.adaptive_cap, all))
}

/// Writes which servers a group reaches. `ids` are the rows made by this call so far.
fn reach(connection: &Connection, group: i64, reach: &Reach, ids: &[i64]) -> Result<(), Fault> {
    let Reach::Only(servers) = reach else { return Ok(()) };
    let sql = "INSERT OR IGNORE INTO group_servers (group_id, server_id) VALUES (?1, ?2)";
    for server in servers {
        let made = ids.iter().enumerate().find(|(index, _)| added(*index) == *server);
        let id = made.map_or(server.0, |(_, id)| *id);
        execute(connection, sql, [group, id])
            .map_err(|error| dangling(error, Noun::Server, server.0))?;
    }
    Ok(())
}

fn add_server(connection: &Connection, server: &Server) -> Result<i64, Fault> {
    let sql = "INSERT INTO servers (name, transport, url, headers, ca_file, command, args, env,
        cwd, description, enabled, shared, timeout_ms, call_timeout_ms, protocol)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";
    write_server(connection, sql, server, None)?;
    Ok(connection.last_insert_rowid())
}

fn set_server(connection: &Connection, server: &Server) -> Result<i64, Fault> {
    let id = server.id.0;
    let sql = "UPDATE servers SET name = ?1, transport = ?2, url = ?3, headers = ?4,
        ca_file = ?5, command = ?6, args = ?7, env = ?8, cwd = ?9, description = ?10,
        enabled = ?11, shared = ?12, timeout_ms = ?13, call_timeout_ms = ?14, protocol = ?15
        WHERE id = ?16";
    let found = write_server(connection, sql, server, Some(id))?;
    present(found, Noun::Server, id)?;
    Ok(id)
}

fn write_server(
    connection: &Connection,
    sql: &str,
    server: &Server,
    id: Option<i64>,
) -> Result<usize, Fault> {
    let mut statement = connection.prepare_cached(sql)?;
    let (mut url, mut headers, mut ca_file) = (None, None, None);
    let (mut command, mut args, mut env, mut cwd) = (None, None, None, None);
    let transport = match &server.transport {
        Transport::Http { url: place, headers: sent, ca_file: roots } => {
            (url, headers, ca_file) = (Some(place), Some(pairs(sent)?), roots.as_ref());
            "http"
        }
        Transport::Stdio { command: program, args: words, env: added, cwd: folder } => {
            (command, args) = (Some(program), Some(text(words)?));
            (env, cwd) = (Some(pairs(added)?), folder.as_ref());
            "stdio"
        }
    };
    let times = (millis(server.timeout), millis(server.call_timeout));
    let values: &[&dyn ToSql] = params![
        server.name,
        transport,
        url,
        headers,
        ca_file,
        command,
        args,
        env,
        cwd,
        server.description,
        server.enabled,
        server.shared,
        times.0,
        times.1,
        server.protocol.as_str(),
        id,
    ];
    // An insert has no place for the id.
    let values = if id.is_some() { values } else { &values[..15] };
    statement.execute(values).map_err(|error| taken(error, Noun::Server, &server.name))
}

fn add_key(connection: &Connection, key: &Key) -> Result<i64, Fault> {
    let sql = "INSERT INTO keys (group_id, label, hint, hash, created_at, last_used_at, revoked)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    insert(
        connection,
        sql,
        params![
            key.group.0,
            key.label,
            key.hint,
            key.hash,
            key.created_at,
            key.last_used_at,
            key.revoked
        ],
    )
    .map_err(|error| key_fault(error, key))
}

fn set_key(connection: &Connection, key: &Key) -> Result<i64, Fault> {
    // `last_used_at` is written behind, so the caller's may be older than the row's.
    let sql = "UPDATE keys SET group_id = ?1, label = ?2, hint = ?3, hash = ?4, created_at = ?5,
        last_used_at = nullif(max(ifnull(last_used_at, -1), ifnull(?6, -1)), -1), revoked = ?7
        WHERE id = ?8";
    let found = execute(
        connection,
        sql,
        params![
            key.group.0,
            key.label,
            key.hint,
            key.hash,
            key.created_at,
            key.last_used_at,
            key.revoked,
            key.id.0
        ],
    )
    .map_err(|error| key_fault(error, key))?;
    present(found, Noun::Key, key.id.0)?;
    Ok(key.id.0)
}

fn key_fault(error: rusqlite::Error, key: &Key) -> Fault {
    if extended(&error) == Some(ffi::SQLITE_CONSTRAINT_FOREIGNKEY) {
        return dangling(error, Noun::Group, key.group.0);
    }
    taken(error, Noun::Key, &key.label)
}

fn remove(connection: &Connection, table: &str, what: Noun, id: i64) -> Result<i64, Fault> {
    let found = execute(connection, &format!("DELETE FROM {table} WHERE id = ?1"), [id])?;
    present(found, what, id)?;
    Ok(id)
}

fn insert(connection: &Connection, sql: &str, values: impl Params) -> rusqlite::Result<i64> {
    connection.prepare_cached(sql)?.insert(values)
}

fn execute(connection: &Connection, sql: &str, values: impl Params) -> rusqlite::Result<usize> {
    connection.prepare_cached(sql)?.execute(values)
}

fn present(rows: usize, what: Noun, id: i64) -> Result<(), Fault> {
    if rows == 0 { Err(Fault::Told(Error::Missing { what, id })) } else { Ok(()) }
}

fn taken(error: rusqlite::Error, what: Noun, name: &str) -> Fault {
    match extended(&error) {
        Some(ffi::SQLITE_CONSTRAINT_UNIQUE) => {
            Fault::Told(Error::Taken { what, name: name.to_owned() })
        }
        _ => Fault::Sqlite(error),
    }
}

fn dangling(error: rusqlite::Error, what: Noun, id: i64) -> Fault {
    match extended(&error) {
        Some(ffi::SQLITE_CONSTRAINT_FOREIGNKEY) => Fault::Told(Error::Missing { what, id }),
        _ => Fault::Sqlite(error),
    }
}

fn extended(error: &rusqlite::Error) -> Option<i32> {
    let found = error.sqlite_error()?;
    (found.code == ErrorCode::ConstraintViolation).then_some(found.extended_code)
}

fn pairs(list: &[(String, Secret)]) -> Result<String, Fault> {
    let plain: Vec<(&str, &str)> =
        list.iter().map(|(name, value)| (name.as_str(), value.reveal())).collect();
    text(&plain)
}

fn text(value: &(impl serde::Serialize + ?Sized)) -> Result<String, Fault> {
    serde_json::to_string(value)
        .map_err(|error| Fault::Sqlite(rusqlite::Error::ToSqlConversionFailure(error.into())))
}

fn millis(time: std::time::Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
