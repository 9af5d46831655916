//! One published state of an index. Readers share it; a new commit makes a new one.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use quick_cache::sync::Cache;
use tantivy::collector::TopDocs;
use tantivy::columnar::Column;
use tantivy::schema::{Field, IndexRecordOption, Value};
use tantivy::tokenizer::TextAnalyzer;
use tantivy::{DocAddress, DocSet, Index, ReloadPolicy, Searcher, TERMINATED, TantivyDocument, Term};
use tribune_core::{Document, DocumentId, Hit, JsonObject};
use tribune_embed::Embedder;

use crate::dense::Dense;
use crate::filter::{Condition, Filter};
use crate::lexical::words;
use crate::manifest::Manifest;
use crate::schema::{ANALYZER, Fields, analyzer, document_hash};
use crate::snippet::{self, Quotable};
use crate::vectors::VectorStore;
use crate::view::chronology::Chronology;

/// Passages kept decoded, because a corpus is asked about the same things again and again.
const CACHE_BYTES: u64 = 24 * 1024 * 1024;
/// Answers kept, because models ask again: retries, follow-ups, several conversations about one thing.
const KEPT_ANSWERS: usize = 1000;

/// What a search shows of a passage.
pub(crate) struct Passage {
    pub(crate) id: DocumentId,
    pub(crate) title: String,
    pub(crate) title_stems: Vec<u32>,
    pub(crate) url: Option<String>,
    pub(crate) text: Quotable,
    /// `None` for the only passage of a document.
    pub(crate) ordinal: Option<usize>,
}

#[derive(Clone)]
struct PassageBytes;

impl quick_cache::Weighter<DocAddress, Arc<Passage>> for PassageBytes {
    fn weight(&self, _: &DocAddress, passage: &Arc<Passage>) -> u64 {
        (passage.text.bytes() + passage.title.len() + 256) as u64
    }
}

#[derive(PartialEq, Eq, Hash)]
struct Asked {
    text: String,
    limit: usize,
}

/// The same without owning the text, to look up with.
#[derive(Hash)]
struct Asking<'a> {
    text: &'a str,
    limit: usize,
}

impl quick_cache::Equivalent<Asked> for Asking<'_> {
    fn equivalent(&self, asked: &Asked) -> bool {
        self.text == asked.text && self.limit == asked.limit
    }
}

/// The model of a corpus and where its vectors are.
pub(crate) struct Model {
    pub(crate) embedder: Arc<dyn Embedder>,
    pub(crate) store: VectorStore,
}

pub struct Snapshot {
    pub(crate) source: String,
    pub(crate) searcher: Searcher,
    pub(crate) fields: Fields,
    /// [`Fields::document`] of each segment, opened once.
    pub(crate) documents: Vec<Column<u64>>,
    /// The vectors of this state, once there are any.
    pub(crate) dense: Option<Dense>,
    pub(crate) embedder: Option<Arc<dyn Embedder>>,
    manifest: Manifest,
    field_names: Vec<String>,
    passages: Cache<DocAddress, Arc<Passage>, PassageBytes>,
    /// What was found for a query and a limit: true for as long as this state is.
    answers: Cache<Asked, Arc<[Hit]>>,
    /// The order of dated documents, once a page has asked for it.
    pub(crate) chronology: OnceLock<Chronology>,
    pub(crate) analyzer: TextAnalyzer,
}

impl Snapshot {
    /// The index in `dir` as it was last committed; `None` if that has never happened.
    pub(crate) fn open(source: &str, dir: &Path, model: Option<&Model>) -> tantivy::Result<Option<Self>> {
        if !dir.join("meta.json").exists() {
            return Ok(None);
        }
        let index = Index::open_in_dir(dir)?;
        index.tokenizers().register(ANALYZER, analyzer());
        let Some(name) = index.load_metas()?.payload else {
            return Ok(None);
        };
        let manifest = Manifest::load(&dir.join(name))?;
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        let searcher = reader.searcher();
        let column = |name: &str| {
            let segments = searcher.segment_readers().iter();
            segments
                .map(|segment| segment.fast_fields().u64(name))
                .collect::<tantivy::Result<Vec<_>>>()
        };
        let documents = column("document")?;
        let dense = match model {
            Some(model) => match model.store.open(&*model.embedder) {
                Ok(Some(vectors)) => Some(Dense::new(&searcher, &column("content")?, vectors)),
                Ok(None) => None,
                Err(error) => {
                    tracing::warn!(source, %error, "the vectors cannot be used; full text serves alone");
                    None
                }
            },
            None => None,
        };
        Ok(Some(Self {
            source: source.to_owned(),
            searcher,
            fields: Fields::new(),
            documents,
            dense,
            embedder: model.map(|model| model.embedder.clone()),
            field_names: manifest.fields(),
            manifest,
            passages: Cache::with_weighter(10_000, CACHE_BYTES, PassageBytes),
            answers: Cache::new(KEPT_ANSWERS),
            chronology: OnceLock::new(),
            analyzer: analyzer(),
        }))
    }

    /// Whether a search takes less time than handing it to another thread would.
    pub fn is_small(&self) -> bool {
        const SMALL: u64 = 2_000;
        self.searcher.num_docs() <= SMALL && self.dense.is_none()
    }

    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// How many passages there are, and how many of them have a vector.
    pub fn coverage(&self) -> (u64, u64) {
        let passages = self.manifest.passages();
        (passages, self.dense.as_ref().map_or(0, |dense| dense.covered as u64))
    }

    /// What was found for this query before, if it is still known.
    pub fn known(&self, text: &str, limit: usize) -> Option<Arc<[Hit]>> {
        self.answers.get(&Asking { text, limit })
    }

    pub(crate) fn keep(&self, text: &str, limit: usize, hits: &Arc<[Hit]>) {
        let asked = Asked {
            text: text.to_owned(),
            limit,
        };
        self.answers.insert(asked, hits.clone());
    }

    pub fn fetch(&self, key: &str) -> tantivy::Result<Option<Document>> {
        let Ok(id) = DocumentId::new(&self.source, key) else {
            return Ok(None);
        };
        Ok(self.record(key)?.map(|entry| self.document(id, &entry)))
    }

    /// Everything else that a document's file said.
    pub fn metadata(&self, key: &str) -> tantivy::Result<JsonObject> {
        Ok(self
            .record(key)?
            .map(|entry| self.stored_fields(&entry))
            .unwrap_or_default())
    }

    /// Whether there is a document of this key.
    pub fn holds(&self, key: &str) -> tantivy::Result<bool> {
        Ok(self.record_address(key)?.is_some())
    }

    /// The entry with the whole of a document.
    fn record(&self, key: &str) -> tantivy::Result<Option<TantivyDocument>> {
        let address = self.record_address(key)?;
        address.map(|address| self.searcher.doc(address)).transpose()
    }

    fn record_address(&self, key: &str) -> tantivy::Result<Option<DocAddress>> {
        let term = Term::from_field_text(self.fields.record, key);
        for (segment, reader) in (0u32..).zip(self.searcher.segment_readers()) {
            let index = reader.inverted_index(self.fields.record)?;
            let Some(mut postings) = index.read_postings(&term, IndexRecordOption::Basic)? else {
                continue;
            };
            while postings.doc() != TERMINATED {
                if !reader.is_deleted(postings.doc()) {
                    return Ok(Some(DocAddress::new(segment, postings.doc())));
                }
                postings.advance();
            }
        }
        Ok(None)
    }

    /// Key and file of a document that meets a condition.
    pub(crate) fn holder(&self, condition: Condition) -> tantivy::Result<Option<(String, String)>> {
        let Some(query) = Filter(vec![condition]).query(&self.searcher, &self.fields)? else {
            return Ok(None);
        };
        let found = self.searcher.search(&query, &TopDocs::with_limit(1).order_by_score())?;
        let Some((_, address)) = found.first() else {
            return Ok(None);
        };
        let entry: TantivyDocument = self.searcher.doc(*address)?;
        Ok(Some((
            stored_text(&entry, self.fields.key),
            stored_text(&entry, self.fields.file),
        )))
    }

    /// The file that a document came from.
    pub(crate) fn file_of(&self, key: &str) -> tantivy::Result<Option<String>> {
        Ok(self.record(key)?.map(|entry| stored_text(&entry, self.fields.file)))
    }

    /// The entries of a document's passages.
    pub(crate) fn passages_of(&self, key: &str) -> Vec<DocAddress> {
        let hash = document_hash(key);
        let mut found = Vec::new();
        for (segment, (reader, column)) in (0u32..).zip(self.searcher.segment_readers().iter().zip(&self.documents)) {
            let mut docs = Vec::new();
            column.get_docids_for_value_range(hash..=hash, 0..reader.max_doc(), &mut docs);
            let alive = docs.into_iter().filter(|doc| !reader.is_deleted(*doc));
            found.extend(alive.map(|doc| DocAddress::new(segment, doc)));
        }
        found
    }

    /// The corpus's own spelling of a field, also for a path into a nested one (`speaker.name`).
    pub(crate) fn field_name(&self, name: &str) -> Option<String> {
        if name.eq_ignore_ascii_case("title") {
            return Some("title".to_owned());
        }
        let spelled = |name: &str| self.field_names.iter().find(|field| field.eq_ignore_ascii_case(name));
        if let Some(field) = spelled(name) {
            return Some(field.replace('.', "\\."));
        }
        let (first, rest) = name.split_once('.')?;
        spelled(first).map(|field| format!("{}.{rest}", field.replace('.', "\\.")))
    }

    pub(crate) fn passage(&self, address: DocAddress, analyzer: &mut TextAnalyzer) -> tantivy::Result<Arc<Passage>> {
        if let Some(passage) = self.passages.get(&address) {
            return Ok(passage);
        }
        let entry: TantivyDocument = self.searcher.doc(address)?;
        let key = stored_text(&entry, self.fields.key);
        let id = DocumentId::new(&self.source, &key)
            .map_err(|e| tantivy::TantivyError::SystemError(format!("an index entry has a bad id: {e}")))?;
        let number = |field: Field| entry.get_first(field).and_then(|v| v.as_u64()).unwrap_or_default();
        let title = stored_text(&entry, self.fields.title);
        let passage = Arc::new(Passage {
            id,
            title_stems: snippet::stems(words(analyzer, &title).iter().map(String::as_str)),
            title,
            url: stored(&entry, self.fields.url),
            text: Quotable::of(&stored_text(&entry, self.fields.passage), analyzer),
            ordinal: (number(self.fields.passages) > 1)
                .then(|| usize::try_from(number(self.fields.ordinal)).unwrap_or_default()),
        });
        self.passages.insert(address, passage.clone());
        Ok(passage)
    }

    fn stored_fields(&self, entry: &TantivyDocument) -> JsonObject {
        stored(entry, self.fields.fields)
            .and_then(|json| serde_json::from_str(&json).ok())
            .unwrap_or_default()
    }

    fn document(&self, id: DocumentId, entry: &TantivyDocument) -> Document {
        let fields = &self.fields;
        let whole = stored(entry, fields.text);
        let title = if whole.is_some() {
            fields.record_title
        } else {
            fields.title
        };
        let ranges = entry.get_first(fields.ranges);
        Document {
            id,
            title: stored_text(entry, title),
            text: whole.unwrap_or_else(|| stored_text(entry, fields.passage)),
            url: stored(entry, fields.url),
            as_of: entry.get_first(fields.day).and_then(|v| v.as_i64()).and_then(day_start),
            metadata: self.stored_fields(entry),
            passages: ranges.and_then(|v| v.as_bytes().map(unpacked)).unwrap_or_default(),
        }
    }
}

fn stored(entry: &TantivyDocument, field: Field) -> Option<String> {
    entry
        .get_first(field)
        .and_then(|value| value.as_str().map(str::to_owned))
}

pub(crate) fn stored_text(entry: &TantivyDocument, field: Field) -> String {
    stored(entry, field).unwrap_or_default()
}

fn day_start(day: i64) -> Option<jiff::Timestamp> {
    jiff::Timestamp::from_second(day.checked_mul(86_400)?).ok()
}

fn unpacked(bytes: &[u8]) -> Vec<Range<usize>> {
    let offset = |bytes: &[u8]| bytes.try_into().map_or(0, |b| u32::from_le_bytes(b) as usize);
    bytes
        .chunks_exact(8)
        .map(|pair| offset(&pair[..4])..offset(&pair[4..]))
        .collect()
}
