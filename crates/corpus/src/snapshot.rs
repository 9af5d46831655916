//! One published state of an index. Readers share it; a new commit makes a new one.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use quick_cache::sync::Cache;
use tantivy::collector::TopDocs;
use tantivy::columnar::Column;
use tantivy::query::{BooleanQuery, Occur, PhraseQuery, TermQuery};
use tantivy::schema::{Field, IndexRecordOption, Value};
use tantivy::tokenizer::{TextAnalyzer, TokenStream};
use tantivy::{DocAddress, DocSet, Index, ReloadPolicy, Searcher, TERMINATED, TantivyDocument, Term};
use tribune_core::{Document, DocumentId, Hit, JsonObject};

use crate::manifest::Manifest;
use crate::query::{self, Clause, Demand};
use crate::schema::{ANALYZER, Fields, analyzer};
use crate::snippet::{self, Quotable};

/// Passages kept decoded, because a corpus is asked about the same things again and again.
const CACHE_BYTES: u64 = 24 * 1024 * 1024;
/// Answers kept, because models ask again: retries, follow-ups, several conversations about one thing.
const KEPT_ANSWERS: usize = 1000;
/// Passages looked at for one query at most, when many of them are of the same few documents.
const MAX_CANDIDATES: usize = 10_000;

/// What a search shows of a passage.
struct Passage {
    id: DocumentId,
    title: String,
    title_stems: Vec<u32>,
    url: Option<String>,
    text: Quotable,
    /// `None` for the only passage of a document.
    ordinal: Option<usize>,
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

pub struct Snapshot {
    source: String,
    searcher: Searcher,
    fields: Fields,
    /// [`Fields::document`] of each segment, opened once.
    documents: Vec<Column<u64>>,
    manifest: Manifest,
    field_names: Vec<String>,
    passages: Cache<DocAddress, Arc<Passage>, PassageBytes>,
    /// What was found for a query and a limit: true for as long as this state is.
    answers: Cache<Asked, Arc<[Hit]>>,
    analyzer: TextAnalyzer,
}

impl Snapshot {
    /// The index in `dir` as it was last committed; `None` if that has never happened.
    pub fn open(source: &str, dir: &Path) -> tantivy::Result<Option<Self>> {
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
        let documents = searcher
            .segment_readers()
            .iter()
            .map(|segment| segment.fast_fields().u64("document"))
            .collect::<tantivy::Result<_>>()?;
        Ok(Some(Self {
            source: source.to_owned(),
            searcher,
            fields: Fields::new(),
            documents,
            field_names: manifest.fields(),
            manifest,
            passages: Cache::with_weighter(10_000, CACHE_BYTES, PassageBytes),
            answers: Cache::new(KEPT_ANSWERS),
            analyzer: analyzer(),
        }))
    }

    /// Whether a search takes less time than handing it to another thread would.
    pub fn is_small(&self) -> bool {
        const SMALL: u64 = 2_000;
        self.searcher.num_docs() <= SMALL
    }

    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// What was found for this query before, if it is still known.
    pub fn known(&self, text: &str, limit: usize) -> Option<Arc<[Hit]>> {
        self.answers.get(&Asking { text, limit })
    }

    /// The best documents for a query, each by its best passage.
    pub fn search(&self, text: &str, limit: usize) -> tantivy::Result<Arc<[Hit]>> {
        let hits: Arc<[Hit]> = self.find(text, limit)?.into();
        let asked = Asked {
            text: text.to_owned(),
            limit,
        };
        self.answers.insert(asked, hits.clone());
        Ok(hits)
    }

    fn find(&self, text: &str, limit: usize) -> tantivy::Result<Vec<Hit>> {
        let clauses = query::parse(text, |name| self.field_name(name));
        let mut analyzer = self.analyzer.clone();
        let Some(plan) = self.plan(&clauses, &mut analyzer) else {
            return Ok(Vec::new());
        };
        let best = self.best_passages(&plan.query, limit)?;
        let mut hits = Vec::with_capacity(best.len());
        for (score, address) in best {
            let passage = self.passage(address, &mut analyzer)?;
            hits.push(Hit {
                id: passage.id.clone(),
                title: passage.title.clone(),
                snippet: passage.text.quote(&plan.stems),
                url: passage.url.clone(),
                passage: passage.ordinal,
                score,
                coverage: passage.text.coverage(&passage.title_stems, &plan.stems),
            });
        }
        Ok(hits)
    }

    pub fn fetch(&self, key: &str) -> tantivy::Result<Option<Document>> {
        let Ok(id) = DocumentId::new(&self.source, key) else {
            return Ok(None);
        };
        let term = Term::from_field_text(self.fields.record, key);
        for (segment, reader) in (0u32..).zip(self.searcher.segment_readers()) {
            let index = reader.inverted_index(self.fields.record)?;
            let Some(mut postings) = index.read_postings(&term, IndexRecordOption::Basic)? else {
                continue;
            };
            while postings.doc() != TERMINATED {
                if !reader.is_deleted(postings.doc()) {
                    let entry: TantivyDocument = self.searcher.doc(DocAddress::new(segment, postings.doc()))?;
                    return Ok(Some(self.document(id, &entry)));
                }
                postings.advance();
            }
        }
        Ok(None)
    }

    /// The corpus's own spelling of a field, also for a path into a nested one (`speaker.name`).
    fn field_name(&self, name: &str) -> Option<String> {
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

    fn plan(&self, clauses: &[Clause], analyzer: &mut TextAnalyzer) -> Option<Plan> {
        let is_stop = |clause: &Clause| {
            let bare = clause.text.trim_matches(|c: char| !c.is_alphanumeric());
            query::is_stop_word(&bare.to_lowercase())
        };
        let all_stop = clauses.iter().all(is_stop);
        let mut parts: Vec<(Occur, Box<dyn tantivy::query::Query>)> = Vec::new();
        let mut stems = Vec::new();
        for clause in clauses {
            if clause.demand == Demand::Should && !all_stop && is_stop(clause) {
                continue;
            }
            let words = words(analyzer, &clause.text);
            let terms: Vec<Term> = words
                .iter()
                .map(|word| self.term(clause.field.as_deref(), word))
                .collect();
            if terms.is_empty() {
                continue;
            }
            if clause.demand != Demand::MustNot {
                stems.extend(words);
            }
            match clause.demand {
                Demand::Should => {
                    for term in terms {
                        parts.push((
                            Occur::Should,
                            Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs)),
                        ));
                    }
                }
                Demand::Must => parts.push((Occur::Must, together(terms))),
                Demand::MustNot => parts.push((Occur::MustNot, together(terms))),
            }
        }
        (!parts.is_empty()).then(|| Plan {
            query: BooleanQuery::new(parts),
            stems: snippet::stems(stems.iter().map(String::as_str)),
        })
    }

    fn term(&self, field: Option<&str>, word: &str) -> Term {
        match field {
            None => Term::from_field_text(self.fields.body, word),
            Some("title") => Term::from_field_text(self.fields.title, word),
            Some(path) => {
                let mut term = Term::from_field_json_path(self.fields.meta, path, false);
                term.append_type_and_str(word);
                term
            }
        }
    }

    /// The best passage of each of the best `limit` documents.
    fn best_passages(&self, query: &BooleanQuery, limit: usize) -> tantivy::Result<Vec<(f32, DocAddress)>> {
        let mut candidates = limit * 2;
        loop {
            let found = self
                .searcher
                .search(query, &TopDocs::with_limit(candidates).order_by_score())?;
            let exhausted = found.len() < candidates;
            let mut seen: Vec<u64> = Vec::with_capacity(limit);
            let mut best = Vec::with_capacity(limit);
            for (score, address) in found {
                let document = self.documents[address.segment_ord as usize]
                    .first(address.doc_id)
                    .unwrap_or_default();
                if !seen.contains(&document) {
                    seen.push(document);
                    best.push((score, address));
                    if best.len() == limit {
                        return Ok(best);
                    }
                }
            }
            if exhausted || candidates >= MAX_CANDIDATES {
                return Ok(best);
            }
            candidates = (candidates * 4).min(MAX_CANDIDATES);
        }
    }

    fn passage(&self, address: DocAddress, analyzer: &mut TextAnalyzer) -> tantivy::Result<Arc<Passage>> {
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

    fn document(&self, id: DocumentId, entry: &TantivyDocument) -> Document {
        let fields = &self.fields;
        let whole = stored(entry, fields.text);
        let title = if whole.is_some() {
            fields.record_title
        } else {
            fields.title
        };
        let metadata: JsonObject = stored(entry, fields.fields)
            .and_then(|json| serde_json::from_str(&json).ok())
            .unwrap_or_default();
        let ranges = entry.get_first(fields.ranges);
        Document {
            id,
            title: stored_text(entry, title),
            text: whole.unwrap_or_else(|| stored_text(entry, fields.passage)),
            url: stored(entry, fields.url),
            as_of: entry.get_first(fields.day).and_then(|v| v.as_i64()).and_then(day_start),
            metadata,
            passages: ranges.and_then(|v| v.as_bytes().map(unpacked)).unwrap_or_default(),
        }
    }
}

struct Plan {
    query: BooleanQuery,
    stems: Vec<u32>,
}

fn together(mut terms: Vec<Term>) -> Box<dyn tantivy::query::Query> {
    if terms.len() == 1 {
        return Box::new(TermQuery::new(terms.remove(0), IndexRecordOption::WithFreqs));
    }
    Box::new(PhraseQuery::new(terms))
}

fn words(analyzer: &mut TextAnalyzer, text: &str) -> Vec<String> {
    let mut words = Vec::new();
    analyzer
        .token_stream(text)
        .process(&mut |token| words.push(token.text.clone()));
    words
}

fn stored(entry: &TantivyDocument, field: Field) -> Option<String> {
    entry
        .get_first(field)
        .and_then(|value| value.as_str().map(str::to_owned))
}

fn stored_text(entry: &TantivyDocument, field: Field) -> String {
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
