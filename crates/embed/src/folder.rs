//! Loads a sentence-transformer folder.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::EmbedError;
use crate::bert::{Config, Encoder, Pooling};
use crate::sentence::{Prompts, Sentence};
use crate::tokens::Tokens;
use crate::weights::onnx::Onnx;
use crate::weights::safetensors::SafeTensors;
use crate::weights::{QUANTISATION_VERSION, Tensors};

/// Most tokens per text, whatever a model allows: attention grows with their square.
const MAX_TOKENS: usize = 512;
const MAX_MODEL_BYTES: u64 = 8 << 30;
const MAX_FILE_BYTES: u64 = 64 << 20;

/// The files of a model.
pub(crate) struct Files {
    pub config: Cow<'static, [u8]>,
    pub tokenizer: TokenizerFile,
    pub model: ModelFile,
    pub settings: Settings,
}

pub(crate) enum TokenizerFile {
    Json(Cow<'static, [u8]>),
    Vocabulary { lines: String, lowercase: bool },
}

pub(crate) enum ModelFile {
    SafeTensors(Cow<'static, [u8]>),
    Onnx(Vec<u8>),
}

/// The settings in the small files beside the weights.
pub(crate) struct Settings {
    pub pooling: Pooling,
    pub max_tokens: Option<usize>,
    pub prompts: Prompts,
}

/// Loads a folder as downloaded: `config.json`, `tokenizer.json` or `vocab.txt`, and `model.safetensors` or an ONNX
/// file.
pub fn load(folder: &Path) -> Result<Sentence, EmbedError> {
    let name = folder.file_name().map_or_else(|| folder.display().to_string(), |name| name.to_string_lossy().into());
    let config = read(&folder.join("config.json"), MAX_FILE_BYTES)?;
    let files = Files {
        config: Cow::Owned(config),
        tokenizer: tokenizer_file(folder)?,
        settings: settings(folder)?,
        model: model_file(folder)?,
    };
    assemble(format!("{name} (int8, local folder)"), files)
        .map_err(|error| EmbedError::model(format!("{}: {error}", folder.display())))
}

pub(crate) fn assemble(name: String, files: Files) -> Result<Sentence, EmbedError> {
    let config = Config::parse(&files.config)?;
    let Settings { pooling, prompts, .. } = files.settings;
    let longest = config.max_tokens().min(MAX_TOKENS);
    let max_tokens = files.settings.max_tokens.unwrap_or(longest).min(longest);
    if max_tokens < 3 {
        return Err(EmbedError::model(format!("the model allows texts of {max_tokens} tokens; at least 3 are needed")));
    }
    let mut hash = Sha256::new();
    let settings = format!("{QUANTISATION_VERSION} {config:?} {pooling:?} {max_tokens} {prompts:?}");
    hash.update(settings.as_bytes());
    let tokens = match &files.tokenizer {
        TokenizerFile::Json(json) => {
            hash.update(json);
            Tokens::parse(json, max_tokens)?
        }
        TokenizerFile::Vocabulary { lines, lowercase } => {
            hash.update([u8::from(*lowercase)]);
            hash.update(lines.as_bytes());
            Tokens::from_vocabulary(lines, *lowercase, max_tokens)?
        }
    };
    let tensors: Box<dyn Tensors> = match files.model {
        ModelFile::SafeTensors(bytes) => {
            hash.update(&bytes);
            Box::new(SafeTensors::parse(bytes)?)
        }
        ModelFile::Onnx(bytes) => {
            hash.update(&bytes);
            Box::new(Onnx::parse(bytes)?)
        }
    };
    Ok(Sentence {
        name,
        fingerprint: short_hex(hash),
        tokens,
        encoder: Encoder::load(&config, tensors.as_ref())?,
        pooling,
        prompts,
        scratch: Mutex::default(),
    })
}

/// The first 64 bits of a hash, in hexadecimal.
pub(crate) fn short_hex(hash: Sha256) -> String {
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn tokenizer_file(folder: &Path) -> Result<TokenizerFile, EmbedError> {
    if let Some(json) = read_optional(&folder.join("tokenizer.json"), MAX_FILE_BYTES)? {
        return Ok(TokenizerFile::Json(Cow::Owned(json)));
    }
    #[derive(Deserialize, Default)]
    struct TokenizerConfig {
        do_lower_case: Option<bool>,
    }
    let Some(lines) = read_optional(&folder.join("vocab.txt"), MAX_FILE_BYTES)? else {
        return Err(EmbedError::model(format!(
            "{} has neither tokenizer.json nor vocab.txt; download the model with its tokenizer",
            folder.display()
        )));
    };
    let lines = String::from_utf8(lines).map_err(|_| EmbedError::model("vocab.txt is not UTF-8"))?;
    let config: TokenizerConfig = json_optional(&folder.join("tokenizer_config.json"))?.unwrap_or_default();
    Ok(TokenizerFile::Vocabulary { lines, lowercase: config.do_lower_case.unwrap_or(true) })
}

fn model_file(folder: &Path) -> Result<ModelFile, EmbedError> {
    if let Some(bytes) = read_optional(&folder.join("model.safetensors"), MAX_MODEL_BYTES)? {
        return Ok(ModelFile::SafeTensors(Cow::Owned(bytes)));
    }
    for name in ["model.onnx", "onnx/model.onnx", "onnx/model_quantized.onnx"] {
        if let Some(bytes) = read_optional(&folder.join(name), MAX_MODEL_BYTES)? {
            return Ok(ModelFile::Onnx(bytes));
        }
    }
    if let [only] = with_extension(folder, "safetensors").as_slice() {
        return Ok(ModelFile::SafeTensors(Cow::Owned(read(only, MAX_MODEL_BYTES)?)));
    }
    let onnx = folder.join("onnx");
    for folder in [folder, &onnx] {
        if let [only] = with_extension(folder, "onnx").as_slice() {
            return Ok(ModelFile::Onnx(read(only, MAX_MODEL_BYTES)?));
        }
    }
    Err(EmbedError::model(format!(
        "{} has neither model.safetensors nor a single ONNX file; sharded models and PyTorch files are not supported",
        folder.display()
    )))
}

fn with_extension(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths.filter(|path| path.extension().is_some_and(|found| found == extension)).collect()
}

fn settings(folder: &Path) -> Result<Settings, EmbedError> {
    #[derive(Deserialize)]
    struct Module {
        path: String,
        #[serde(rename = "type")]
        kind: String,
    }
    #[derive(Deserialize, Default)]
    struct Limits {
        max_seq_length: Option<usize>,
    }
    #[derive(Deserialize, Default)]
    struct SentenceTransformers {
        #[serde(default)]
        prompts: std::collections::HashMap<String, String>,
    }
    let modules: Vec<Module> = json_optional(&folder.join("modules.json"))?.unwrap_or_default();
    let mut pooling_at = "1_Pooling".to_owned();
    for module in modules {
        match module.kind.rsplit('.').next() {
            Some("Transformer" | "Normalize") => {}
            Some("Pooling") if is_plain_name(&module.path) => pooling_at = module.path,
            _ => {
                return Err(EmbedError::model(format!(
                    "{}: modules.json has {}, which is not supported; supported are Transformer, Pooling and Normalize",
                    folder.display(),
                    module.kind
                )));
            }
        }
    }
    let limits: Limits = json_optional(&folder.join("sentence_bert_config.json"))?.unwrap_or_default();
    let more: SentenceTransformers =
        json_optional(&folder.join("config_sentence_transformers.json"))?.unwrap_or_default();
    let prompt = |names: [&str; 2]| names.iter().find_map(|name| more.prompts.get(*name).cloned()).unwrap_or_default();
    Ok(Settings {
        pooling: pooling(&folder.join(pooling_at).join("config.json"))?,
        max_tokens: limits.max_seq_length,
        prompts: Prompts { query: prompt(["query", "search_query"]), passage: prompt(["passage", "document"]) },
    })
}

/// Whether the path names a direct subfolder.
fn is_plain_name(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    matches!((parts.next(), parts.next()), (Some(std::path::Component::Normal(_)), None))
}

fn pooling(path: &Path) -> Result<Pooling, EmbedError> {
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Modes {
        pooling_mode_cls_token: bool,
        pooling_mode_mean_tokens: bool,
        pooling_mode_max_tokens: bool,
        pooling_mode_mean_sqrt_len_tokens: bool,
        pooling_mode_weightedmean_tokens: bool,
        pooling_mode_lasttoken: bool,
    }
    // Without the file it is a plain encoder, for which the mean is usual.
    let Some(modes) = json_optional::<Modes>(path)? else {
        return Ok(Pooling::Mean);
    };
    let others = modes.pooling_mode_max_tokens
        || modes.pooling_mode_weightedmean_tokens
        || modes.pooling_mode_lasttoken
        || (modes.pooling_mode_mean_sqrt_len_tokens && modes.pooling_mode_mean_tokens);
    // Dividing by the square root of the length instead makes no difference after normalisation.
    let mean = modes.pooling_mode_mean_tokens || modes.pooling_mode_mean_sqrt_len_tokens;
    match (modes.pooling_mode_cls_token, mean, others) {
        (false, true, false) => Ok(Pooling::Mean),
        (true, false, false) => Ok(Pooling::First),
        _ => Err(EmbedError::model(format!(
            "{} has an unsupported pooling mode; supported are the mean of all tokens and the first token",
            path.display()
        ))),
    }
}

fn read(path: &Path, most: u64) -> Result<Vec<u8>, EmbedError> {
    let fault = |source| EmbedError::Read { path: path.to_owned(), source };
    let file = File::open(path).map_err(fault)?;
    let length = file.metadata().map_err(fault)?.len();
    if length > most {
        return Err(EmbedError::model(format!("{} is larger than {} MiB", path.display(), most >> 20)));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
    // The length was asked for before; the file may have grown since.
    file.take(most).read_to_end(&mut bytes).map_err(fault)?;
    Ok(bytes)
}

fn read_optional(path: &Path, most: u64) -> Result<Option<Vec<u8>>, EmbedError> {
    match read(path, most) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(EmbedError::Read { source, .. })
            if matches!(source.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn json_optional<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, EmbedError> {
    let bytes = read_optional(path, MAX_FILE_BYTES)?;
    let parsed = bytes.map(|bytes| serde_json::from_slice(&bytes)).transpose();
    parsed.map_err(|error| EmbedError::model(format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests;
