//! Hansard XML: a file gives speeches with a text, or faults.

#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tribune_corpus::Reading;
use tribune_corpus::format::{Input, Record, Sink, Stop};
use tribune_speeches::{SpeechRules, reading};

static FILE: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("tribune-fuzz-{}.xml", std::process::id())));
static READING: LazyLock<Reading> = LazyLock::new(|| reading(SpeechRules::default()));

struct Checked;

impl Sink for Checked {
    fn record(&mut self, _: Option<u64>, record: Record, _: Vec<String>) -> Result<(), Stop> {
        assert!(!record.text.trim().is_empty() && !record.key.is_empty(), "{record:?}");
        Ok(())
    }

    fn fault(&mut self, _: Option<u64>, _: bool, problem: String) {
        assert!(!problem.is_empty());
    }
}

fuzz_target!(|xml: &[u8]| {
    fs::write(&*FILE, xml).expect("written");
    let input = Input { path: &FILE, relative: "day.xml", reading: &READING, max_document_bytes: 1024 * 1024 };
    // A file that cannot be read stops; that is an answer too.
    let _ = input.read(&mut Checked);
});
