-- Other words for tools than their servers'.
CREATE TABLE overrides (
    server_id   INTEGER NOT NULL REFERENCES servers (id) ON DELETE CASCADE,
    tool        TEXT    NOT NULL,               -- the server's own name for it
    title       TEXT,
    description TEXT,
    PRIMARY KEY (server_id, tool)
) STRICT, WITHOUT ROWID;

-- What search made of texts, so that a restart does not make it anew. In the order in which they
-- were made, so that the oldest can be dropped when there are too many.
CREATE TABLE vectors (
    id     INTEGER PRIMARY KEY AUTOINCREMENT,
    model  BLOB NOT NULL,                       -- SHA-256 over the model's files
    text   BLOB NOT NULL,                       -- SHA-256 of the text
    vector BLOB NOT NULL,                       -- 32-bit floats, little-endian
    UNIQUE (model, text)
) STRICT;
