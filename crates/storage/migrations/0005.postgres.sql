-- What a grant opens and when a program last used it, and what each of its tokens allows.

-- The one profile that it opens; none for all.
ALTER TABLE grants ADD COLUMN profile TEXT COLLATE "C";
ALTER TABLE grants ADD COLUMN used_at BIGINT;
-- None for what the grant allows.
ALTER TABLE grant_secrets ADD COLUMN scopes TEXT COLLATE "C";
-- How often it was exchanged for others.
ALTER TABLE grant_secrets ADD COLUMN uses BIGINT NOT NULL DEFAULT 0;
