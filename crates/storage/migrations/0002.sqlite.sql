-- People who sign in, the programs they let in, and what tokens may do.

ALTER TABLE tokens ADD COLUMN scopes TEXT;
ALTER TABLE tokens ADD COLUMN profile TEXT;

CREATE TABLE users (
    name       TEXT    NOT NULL PRIMARY KEY,
    -- Argon2id, in the PHC string format; none for those who sign in elsewhere.
    password   TEXT,
    -- The issuer and the subject of somebody who signs in elsewhere.
    login      TEXT    UNIQUE,
    user_groups TEXT   NOT NULL,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE browser_sessions (
    sha256     TEXT    NOT NULL PRIMARY KEY,
    owner      TEXT    NOT NULL,
    scopes     TEXT    NOT NULL,
    -- The API token that it was opened with.
    token      TEXT,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Programs that registered themselves.
CREATE TABLE oauth_clients (
    id         TEXT    NOT NULL PRIMARY KEY,
    metadata   TEXT    NOT NULL,
    used_at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX oauth_clients_by_use ON oauth_clients (used_at);

-- What a person allowed a program.
CREATE TABLE grants (
    id          TEXT    NOT NULL PRIMARY KEY,
    owner       TEXT    NOT NULL,
    client      TEXT    NOT NULL,
    client_name TEXT    NOT NULL,
    scopes      TEXT    NOT NULL,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    revoked_at  INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX grants_by_owner ON grants (owner, created_at);
CREATE INDEX grants_by_expiry ON grants (expires_at);

-- Codes and tokens of grants.
CREATE TABLE grant_secrets (
    sha256     TEXT    NOT NULL PRIMARY KEY,
    grant_id   TEXT    NOT NULL REFERENCES grants (id) ON DELETE CASCADE,
    kind       TEXT    NOT NULL CHECK (kind IN ('code', 'access', 'refresh')),
    -- What must be proved to use a code, as JSON.
    proof      TEXT,
    expires_at INTEGER NOT NULL,
    used_at    INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX grant_secrets_by_grant ON grant_secrets (grant_id);
