//! Which ids and texts are in use, so that ids are unique and duplicates follow the collection's policy. Files of
//! this run are tracked here; for the others the last commit is queried.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use jiff::civil::Date;
use serde_json::Value as Json;
use tribune_core::JsonObject;

use crate::collection::Transcripts;
use crate::engine::{Changes, EngineError, IndexedDocument, Lookup};
use crate::format::{Record, as_given};
use crate::hash;

/// A document and its text hash. One exists per document of a run, so it is small.
#[derive(Debug, Clone)]
pub(crate) struct Holder {
    /// The first half of the text's hash, which is unique enough.
    text: u128,
    pub(crate) key: String,
    pub(crate) file: Arc<str>,
    pub(crate) line: Option<u64>,
    date: Option<Date>,
    /// In a transcript, the same text is a duplicate only if another file has it for the same occasion.
    occasion: Option<u64>,
    is_transcript: bool,
}

/// The field with a document's [`hash::content_hash`].
const CONTENT_HASH: &str = "content_hash";

/// The record's hash. It is added to the fields, because later runs look it up in the index.
pub(crate) fn with_content_hash(record: &mut Record) -> String {
    let hash = hash::content_hash(&record.text);
    if record.fields.get(CONTENT_HASH).and_then(Json::as_str) == Some(&hash) {
        return hash;
    }
    let mut fields = JsonObject::new();
    // First, because only the beginning of the fields is searchable.
    fields.insert(CONTENT_HASH.to_owned(), hash.clone().into());
    if let Some(other) = record.fields.shift_remove(CONTENT_HASH) {
        fields.insert(as_given(CONTENT_HASH), other);
    }
    fields.append(&mut record.fields);
    record.fields = fields;
    hash
}

impl Holder {
    pub(crate) fn new(
        record: &Record,
        hash: &str,
        file: &Arc<str>,
        line: Option<u64>,
        transcripts: Option<Transcripts>,
    ) -> Self {
        let transcript = transcripts.filter(|transcripts| transcripts.includes(file));
        Self {
            text: half(hash),
            key: record.key.clone(),
            file: file.clone(),
            line,
            date: record.date,
            occasion: transcript.map(|transcripts| occasion(transcripts, &record.fields)),
            is_transcript: transcript.is_some(),
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
        self.file != other.file && self.date == other.date && !differ(self.occasion, other.occasion)
    }
}

impl Transcripts {
    fn includes(&self, file: &str) -> bool {
        let extension = Path::new(file).extension();
        extension.is_some_and(|extension| extension.eq_ignore_ascii_case(self.extension))
    }
}

fn half(hash: &str) -> u128 {
    let half = hash.get(..32).unwrap_or_default();
    u128::from_str_radix(half, 16).unwrap_or_default()
}

fn occasion(transcripts: Transcripts, fields: &JsonObject) -> u64 {
    let value = |name: &&str| fields.get(*name).map(Json::to_string).unwrap_or_default();
    let values: Vec<String> = transcripts.occasion.iter().map(value).collect();
    hash::stable(&values.join("\n"))
}

pub(crate) struct Claims {
    /// The file that has an id; both hashed.
    ids: HashMap<u64, u64>,
    texts: HashMap<u128, Vec<Holder>>,
    /// Files of the last commit that are not read again.
    unchanged: HashSet<String>,
    transcripts: Option<Transcripts>,
}

impl Claims {
    pub(crate) fn new(unchanged: HashSet<String>, transcripts: Option<Transcripts>) -> Self {
        Self { ids: HashMap::new(), texts: HashMap::new(), unchanged, transcripts }
    }

    /// The file is read again, so its entries in the index no longer count.
    pub(crate) fn read_again(&mut self, file: &str) {
        self.unchanged.remove(file);
    }

    /// A file that is read again in this run may claim its own ids again.
    pub(crate) fn free_ids(&mut self, file: &str) {
        let file = hash::stable(file);
        self.ids.retain(|_, owner| *owner != file);
    }

    /// Claims `key` for a document of `file`; `false` if it is in use.
    pub(crate) fn take_id(&mut self, key: &str, file: &str, changes: &dyn Changes) -> Result<bool, EngineError> {
        let id = hash::stable(key);
        if self.ids.contains_key(&id) || self.published(&Lookup::Key(key), changes, |_| true)?.is_some() {
            return Ok(false);
        }
        self.ids.insert(id, hash::stable(file));
        Ok(true)
    }

    /// Another document with the same text, by its full hash.
    pub(crate) fn rival(
        &self,
        holder: &Holder,
        hash: &str,
        changes: &dyn Changes,
    ) -> Result<Option<Holder>, EngineError> {
        let now = self.texts.get(&holder.text).map_or(&[][..], Vec::as_slice);
        if now.iter().any(|other| other.is_at(holder)) {
            return Ok(None);
        }
        if let Some(found) = now.iter().find(|other| holder.is_rival_of(other)) {
            return Ok(Some(found.clone()));
        }
        let held_by = Lookup::Field(CONTENT_HASH, hash);
        let is_rival = |other: &IndexedDocument| holder.is_rival_of(&self.holder(holder.text, other));
        let rival = self.published(&held_by, changes, is_rival)?;
        Ok(rival.map(|rival| self.holder(holder.text, &rival)))
    }

    pub(crate) fn hold(&mut self, holder: Holder) {
        let holders = self.texts.entry(holder.text).or_default();
        if !holders.iter().any(|other| other.is_at(&holder)) {
            holders.push(holder);
        }
    }

    /// Releases a document's text and id.
    pub(crate) fn release(&mut self, loser: &Holder) {
        self.ids.remove(&hash::stable(&loser.key));
        if let Some(holders) = self.texts.get_mut(&loser.text) {
            holders.retain(|other| !other.is_at(loser));
        }
        self.read_again(&loser.file);
    }

    /// Finds a document of the last commit whose file is not read again.
    fn published(
        &self,
        by: &Lookup<'_>,
        changes: &dyn Changes,
        is_wanted: impl Fn(&IndexedDocument) -> bool,
    ) -> Result<Option<IndexedDocument>, EngineError> {
        if self.unchanged.is_empty() {
            return Ok(None);
        }
        changes.holder(by, &mut |held| self.unchanged.contains(&held.file) && is_wanted(held))
    }

    fn holder(&self, text: u128, held: &IndexedDocument) -> Holder {
        let transcript = self.transcripts.filter(|transcripts| transcripts.includes(&held.file));
        let fields = held.fields.as_ref();
        Holder {
            text,
            key: held.key.clone(),
            file: Arc::from(held.file.as_str()),
            line: None,
            date: held.date,
            occasion: transcript.zip(fields).map(|(transcripts, fields)| occasion(transcripts, fields)),
            is_transcript: transcript.is_some(),
        }
    }
}
