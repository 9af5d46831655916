-- Who called what, with which outcome.

CREATE TABLE audit (
    id             INTEGER PRIMARY KEY,
    at             INTEGER NOT NULL,
    who            TEXT    NOT NULL,
    peer           TEXT,
    action         TEXT    NOT NULL,
    outcome        TEXT    NOT NULL,
    -- What was touched, as JSON.
    ids            TEXT    NOT NULL,
    query          TEXT,
    correlation_id TEXT    NOT NULL
) STRICT;

CREATE INDEX audit_by_time ON audit (at, id);
