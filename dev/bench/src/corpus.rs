//! The corpora: a folder of Markdown notes for the comparison, and one large
//! JSONL file for `corpus-scale`. The same bytes in every run.

use std::{
    collections::HashSet,
    fs::{self, File},
    io::{BufWriter, Write},
    path::Path,
};

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use crate::words::{COMMON, Rng, Vocabulary};

const SEED: u64 = 0x7472_6962_756E_6501;
const NOTES: usize = 200;
const NOTE_VOCABULARY: usize = 2_000;
/// How many different queries the search workload cycles over.
pub const QUERIES: usize = 64;
const SCALE_VOCABULARY: usize = 30_000;
/// Bounds the search for a query that has not been used yet.
const ATTEMPTS: usize = 1_000;

/// Writes the notes into `dir` and returns queries with adjacent words of a note, so that every query finds something.
pub fn write_notes(dir: &Path) -> Result<Vec<String>> {
    fs::create_dir_all(dir).with_context(|| format!("create {}", dir.display()))?;
    let mut rng = Rng::new(SEED);
    let vocabulary = Vocabulary::new(&mut rng, NOTE_VOCABULARY);
    let mut notes = Vec::with_capacity(NOTES);
    for number in 1..=NOTES {
        let note = note(&mut rng, &vocabulary);
        let path = dir.join(format!("note-{number:03}.md"));
        fs::write(&path, &note).with_context(|| format!("write {}", path.display()))?;
        notes.push(note);
    }
    let mut queries = Queries::default();
    for index in 0..QUERIES {
        let note = &notes[rng.below(notes.len())];
        queries.add(&mut rng, note, 2 + index % 2)?;
    }
    Ok(queries.list)
}

fn note(rng: &mut Rng, vocabulary: &Vocabulary) -> String {
    let mut left = rng.within(80, 300);
    let mut text = format!("# {}\n", title(rng, vocabulary));
    let mut sentences = 0;
    while left > 0 {
        // A heading now and then, as in notes people write.
        if sentences > 0 && sentences % 9 == 0 {
            text.push_str("\n\n## ");
            text.push_str(&title(rng, vocabulary));
            text.push('\n');
        }
        text.push_str(if sentences % 4 == 0 { "\n" } else { " " });
        let length = rng.within(7, 15).min(left);
        text.push_str(&sentence(rng, vocabulary, length));
        if sentences % 4 == 3 {
            text.push('\n');
        }
        left -= length;
        sentences += 1;
    }
    text.push('\n');
    text
}

fn title(rng: &mut Rng, vocabulary: &Vocabulary) -> String {
    let length = rng.within(2, 5);
    let mut title = sentence(rng, vocabulary, length);
    title.pop();
    title
}

fn sentence(rng: &mut Rng, vocabulary: &Vocabulary, length: usize) -> String {
    let words: Vec<&str> = (0..length).map(|_| vocabulary.draw(rng)).collect();
    let text = words.join(" ");
    let (first, rest) = text.split_at(text.len().min(1));
    format!("{}{rest}.", first.to_ascii_uppercase())
}

fn text(rng: &mut Rng, vocabulary: &Vocabulary, words: usize) -> String {
    let mut left = words;
    let mut sentences = Vec::new();
    while left > 0 {
        let length = rng.within(7, 15).min(left);
        sentences.push(sentence(rng, vocabulary, length));
        left -= length;
    }
    sentences.join(" ")
}

/// Queries, no two the same.
#[derive(Default)]
struct Queries {
    list: Vec<String>,
    seen: HashSet<String>,
}

impl Queries {
    /// Adds a query of up to `length` words of `source`.
    fn add(&mut self, rng: &mut Rng, source: &str, length: usize) -> Result<()> {
        let words = content_words(source);
        ensure!(words.len() > length, "too few content words for a query");
        for _ in 0..ATTEMPTS {
            let mut picked: Vec<&str> = Vec::with_capacity(length);
            for _ in 0..length {
                let word = &words[rng.below(words.len())];
                if !picked.contains(&word.as_str()) {
                    picked.push(word);
                }
            }
            let query = picked.join(" ");
            if picked.len() == length && self.seen.insert(query.clone()) {
                self.list.push(query);
                return Ok(());
            }
        }
        // A one-word query for a frequent word may have been used up; a
        // longer one always has room.
        self.add(rng, source, length + 1)
    }
}

fn content_words(source: &str) -> Vec<String> {
    source
        .split(|letter: char| !letter.is_ascii_alphabetic())
        .map(str::to_ascii_lowercase)
        .filter(|word| word.len() >= 3 && !COMMON.contains(&word.as_str()))
        .collect()
}

#[derive(Serialize)]
struct Document {
    id: String,
    title: String,
    text: String,
    date: String,
}

/// The result of `write_documents`.
pub struct Documents {
    pub bytes: u64,
    pub queries: Vec<String>,
}

/// Writes `count` documents as JSONL and gives `queries` queries of one to four
/// words, taken from documents all over the corpus.
pub fn write_documents(path: &Path, count: usize, queries: usize) -> Result<Documents> {
    let file = File::create(path).with_context(|| format!("create {}", path.display()))?;
    let mut out = BufWriter::with_capacity(1 << 20, file);
    let mut rng = Rng::new(SEED ^ 1);
    let vocabulary = Vocabulary::new(&mut rng, SCALE_VOCABULARY);
    let mut made = Queries::default();
    for number in 1..=count {
        let document = document(&mut rng, &vocabulary, number);
        serde_json::to_writer(&mut out, &document).context("write a document")?;
        out.write_all(b"\n").context("write a document")?;
        while made.list.len() < queries * number / count {
            let length = 1 + made.list.len() % 4;
            made.add(&mut rng, &document.text, length)?;
        }
    }
    out.flush().context("write the documents")?;
    let bytes = fs::metadata(path).context("size of the corpus")?.len();
    Ok(Documents { bytes, queries: shuffled(&mut rng, made.list) })
}

fn document(rng: &mut Rng, vocabulary: &Vocabulary, number: usize) -> Document {
    let words = rng.within(60, 120);
    let (year, month, day) = (rng.within(2015, 2025), rng.within(1, 12), rng.within(1, 28));
    Document {
        id: format!("doc-{number:06}"),
        title: title(rng, vocabulary),
        text: text(rng, vocabulary, words),
        date: format!("{year}-{month:02}-{day:02}"),
    }
}

/// Shuffles the queries, which are in document order.
fn shuffled(rng: &mut Rng, mut list: Vec<String>) -> Vec<String> {
    for index in (1..list.len()).rev() {
        list.swap(index, rng.below(index + 1));
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_notes_are_the_same_every_time_and_queries_differ() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let first = write_notes(&dir.path().join("a"))?;
        let second = write_notes(&dir.path().join("b"))?;
        assert_eq!(first, second);
        assert_eq!(first.iter().collect::<HashSet<_>>().len(), QUERIES);
        for number in [1, NOTES] {
            let name = format!("note-{number:03}.md");
            let note = fs::read_to_string(dir.path().join("a").join(&name))?;
            assert_eq!(note, fs::read_to_string(dir.path().join("b").join(&name))?);
            assert!((80..400).contains(&note.split_whitespace().count()));
        }
        Ok(())
    }

    #[test]
    fn documents_give_as_many_queries_as_asked() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("corpus.jsonl");
        let documents = write_documents(&path, 1_000, 2_500)?;
        assert_eq!(documents.queries.len(), 2_500);
        let text = fs::read_to_string(&path)?;
        assert_eq!(text.lines().count(), 1_000);
        assert!(text.starts_with("{\"id\":\"doc-000001\""));
        Ok(())
    }
}
