//! The models in the binary: all-MiniLM-L6-v2 and a static table made from it.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use crate::folder::{Files, assemble};
use crate::sentence::Sentence;
use crate::static_table::StaticTable;
use crate::tokens::BUILT_IN_TOKENIZER;
use crate::{EmbedError, Embedder};

macro_rules! model_file {
    ($name:literal) => {
        include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/", $name))
    };
}

static FILES: [(&str, &[u8]); 4] = [
    ("config.json", model_file!("all-MiniLM-L6-v2/config.json")),
    ("sentence_bert_config.json", model_file!("all-MiniLM-L6-v2/sentence_bert_config.json")),
    ("tokenizer.json", BUILT_IN_TOKENIZER),
    ("model.safetensors", model_file!("all-MiniLM-L6-v2/model.safetensors")),
];

/// A table of token vectors distilled from the model: far faster and less accurate. Loaded on first use.
pub fn static_table() -> Result<Arc<dyn Embedder>, EmbedError> {
    static TABLE: &[u8] = model_file!("static-minilm-256/table.safetensors");
    static LOADED: OnceLock<Arc<StaticTable>> = OnceLock::new();
    loaded(&LOADED, || StaticTable::parse("static-minilm-256 (built in)", Cow::Borrowed(TABLE)))
}

/// The sentence encoder. Loaded on first use.
pub fn built_in() -> Result<Arc<dyn Embedder>, EmbedError> {
    static LOADED: OnceLock<Arc<Sentence>> = OnceLock::new();
    loaded(&LOADED, || assemble("all-MiniLM-L6-v2 (int8, built in)".into(), Files::BuiltIn(&FILES)))
}

/// Two first callers may both load it; one copy is dropped.
fn loaded<E: Embedder + 'static>(
    cell: &OnceLock<Arc<E>>,
    load: impl FnOnce() -> Result<E, EmbedError>,
) -> Result<Arc<dyn Embedder>, EmbedError> {
    if let Some(loaded) = cell.get() {
        return Ok(loaded.clone());
    }
    let loaded = Arc::new(load()?);
    Ok(cell.get_or_init(|| loaded).clone())
}
