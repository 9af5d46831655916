-- The first version. What the columns mean is said once, in src/value.rs.

CREATE TABLE tasks (
    owner        TEXT    NOT NULL,
    id           TEXT    NOT NULL,
    title        TEXT    NOT NULL,
    description  TEXT,
    priority     INTEGER NOT NULL,
    category     TEXT,
    tags         TEXT    NOT NULL,
    due_date     INTEGER,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    completed_at INTEGER,
    -- For comparing without regard to case, made of the columns above.
    category_key TEXT,
    tags_key     TEXT    NOT NULL,
    search       TEXT    NOT NULL,
    -- By owner first: nobody can take, or find out about, an id of somebody else's.
    PRIMARY KEY (owner, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX tasks_by_due ON tasks (owner, COALESCE(due_date, 99999999), id);
CREATE INDEX tasks_by_priority ON tasks (owner, priority, id);

CREATE TABLE conversations (
    id            TEXT    NOT NULL PRIMARY KEY,
    owner         TEXT    NOT NULL,
    created_at    INTEGER NOT NULL,
    last_activity INTEGER NOT NULL,
    message_count INTEGER NOT NULL,
    preview       TEXT,
    pending       TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX conversations_by_activity ON conversations (owner, last_activity, id);

CREATE TABLE messages (
    conversation TEXT    NOT NULL REFERENCES conversations (id),
    -- From 1, without gaps.
    position     INTEGER NOT NULL,
    id           TEXT    NOT NULL,
    role         TEXT    NOT NULL CHECK (role IN ('user', 'assistant')),
    content      TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    PRIMARY KEY (conversation, position)
) STRICT, WITHOUT ROWID;

-- Which answer a request was given.
CREATE TABLE requests (
    owner        TEXT    NOT NULL,
    request_key  TEXT    NOT NULL,
    conversation TEXT    NOT NULL,
    position     INTEGER NOT NULL,
    PRIMARY KEY (owner, request_key),
    FOREIGN KEY (conversation, position) REFERENCES messages (conversation, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE tokens (
    id         TEXT    NOT NULL PRIMARY KEY,
    sha256     TEXT    NOT NULL UNIQUE,
    owner      TEXT    NOT NULL,
    label      TEXT,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    last_used  INTEGER,
    revoked_at INTEGER
) STRICT, WITHOUT ROWID;
