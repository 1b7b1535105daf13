-- AUTOINCREMENT where other rows outlive the id: a number is never given twice, so the usage
-- of a removed server or key cannot be taken for that of a new one.

CREATE TABLE groups (
    id           INTEGER PRIMARY KEY,
    name         TEXT    NOT NULL UNIQUE,
    mode         TEXT    NOT NULL,
    defaults     TEXT    NOT NULL,              -- JSON array of exposed names
    adaptive_cap INTEGER,
    reach_all    INTEGER NOT NULL               -- 1: every server; 0: those in group_servers
) STRICT;

CREATE TABLE servers (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    name            TEXT    NOT NULL UNIQUE,
    transport       TEXT    NOT NULL,           -- http | stdio
    url             TEXT,
    headers         TEXT,                       -- JSON array of [name, value], order kept
    ca_file         TEXT,
    command         TEXT,
    args            TEXT,                       -- JSON array
    env             TEXT,                       -- JSON array of [name, value], order kept
    cwd             TEXT,
    description     TEXT    NOT NULL,
    enabled         INTEGER NOT NULL,
    shared          INTEGER NOT NULL,
    timeout_ms      INTEGER NOT NULL,
    call_timeout_ms INTEGER NOT NULL,
    protocol        TEXT    NOT NULL
) STRICT;

-- The names of servers that are no longer, for the statistics of what they did.
CREATE TABLE gone_servers (
    id   INTEGER PRIMARY KEY,
    name TEXT    NOT NULL
) STRICT;

CREATE TABLE group_servers (
    group_id  INTEGER NOT NULL REFERENCES groups (id) ON DELETE CASCADE,
    server_id INTEGER NOT NULL REFERENCES servers (id) ON DELETE CASCADE,
    PRIMARY KEY (group_id, server_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX group_servers_server ON group_servers (server_id);

CREATE TABLE keys (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    group_id     INTEGER NOT NULL REFERENCES groups (id) ON DELETE CASCADE,
    label        TEXT    NOT NULL,
    hint         TEXT    NOT NULL,
    hash         BLOB    NOT NULL UNIQUE,       -- SHA-256 of the secret
    created_at   INTEGER NOT NULL,              -- seconds
    last_used_at INTEGER,                       -- seconds
    revoked      INTEGER NOT NULL
) STRICT;

CREATE INDEX keys_group ON keys (group_id);

-- What each server listed when it was last seen.
CREATE TABLE known (
    server_id INTEGER PRIMARY KEY REFERENCES servers (id) ON DELETE CASCADE,
    catalog   TEXT    NOT NULL
) STRICT;

CREATE TABLE audit (
    id      INTEGER PRIMARY KEY,
    at      INTEGER NOT NULL,                   -- seconds
    kind    TEXT    NOT NULL,
    message TEXT    NOT NULL
) STRICT;

-- Tool names once each: a million rows of usage then hold numbers only.
CREATE TABLE usage_tools (
    id        INTEGER PRIMARY KEY,
    server_id INTEGER NOT NULL,
    name      TEXT    NOT NULL,
    UNIQUE (server_id, name)
) STRICT;

CREATE TABLE usage (
    id         INTEGER PRIMARY KEY,
    at_ms      INTEGER NOT NULL,                -- when the call ended
    key_id     INTEGER,                         -- null: a key-less caller
    tool_id    INTEGER NOT NULL REFERENCES usage_tools (id),
    outcome    TEXT    NOT NULL,
    latency_us INTEGER NOT NULL
) STRICT;

-- By day and hour; by key, in order, which is what chains are read from; by tool and server.
CREATE INDEX usage_at ON usage (at_ms);
CREATE INDEX usage_key ON usage (key_id, at_ms, tool_id);
CREATE INDEX usage_tool ON usage (tool_id, at_ms);

-- Single values: `sealing_key`, `seeded`, `ping`.
CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value ANY  NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO groups (name, mode, defaults, adaptive_cap, reach_all)
VALUES ('default', 'hybrid', '[]', NULL, 1), ('full', 'direct', '[]', NULL, 1);
