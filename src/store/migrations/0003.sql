-- Sessions that were ended and whose ids would otherwise open them again. In the order of their
-- end, so that the oldest can be dropped when there are too many.
CREATE TABLE ended_sessions (
    id    INTEGER PRIMARY KEY AUTOINCREMENT,
    nonce INTEGER NOT NULL,                     -- of the session id; its 64 bits, as signed
    at    INTEGER NOT NULL                      -- seconds
) STRICT;
