//! The store as its users see it, over real files.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use catalog::{
    Group, GroupId, Key, KeyId, Known, Mode, Pinned, Reach, Secret, Server, ServerId, Transport,
};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::{AuditKind, Behind, Change, Error, Noun, Outcome, Store, Trouble, added};

struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("mcpm.db")
    }

    fn open(&self) -> Store {
        Store::open(&self.path()).unwrap()
    }

    /// A second connection, as another process would have it.
    fn beside(&self) -> Connection {
        let connection = Connection::open(self.path()).unwrap();
        connection.busy_timeout(Duration::from_secs(5)).unwrap();
        connection
    }

    fn number(&self, sql: &str) -> i64 {
        self.beside().query_row(sql, [], |row| row.get(0)).unwrap()
    }
}

fn group(name: &str, reach: Reach) -> Group {
    let defaults = vec!["z".to_owned(), "a".to_owned()];
    let id = GroupId(0);
    Group {
        id,
        name: name.to_owned(),
        mode: Mode::Adaptive,
        defaults,
        adaptive_cap: Some(20),
        reach,
    }
}

fn server(name: &str) -> Server {
    let headers =
        ["Z", "A", "M"].map(|name| (name.to_owned(), Secret::new(format!("${{{name}}}"))));
    Server {
        id: ServerId(0),
        name: name.to_owned(),
        transport: Transport::Http {
            url: "http://127.0.0.1:1/mcp?x=1".to_owned(),
            headers: headers.to_vec(),
            ca_file: Some("ca.pem".to_owned()),
        },
        description: "what \"for\"".to_owned(),
        enabled: true,
        shared: false,
        timeout: Duration::from_millis(1500),
        call_timeout: Server::CALL_TIMEOUT,
        protocol: Pinned::Legacy,
    }
}

fn local(name: &str) -> Server {
    let transport = Transport::Stdio {
        command: "npx".to_owned(),
        args: vec!["-y".to_owned(), String::new()],
        env: vec![("B".to_owned(), Secret::new("1")), ("A".to_owned(), Secret::new("2"))],
        cwd: None,
    };
    Server { transport, enabled: false, shared: true, ..server(name) }
}

fn key(group: i64, byte: u8) -> Key {
    Key {
        id: KeyId(0),
        group: GroupId(group),
        label: format!("key {byte}"),
        hint: "abcd".to_owned(),
        hash: [byte; 32],
        created_at: 1_700_000_000,
        last_used_at: None,
        revoked: false,
    }
}

fn usage(server: i64, tool: &str, at_ms: i64) -> Behind {
    Behind::Usage {
        key: Some(KeyId(1)),
        server: ServerId(server),
        tool: tool.to_owned(),
        outcome: Outcome::ToolError,
        latency: Duration::from_micros(1250),
        at_ms,
    }
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < Duration::from_secs(10), "never: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn p45_a_fresh_database_holds_two_groups() {
    let state = Place::new().open().load().await.unwrap();
    let names: Vec<_> = state.groups.iter().map(|g| (g.name.as_str(), g.mode)).collect();
    assert_eq!(names, [("default", Mode::Hybrid), ("full", Mode::Direct)]);
    assert!(state.groups.iter().all(|g| g.reach == Reach::All && g.defaults.is_empty()));
    assert!(state.servers.is_empty() && state.keys.is_empty() && !state.seeded);
}

#[tokio::test]
async fn everything_written_is_read_back_after_a_restart() {
    let place = Place::new();
    let store = place.open();
    let changes = vec![
        Change::AddServer(server("b")),
        Change::AddServer(local("a")),
        Change::AddGroup(group("pi", Reach::Only(vec![added(1), added(0)]))),
        Change::AddKey(key(1, 7)),
        Change::Audit { kind: AuditKind::Group, message: "group `pi` was added".to_owned(), at: 5 },
        Change::Seeded,
    ];
    let ids = store.apply(changes).await.unwrap();
    assert_eq!(ids, [1, 2, 3, 1, 1, 0]);
    let before = store.load().await.unwrap();
    store.close().await;

    let store = place.open();
    let state = store.load().await.unwrap();
    assert_eq!(state, before);
    let (first, second) = (ServerId(1), ServerId(2));
    assert_eq!(
        state.servers,
        [Server { id: first, ..server("b") }, Server { id: second, ..local("a") }]
    );
    let reach = Reach::Only(vec![first, second]);
    assert_eq!(state.groups[2], Group { id: GroupId(3), ..group("pi", reach) });
    assert_eq!(state.keys, [Key { id: KeyId(1), ..key(1, 7) }]);
    assert!(state.seeded);
}

#[tokio::test]
async fn changes_replace_every_value() {
    let place = Place::new();
    let store = place.open();
    store.apply(vec![Change::AddServer(server("s")), Change::AddKey(key(1, 1))]).await.unwrap();
    let moved = Server { id: ServerId(1), ..local("t") };
    let group = Group { id: GroupId(1), ..group("mine", Reach::Only(vec![ServerId(1)])) };
    let revoked = Key { id: KeyId(1), revoked: true, last_used_at: Some(9), ..key(2, 2) };
    let changes = vec![
        Change::SetServer(moved.clone()),
        Change::SetGroup(group.clone()),
        Change::SetKey(revoked.clone()),
    ];
    assert_eq!(store.apply(changes).await.unwrap(), [1, 1, 1]);
    let state = store.load().await.unwrap();
    assert_eq!((&state.servers[0], &state.groups[0], &state.keys[0]), (&moved, &group, &revoked));
    // What was written behind meanwhile is not undone by an older copy of the key.
    store.apply(vec![Change::SetKey(Key { last_used_at: None, ..revoked })]).await.unwrap();
    assert_eq!(store.load().await.unwrap().keys[0].last_used_at, Some(9));
}

#[tokio::test]
async fn a_name_in_use_undoes_the_whole_call() {
    let store = Place::new().open();
    let check = async |change: Change, what: Noun, name: &str| {
        let first = Change::Audit { kind: AuditKind::Edit, message: String::new(), at: 0 };
        let error = store.apply(vec![first, change]).await.unwrap_err();
        assert_eq!(error, Error::Taken { what, name: name.to_owned() });
    };
    store.apply(vec![Change::AddServer(server("s")), Change::AddKey(key(1, 1))]).await.unwrap();
    check(Change::AddGroup(group("full", Reach::All)), Noun::Group, "full").await;
    let renamed = Group { id: GroupId(1), ..group("full", Reach::All) };
    check(Change::SetGroup(renamed), Noun::Group, "full").await;
    check(Change::AddServer(local("s")), Noun::Server, "s").await;
    check(Change::AddKey(key(1, 1)), Noun::Key, "key 1").await;
    assert!(store.audit(10).await.unwrap().is_empty());
    // Names are case-sensitive.
    store.apply(vec![Change::AddServer(server("S"))]).await.unwrap();
}

#[tokio::test]
async fn what_is_not_there_is_named() {
    let store = Place::new().open();
    let check = async |change: Change, text: &str| {
        assert_eq!(store.apply(vec![change]).await.unwrap_err().to_string(), text);
    };
    check(Change::RemoveGroup(GroupId(9)), "there is no group with id 9").await;
    check(Change::RemoveServer(ServerId(9)), "there is no server with id 9").await;
    check(Change::RemoveKey(KeyId(9)), "there is no key with id 9").await;
    check(
        Change::SetServer(Server { id: ServerId(9), ..local("s") }),
        "there is no server with id 9",
    )
    .await;
    check(Change::AddKey(key(9, 1)), "there is no group with id 9").await;
    let reach = Reach::Only(vec![ServerId(9)]);
    check(Change::AddGroup(group("g", reach)), "there is no server with id 9").await;
    check(Change::SetKnown(ServerId(9), Known::default()), "there is no server with id 9").await;
    assert_eq!(store.load().await.unwrap().groups.len(), 2);
}

#[tokio::test]
async fn p44_a_group_that_chose_only_a_removed_server_reaches_nothing() {
    let place = Place::new();
    let store = place.open();
    let only = group("only", Reach::Only(vec![added(0)]));
    store.apply(vec![Change::AddServer(server("s")), Change::AddGroup(only)]).await.unwrap();
    store.apply(vec![Change::SetKnown(ServerId(1), Known::default())]).await.unwrap();
    assert_eq!(store.known().await.unwrap().len(), 1);
    store.behind(usage(1, "t", 1));
    store
        .apply(vec![Change::RemoveServer(ServerId(1)), Change::AddServer(server("s"))])
        .await
        .unwrap();
    let state = store.load().await.unwrap();
    assert_eq!(state.groups[2].reach, Reach::Only(vec![]));
    assert_eq!(state.servers[0].id, ServerId(2), "an id is never given twice");
    assert!(store.known().await.unwrap().is_empty());
    store.close().await;
    assert_eq!(place.number("SELECT count(*) FROM usage"), 1);
    assert_eq!(place.number("SELECT count(*) FROM gone_servers WHERE name = 's'"), 1);
}

#[tokio::test]
async fn removing_a_group_removes_its_keys() {
    let store = Place::new().open();
    let keys =
        vec![Change::AddKey(key(1, 1)), Change::AddKey(key(2, 2)), Change::AddKey(key(1, 3))];
    store.apply(keys).await.unwrap();
    store.apply(vec![Change::RemoveGroup(GroupId(1))]).await.unwrap();
    let labels: Vec<_> =
        store.load().await.unwrap().keys.into_iter().map(|key| key.label).collect();
    assert_eq!(labels, ["key 2"]);
}

#[tokio::test]
async fn the_audit_is_newest_first() {
    let store = Place::new().open();
    let line = |at| Change::Audit { kind: AuditKind::Rename, message: format!("line {at}"), at };
    store.apply(vec![line(1), line(2), line(3)]).await.unwrap();
    let lines = store.audit(2).await.unwrap();
    let seen: Vec<_> = lines.iter().map(|line| (line.at, line.message.as_str())).collect();
    assert_eq!(seen, [(3, "line 3"), (2, "line 2")]);
}

#[tokio::test]
async fn the_sealing_key_is_made_once() {
    let place = Place::new();
    let store = place.open();
    let sealing = store.sealing_key().await.unwrap();
    store.close().await;
    assert_eq!(place.open().sealing_key().await.unwrap(), sealing);
    assert_ne!(Place::new().open().sealing_key().await.unwrap(), sealing);
}

#[tokio::test]
async fn p95_usage_is_written_behind_and_at_the_end() {
    let place = Place::new();
    let store = place.open();
    store.apply(vec![Change::AddKey(key(1, 1))]).await.unwrap();
    store.behind(usage(1, "t", 1));
    store.behind(Behind::KeyUsed { key: KeyId(1), at: 50 });
    store.behind(Behind::KeyUsed { key: KeyId(1), at: 40 });
    until("flushed while running", || place.number("SELECT count(*) FROM usage") == 1).await;
    assert_eq!(store.load().await.unwrap().keys[0].last_used_at, Some(50));
    for at_ms in 0..9000 {
        store.behind(usage(at_ms % 3, if at_ms % 2 == 0 { "even" } else { "odd" }, at_ms));
    }
    store.close().await;
    store.close().await;
    assert_eq!(place.number("SELECT count(*) FROM usage"), 9001);
    assert_eq!(place.number("SELECT count(*) FROM usage_tools"), 7);
    assert_eq!(
        place.number("SELECT min(latency_us) FROM usage WHERE outcome = 'tool_error'"),
        1250
    );
    assert_eq!(store.dropped(), 0);
    store.behind(usage(1, "t", 1));
    assert_eq!(store.dropped(), 1);
    assert_eq!(store.load().await, Err(Error::Closed));
    assert_eq!(store.ping().await, Err(Error::Closed));
}

#[tokio::test]
async fn dropping_the_last_handle_also_writes_the_rest() {
    let place = Place::new();
    let store = place.open();
    store.behind(usage(1, "t", 1));
    drop(store);
    until("written", || place.number("SELECT count(*) FROM usage") == 1).await;
}

#[tokio::test]
async fn a_locked_database_is_told_and_loses_nothing() {
    let place = Place::new();
    let store = Store::open_with(&place.path(), Duration::from_millis(20)).unwrap();
    let other = place.beside();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let add = || vec![Change::AddServer(server("s"))];
    let locked = Error::Unwritable { path: place.path(), trouble: Trouble::Locked };
    assert_eq!(store.apply(add()).await, Err(locked.clone()));
    assert_eq!(store.ping().await, Err(locked));
    store.load().await.unwrap();
    for at_ms in 0..40_000 {
        store.behind(usage(1, "t", at_ms));
    }
    let dropped = store.dropped();
    assert!(dropped > 0, "the queue is bounded");
    other.execute_batch("COMMIT").unwrap();
    store.ping().await.unwrap();
    store.apply(add()).await.unwrap();
    store.close().await;
    let written = place.number("SELECT count(*) FROM usage");
    assert_eq!(written, 40_000 - i64::try_from(dropped).unwrap());
}

#[tokio::test]
async fn writes_of_others_are_noticed_and_own_ones_are_not() {
    let place = Place::new();
    let store = place.open();
    let foreign = store.foreign_changes();
    store.apply(vec![Change::AddServer(server("s"))]).await.unwrap();
    // The thread looks after each flush, so two flushes mean that it has looked once.
    for flush in 1..=2 {
        store.behind(usage(1, "t", flush));
        until("flushed", || place.number("SELECT count(*) FROM usage") == flush).await;
    }
    assert_eq!(*foreign.borrow(), 0);
    place.beside().execute("UPDATE servers SET name = 't'", []).unwrap();
    until("noticed", || *foreign.borrow() == 1).await;
    assert_eq!(store.load().await.unwrap().servers[0].name, "t");
}

/// Set in the process that [`plt_02_two_processes_write_at_once`] starts: the database.
const OTHER: &str = "MCPM_STORE_TEST_DATABASE";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plt_02_two_processes_write_at_once() {
    if let Some(path) = std::env::var_os(OTHER) {
        return add_servers(Path::new(&path), "other").await;
    }
    let place = Place::new();
    drop(place.open());
    let reader = place.beside();
    reader.execute_batch("BEGIN; SELECT * FROM groups").unwrap();
    let mut other = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["plt_02_two_processes_write_at_once", "--nocapture"])
        .env(OTHER, place.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    add_servers(&place.path(), "own").await;
    assert!(other.wait().await.unwrap().success());
    assert_eq!(place.number("SELECT count(*) FROM servers"), 100);
    assert_eq!(place.number("SELECT count(*) FROM audit"), 100);
    assert_eq!(place.number("SELECT count(*) FROM usage"), 4000);
}

/// Fifty parallel writes, each of which reads first, while usage is written.
async fn add_servers(path: &Path, prefix: &str) {
    let store = Store::open(path).unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..50 {
        let (store, name) = (store.clone(), format!("{prefix} {number}"));
        tasks.spawn(async move {
            store.load().await.unwrap();
            for at_ms in 0..40 {
                store.behind(usage(1, &name, at_ms));
            }
            let audit = Change::Audit { kind: AuditKind::Server, message: name.clone(), at: 1 };
            store.apply(vec![Change::AddServer(server(&name)), audit]).await.unwrap();
        });
    }
    while let Some(task) = tasks.join_next().await {
        task.unwrap();
    }
    store.close().await;
    assert_eq!(store.dropped(), 0);
}
