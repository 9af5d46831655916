//! The models in the binary: all-MiniLM-L6-v2 and a static table made from it.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use crate::bert::Pooling;
use crate::folder::{Files, ModelFile, Settings, TokenizerFile, assemble};
use crate::sentence::{Prompts, Sentence};
use crate::static_table::StaticTable;
use crate::tokens::BUILT_IN_TOKENIZER;
use crate::{EmbedError, Embedder};

macro_rules! model_file {
    ($name:literal) => {
        include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/all-MiniLM-L6-v2/", $name))
    };
}

static CONFIG: &[u8] = model_file!("config.json");
static MODEL: &[u8] = model_file!("model.safetensors");

/// As in `models/all-MiniLM-L6-v2/sentence_bert_config.json`.
pub(crate) const MAX_TOKENS: usize = 256;

/// A table of token vectors distilled from the model: far faster and less accurate. Loaded on first use.
pub fn static_table() -> Result<Arc<dyn Embedder>, EmbedError> {
    static TABLE: &[u8] =
        include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/static-minilm-256/table.safetensors"));
    static LOADED: OnceLock<Arc<StaticTable>> = OnceLock::new();
    loaded(&LOADED, || StaticTable::parse("static-minilm-256 (built in)", Cow::Borrowed(TABLE)))
}

/// The sentence encoder. Loaded on first use.
pub fn built_in() -> Result<Arc<dyn Embedder>, EmbedError> {
    static LOADED: OnceLock<Arc<Sentence>> = OnceLock::new();
    loaded(&LOADED, load)
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

fn load() -> Result<Sentence, EmbedError> {
    let files = Files {
        config: Cow::Borrowed(CONFIG),
        tokenizer: TokenizerFile::Json(Cow::Borrowed(BUILT_IN_TOKENIZER)),
        model: ModelFile::SafeTensors(Cow::Borrowed(MODEL)),
        settings: Settings { pooling: Pooling::Mean, max_tokens: Some(MAX_TOKENS), prompts: Prompts::default() },
    };
    assemble("all-MiniLM-L6-v2 (int8, built in)".into(), files)
}
