//! Opens the database file and brings it to the version that this program reads.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::error::{Error, Trouble};

/// What makes version n out of version n - 1 (the file's `user_version`), in order. A file
/// that was part of a release is never changed.
const MIGRATIONS: [&str; 4] = [
    include_str!("migrations/0001.sql"),
    include_str!("migrations/0002.sql"),
    include_str!("migrations/0003.sql"),
    include_str!("migrations/0004.sql"),
];

/// Opens the database for writing, up to date. Waits up to `busy` for other processes.
pub(crate) fn open(path: &Path, busy: Duration) -> Result<Connection, Error> {
    refuse_what_is_not_ours(path)?;
    own(path)?;
    // Without URI: a path that happens to start with `file:` is still a path.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let of = |error| Error::of(path, &error);
    let mut connection = Connection::open_with_flags(path, flags).map_err(of)?;
    connection.busy_timeout(busy).map_err(of)?;
    write_ahead(&connection, busy).map_err(of)?;
    connection.pragma_update(None, "synchronous", "NORMAL").map_err(of)?;
    connection.pragma_update(None, "foreign_keys", true).map_err(of)?;
    migrate(&mut connection, path, &MIGRATIONS)?;
    Ok(connection)
}

/// Looks before anything is changed: a wrong path in the settings must not take over, or lock
/// away, what belongs to another program.
fn refuse_what_is_not_ours(path: &Path) -> Result<(), Error> {
    if std::fs::metadata(path).map_or(true, |found| found.len() == 0) {
        return Ok(());
    }
    let look = || -> rusqlite::Result<(i64, i64)> {
        let there = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let version: i64 = there.pragma_query_value(None, "user_version", |row| row.get(0))?;
        let tables: i64 =
            there.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))?;
        Ok((version, tables))
    };
    match look() {
        // Every version of ours has one.
        Ok((0, 1..)) => Err(Error::Unwritable { path: path.to_owned(), trouble: Trouble::Foreign }),
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::NotADatabase) => {
            Err(Error::of(path, &error))
        }
        // Whatever else is wrong is met again, and told, when it is opened for writing.
        _ => Ok(()),
    }
}

/// Makes the file readable by its owner only: it holds header secrets. SQLite gives its
/// companion files (`-wal`, `-shm`) the same mode.
#[cfg(unix)]
fn own(path: &Path) -> Result<(), Error> {
    use std::fs::{OpenOptions, Permissions};
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};

    let opened = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
    // An error is left to SQLite, which meets it again and tells it as one of ours.
    let Ok(file) = opened else { return Ok(()) };
    let Ok(mode) = file.metadata().map(|found| found.permissions().mode()) else { return Ok(()) };
    if mode & 0o077 != 0 {
        tracing::warn!(path = %path.display(), mode = format!("{:o}", mode & 0o777),
            "database was readable by others; it is now its owner's only");
        file.set_permissions(Permissions::from_mode(0o600)).map_err(|error| Error::Other {
            path: path.to_owned(),
            message: format!("cannot be made readable by its owner only: {error}"),
        })?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn own(_path: &Path) -> Result<(), Error> {
    Ok(())
}

/// Turns on the write-ahead log. SQLite does not wait for other processes here, so we do.
#[expect(clippy::disallowed_methods, reason = "opening is blocking by contract")]
fn write_ahead(connection: &Connection, busy: Duration) -> rusqlite::Result<()> {
    let until = Instant::now() + busy;
    loop {
        let mode = connection
            .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
        match mode {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(mode) => {
                tracing::warn!(mode, "this file system has no write-ahead log; writes are slower");
                return Ok(());
            }
            Err(error) if is_busy(&error) && Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(error) => return Err(error),
        }
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy)
}

/// Applies what is missing in one transaction, so that two processes that start at once, or
/// a crash, leave either version whole.
fn migrate(connection: &mut Connection, path: &Path, migrations: &[&str]) -> Result<(), Error> {
    let of = |error| Error::of(path, &error);
    // Invariant: far fewer migrations than an i64 counts.
    let newest = migrations.len() as i64;
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(of)?;
    let found: i64 =
        transaction.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(of)?;
    let done = usize::try_from(found).ok().filter(|done| *done <= migrations.len());
    let Some(done) = done else {
        return Err(Error::Newer { path: path.to_owned(), found, known: newest });
    };
    if found == newest {
        return Ok(());
    }
    for sql in migrations.iter().skip(done) {
        transaction.execute_batch(sql).map_err(of)?;
    }
    transaction.pragma_update(None, "user_version", newest).map_err(of)?;
    transaction.commit().map_err(of)
}

#[cfg(test)]
mod tests {
    use super::{MIGRATIONS, migrate, open};
    use crate::error::{Error, Trouble};
    use rusqlite::Connection;
    use std::path::Path;
    use std::time::Duration;

    const BUSY: Duration = Duration::from_millis(50);

    fn version(connection: &Connection) -> i64 {
        connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
    }

    #[test]
    fn only_what_is_missing_is_applied() {
        let mut connection = Connection::open_in_memory().unwrap();
        let path = Path::new("x.db");
        let one = "CREATE TABLE a (x INTEGER); INSERT INTO a VALUES (1);";
        let two = "INSERT INTO a SELECT x + 1 FROM a;";
        migrate(&mut connection, path, &[one]).unwrap();
        migrate(&mut connection, path, &[one]).unwrap();
        migrate(&mut connection, path, &[one, two]).unwrap();
        let rows: i64 = connection.query_row("SELECT sum(x) FROM a", [], |row| row.get(0)).unwrap();
        assert_eq!((rows, version(&connection)), (3, 2));
    }

    #[test]
    fn a_failing_migration_leaves_the_version_before_it() {
        let mut connection = Connection::open_in_memory().unwrap();
        let path = Path::new("x.db");
        migrate(&mut connection, path, &["CREATE TABLE a (x INTEGER);"]).unwrap();
        let broken = ["", "CREATE TABLE b (x INTEGER); nonsense;"];
        assert!(migrate(&mut connection, path, &broken).is_err());
        let tables: i64 = connection
            .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
            .unwrap();
        assert_eq!((tables, version(&connection)), (1, 1));
    }

    #[test]
    fn a_newer_database_is_refused_untouched() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let connection = open(&path, BUSY).unwrap();
        connection.pragma_update(None, "user_version", 99).unwrap();
        let error = open(&path, BUSY).unwrap_err();
        let known = i64::try_from(MIGRATIONS.len()).unwrap();
        assert_eq!(error, Error::Newer { path, found: 99, known });
        assert!(error.to_string().contains("has version 99 and this program reads up to"));
        assert_eq!(version(&connection), 99);
    }

    #[test]
    fn places_that_cannot_hold_a_database_say_so() {
        let folder = tempfile::tempdir().unwrap();
        let check = |path: &Path, wanted: Trouble| match open(path, BUSY).unwrap_err() {
            Error::Unwritable { trouble, .. } => assert_eq!(trouble, wanted),
            other => panic!("{other}"),
        };
        check(&folder.path().join("missing").join("x.db"), Trouble::Unreachable);
        check(folder.path(), Trouble::Unreachable);
        let text = folder.path().join("text.db");
        std::fs::write(&text, "not a database, but long enough to be looked at ".repeat(40))
            .unwrap();
        check(&text, Trouble::Corrupt);
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_may_read_the_files() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        std::fs::write(&path, "").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let connection = open(&path, BUSY).unwrap();
        connection.execute("INSERT INTO meta VALUES ('x', 1)", []).unwrap();
        for file in ["x.db", "x.db-wal", "x.db-shm"] {
            let found = std::fs::metadata(folder.path().join(file)).unwrap();
            assert_eq!(found.permissions().mode() & 0o777, 0o600, "{file}");
        }
    }

    #[test]
    fn processes_that_start_at_once_all_come_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| open(&path, Duration::from_secs(5)).unwrap());
            }
        });
    }
}
