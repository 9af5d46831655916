//! A corpus of parliamentary speeches: the same folder, index and search, with the fields of a
//! speech and two tools of its own.

mod describe;
mod fetch;
mod ingest;
mod search;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::Value;
use tribune_core::view::View;
use tribune_core::wire::clip;
use tribune_core::{
    CallContext, Document, DocumentId, Hit, Links, Query, Result, Source, SourceFacts, SourceStatus, Tool,
};

use crate::manifest::Manifest;
use crate::source::DocumentsSource;
use crate::speech::SpeechRules;

/// Fields that hosts are told the values of, and that filters compare.
pub const FACETS: [&str; 4] = ["speaker", "party", "chamber", "state"];

/// What the two tools are called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolNames {
    pub search: String,
    pub fetch: String,
    pub ingest_file: String,
    pub ingest_directory: String,
}

impl ToolNames {
    /// The names that hosts know.
    pub fn hansard() -> Self {
        Self::of("hansard")
    }

    /// Of a further source beside that one.
    pub fn of(source: &str) -> Self {
        let name = source.replace('-', "_");
        Self {
            search: format!("search_{name}_speeches"),
            fetch: format!("fetch_{name}_speech"),
            ingest_file: format!("ingest_{name}_file"),
            ingest_directory: format!("ingest_{name}_directory"),
        }
    }
}

/// Other spellings of an argument's value: whatever the corpus itself would read as the same.
pub type Spelling = dyn Fn(&str) -> Option<String> + Send + Sync;

/// How values that callers give are read.
#[derive(Clone)]
pub struct Spellings {
    pub party: Arc<Spelling>,
    pub chamber: Arc<Spelling>,
}

impl Spellings {
    /// As the corpus itself reads them.
    pub fn of(rules: &SpeechRules) -> Self {
        let (parties, chambers) = (rules.parties.clone(), rules.chambers.clone());
        Self {
            party: Arc::new(move |given| parties.canonical(given).map(str::to_owned)),
            chamber: Arc::new(move |given| chambers.canonical(given).map(str::to_owned)),
        }
    }
}

pub struct SpeechesSource {
    corpus: Arc<DocumentsSource>,
    names: ToolNames,
    spellings: Spellings,
    links: Links,
    /// The folder that administrators may ingest from, if they may.
    ingest_dir: Option<PathBuf>,
    ingest_turn: Arc<Mutex<()>>,
}

impl SpeechesSource {
    pub fn new(corpus: Arc<DocumentsSource>, names: ToolNames, spellings: Spellings, links: Links) -> Self {
        Self {
            corpus,
            names,
            spellings,
            links,
            ingest_dir: None,
            ingest_turn: Arc::default(),
        }
    }

    /// Lets administrators ingest speeches from this folder.
    #[must_use]
    pub fn ingesting_from(mut self, folder: Option<PathBuf>) -> Self {
        self.ingest_dir = folder;
        self
    }
}

#[async_trait]
impl Source for SpeechesSource {
    fn name(&self) -> &str {
        self.corpus.name()
    }

    async fn search(&self, query: &Query, cx: &CallContext) -> Result<Arc<[Hit]>> {
        self.corpus.search(query, cx).await
    }

    async fn fetch(&self, id: &DocumentId, cx: &CallContext) -> Result<Option<Document>> {
        self.corpus.fetch(id, cx).await
    }

    async fn related(&self, id: &DocumentId, limit: usize, cx: &CallContext) -> Result<Option<Arc<[Hit]>>> {
        self.corpus.related(id, limit, cx).await
    }

    async fn view(&self, document: &Document, cited: Option<Timestamp>, cx: &CallContext) -> Result<Option<View>> {
        self.corpus.view(document, cited, cx).await
    }

    fn relates(&self) -> bool {
        self.corpus.relates()
    }

    fn facts(&self) -> SourceFacts {
        SourceFacts {
            noun: "speeches".to_owned(),
            ..self.corpus.facts()
        }
    }

    fn updated(&self) -> Option<Timestamp> {
        self.corpus.updated()
    }

    fn status(&self) -> SourceStatus {
        self.corpus.status()
    }

    fn revision(&self) -> u64 {
        self.corpus.revision()
    }

    fn tools(self: Arc<Self>) -> Vec<Arc<dyn Tool>> {
        let holdings = Holdings::of(&self);
        vec![
            Arc::new(search::SearchSpeeches::new(&self, &holdings)),
            Arc::new(fetch::FetchSpeech::new(&self, &holdings)),
        ]
    }

    fn admin_tools(self: Arc<Self>) -> Vec<Arc<dyn Tool>> {
        let Some(base) = &self.ingest_dir else {
            return Vec::new();
        };
        let desk = ingest::Desk {
            corpus: self.corpus.clone(),
            base: base.clone(),
            turn: self.ingest_turn.clone(),
        };
        vec![
            Arc::new(ingest::IngestTool::file(desk.clone(), &self.names.ingest_file)),
            Arc::new(ingest::IngestTool::directory(desk, &self.names.ingest_directory)),
        ]
    }
}

/// What the corpus holds now, as far as descriptions tell it.
struct Holdings {
    facts: SourceFacts,
    /// Each value of a field with the number of its speeches, most first.
    speakers: Vec<(String, u64)>,
    parties: Vec<(String, u64)>,
    chambers: Vec<(String, u64)>,
}

impl Holdings {
    fn of(source: &SpeechesSource) -> Self {
        let published = source.corpus.published().ok();
        let values = |field: &str| {
            let manifest = published.as_ref().map(|snapshot| snapshot.manifest());
            manifest
                .map(|manifest: &Manifest| manifest.values(field))
                .unwrap_or_default()
        };
        Self {
            facts: source.facts(),
            speakers: values("speaker"),
            parties: values("party"),
            chambers: values("chamber"),
        }
    }
}

/// A field as text, whatever a file has made of it: hosts hold answers to their schemas.
fn text_or_null(value: Option<&Value>, max_chars: usize) -> Value {
    let text = match value {
        None | Some(Value::Null | Value::Object(_)) => return Value::Null,
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(items)) => {
            let parts: Vec<String> = items
                .iter()
                .map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned))
                .collect();
            parts.join(", ")
        }
        Some(scalar) => scalar.to_string(),
    };
    Value::from(clip(&text, max_chars))
}

fn count_or_null(value: Option<&Value>) -> Value {
    value.and_then(Value::as_u64).map_or(Value::Null, Value::from)
}
