//! The words of real PDF files, compared with those that `pdftotext` finds.

use std::path::{Path, PathBuf};
use std::process::Command;

use tribune_extract::Format;

use crate::{contents, environment, recall, words, workers};

/// Texts with fewer words are covers and test pages.
const MIN_WORDS: usize = 100;

fn pdf_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        let kind = entry.file_type().expect("a kind");
        if kind.is_dir() {
            pdf_files(&path, files);
        } else if kind.is_file() && path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("pdf")) {
            files.push(path);
        }
    }
}

fn pdftotext(path: &Path) -> String {
    let output = Command::new("pdftotext").args(["-enc", "UTF-8"]).arg(path).arg("-").output();
    let output = output.expect("pdftotext: ./test --install-only installs it");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn pdf_words_are_found() {
    let mut files = Vec::new();
    pdf_files(&environment().join("documents/files"), &mut files);
    let workers = workers();
    let mut results = Vec::new();
    for path in files {
        let reference = pdftotext(&path);
        if words(&reference).values().sum::<usize>() < MIN_WORDS {
            continue;
        }
        let found = contents(&workers, Format::Pdf, std::fs::read(&path).expect("readable"));
        let text: String = found.found.into_iter().map(|found| found.text).collect();
        results.push((recall(&reference, &text), path, found.problems));
    }
    results.sort_by(|a, b| a.0.total_cmp(&b.0));
    assert!(results.len() >= 60, "only {} files with text", results.len());
    let (median, worst) = (results[results.len() / 2].0, results[0].0);
    println!("{} files, median {median:.4}, worst {worst:.4}", results.len());
    let worst_files: Vec<_> = results.iter().take(5).collect();
    assert!(median >= 0.98, "median {median}: {worst_files:?}");
    assert!(worst >= 0.90, "{worst_files:?}");
}
