//! Queries: every text is read as clauses, which ask for no more than the text says.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tribune_corpus::engine::embedded::EnglishWords;
use tribune_corpus::query::{meaning, parse};

fuzz_target!(|query: &str| {
    let fields = |name: &str| matches!(name, "tags" | "speaker" | "date").then(|| name.to_owned());
    let clauses = parse(query, fields, &mut EnglishWords::default());
    assert!(meaning(&clauses).len() <= query.len());
});
