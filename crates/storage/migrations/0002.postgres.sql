-- People who sign in, the programs they let in, and what tokens may do.

ALTER TABLE tokens ADD COLUMN scopes TEXT;
ALTER TABLE tokens ADD COLUMN profile TEXT;

CREATE TABLE users (
    name       TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    -- Argon2id, in the PHC string format; none for those who sign in elsewhere.
    password   TEXT,
    -- The issuer and the subject of somebody who signs in elsewhere.
    login      TEXT COLLATE "C" UNIQUE,
    user_groups TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE TABLE browser_sessions (
    sha256     TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    owner      TEXT COLLATE "C" NOT NULL,
    scopes     TEXT COLLATE "C" NOT NULL,
    -- The API token that it was opened with.
    token      TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);

-- Programs that registered themselves.
CREATE TABLE oauth_clients (
    id         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    metadata   TEXT COLLATE "C" NOT NULL,
    used_at    BIGINT NOT NULL
);

CREATE INDEX oauth_clients_by_use ON oauth_clients (used_at);

-- What a person allowed a program.
CREATE TABLE grants (
    id          TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    owner       TEXT COLLATE "C" NOT NULL,
    client      TEXT COLLATE "C" NOT NULL,
    client_name TEXT COLLATE "C" NOT NULL,
    scopes      TEXT COLLATE "C" NOT NULL,
    created_at  BIGINT NOT NULL,
    expires_at  BIGINT NOT NULL,
    revoked_at  BIGINT
);

CREATE INDEX grants_by_owner ON grants (owner, created_at);
CREATE INDEX grants_by_expiry ON grants (expires_at);

-- Codes and tokens of grants.
CREATE TABLE grant_secrets (
    sha256     TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    grant_id   TEXT COLLATE "C" NOT NULL REFERENCES grants (id) ON DELETE CASCADE,
    kind       TEXT COLLATE "C" NOT NULL CHECK (kind IN ('code', 'access', 'refresh')),
    -- What must be proved to use a code, as JSON.
    proof      TEXT,
    expires_at BIGINT NOT NULL,
    used_at    BIGINT
);

CREATE INDEX grant_secrets_by_grant ON grant_secrets (grant_id);
