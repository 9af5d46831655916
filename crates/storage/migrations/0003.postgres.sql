-- Calls of the chat that wait for a decision, what its tools did, and what a task was before its last update.

CREATE TABLE confirmations (
    id           TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    conversation TEXT COLLATE "C" NOT NULL REFERENCES conversations (id),
    -- The message that asks.
    position     BIGINT NOT NULL,
    call         TEXT NOT NULL,
    expires_at   BIGINT NOT NULL
);

CREATE INDEX confirmations_by_conversation ON confirmations (conversation, position);
CREATE INDEX confirmations_by_expiry ON confirmations (expires_at);

ALTER TABLE conversations DROP COLUMN pending;
ALTER TABLE messages ADD COLUMN trace TEXT;
-- 1 if a tool answered for this message.
ALTER TABLE messages ADD COLUMN looked_up BIGINT;
ALTER TABLE tasks ADD COLUMN previous TEXT;
