//! What is in use: ids, so that two documents never share one, and texts, so that one is held as often
//! as its source wants. Of the files read in this run it is known; of the others the last commit is asked.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use serde_json::Value as Json;
use tantivy::schema::{Field, IndexRecordOption, Term, Value};
use tantivy::{DocSet, Index, Searcher, TERMINATED, TantivyDocument};
use tribune_core::JsonObject;

use crate::duplicates;
use crate::indexer::{IndexError, Indexing};
use crate::manifest::Manifest;
use crate::read::Record;
use crate::schema::{Fields, days, document_hash, facet_term};

/// A document that holds a text. There is one for every document of a run, so it is kept small.
#[derive(Debug, Clone)]
pub(crate) struct Holder {
    /// The first half of the text's hash: more than enough to know it by.
    text: u128,
    pub(crate) key: String,
    pub(crate) file: Arc<str>,
    pub(crate) line: Option<u64>,
    day: Option<i64>,
    /// Where a transcript has it. The same few words are said again and again in a chamber, so in
    /// a transcript the same text is a duplicate only if another file has it of the same occasion.
    occasion: Option<u64>,
    is_transcript: bool,
}

impl Holder {
    pub(crate) fn of(record: &Record, hash: &str, file: &Arc<str>, line: Option<u64>) -> Self {
        let is_transcript = is_transcript(file);
        Self {
            text: half(hash),
            key: record.key.clone(),
            file: file.clone(),
            line,
            day: record.date.map(days),
            occasion: is_transcript.then(|| occasion(&record.fields)),
            is_transcript,
        }
    }

    /// In the order in which files are read.
    pub(crate) fn is_after(&self, other: &Self) -> bool {
        (Path::new(&*self.file), self.line) > (Path::new(&*other.file), other.line)
    }

    fn is_at(&self, other: &Self) -> bool {
        self.file == other.file && self.line == other.line
    }

    fn is_rival_of(&self, other: &Self) -> bool {
        if !self.is_transcript && !other.is_transcript {
            return true;
        }
        let differ = |a: Option<u64>, b: Option<u64>| a.is_some() && b.is_some() && a != b;
        self.file != other.file && self.day == other.day && !differ(self.occasion, other.occasion)
    }
}

/// Whether many speeches stand in it because they were made, and not because somebody collected them.
fn is_transcript(file: &str) -> bool {
    let ending = Path::new(file).extension();
    ending.is_some_and(|ending| ending.eq_ignore_ascii_case("xml"))
}

fn half(hash: &str) -> u128 {
    let half = hash.get(..32).unwrap_or_default();
    u128::from_str_radix(half, 16).unwrap_or_default()
}

fn occasion(fields: &JsonObject) -> u64 {
    let value = |name: &str| fields.get(name).map(Json::to_string).unwrap_or_default();
    document_hash(&["speaker", "chamber", "section", "page"].map(value).join("\n"))
}

/// Whose an id is.
struct Owner {
    file: u64,
    pass: u64,
}

pub(crate) struct Claims {
    ids: HashMap<u64, Owner>,
    texts: HashMap<u128, Vec<Holder>>,
    before: Option<Before>,
    /// Counts the readings of files: one that is read again takes its own ids again.
    pass: u64,
}

impl Claims {
    pub(crate) fn new(
        indexing: &Indexing,
        index: &Index,
        fields: &Fields,
        unchanged: &Manifest,
    ) -> Result<Self, IndexError> {
        let before = if unchanged.files.is_empty() {
            None
        } else {
            let reader = indexing.attempt("reading the index", index.reader())?;
            Some(Before {
                searcher: reader.searcher(),
                fields: fields.clone(),
                unchanged: unchanged.files.keys().cloned().collect(),
            })
        };
        Ok(Self {
            ids: HashMap::new(),
            texts: HashMap::new(),
            before,
            pass: 0,
        })
    }

    pub(crate) fn next_pass(&mut self) {
        self.pass += 1;
    }

    /// What the index has of a file counts no more: the file is read again.
    pub(crate) fn read_again(&mut self, file: &str) {
        if let Some(before) = &mut self.before {
            before.unchanged.remove(file);
        }
    }

    /// Takes `key` for a document of `file`; `false` if it is another's.
    pub(crate) fn take_id(&mut self, key: &str, file: &str) -> bool {
        let held = self.before.as_ref().is_some_and(|before| before.holds_id(key));
        let owner = Owner {
            file: document_hash(file),
            pass: self.pass,
        };
        let id = document_hash(key);
        let free = self
            .ids
            .get(&id)
            .is_none_or(|other| other.file == owner.file && other.pass < owner.pass);
        if !held && free {
            self.ids.insert(id, owner);
        }
        !held && free
    }

    /// The other document that holds the same text, whose whole hash is `hash`.
    pub(crate) fn rival(&self, holder: &Holder, hash: &str) -> Option<Holder> {
        let now = self.texts.get(&holder.text).map_or(&[][..], Vec::as_slice);
        if now.iter().any(|other| other.is_at(holder)) {
            return None;
        }
        let found = now.iter().find(|other| holder.is_rival_of(other)).cloned();
        found.or_else(|| self.before.as_ref()?.rival(holder, hash))
    }

    /// Notes that a document holds its text.
    pub(crate) fn hold(&mut self, holder: Holder) {
        let holders = self.texts.entry(holder.text).or_default();
        if !holders.iter().any(|other| other.is_at(&holder)) {
            holders.push(holder);
        }
    }

    /// A document loses its text and its id to another.
    pub(crate) fn release(&mut self, loser: &Holder) {
        self.ids.remove(&document_hash(&loser.key));
        if let Some(holders) = self.texts.get_mut(&loser.text) {
            holders.retain(|other| !other.is_at(loser));
        }
        self.read_again(&loser.file);
    }
}

/// The last commit, of which only files that are not read again count.
struct Before {
    searcher: Searcher,
    fields: Fields,
    unchanged: HashSet<String>,
}

impl Before {
    fn holds_id(&self, key: &str) -> bool {
        let term = Term::from_field_text(self.fields.record, key);
        let found = self.find(self.fields.record, &term, |_, _| true);
        found.unwrap_or_default().is_some()
    }

    fn rival(&self, holder: &Holder, hash: &str) -> Option<Holder> {
        let term = facet_term(&self.fields, duplicates::FIELD, hash);
        let mut rival = None;
        let found = self.find(self.fields.facet, &term, |entry, file| {
            let other = self.holder(holder.text, entry, file);
            let is_rival = holder.is_rival_of(&other);
            rival = is_rival.then_some(other);
            is_rival
        });
        found.ok().flatten()?;
        rival
    }

    fn holder(&self, text: u128, entry: &TantivyDocument, file: &str) -> Holder {
        let stored = |field: Field| entry.get_first(field).and_then(|value| value.as_str());
        // Only documents of one passage have their fields beside it.
        let fields: Option<JsonObject> = stored(self.fields.fields).and_then(|json| serde_json::from_str(json).ok());
        let is_transcript = is_transcript(file);
        Holder {
            text,
            key: stored(self.fields.key).unwrap_or_default().to_owned(),
            file: Arc::from(file),
            line: None,
            day: entry.get_first(self.fields.day).and_then(|value| value.as_i64()),
            occasion: fields.as_ref().filter(|_| is_transcript).map(occasion),
            is_transcript,
        }
    }

    /// The first entry with `term` that is of an unchanged file and pleases.
    fn find(
        &self,
        field: Field,
        term: &Term,
        mut pleases: impl FnMut(&TantivyDocument, &str) -> bool,
    ) -> tantivy::Result<Option<()>> {
        for segment in self.searcher.segment_readers() {
            let index = segment.inverted_index(field)?;
            let Some(mut postings) = index.read_postings(term, IndexRecordOption::Basic)? else {
                continue;
            };
            while postings.doc() != TERMINATED {
                let doc = postings.doc();
                if !segment.is_deleted(doc) {
                    let entry: TantivyDocument = segment.get_store_reader(1)?.get(doc)?;
                    let file = entry.get_first(self.fields.file).and_then(|file| file.as_str());
                    if let Some(file) = file
                        && self.unchanged.contains(file)
                        && pleases(&entry, file)
                    {
                        return Ok(Some(()));
                    }
                }
                postings.advance();
            }
        }
        Ok(None)
    }
}
