//! `[store]` in the configuration.

use std::path::Path;

use serde::Deserialize;
use tribune_config::SecretUrl;
use tribune_core::{Error, Result};

use crate::Backend;

const DEFAULT_FILE: &str = "tribune.db";

/// `[store]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    pub url: Option<String>,
}

impl Config {
    /// The default is a file in the data folder. Errors never repeat the address, which may hold a password.
    pub fn backend(&self, config_dir: &Path, data_dir: &Path) -> Result<Backend> {
        let Some(text) = &self.url else {
            return Ok(Backend::Sqlite(data_dir.join(DEFAULT_FILE)));
        };
        let SecretUrl(url) = SecretUrl::parse("store.url", text, config_dir)?;
        if let Some(path) = url.strip_prefix("sqlite:") {
            // Three slashes begin an absolute path; two are a habit from other addresses.
            let path = path.strip_prefix("//").unwrap_or(path);
            if path.is_empty() || path.contains(['?', '#']) || path.starts_with(':') {
                return Err(Error::invalid_argument(
                    "store.url = \"sqlite:PATH\" needs the path of a file, such as \"sqlite:tribune.db\"",
                ));
            }
            return Ok(Backend::Sqlite(config_dir.join(path)));
        }
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            return Ok(Backend::Postgres(url));
        }
        Err(Error::invalid_argument(
            "store.url is neither \"sqlite:PATH\" nor an address such as \"postgres://127.0.0.1/tribune\"",
        ))
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    fn backend(url: Option<&str>) -> Result<Backend> {
        let config = Config { url: url.map(str::to_owned) };
        config.backend(Path::new("dir"), Path::new("data"))
    }

    #[test]
    fn store_is_a_file_or_a_server() {
        for (url, path) in [
            (None, "data/tribune.db"),
            (Some("sqlite:a.db"), "dir/a.db"),
            (Some("sqlite://a.db"), "dir/a.db"),
            (Some("sqlite:/x/a.db"), "/x/a.db"),
            (Some("sqlite:///x/a.db"), "/x/a.db"),
        ] {
            let backend = backend(url).expect("a file");
            assert!(matches!(&backend, Backend::Sqlite(file) if file == Path::new(path)), "{url:?}");
        }
        let server = backend(Some("postgres://ann@db/tribune")).expect("a server");
        assert!(matches!(server, Backend::Postgres(url) if url == "postgres://ann@db/tribune"));
    }

    #[test]
    fn invalid_addresses_are_refused_without_the_secret() {
        for (url, message) in [
            ("mysql://x", "such as \"postgres://127.0.0.1/tribune\""),
            ("sqlite:", "such as \"sqlite:tribune.db\""),
            ("sqlite::memory:", "such as \"sqlite:tribune.db\""),
            ("postgres://ann:hunter2@db/x", "\"env:NAME\" or \"file:PATH\""),
        ] {
            let error = backend(Some(url)).expect_err(url);
            assert!(error.message().contains(message), "{error}");
            assert!(!error.message().contains("hunter2"), "{error}");
        }
    }
}
