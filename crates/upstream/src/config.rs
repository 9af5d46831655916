//! One server in the configuration: `[[agent.servers]]`.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use tribune_config::{Secret, is_http_url};
use tribune_core::{Error, Result};

use crate::spec::{ChildCommand, DEFAULT_TIMEOUT, HttpEndpoint, ServerSpec, Transport};

/// With a separator, this leaves 29 characters for the tool's own name.
const MAX_NAME_CHARS: usize = 20;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub name: String,
    pub url: Option<String>,
    pub token: Option<String>,
    #[serde(default)]
    pub command: Vec<String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    pub tools: Option<Vec<String>>,
    #[serde(default = "default_timeout_secs")]
    pub timeout_secs: u64,
}

const fn default_timeout_secs() -> u64 {
    DEFAULT_TIMEOUT.as_secs()
}

impl Config {
    pub fn check(&self) -> Result<()> {
        let problem = match (&self.url, self.command.is_empty()) {
            _ if !is_name(&self.name) => "needs a `name` of at most 20 characters: a-z, 0-9 and _, a letter first",
            (Some(_), false) => "has both `url` and `command`; keep one",
            (None, true) => "needs `url` (\"https://…/mcp\") or `command` ([\"program\", \"argument\"])",
            (Some(url), true) if !is_http_url(url) => "needs a `url` such as \"https://example.org/mcp\"",
            _ if !(1..=3600).contains(&self.timeout_secs) => "needs a `timeout_secs` between 1 and 3600",
            (None, _) if self.token.is_some() => {
                "has a `token` without a `url`; pass secrets to a command in `env` instead"
            }
            (None, _) if self.command[0].trim().is_empty() => "has an empty `command`; name the program to run",
            (Some(_), _) if !self.env.is_empty() => "has an `env` without a `command`",
            _ => return Ok(()),
        };
        Err(Error::invalid_argument(format!("{} {problem}", self.title())))
    }

    /// What messages call this entry.
    fn title(&self) -> String {
        format!("[[agent.servers]] `{}`", self.name)
    }

    /// Reads the secrets, so it fails when one is missing.
    pub fn spec(&self, config_dir: &Path) -> Result<ServerSpec> {
        let secret = |setting: &str, text: &str| {
            let setting = format!("{}, `{setting}`", self.title());
            Secret::parse(&setting, text, config_dir)?.read(&setting)
        };
        self.check()?;
        let transport = match (&self.url, self.command.as_slice()) {
            (Some(url), _) => Transport::Http(HttpEndpoint {
                url: url.clone(),
                bearer: self.token.as_deref().map(|token| secret("token", token)).transpose()?,
            }),
            (None, command) => Transport::Stdio(ChildCommand {
                program: command.first().cloned().unwrap_or_default(),
                args: command.iter().skip(1).cloned().collect(),
                env: self
                    .env
                    .iter()
                    .map(|(name, value)| match Secret::is_reference(value) {
                        true => Ok((name.clone(), secret("env", value)?)),
                        false => Ok((name.clone(), value.clone())),
                    })
                    .collect::<Result<_>>()?,
                cwd: (!config_dir.as_os_str().is_empty()).then(|| config_dir.to_owned()),
            }),
        };
        Ok(ServerSpec {
            name: self.name.clone(),
            transport,
            timeout: Duration::from_secs(self.timeout_secs),
            tools: self.tools.clone(),
        })
    }
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.len() <= MAX_NAME_CHARS
        && name.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn invalid_servers_are_refused() {
        for (fields, message) in [
            (json!({"name": "x"}), "needs `url`"),
            (json!({"name": "x", "command": [" "]}), "empty `command`"),
            (json!({"name": "x", "url": "file:///etc/passwd"}), "needs a `url`"),
            (json!({"name": "x", "url": "http://a", "command": ["b"]}), "both"),
            (json!({"name": "x", "url": "example.org"}), "\"https://example.org/mcp\""),
            (json!({"name": "x", "command": ["b"], "token": "env:X"}), "without a `url`"),
            (json!({"name": "x", "url": "http://a", "env": {"A": "b"}}), "without a `command`"),
            (json!({"name": "x", "url": "http://a", "timeout_secs": 0}), "between 1 and 3600"),
        ] {
            let config: Config = serde_json::from_value(fields).expect("a configuration");
            let error = config.check().expect_err(message);
            assert!(error.message().contains(message), "{error}");
        }
    }

    #[test]
    fn names_are_short_and_plain() {
        let check = |name: &str| {
            let config: Config =
                serde_json::from_value(json!({"name": name, "url": "http://h/mcp"})).expect("a configuration");
            config.check()
        };
        for good in ["a", "github", "a_1", "abcdefghijklmnopqrst"] {
            assert!(check(good).is_ok(), "{good}");
        }
        for bad in ["", "A", "1a", "_a", "a-b", "a.b", "ä", "abcdefghijklmnopqrstu"] {
            let error = check(bad).expect_err(bad);
            assert!(error.message().contains("needs a `name`"), "{error}");
        }
    }

    #[test]
    fn missing_secret_names_its_server() {
        let config: Config = serde_json::from_value(json!({
            "name": "weather", "url": "https://example.org/mcp", "token": "env:TRIBUNE_TEST_NO_SUCH_VARIABLE",
        }))
        .expect("a configuration");
        let error = config.spec(Path::new("")).err().expect("not set");
        assert!(error.message().contains("`weather`"), "{error}");
    }
}
