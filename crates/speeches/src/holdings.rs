//! What the tools know of their source: names, spellings, contents.

use serde_json::Value;
use tribune_core::wire::clip;
use tribune_core::{Source, SourceFacts};
use tribune_corpus::DocumentsSource;

/// The names of a source's tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolNames {
    pub search: String,
    pub fetch: String,
    pub ingest_file: String,
    pub ingest_directory: String,
}

impl ToolNames {
    /// The tool names of a source.
    pub fn for_source(source: &str) -> Self {
        let name = source.replace('-', "_");
        Self {
            search: format!("search_{name}_speeches"),
            fetch: format!("fetch_{name}_speech"),
            ingest_file: format!("ingest_{name}_file"),
            ingest_directory: format!("ingest_{name}_directory"),
        }
    }
}

/// The contents of the corpus, for tool descriptions.
pub(crate) struct Holdings {
    pub(crate) facts: SourceFacts,
    /// Each value with its number of speeches, most frequent first.
    pub(crate) speakers: Vec<(String, u64)>,
    pub(crate) parties: Vec<(String, u64)>,
    pub(crate) chambers: Vec<(String, u64)>,
}

impl Holdings {
    pub(crate) fn new(corpus: &DocumentsSource) -> Self {
        let published = corpus.published().ok();
        let values = |field: &str| {
            let manifest = published.as_ref().map(|version| version.manifest());
            manifest.map(|manifest| manifest.values(field)).unwrap_or_default()
        };
        Self {
            facts: corpus.facts(),
            speakers: values("speaker"),
            parties: values("party"),
            chambers: values("chamber"),
        }
    }
}

/// A field as text or null, because hosts check answers against the schema and files may have any type.
pub(crate) fn text_or_null(value: Option<&Value>, max_chars: usize) -> Value {
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

pub(crate) fn count_or_null(value: Option<&Value>) -> Value {
    value.and_then(Value::as_u64).map_or(Value::Null, Value::from)
}
