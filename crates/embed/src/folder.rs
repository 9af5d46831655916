//! Loads a sentence-transformer folder.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::Path;

use parking_lot::Mutex;
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

/// Loads a folder as downloaded: `config.json`, `tokenizer.json` or `vocab.txt`, and `model.safetensors` or an ONNX
/// file.
pub fn load(folder: &Path) -> Result<Sentence, EmbedError> {
    let name = folder.file_name().map_or_else(|| folder.display().to_string(), |name| name.to_string_lossy().into());
    assemble(format!("{name} (int8, local folder)"), Files::Folder(folder)).map_err(|error| match error {
        EmbedError::Model(what) => EmbedError::model(format!("{}: {what}", folder.display())),
        other => other,
    })
}

/// Where the files of a model are.
pub(crate) enum Files<'a> {
    Folder(&'a Path),
    /// By name.
    BuiltIn(&'a [(&'static str, &'static [u8])]),
}

pub(crate) fn assemble(name: String, files: Files<'_>) -> Result<Sentence, EmbedError> {
    #[derive(Deserialize, Default)]
    struct Limits {
        max_seq_length: Option<usize>,
    }
    let config = files.read("config.json")?.ok_or_else(|| EmbedError::model("it has no config.json"))?;
    let config = Config::parse(&config)?;
    let limits: Limits = files.json("sentence_bert_config.json")?;
    let (pooling, prompts) = (pooling(&files)?, prompts(&files)?);
    let longest = config.max_tokens().min(MAX_TOKENS);
    let max_tokens = limits.max_seq_length.unwrap_or(longest).min(longest);
    if max_tokens < 3 {
        return Err(EmbedError::model(format!("the model allows texts of {max_tokens} tokens; at least 3 are needed")));
    }
    let mut hash = Sha256::new();
    let settings = format!("{QUANTISATION_VERSION} {config:?} {pooling:?} {max_tokens} {prompts:?}");
    hash.update(settings.as_bytes());
    let tokens = tokens(&files, max_tokens, &mut hash)?;
    let (bytes, is_onnx) = files.model()?;
    hash.update(&bytes);
    let tensors: Box<dyn Tensors + '_> = match is_onnx {
        true => Box::new(Onnx::parse(&bytes)?),
        false => Box::new(SafeTensors::parse(bytes)?),
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

impl Files<'_> {
    fn read(&self, name: &str) -> Result<Option<Cow<'static, [u8]>>, EmbedError> {
        self.read_at_most(name, MAX_FILE_BYTES)
    }

    fn read_at_most(&self, name: &str, most: u64) -> Result<Option<Cow<'static, [u8]>>, EmbedError> {
        match self {
            Self::Folder(folder) => read(&folder.join(name), most),
            Self::BuiltIn(files) => {
                Ok(files.iter().find(|(other, _)| *other == name).map(|(_, bytes)| Cow::Borrowed(*bytes)))
            }
        }
    }

    /// The default if there is no such file.
    fn json<T: DeserializeOwned + Default>(&self, name: &str) -> Result<T, EmbedError> {
        let Some(bytes) = self.read(name)? else {
            return Ok(T::default());
        };
        serde_json::from_slice(&bytes).map_err(|error| EmbedError::model(format!("{name}: {error}")))
    }

    /// The file with the weights, and whether it is an ONNX file.
    fn model(&self) -> Result<(Cow<'static, [u8]>, bool), EmbedError> {
        let usual = ["model.safetensors", "model.onnx", "onnx/model.onnx", "onnx/model_quantized.onnx"];
        let others = [("", ".safetensors"), ("", ".onnx"), ("onnx/", ".onnx")];
        let others = others.into_iter().filter_map(|(within, ending)| self.only_file(within, ending));
        for name in usual.map(str::to_owned).into_iter().chain(others) {
            if let Some(bytes) = self.read_at_most(&name, MAX_MODEL_BYTES)? {
                return Ok((bytes, name.ends_with(".onnx")));
            }
        }
        Err(EmbedError::model(
            "it has neither model.safetensors nor a single ONNX file; sharded models and PyTorch files are not supported",
        ))
    }

    fn only_file(&self, within: &str, ending: &str) -> Option<String> {
        let Self::Folder(folder) = self else { return None };
        let entries = fs::read_dir(folder.join(within)).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut names = names.filter(|name| name.ends_with(ending));
        let only = names.next().filter(|_| names.next().is_none())?;
        Some(format!("{within}{only}"))
    }
}

fn tokens(files: &Files<'_>, max_tokens: usize, hash: &mut Sha256) -> Result<Tokens, EmbedError> {
    #[derive(Deserialize, Default)]
    struct TokenizerConfig {
        do_lower_case: Option<bool>,
    }
    if let Some(json) = files.read("tokenizer.json")? {
        hash.update(&json);
        return Tokens::parse(&json, max_tokens);
    }
    let lines = files.read("vocab.txt")?.ok_or_else(|| {
        EmbedError::model("it has neither tokenizer.json nor vocab.txt; download the model with its tokenizer")
    })?;
    let lines = std::str::from_utf8(&lines).map_err(|_| EmbedError::model("vocab.txt is not UTF-8"))?;
    let config: TokenizerConfig = files.json("tokenizer_config.json")?;
    let lowercase = config.do_lower_case.unwrap_or(true);
    hash.update([u8::from(lowercase)]);
    hash.update(lines);
    Tokens::from_vocabulary(lines, lowercase, max_tokens)
}

fn prompts(files: &Files<'_>) -> Result<Prompts, EmbedError> {
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct SentenceTransformers {
        prompts: std::collections::HashMap<String, String>,
    }
    let found: SentenceTransformers = files.json("config_sentence_transformers.json")?;
    let prompt = |names: [&str; 2]| names.iter().find_map(|name| found.prompts.get(*name).cloned()).unwrap_or_default();
    Ok(Prompts { query: prompt(["query", "search_query"]), passage: prompt(["passage", "document"]) })
}

fn pooling(files: &Files<'_>) -> Result<Pooling, EmbedError> {
    #[derive(Deserialize)]
    struct Module {
        path: String,
        #[serde(rename = "type")]
        kind: String,
    }
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
    let mut folder = "1_Pooling".to_owned();
    for module in files.json::<Vec<Module>>("modules.json")? {
        match module.kind.rsplit('.').next() {
            Some("Transformer" | "Normalize") => {}
            Some("Pooling") if is_plain_name(&module.path) => folder = module.path,
            _ => {
                return Err(EmbedError::model(format!(
                    "modules.json has {}, which is not supported; supported are Transformer, Pooling and Normalize",
                    module.kind
                )));
            }
        }
    }
    let name = format!("{folder}/config.json");
    // Without the file it is a plain encoder, for which the mean is usual.
    let Some(modes) = files.json::<Option<Modes>>(&name)? else {
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
            "{name} has an unsupported pooling mode; supported are the mean of all tokens and the first token"
        ))),
    }
}

/// Whether the path names a direct subfolder.
fn is_plain_name(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    matches!((parts.next(), parts.next()), (Some(std::path::Component::Normal(_)), None))
}

/// `None` if there is no such file.
fn read(path: &Path, most: u64) -> Result<Option<Cow<'static, [u8]>>, EmbedError> {
    let fault = |source| EmbedError::Read { path: path.to_owned(), source };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        Err(error) => return Err(fault(error)),
    };
    let length = file.metadata().map_err(fault)?.len();
    if length > most {
        return Err(EmbedError::model(format!("{} is larger than {} MiB", path.display(), most >> 20)));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
    // The length was asked for before; the file may have grown since.
    file.take(most).read_to_end(&mut bytes).map_err(fault)?;
    Ok(Some(Cow::Owned(bytes)))
}

#[cfg(test)]
mod tests;
