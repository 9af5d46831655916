//! Secrets, which the configuration names and does not contain.

use std::fmt;
use std::path::{Path, PathBuf};

use tribune_core::{Error, Result};

/// Where a secret is kept: `env:NAME` or `file:PATH`. It is read when it is needed and never printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Secret {
    Variable(String),
    File(PathBuf),
}

impl Secret {
    /// `setting` names the setting in errors: `agent.api_key`.
    pub fn parse(setting: &str, text: &str, config_dir: &Path) -> Result<Self> {
        match text.split_once(':') {
            Some(("env", name)) if !name.is_empty() => Ok(Self::Variable(name.to_owned())),
            Some(("file", path)) if !path.is_empty() => Ok(Self::File(config_dir.join(path))),
            // Not repeated: it may be the secret itself.
            _ => Err(Error::invalid_argument(format!(
                "{setting}: don't put secrets in this file; write \"env:NAME\" or \"file:PATH\""
            ))),
        }
    }

    pub fn is_reference(text: &str) -> bool {
        text.starts_with("env:") || text.starts_with("file:")
    }

    pub fn read(&self, setting: &str) -> Result<String> {
        let text = match self {
            Self::Variable(name) => std::env::var(name)
                .map_err(|_| Error::unavailable(format!("environment variable {name} ({setting}) is not set")))?,
            Self::File(path) => std::fs::read_to_string(path)
                .map_err(|error| Error::unavailable(format!("cannot read {} ({setting}): {error}", path.display())))?,
        };
        let text = text.trim();
        if text.is_empty() {
            return Err(Error::unavailable(format!("the secret for {setting} is empty")));
        }
        Ok(text.to_owned())
    }
}

/// An address that may hold a password: written as it is, or as a reference to where it is kept.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretUrl(pub String);

impl fmt::Debug for SecretUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretUrl(…)")
    }
}

impl SecretUrl {
    /// Refuses a password in the configuration itself.
    pub fn parse(setting: &str, text: &str, config_dir: &Path) -> Result<Self> {
        if Secret::is_reference(text) {
            return Secret::parse(setting, text, config_dir)?.read(setting).map(Self);
        }
        if has_password(text) {
            return Err(Error::invalid_argument(format!(
                "{setting} contains a password; put the whole address in a variable or a file and write \"env:NAME\" or \"file:PATH\""
            )));
        }
        Ok(Self(text.to_owned()))
    }
}

fn has_password(url: &str) -> bool {
    let Some((_, rest)) = url.split_once("://") else {
        return false;
    };
    let query = rest.split_once('?').map_or("", |(_, query)| query);
    let authority = rest.split('/').next().unwrap_or_default();
    let user = authority.rsplit_once('@').map_or("", |(user, _)| user);
    query.to_lowercase().contains("password=") || user.contains(':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_references() {
        let parse = |text: &str| Secret::parse("agent.api_key", text, Path::new("dir"));
        assert_eq!(parse("env:KEY").ok(), Some(Secret::Variable("KEY".to_owned())));
        assert_eq!(parse("file:key").ok(), Some(Secret::File(PathBuf::from("dir/key"))));
        for text in ["hunter2", "env:", "file:", ""] {
            let message = parse(text).expect_err(text).message().to_owned();
            assert!(message.contains("agent.api_key") && message.contains("\"env:NAME\""), "{message}");
            assert!(!message.contains("hunter2"), "{message}");
        }
        let missing = parse("env:TRIBUNE_TEST_NO_SUCH_VARIABLE").expect("a reference");
        let error = missing.read("agent.api_key").expect_err("not set");
        assert_eq!(error.message(), "environment variable TRIBUNE_TEST_NO_SUCH_VARIABLE (agent.api_key) is not set");
    }

    #[test]
    fn passwords_in_addresses_are_refused() {
        for url in ["redis://user:hunter2@host", "redis://:hunter2@host/1", "postgres://db/x?password=hunter2"] {
            let error = SecretUrl::parse("cache.url", url, Path::new("")).expect_err(url);
            assert!(!error.message().contains("hunter2"), "{}", error.message());
        }
        let url = SecretUrl::parse("store.url", "postgres://ann@db/tribune", Path::new("")).expect("no password");
        assert_eq!(url.0, "postgres://ann@db/tribune");
        assert!(!format!("{url:?}").contains("ann"));
    }
}
