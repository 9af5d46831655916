//! `[store]`: where tasks, conversations and tokens are kept.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde::Deserialize;

use super::Secret;

/// `[store]` in the file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Store {
    pub url: Option<String>,
}

#[derive(Clone, PartialEq, Eq)]
pub enum StorePlace {
    /// A file of this machine.
    Sqlite(PathBuf),
    /// Shared by every process that names the same. May hold a password.
    Postgres(String),
}

impl std::fmt::Debug for StorePlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "Sqlite({})", path.display()),
            Self::Postgres(_) => f.write_str("Postgres"),
        }
    }
}

const DEFAULT_FILE: &str = "tribune.db";

impl Store {
    /// Without a word, a file in the data folder.
    pub(super) fn checked(self, base: &Path, data_dir: &Path) -> anyhow::Result<StorePlace> {
        let Some(text) = self.url else {
            return Ok(StorePlace::Sqlite(data_dir.join(DEFAULT_FILE)));
        };
        if text.starts_with("env:") || text.starts_with("file:") {
            let url = Secret::parse(&text, base).and_then(|secret| secret.read());
            return named(url.context("store.url")?.trim(), base);
        }
        if super::cache::has_password(&text) {
            bail!(
                "store.url has a password in it; put the whole address into a variable or a file and write \"env:NAME\" or \"file:PATH\""
            );
        }
        named(&text, base)
    }
}

/// Never says what it was given: that may be a secret.
fn named(url: &str, base: &Path) -> anyhow::Result<StorePlace> {
    if let Some(path) = url.strip_prefix("sqlite:") {
        // Three slashes begin an absolute path; two are a habit from other addresses.
        let path = match path.strip_prefix("//") {
            Some(rest) => rest,
            None => path,
        };
        if path.is_empty() || path.contains(['?', '#']) || path.starts_with(':') {
            bail!("store.url = \"sqlite:PATH\" needs the path of a file, such as \"sqlite:tribune.db\"");
        }
        return Ok(StorePlace::Sqlite(base.join(path)));
    }
    if ["postgres://", "postgresql://"]
        .iter()
        .any(|scheme| url.starts_with(scheme))
    {
        return Ok(StorePlace::Postgres(url.to_owned()));
    }
    bail!("store.url is neither \"sqlite:PATH\" nor an address such as \"postgres://127.0.0.1/tribune\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(text: &str) -> anyhow::Result<StorePlace> {
        toml::from_str::<Store>(text)?.checked(Path::new("dir"), Path::new("data"))
    }

    #[test]
    fn a_store_is_a_file_or_a_server() {
        let file = |path: &str| StorePlace::Sqlite(PathBuf::from(path));
        assert_eq!(checked("").expect("default"), file("data/tribune.db"));
        assert_eq!(checked("url = \"sqlite:a.db\"").expect("relative"), file("dir/a.db"));
        assert_eq!(checked("url = \"sqlite://a.db\"").expect("relative"), file("dir/a.db"));
        assert_eq!(checked("url = \"sqlite:/x/a.db\"").expect("absolute"), file("/x/a.db"));
        assert_eq!(
            checked("url = \"sqlite:///x/a.db\"").expect("absolute"),
            file("/x/a.db")
        );
        let server = checked("url = \"postgres://ann@db/tribune\"").expect("server");
        assert_eq!(server, StorePlace::Postgres("postgres://ann@db/tribune".to_owned()));
        assert!(!format!("{server:?}").contains("ann"));
    }

    #[test]
    fn what_cannot_be_meant_is_refused_without_the_secret() {
        for (text, told) in [
            ("url = \"mysql://x\"", "such as \"postgres://127.0.0.1/tribune\""),
            ("url = \"sqlite:\"", "such as \"sqlite:tribune.db\""),
            ("url = \"sqlite::memory:\"", "such as \"sqlite:tribune.db\""),
            ("url = \"postgres://ann:hunter2@db/x\"", "\"env:NAME\" or \"file:PATH\""),
        ] {
            let fault = format!("{:#}", checked(text).expect_err(text));
            assert!(fault.contains(told), "{fault}");
            assert!(!fault.contains("hunter2"), "{fault}");
        }
    }
}
