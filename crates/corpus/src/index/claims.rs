//! Which ids and texts are in use, so that ids are unique and duplicates follow the collection's policy. Files of
//! this run are tracked here; for the others the last commit is queried.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use jiff::civil::Date;
use serde_json::Value as Json;
use tribune_core::{JsonObject, Readers};

use crate::collection::Transcripts;
use crate::engine::{Changes, EngineError, IndexedDocument, Lookup};
use crate::format::{Record, as_given};
use crate::hash;

/// A document and its text. One exists per document of a run, so it is small.
#[derive(Debug, Clone)]
pub(crate) struct Holder {
    pub(crate) key: String,
    pub(crate) file: Arc<str>,
    date: Option<Date>,
    /// Hash of its readers.
    readers: u64,
    /// In a transcript, the same text is a duplicate only if another file has it for the same occasion.
    occasion: Option<u64>,
    is_transcript: bool,
}

/// The field with a document's [`hash::content_hash`].
const CONTENT_HASH: &str = "content_hash";

/// The record's hash. It is added to the fields, because later runs look it up in the index.
pub(crate) fn with_content_hash(record: &mut Record) -> String {
    let hash = hash::content_hash(&record.text);
    if record.fields.get(CONTENT_HASH).and_then(Json::as_str) != Some(&hash) {
        // First, because only the beginning of the fields is searchable.
        let other = record.fields.shift_insert(0, CONTENT_HASH.to_owned(), hash.clone().into());
        record.fields.extend(other.map(|other| (as_given(CONTENT_HASH), other)));
    }
    hash
}

impl Holder {
    /// Whether only one of two documents with the same text is indexed. With other readers both are: one must not be
    /// missing because of another that its readers may not see.
    fn is_rival_of(&self, other: &Self) -> bool {
        if self.readers != other.readers {
            return false;
        }
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

    fn occasion_of(self, fields: &JsonObject) -> u64 {
        let value = |name: &&str| fields.get(*name).map(Json::to_string).unwrap_or_default();
        let values: Vec<String> = self.occasion.iter().map(value).collect();
        hash::stable(&values.join("\n"))
    }
}

pub(crate) struct Claims {
    /// Hashes of the ids of this run.
    ids: HashSet<u64>,
    /// The documents of this run, by the first half of their text's hash, which is unique enough.
    texts: HashMap<u128, Vec<Holder>>,
    /// Files of the last commit that are not read again.
    unchanged: HashSet<String>,
    transcripts: Option<Transcripts>,
}

impl Claims {
    pub(crate) fn new(unchanged: HashSet<String>, transcripts: Option<Transcripts>) -> Self {
        Self { ids: HashSet::new(), texts: HashMap::new(), unchanged, transcripts }
    }

    /// Claims `key`; `false` if it is in use.
    pub(crate) fn take_id(&mut self, key: &str, changes: &dyn Changes) -> Result<bool, EngineError> {
        let id = hash::stable(key);
        let is_taken = self.ids.contains(&id) || self.published(&Lookup::Key(key), changes, |_| true)?.is_some();
        Ok(!is_taken && self.ids.insert(id))
    }

    /// Another document with the same text, by its full hash.
    pub(crate) fn rival(
        &self,
        holder: &Holder,
        hash: &str,
        changes: &dyn Changes,
    ) -> Result<Option<Holder>, EngineError> {
        let mut now = self.texts.get(&half(hash)).into_iter().flatten();
        if let Some(found) = now.find(|other| holder.is_rival_of(other)) {
            return Ok(Some(found.clone()));
        }
        let held_by = Lookup::Field(CONTENT_HASH, hash);
        let rival = self.published(&held_by, changes, |other| holder.is_rival_of(&self.published_holder(other)))?;
        Ok(rival.map(|rival| self.published_holder(&rival)))
    }

    pub(crate) fn hold(&mut self, holder: Holder, hash: &str) {
        self.texts.entry(half(hash)).or_default().push(holder);
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

    fn published_holder(&self, held: &IndexedDocument) -> Holder {
        let file = Arc::from(held.file.as_str());
        self.holder(&held.key, &file, held.date, &held.readers, held.fields.as_ref())
    }

    /// `fields` is `None` if they are not known.
    pub(crate) fn holder(
        &self,
        key: &str,
        file: &Arc<str>,
        date: Option<Date>,
        readers: &Readers,
        fields: Option<&JsonObject>,
    ) -> Holder {
        let transcript = self.transcripts.filter(|transcripts| transcripts.includes(file));
        Holder {
            key: key.to_owned(),
            file: file.clone(),
            date,
            readers: hash::stable(&readers.to_string()),
            occasion: transcript.zip(fields).map(|(transcripts, fields)| transcripts.occasion_of(fields)),
            is_transcript: transcript.is_some(),
        }
    }
}

fn half(hash: &str) -> u128 {
    u128::from_str_radix(hash.get(..32).unwrap_or_default(), 16).unwrap_or_default()
}
