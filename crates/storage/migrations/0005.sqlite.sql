-- What a grant opens and when a program last used it, and what each of its tokens allows.

-- The one profile that it opens; none for all.
ALTER TABLE grants ADD COLUMN profile TEXT;
ALTER TABLE grants ADD COLUMN used_at INTEGER;
-- None for what the grant allows.
ALTER TABLE grant_secrets ADD COLUMN scopes TEXT;
-- How often it was exchanged for others.
ALTER TABLE grant_secrets ADD COLUMN uses INTEGER NOT NULL DEFAULT 0;
