//! What a source is built with.

use std::path::PathBuf;
use std::sync::Arc;

use tribune_core::{Clock, Links};

/// What every `build(config, &Environment)` function is given.
#[derive(Clone)]
pub struct Environment {
    pub clock: Arc<dyn Clock>,
    /// The addresses that answers cite.
    pub links: Links,
    /// The folder of the configuration file: relative paths in it start here.
    pub config_dir: PathBuf,
    /// Where indexes, citations and other state are kept.
    pub data_dir: PathBuf,
    /// Whether this process serves until it is stopped, or answers one question.
    pub is_server: bool,
    /// Whether citation records outlive this process, or the server that reads them is this process.
    pub keeps_citations: bool,
    /// Kind and name of every configured source, in order.
    pub sources: Vec<(String, String)>,
}
