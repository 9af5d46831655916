//! all-MiniLM-L6-v2, which comes with the program.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use crate::bert::Pooling;
use crate::folder::{Files, ModelFile, Settings, TokenizerFile, assemble};
use crate::sentence::{Prompts, Sentence};
use crate::static_table::StaticTable;
use crate::{EmbedError, Embedder};

macro_rules! model_file {
    ($name:literal) => {
        include_bytes!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../models/all-MiniLM-L6-v2/",
            $name
        ))
    };
}

pub(crate) static TOKENIZER: &[u8] = model_file!("tokenizer.json");
static CONFIG: &[u8] = model_file!("config.json");
static MODEL: &[u8] = model_file!("model.safetensors");

/// As the model was trained for; `models/all-MiniLM-L6-v2/sentence_bert_config.json` says the same.
pub(crate) const LONGEST: usize = 256;

/// A table of word vectors that imitate the model's: far faster, and weaker. Loaded when it is first asked for.
pub fn static_table() -> Result<Arc<dyn Embedder>, EmbedError> {
    static TABLE: &[u8] = include_bytes!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../models/static-minilm-256/table.safetensors"
    ));
    static LOADED: OnceLock<Arc<StaticTable>> = OnceLock::new();
    if let Some(loaded) = LOADED.get() {
        return Ok(loaded.clone());
    }
    let loaded = Arc::new(StaticTable::parse(
        "static-minilm-256 (built in)",
        Cow::Borrowed(TABLE),
    )?);
    Ok(LOADED.get_or_init(|| loaded).clone())
}

/// The embedder that comes with the program, loaded when it is first asked for.
pub fn built_in() -> Result<Arc<dyn Embedder>, EmbedError> {
    static LOADED: OnceLock<Arc<Sentence>> = OnceLock::new();
    if let Some(loaded) = LOADED.get() {
        return Ok(loaded.clone());
    }
    // Two that come first at the same time both load; one of them is kept.
    let loaded = Arc::new(load()?);
    Ok(LOADED.get_or_init(|| loaded).clone())
}

fn load() -> Result<Sentence, EmbedError> {
    let files = Files {
        config: Cow::Borrowed(CONFIG),
        tokenizer: TokenizerFile::Json(Cow::Borrowed(TOKENIZER)),
        model: ModelFile::SafeTensors(Cow::Borrowed(MODEL)),
        settings: Settings {
            pooling: Pooling::Mean,
            longest: Some(LONGEST),
            prompts: Prompts::default(),
        },
    };
    assemble("all-MiniLM-L6-v2 (int8, built in)".into(), files)
}
