//! Real files, real workers. `./test` installs pandoc, pdftotext and the documents.

#![allow(clippy::disallowed_methods, reason = "tests use the machine's clock")]

mod hostile;
mod made;
mod recall;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use tribune_extract::{Extracted, Format, Problem, Receive, Stop, Workers};
use unicode_normalization::UnicodeNormalization;

/// Everything in a file.
#[derive(Default)]
struct Contents {
    found: Vec<Extracted>,
    problems: Vec<Problem>,
}

impl Receive for Contents {
    fn extracted(&mut self, extracted: Extracted) -> Result<(), Stop> {
        self.found.push(extracted);
        Ok(())
    }

    fn problem(&mut self, problem: Problem) -> Result<(), Stop> {
        self.problems.push(problem);
        Ok(())
    }
}

fn workers() -> Workers {
    Workers::new(env!("CARGO_BIN_EXE_tribune-extract-worker"), [""; 0])
}

fn contents(workers: &Workers, format: Format, bytes: Vec<u8>) -> Contents {
    let mut contents = Contents::default();
    workers.extract(format, bytes, 64 << 20, &mut contents).expect("nothing stops it");
    contents
}

fn format_of(path: &Path) -> Option<Format> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    Format::ALL.into_iter().find(|format| format.extensions().contains(&&*extension))
}

/// What `./test` installs for the tests.
fn environment() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.testenv")
}

/// Words of two letters and more, with their numbers: readers disagree where single letters belong.
fn words(text: &str) -> HashMap<String, usize> {
    let folded: String = text.nfkc().flat_map(char::to_lowercase).collect();
    let mut words = HashMap::new();
    for word in folded.split(|c: char| !c.is_alphanumeric()).filter(|word| word.chars().count() > 1) {
        *words.entry(word.to_owned()).or_insert(0) += 1;
    }
    words
}

/// The share of the words of `reference` that are in `text`.
fn recall(reference: &str, text: &str) -> f64 {
    let (wanted, found) = (words(reference), words(text));
    let all: usize = wanted.values().sum();
    let there: usize = wanted.iter().map(|(word, count)| (*count).min(found.get(word).copied().unwrap_or(0))).sum();
    if all == 0 { 1.0 } else { there as f64 / all as f64 }
}
