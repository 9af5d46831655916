//! Which model ranks by meaning, as the configuration says it.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde::Deserialize;

/// `[embedder]` in the file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Embedder {
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

/// The same, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EmbedderChoice {
    MiniLm,
    Static,
    /// Full text alone.
    None,
    Folder(PathBuf),
    Api {
        url: String,
        model: String,
        /// Where the key is to be had; it is read when it is needed and never printed.
        api_key: Option<Secret>,
        dimensions: Option<usize>,
    },
}

impl Embedder {
    pub(super) fn checked(self, base: &Path) -> anyhow::Result<EmbedderChoice> {
        Ok(match self.kind {
            Kind::Minilm => EmbedderChoice::MiniLm,
            Kind::Static => EmbedderChoice::Static,
            Kind::None => EmbedderChoice::None,
            Kind::Folder => {
                let path = self.path.context(
                    "[embedder] kind = \"folder\" needs `path`: the folder of a sentence-transformer model",
                )?;
                EmbedderChoice::Folder(base.join(path))
            }
            Kind::Api => EmbedderChoice::Api {
                url: self.url.context(
                    "[embedder] kind = \"api\" needs `url`: an OpenAI-compatible address such as \"https://api.openai.com/v1\"",
                )?,
                model: self
                    .model
                    .context("[embedder] kind = \"api\" needs `model`: the name that the endpoint gives its model")?,
                api_key: self.api_key.as_deref().map(|text| Secret::parse(text, base)).transpose()?,
                dimensions: self.dimensions,
            },
        })
    }
}

/// What one source says of the model.
pub(super) fn of_source(source: &str, wish: Option<&str>, global: &EmbedderChoice) -> anyhow::Result<EmbedderChoice> {
    Ok(match wish {
        None | Some("default") => global.clone(),
        Some("minilm") => EmbedderChoice::MiniLm,
        Some("static") => EmbedderChoice::Static,
        Some("none") => EmbedderChoice::None,
        Some(other) => bail!(
            "source `{source}`: embedder = \"{other}\" is not known; use \"default\" (what [embedder] says), \"minilm\", \"static\" or \"none\""
        ),
    })
}

/// A value that stands elsewhere: `env:NAME` or `file:PATH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Secret {
    Variable(String),
    File(PathBuf),
}

impl Secret {
    pub fn parse(text: &str, base: &Path) -> anyhow::Result<Self> {
        match text.split_once(':') {
            Some(("env", name)) if !name.is_empty() => Ok(Self::Variable(name.to_owned())),
            Some(("file", path)) if !path.is_empty() => Ok(Self::File(base.join(path))),
            // Not repeated: it may be the secret itself.
            _ => bail!("a secret does not stand in the configuration: write \"env:NAME\" or \"file:PATH\""),
        }
    }

    pub fn read(&self) -> anyhow::Result<String> {
        let text = match self {
            Self::Variable(name) => std::env::var(name).map_err(|_| {
                anyhow::anyhow!("the variable {name}, which the configuration names for a secret, is not set")
            })?,
            Self::File(path) => std::fs::read_to_string(path)
                .with_context(|| format!("the secret in {} cannot be read", path.display()))?,
        };
        let text = text.trim();
        if text.is_empty() {
            bail!("a secret that the configuration names is empty");
        }
        Ok(text.to_owned())
    }
}
