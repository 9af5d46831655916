use std::path::PathBuf;

/// Why there are no vectors.
#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    /// The files of a model are not what they should be, or of a kind that is not supported.
    #[error("{0}")]
    Model(String),
    /// An endpoint did not answer as it should.
    #[error("{0}")]
    Endpoint(String),
}

impl EmbedError {
    pub(crate) fn model(message: impl Into<String>) -> Self {
        Self::Model(message.into())
    }
}
