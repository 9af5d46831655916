//! One server: its name, how it is reached, its limits. Nothing here is `Debug`, because it holds secrets.

use std::path::PathBuf;
use std::time::Duration;

/// Shorter than the time that most hosts allow for a call.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Clone)]
pub struct ServerSpec {
    /// Prefix of the names of the server's tools.
    pub name: String,
    pub transport: Transport,
    /// For connecting, and for one call.
    pub timeout: Duration,
    /// Only these tools, by the server's own names.
    pub tools: Option<Vec<String>>,
}

#[derive(Clone)]
pub enum Transport {
    Http(HttpEndpoint),
    Stdio(ChildCommand),
}

#[derive(Clone)]
pub struct HttpEndpoint {
    pub url: String,
    pub bearer: Option<String>,
}

#[derive(Clone)]
pub struct ChildCommand {
    pub program: String,
    pub args: Vec<String>,
    /// In addition to the few variables that every child inherits.
    pub env: Vec<(String, String)>,
    pub cwd: Option<PathBuf>,
}

impl ServerSpec {
    pub fn new(name: impl Into<String>, transport: Transport) -> Self {
        Self { name: name.into(), transport, timeout: DEFAULT_TIMEOUT, tools: None }
    }
}
