//! What is kept for users: tasks, conversations and API tokens, in SQLite or PostgreSQL.
