//! One server: its name, how it is reached, its limits.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Shorter than the time that most hosts allow for a call.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, Clone)]
pub struct ServerSpec {
    /// Prefix of the names of the server's tools.
    pub name: String,
    pub transport: Transport,
    /// For connecting, and for one call.
    pub timeout: Duration,
    /// Only these tools, by the server's own names.
    pub tools: Option<Vec<String>>,
}

#[derive(Clone, Debug)]
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
        Self {
            name: name.into(),
            transport,
            timeout: DEFAULT_TIMEOUT,
            tools: None,
        }
    }
}

/// Without secrets: no token, and of the URL only origin and path.
impl fmt::Debug for HttpEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = reqwest::Url::parse(&self.url).map_or_else(
            |_| "…".to_owned(),
            |url| format!("{}{}", url.origin().ascii_serialization(), url.path()),
        );
        f.debug_struct("HttpEndpoint")
            .field("url", &url)
            .field("bearer", &self.bearer.as_ref().map(|_| "…"))
            .finish()
    }
}

/// Without secrets: arguments are counted, and variables are named without their values.
impl fmt::Debug for ChildCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildCommand")
            .field("program", &self.program)
            .field("args", &self.args.len())
            .field("env", &self.env.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .field("cwd", &self.cwd)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_has_no_secrets() {
        let url = format!(
            "{:?}",
            HttpEndpoint {
                url: "https://me:pw@h:1/mcp?key=k3y".to_owned(),
                bearer: Some("s3cret".to_owned()),
            }
        );
        assert!(url.contains("https://h:1/mcp"), "{url}");
        let command = format!(
            "{:?}",
            ChildCommand {
                program: "npx".to_owned(),
                args: vec!["--token=t0ken".to_owned()],
                env: vec![("API_KEY".to_owned(), "k3y".to_owned())],
                cwd: None,
            }
        );
        assert!(command.contains("API_KEY"), "{command}");
        for secret in ["s3cret", "pw", "k3y", "t0ken"] {
            assert!(
                !url.contains(secret) && !command.contains(secret),
                "{secret}: {url} {command}"
            );
        }
    }
}
