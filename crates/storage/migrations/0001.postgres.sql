-- The first version. What the columns mean is said once, in src/value.rs. Keys are compared byte by byte
-- (COLLATE "C"), as SQLite does it: the same order everywhere, whatever the language of the server.

CREATE TABLE tasks (
    owner        TEXT COLLATE "C" NOT NULL,
    id           TEXT COLLATE "C" NOT NULL,
    title        TEXT NOT NULL,
    description  TEXT,
    priority     BIGINT NOT NULL,
    category     TEXT,
    tags         TEXT NOT NULL,
    due_date     BIGINT,
    created_at   BIGINT NOT NULL,
    updated_at   BIGINT NOT NULL,
    completed_at BIGINT,
    -- For comparing without regard to case, made of the columns above.
    category_key TEXT COLLATE "C",
    tags_key     TEXT COLLATE "C" NOT NULL,
    search       TEXT COLLATE "C" NOT NULL,
    -- By owner first: nobody can take, or find out about, an id of somebody else's.
    PRIMARY KEY (owner, id)
);

CREATE INDEX tasks_by_due ON tasks (owner, COALESCE(due_date, 99999999), id);
CREATE INDEX tasks_by_priority ON tasks (owner, priority, id);

CREATE TABLE conversations (
    id            TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    owner         TEXT COLLATE "C" NOT NULL,
    created_at    BIGINT NOT NULL,
    last_activity BIGINT NOT NULL,
    message_count BIGINT NOT NULL,
    preview       TEXT,
    pending       TEXT NOT NULL
);

CREATE INDEX conversations_by_activity ON conversations (owner, last_activity, id);

CREATE TABLE messages (
    conversation TEXT COLLATE "C" NOT NULL REFERENCES conversations (id),
    -- From 1, without gaps.
    position     BIGINT NOT NULL,
    id           TEXT COLLATE "C" NOT NULL,
    role         TEXT NOT NULL CHECK (role IN ('user', 'assistant')),
    content      TEXT NOT NULL,
    created_at   BIGINT NOT NULL,
    PRIMARY KEY (conversation, position)
);

-- Which answer a request was given.
CREATE TABLE requests (
    owner        TEXT COLLATE "C" NOT NULL,
    request_key  TEXT COLLATE "C" NOT NULL,
    conversation TEXT COLLATE "C" NOT NULL,
    position     BIGINT NOT NULL,
    PRIMARY KEY (owner, request_key),
    FOREIGN KEY (conversation, position) REFERENCES messages (conversation, position)
);

CREATE TABLE tokens (
    id         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    sha256     TEXT COLLATE "C" NOT NULL UNIQUE,
    owner      TEXT COLLATE "C" NOT NULL,
    label      TEXT,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    last_used  BIGINT,
    revoked_at BIGINT
);
