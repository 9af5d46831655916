use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    /// The files of a model are damaged or not supported.
    #[error("{0}")]
    Model(String),
    /// An embeddings endpoint failed.
    #[error("{0}")]
    Endpoint(String),
}

impl EmbedError {
    pub(crate) fn model(message: impl Into<String>) -> Self {
        Self::Model(message.into())
    }
}
