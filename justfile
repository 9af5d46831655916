# The things one does often. `just` lists them.

_default:
    @just --list

# Serve the demo
run *ARGS:
    cargo run --release -- serve {{ARGS}}

# Everything that must hold: installs what it needs, formats, lints, builds, tests
test *ARGS:
    ./test {{ARGS}}

# Only the tests that need nothing installed
quick:
    cargo test --workspace --lib --bins
    cargo test -p tribune-corpus -p tribune-server

# Tribune beside a bare axum handler and minimal rmcp servers, its search beside SQLite and tantivy, then its order books, its store and its chat
bench *ARGS:
    cargo build --release --workspace
    ./target/release/tribune-bench {{ARGS}}
    ./target/release/tribune-bench retrieval --passages 10000,100000 --set-limit 20
    ./target/release/tribune-bench market --messages 20000 --seconds 5
    ./target/release/tribune-bench store
    ./target/release/tribune-bench chat

# Index and search of 10,000 to 1,000,000 passages beside SQLite FTS5 and plain tantivy; about a quarter of an hour
bench-retrieval *ARGS:
    cargo build --release --workspace
    ./target/release/tribune-bench retrieval {{ARGS}}

# Order books: messages applied, views published, memory and processor time of 1,000 live books, answers from them
bench-market *ARGS:
    cargo build --release --workspace
    ./target/release/tribune-bench market {{ARGS}}

# Task writes to SQLite (and PostgreSQL with --postgres URL), and a hundred chats at a time with a model that answers at once
bench-chat *ARGS:
    cargo build --release --workspace
    ./target/release/tribune-bench store {{ARGS}}
    ./target/release/tribune-bench chat

# Index and search of 100,000 documents
bench-scale *ARGS:
    cargo build --release --workspace
    ./target/release/tribune-bench corpus-scale {{ARGS}}

# Format and lint
lint:
    cargo fmt --all
    cargo clippy --workspace --all-targets -- -D warnings
