//! `[embedder]`: the model for vector search.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Deserialize;
use tribune_config::Secret;
use tribune_core::{Error, Result};
use tribune_embed::api::{Api, Settings as ApiSettings};
use tribune_embed::{EmbedError, Embedder};

/// `[embedder]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EmbedderConfig {
    pub kind: Kind,
    pub path: Option<PathBuf>,
    pub url: Option<String>,
    pub model: Option<String>,
    pub api_key: Option<String>,
    pub dimensions: Option<usize>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    #[default]
    Minilm,
    Static,
    None,
    Folder,
    Api,
}

impl EmbedderConfig {
    pub fn choice(self, config_dir: &Path) -> Result<EmbedderChoice> {
        Ok(match self.kind {
            Kind::Minilm => EmbedderChoice::MiniLm,
            Kind::Static => EmbedderChoice::Static,
            Kind::None => EmbedderChoice::None,
            Kind::Folder => {
                let path = required(self.path, "folder", "`path`: the folder of a sentence-transformer model")?;
                EmbedderChoice::Folder(config_dir.join(path))
            }
            Kind::Api => EmbedderChoice::Api {
                url: required(
                    self.url,
                    "api",
                    "`url`: an OpenAI-compatible address such as \"https://api.openai.com/v1\"",
                )?,
                model: required(self.model, "api", "`model`: the endpoint's name for its model")?,
                api_key: self.api_key.map(|text| Secret::parse("embedder.api_key", &text, config_dir)).transpose()?,
                dimensions: self.dimensions,
            },
        })
    }
}

fn required<T>(value: Option<T>, kind: &str, what: &str) -> Result<T> {
    value.ok_or_else(|| Error::invalid_argument(format!("[embedder] kind = \"{kind}\" needs {what}")))
}

/// A choice of model, checked but not loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EmbedderChoice {
    MiniLm,
    Static,
    /// Keyword search only.
    None,
    Folder(PathBuf),
    Api {
        url: String,
        model: String,
        api_key: Option<Secret>,
        dimensions: Option<usize>,
    },
}

impl EmbedderChoice {
    /// Resolves the `embedder` setting of a source.
    fn of_source(source: &str, setting: Option<&str>, default: &Self) -> Result<Self> {
        Ok(match setting {
            None | Some("default") => default.clone(),
            Some("minilm") => Self::MiniLm,
            Some("static") => Self::Static,
            Some("none") => Self::None,
            Some(other) => {
                return Err(Error::invalid_argument(format!(
                    "source `{source}`: embedder = \"{other}\" is unknown; use \"default\" (the [embedder] section), \"minilm\", \"static\" or \"none\""
                )));
            }
        })
    }

    /// Loads the model; `None` for keyword search only. May block for seconds.
    pub fn load(&self) -> Result<Option<Arc<dyn Embedder>>> {
        let failed = |what: String| move |error: EmbedError| Error::unavailable(format!("{what}: {error}"));
        Ok(Some(match self {
            Self::None => return Ok(None),
            Self::MiniLm => {
                tribune_embed::built_in().map_err(failed("the built-in model cannot be loaded".to_owned()))?
            }
            Self::Static => {
                tribune_embed::static_table().map_err(failed("the built-in table cannot be loaded".to_owned()))?
            }
            Self::Folder(path) => Arc::new(
                tribune_embed::folder::load(path)
                    .map_err(failed(format!("the model in {} cannot be used", path.display())))?,
            ),
            Self::Api { url, model, api_key, dimensions } => {
                let mut settings = ApiSettings::new(url.clone(), model.clone());
                settings.key = api_key.as_ref().map(|key| key.read("embedder.api_key")).transpose()?;
                settings.dimensions = *dimensions;
                // On its own thread, because it blocks and the caller may be async. With configured dimensions no
                // request is sent now, so that an endpoint that is down is used once it is back.
                let connect = move || match settings.dimensions {
                    Some(_) => Api::new(settings),
                    None => Api::connect(settings),
                };
                let connected = std::thread::spawn(connect).join();
                let api = connected.map_err(|_| Error::internal(format!("connecting to {url} panicked")))?;
                Arc::new(api.map_err(failed(format!("the embeddings of {url} cannot be used")))?)
            }
        }))
    }
}

/// The models of all sources. Each is loaded once, on first use.
pub struct Embedders {
    default: EmbedderChoice,
    loaded: Mutex<Loaded>,
}

#[derive(Default)]
struct Loaded {
    /// By choice; `None` if loading failed.
    models: Vec<(EmbedderChoice, Option<Arc<dyn Embedder>>)>,
    /// Sources whose model could not be loaded.
    without_model: Vec<String>,
}

impl Embedders {
    pub fn new(default: EmbedderChoice) -> Self {
        let loaded = Mutex::default();
        Self { default, loaded }
    }

    /// The model for a source; `setting` is its `embedder`. If an endpoint fails, the source has keyword search only.
    pub fn get(&self, source: &str, setting: Option<&str>) -> Result<Option<Arc<dyn Embedder>>> {
        let choice = EmbedderChoice::of_source(source, setting, &self.default)?;
        let mut loaded = self.loaded();
        let known = loaded.models.iter().find(|(known, _)| *known == choice);
        let model = match known {
            Some((_, model)) => model.clone(),
            None => {
                let model = match choice.load() {
                    Err(error) if matches!(choice, EmbedderChoice::Api { .. }) => {
                        tracing::error!("{}; keyword search works without it", error.message());
                        None
                    }
                    other => other?,
                };
                loaded.models.push((choice.clone(), model.clone()));
                model
            }
        };
        if model.is_none() && choice != EmbedderChoice::None {
            loaded.without_model.push(source.to_owned());
        }
        Ok(model)
    }

    /// Whether a source's model could not be loaded.
    pub fn lacks_model(&self, source: &str) -> bool {
        self.loaded().without_model.iter().any(|name| name == source)
    }

    fn loaded(&self) -> MutexGuard<'_, Loaded> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_embedder_is_refused() {
        let embedders = Embedders::new(EmbedderChoice::None);
        assert!(embedders.get("notes", None).expect("no model").is_none());
        assert!(!embedders.lacks_model("notes"), "none is wanted");
        let error = embedders.get("notes", Some("gpt")).err().expect("refused");
        assert!(error.message().contains("source `notes`: embedder = \"gpt\""), "{error}");
    }

    #[test]
    fn missing_endpoint_leaves_full_text() {
        let choice = EmbedderChoice::Api {
            url: "http://127.0.0.1:1/v1".to_owned(),
            model: "m".to_owned(),
            api_key: None,
            dimensions: None,
        };
        let embedders = Embedders::new(choice);
        assert!(embedders.get("notes", None).expect("served").is_none());
        assert!(embedders.lacks_model("notes"));
    }
}
