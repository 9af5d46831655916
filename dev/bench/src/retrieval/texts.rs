//! The texts that every engine indexes and the questions that every engine is asked: generated, and
//! the same in every run.

use std::{
    collections::HashSet,
    fs::{self, File},
    io::{BufRead, BufReader, BufWriter, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use tribune_corpus::passage;

use crate::words::{COMMON, Rng, Vocabulary};

const SEED: u64 = 0x7472_6962_756E_6502;
const VOCABULARY: usize = 60_000;
/// How often a word is one of the document's own topic words.
const TOPIC_SHARE: usize = 4;
const TOPIC_WORDS: usize = 10;
/// One document in this many is long enough to be split.
const LONG_EVERY: usize = 50;
const AUTHORS: usize = 500;
pub const KINDS: [&str; 8] = ["minutes", "report", "letter", "speech", "notice", "article", "review", "petition"];

/// One line of the file.
#[derive(Serialize, Deserialize)]
pub struct Document {
    pub id: String,
    title: String,
    pub text: String,
    date: Date,
    author: String,
    kind: String,
}

impl Document {
    /// The passages that Tribune ranks, for engines that index plain text.
    pub fn passages(&self) -> impl Iterator<Item = String> {
        let header = format!("{}. {}. {}", self.title, self.author, self.date.strftime("%-d %B %Y"));
        let ranges = passage::split(&self.text).into_iter();
        ranges.map(move |range| format!("{header}\n{}", &self.text[range]))
    }
}

/// Where the texts of one size are, and the indexes made from them.
#[derive(Clone)]
pub struct Corpus {
    pub dir: PathBuf,
}

impl Corpus {
    pub fn folder(&self) -> PathBuf {
        self.dir.join("documents")
    }

    fn documents_file(&self) -> PathBuf {
        self.folder().join("corpus.jsonl")
    }

    fn questions_file(&self) -> PathBuf {
        self.dir.join("questions.json")
    }

    /// The folder of an engine's index; a Tribune server uses the same folder.
    pub fn index(&self, engine: &str) -> PathBuf {
        self.dir.join(engine)
    }

    pub fn is_written(&self) -> bool {
        self.questions_file().exists()
    }

    /// Writes documents of `passages` passages in all and `questions` questions about them.
    pub fn write(&self, passages: usize, questions: usize) -> Result<()> {
        fs::create_dir_all(self.folder()).with_context(|| format!("create {}", self.folder().display()))?;
        let file = File::create(self.documents_file()).context("create the corpus")?;
        let mut out = BufWriter::with_capacity(1 << 20, file);
        let mut rng = Rng::new(SEED);
        let vocabulary = Vocabulary::new(&mut rng, VOCABULARY);
        let mut asked = Questions::default();
        let (mut number, mut written) = (0, 0);
        while written < passages {
            number += 1;
            let document = document(&mut rng, &vocabulary, number, passages - written);
            written += passage::split(&document.text).len();
            serde_json::to_writer(&mut out, &document).context("write a document")?;
            out.write_all(b"\n").context("write a document")?;
            while asked.list.len() < questions * written / passages {
                asked.add(&mut rng, &document.text)?;
            }
        }
        ensure!(written == passages, "{written} passages instead of {passages}");
        out.flush().context("write the corpus")?;
        let questions = asked.shuffled(&mut rng);
        fs::write(self.questions_file(), serde_json::to_vec(&questions)?).context("write the questions")
    }

    pub fn bytes(&self) -> Result<u64> {
        Ok(fs::metadata(self.documents_file()).context("size of the corpus")?.len())
    }

    pub fn documents(&self) -> Result<impl Iterator<Item = Result<Document>>> {
        let file = File::open(self.documents_file()).context("open the corpus")?;
        let lines = BufReader::with_capacity(1 << 20, file).lines();
        Ok(lines.map(|line| serde_json::from_str(&line?).context("read a document")))
    }

    pub fn questions(&self) -> Result<Vec<String>> {
        let bytes = fs::read(self.questions_file()).context("read the questions")?;
        serde_json::from_slice(&bytes).context("read the questions")
    }
}

/// `left` is the number of passages still wanted; the last documents are short to match it.
fn document(rng: &mut Rng, vocabulary: &Vocabulary, number: usize, left: usize) -> Document {
    let is_long = number.is_multiple_of(LONG_EVERY) && left > 20;
    let length = if is_long { rng.within(400, 1_500) } else { rng.within(60, 120) };
    let topic: Vec<&str> = (0..TOPIC_WORDS).map(|_| rare(rng, vocabulary)).collect();
    let date = jiff::civil::date(rng.within(2015, 2025) as i16, rng.within(1, 12) as i8, rng.within(1, 28) as i8);
    let mut title: Vec<&str> = (0..rng.within(1, 3)).map(|_| topic[rng.below(topic.len())]).collect();
    title.dedup();
    Document {
        id: format!("doc-{number:07}"),
        title: capitalised(&title.join(" ")),
        text: text(rng, vocabulary, &topic, length),
        date,
        author: author(rng.below(AUTHORS)),
        kind: KINDS[rng.below(KINDS.len())].to_owned(),
    }
}

fn author(number: usize) -> String {
    // The same name for the same number in every run.
    let mut rng = Rng::new(number as u64);
    let mut name = || capitalised(&crate::words::invent(&mut rng));
    format!("{} {}", name(), name())
}

/// A word that is not in every text.
fn rare<'a>(rng: &mut Rng, vocabulary: &'a Vocabulary) -> &'a str {
    loop {
        let word = vocabulary.draw(rng);
        if !COMMON.contains(&word) {
            return word;
        }
    }
}

fn text(rng: &mut Rng, vocabulary: &Vocabulary, topic: &[&str], words: usize) -> String {
    let mut left = words;
    let mut text = String::with_capacity(words * 8);
    while left > 0 {
        let length = rng.within(7, 22).min(left);
        let sentence: Vec<&str> = (0..length)
            .map(|_| match rng.below(TOPIC_SHARE) {
                0 => topic[rng.below(topic.len())],
                _ => vocabulary.draw(rng),
            })
            .collect();
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(&capitalised(&sentence.join(" ")));
        text.push('.');
        left -= length;
    }
    text
}

fn capitalised(text: &str) -> String {
    let (first, rest) = text.split_at(text.len().min(1));
    format!("{}{rest}", first.to_ascii_uppercase())
}

/// Different questions of two to eight words from one text. Words keep their natural frequency.
#[derive(Default)]
struct Questions {
    list: Vec<String>,
    seen: HashSet<String>,
}

impl Questions {
    fn add(&mut self, rng: &mut Rng, source: &str) -> Result<()> {
        let words: Vec<String> = source
            .split(|letter: char| !letter.is_ascii_alphabetic())
            .map(str::to_ascii_lowercase)
            .filter(|word| word.len() >= 3 && !COMMON.contains(&word.as_str()))
            .collect();
        ensure!(words.len() >= 16, "too few words to ask for");
        loop {
            let mut picked: Vec<&str> = Vec::new();
            for _ in 0..rng.within(2, 8) {
                let word = words[rng.below(words.len())].as_str();
                if !picked.contains(&word) {
                    picked.push(word);
                }
            }
            let question = picked.join(" ");
            if picked.len() >= 2 && self.seen.insert(question.clone()) {
                self.list.push(question);
                return Ok(());
            }
        }
    }

    /// Shuffles the questions, which are in document order.
    fn shuffled(mut self, rng: &mut Rng) -> Vec<String> {
        for index in (1..self.list.len()).rev() {
            self.list.swap(index, rng.below(index + 1));
        }
        self.list
    }
}

/// Bytes of everything below `path`.
pub fn folder_bytes(path: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(path).with_context(|| format!("list {}", path.display()))? {
        let entry = entry?;
        bytes += match entry.file_type()?.is_dir() {
            true => folder_bytes(&entry.path())?,
            false => entry.metadata()?.len(),
        };
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_passages_and_questions_as_asked_for() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let corpus = Corpus { dir: dir.path().to_owned() };
        corpus.write(2_000, 500)?;
        let mut passages = 0;
        let mut documents = 0;
        for document in corpus.documents()? {
            passages += document?.passages().count();
            documents += 1;
        }
        assert_eq!(passages, 2_000);
        assert!(documents < 1_950, "some are split: {documents}");
        let questions = corpus.questions()?;
        assert_eq!(questions.iter().collect::<HashSet<_>>().len(), 500);
        Ok(())
    }
}
