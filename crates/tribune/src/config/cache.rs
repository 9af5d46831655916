//! `[cache]`: where market reports are kept.

use std::path::Path;

use anyhow::{Context, bail};
use serde::Deserialize;

use super::Secret;

/// `[cache]` in the file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Cache {
    pub url: Option<String>,
    pub node: Option<String>,
}

/// The same, checked.
#[derive(Debug, Clone)]
pub struct CacheConfig {
    pub place: CachePlace,
    /// What this process is called among those that share a cache.
    pub node: String,
}

#[derive(Clone, PartialEq, Eq)]
pub enum CachePlace {
    /// This process's own.
    Memory,
    /// Shared by every process that names the same. May hold a password.
    Redis(String),
}

impl std::fmt::Debug for CachePlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Memory => "Memory",
            Self::Redis(_) => "Redis",
        })
    }
}

impl Cache {
    pub(super) fn checked(self, base: &Path) -> anyhow::Result<CacheConfig> {
        let node = self.node.unwrap_or_else(host_name);
        let fit = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if node.is_empty() || node.len() > 64 || !node.chars().all(fit) {
            bail!("cache.node = \"{node}\" is not a name: use up to 64 letters, digits, -, _ and .");
        }
        Ok(CacheConfig {
            place: place(self.url.as_deref().unwrap_or("memory:"), base)?,
            node,
        })
    }
}

fn place(text: &str, base: &Path) -> anyhow::Result<CachePlace> {
    if text.starts_with("env:") || text.starts_with("file:") {
        let url = Secret::parse(text, base).and_then(|secret| secret.read());
        return named(url.context("cache.url")?.trim());
    }
    if has_password(text) {
        bail!(
            "cache.url has a password in it; put the whole address into a variable or a file and write \"env:NAME\" or \"file:PATH\""
        );
    }
    named(text)
}

/// Whether an address names a user with a password.
pub(super) fn has_password(url: &str) -> bool {
    url.split_once("://").is_some_and(|(_, rest)| {
        if rest
            .split_once('?')
            .is_some_and(|(_, query)| query.to_lowercase().contains("password="))
        {
            return true;
        }
        let authority = rest.split('/').next().unwrap_or_default();
        authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
    })
}

/// Never says what it was given: that may be a secret.
fn named(url: &str) -> anyhow::Result<CachePlace> {
    if url == "memory:" || url == "memory" {
        return Ok(CachePlace::Memory);
    }
    if ["redis://", "rediss://"].iter().any(|scheme| url.starts_with(scheme)) {
        return Ok(CachePlace::Redis(url.to_owned()));
    }
    bail!("cache.url is neither \"memory:\" nor an address such as \"redis://127.0.0.1:6379\"")
}

/// Processes on one machine are told apart by what is added to it.
fn host_name() -> String {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name: String = kernel
        .trim()
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c))
        .take(64)
        .collect();
    if name.is_empty() { "node".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(text: &str) -> anyhow::Result<CacheConfig> {
        toml::from_str::<Cache>(text)?.checked(Path::new("dir"))
    }

    #[test]
    fn a_cache_is_memory_or_redis() {
        assert_eq!(checked("").expect("default").place, CachePlace::Memory);
        assert_eq!(checked("url = \"memory:\"").expect("memory").place, CachePlace::Memory);
        let shared = checked("url = \"redis://10.0.0.1:6379/2\"\nnode = \"a-1\"").expect("redis");
        assert_eq!(shared.place, CachePlace::Redis("redis://10.0.0.1:6379/2".to_owned()));
        assert_eq!(shared.node, "a-1");
        assert!(
            !format!("{shared:?}").contains("10.0.0.1"),
            "addresses may hold passwords"
        );
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_the_fix_and_without_the_secret() {
        for (text, told) in [
            ("url = \"memcached://x\"", "such as \"redis://127.0.0.1:6379\""),
            ("url = \"redis://user:hunter2@host\"", "\"env:NAME\" or \"file:PATH\""),
            ("url = \"redis://:hunter2@host/1\"", "\"env:NAME\" or \"file:PATH\""),
            ("node = \"a b\"", "is not a name"),
            ("node = \"\"", "is not a name"),
        ] {
            let fault = format!("{:#}", checked(text).expect_err(text));
            assert!(fault.contains(told), "{fault}");
            assert!(!fault.contains("hunter2"), "{fault}");
        }
    }
}
