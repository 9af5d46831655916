//! What the tools know of their source: names, spellings, contents.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::Value;
use tribune_core::wire::{clip, object};
use tribune_core::{JsonObject, Source, SourceFacts};
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

/// What everybody may see of the corpus, for tool descriptions.
pub(crate) struct Holdings {
    pub(crate) facts: SourceFacts,
    /// Each value with its number of speeches, most frequent first.
    pub(crate) speakers: Vec<(String, u64)>,
    pub(crate) parties: Vec<(String, u64)>,
    pub(crate) chambers: Vec<(String, u64)>,
}

impl Holdings {
    pub(crate) fn new(corpus: &DocumentsSource) -> Self {
        let public = corpus.public().unwrap_or_default();
        let values = |field: &str| public.values(field);
        Self {
            facts: corpus.facts(),
            speakers: values("speaker"),
            parties: values("party"),
            chambers: values("chamber"),
        }
    }
}

/// A field as text, because hosts check answers against the schema and files may have any type.
pub(crate) fn text(value: Option<&Value>, max_chars: usize) -> Option<String> {
    let text = match value? {
        Value::Null | Value::Object(_) => return None,
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let text = |item: &Value| item.as_str().map_or_else(|| item.to_string(), str::to_owned);
            items.iter().map(text).collect::<Vec<_>>().join(", ")
        }
        scalar => scalar.to_string(),
    };
    Some(clip(&text, max_chars).into_owned())
}

/// The schema of an answer, without what hosts do not understand.
pub(crate) fn output_schema<T: JsonSchema>() -> JsonObject {
    let mut settings = SchemaSettings::default().for_serialize();
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let plain = RecursiveTransform(|schema: &mut Schema| {
        for keyword in ["title", "format", "additionalProperties"] {
            schema.remove(keyword);
        }
    });
    settings.transforms.push(Box::new(plain));
    object(settings.into_generator().into_root_schema_for::<T>().to_value())
}
