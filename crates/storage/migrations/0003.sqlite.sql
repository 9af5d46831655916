-- Calls of the chat that wait for a decision, what its tools did, and what a task was before its last update.

CREATE TABLE confirmations (
    id           TEXT    NOT NULL PRIMARY KEY,
    conversation TEXT    NOT NULL REFERENCES conversations (id),
    -- The message that asks.
    position     INTEGER NOT NULL,
    call         TEXT    NOT NULL,
    expires_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX confirmations_by_conversation ON confirmations (conversation, position);
CREATE INDEX confirmations_by_expiry ON confirmations (expires_at);

ALTER TABLE conversations DROP COLUMN pending;
ALTER TABLE messages ADD COLUMN trace TEXT;
-- 1 if a tool answered for this message.
ALTER TABLE messages ADD COLUMN looked_up INTEGER;
ALTER TABLE tasks ADD COLUMN previous TEXT;
