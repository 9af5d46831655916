//! Which servers there are, and how they are reached.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use tribune_core::{Error, Result};

/// As long as most hosts allow a call, and less than all of them.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// With it and a separator, 29 characters are left for the tool's own name.
const MAX_NAME_CHARS: usize = 20;

/// One server of others.
#[derive(Debug, Clone)]
pub struct ServerSpec {
    /// `[a-z][a-z0-9_]{0,19}`: the tools' names begin with it.
    pub name: String,
    pub reach: Reach,
    /// For connecting, and for one call.
    pub timeout: Duration,
    /// Only these tools, by the names that the server has for them.
    pub tools: Option<Vec<String>>,
}

/// Where a server is.
#[derive(Clone)]
pub enum Reach {
    /// Streamable HTTP.
    Url { url: String, bearer: Option<String> },
    /// A program of its own, talked to over its standard input and output.
    Command {
        program: String,
        args: Vec<String>,
        /// On top of the little that every child gets.
        env: Vec<(String, String)>,
        cwd: Option<PathBuf>,
    },
}

impl ServerSpec {
    pub fn new(name: impl Into<String>, reach: Reach) -> Self {
        Self {
            name: name.into(),
            reach,
            timeout: DEFAULT_TIMEOUT,
            tools: None,
        }
    }

    /// Everything that can be known to be wrong without trying.
    pub(crate) fn check(&self) -> Result<()> {
        let name = &self.name;
        if !is_name(name) {
            return Err(Error::invalid_argument(format!(
                "`{name}` cannot name an MCP server; take at most {MAX_NAME_CHARS} of a-z, 0-9 and _, a letter first"
            )));
        }
        if self.timeout.is_zero() {
            return Err(Error::invalid_argument(format!(
                "the timeout of MCP server `{name}` is zero; give it a second at least"
            )));
        }
        match &self.reach {
            Reach::Url { url, .. } => check_url(name, url),
            Reach::Command { program, .. } if program.trim().is_empty() => Err(Error::invalid_argument(format!(
                "MCP server `{name}` has an empty command; name the program to run"
            ))),
            Reach::Command { .. } => Ok(()),
        }
    }
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.len() <= MAX_NAME_CHARS
        && name
            .bytes()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_')
}

fn check_url(name: &str, url: &str) -> Result<()> {
    let wrong = |why: &str| {
        Error::invalid_argument(format!(
            "the URL of MCP server `{name}` {why}; write it like https://host/mcp"
        ))
    };
    let parsed = reqwest::Url::parse(url).map_err(|_| wrong("cannot be read"))?;
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err(wrong("is neither http nor https"));
    }
    Ok(())
}

/// Secrets stay out of logs: a bearer token, what is in the environment, and what an address may carry
/// besides host and path.
impl fmt::Debug for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url { url, bearer } => f
                .debug_struct("Url")
                .field("url", &bare(url))
                .field("bearer", &bearer.as_ref().map(|_| "…"))
                .finish(),
            Self::Command {
                program,
                args,
                env,
                cwd,
            } => f
                .debug_struct("Command")
                .field("program", program)
                .field("args", &args.len())
                .field("env", &env.iter().map(|(name, _)| name).collect::<Vec<_>>())
                .field("cwd", cwd)
                .finish(),
        }
    }
}

fn bare(url: &str) -> String {
    reqwest::Url::parse(url).map_or_else(
        |_| "…".to_owned(),
        |url| format!("{}{}", url.origin().ascii_serialization(), url.path()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(url: &str) -> Reach {
        Reach::Url {
            url: url.to_owned(),
            bearer: Some("s3cret".to_owned()),
        }
    }

    #[test]
    fn names_are_short_and_plain() {
        for good in ["a", "github", "a_1", "abcdefghijklmnopqrst"] {
            assert!(ServerSpec::new(good, at("http://h/mcp")).check().is_ok(), "{good}");
        }
        for bad in ["", "A", "1a", "_a", "a-b", "a.b", "ä", "abcdefghijklmnopqrstu"] {
            let error = ServerSpec::new(bad, at("http://h/mcp")).check().expect_err(bad);
            assert!(error.message().contains("cannot name an MCP server"), "{error}");
        }
    }

    #[test]
    fn addresses_and_commands_are_looked_at() {
        for bad in ["", "h/mcp", "ftp://h/mcp", "file:///etc/passwd"] {
            assert!(ServerSpec::new("a", at(bad)).check().is_err(), "{bad}");
        }
        let empty = Reach::Command {
            program: " ".to_owned(),
            args: vec![],
            env: vec![],
            cwd: None,
        };
        assert!(ServerSpec::new("a", empty).check().is_err());
    }

    #[test]
    fn secrets_are_not_shown() {
        let url = format!("{:?}", ServerSpec::new("a", at("https://me:pw@h:1/mcp?key=k3y")));
        assert!(url.contains("https://h:1/mcp"), "{url}");
        let command = format!(
            "{:?}",
            Reach::Command {
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
