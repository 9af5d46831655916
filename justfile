# The things one does often. `just` lists them.

_default:
    @just --list

# Serve the demo
run *ARGS:
    cargo run --release -- serve {{ARGS}}

# Everything that must hold: installs what it needs, checks formatting, lints, tests; `just test --soak` has all the kills
test *ARGS:
    ./test {{ARGS}}

# The unit tests, which need nothing installed; half a minute once they are compiled
quick:
    {{ if `command -v cargo-nextest || true` == "" { "cargo test" } else { "cargo nextest run" } }} --workspace --lib --bins

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

# The benchmarks of another revision and of this one in turn, side by side
bench-compare REVISION *ARGS:
    git worktree add --force --detach target/compare {{REVISION}}
    cd target/compare && cargo build --release --workspace --target-dir ../compare-build
    cargo build --release --workspace
    python3 dev/bench/compare.py target/compare-build/release/tribune-bench target/release/tribune-bench {{ARGS}}

# Index and search of 100,000 documents
bench-scale *ARGS:
    cargo build --release --workspace
    ./target/release/tribune-bench corpus-scale {{ARGS}}

# Search of 100,000 documents for 1,000 groups, by callers who may see parts of them; fails if their p99 is above 1.5 times that of everything
bench-readers *ARGS:
    cargo build --release -p tribune-bench
    ./target/release/tribune-bench readers {{ARGS}}

# Format and lint
lint:
    cargo fmt --all
    cargo clippy --workspace --all-targets -- -D warnings
