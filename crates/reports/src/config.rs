//! `[cache]`: where market reports are kept, and under which name this process writes them.

use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use tribune_citations::Limits;
use tribune_citations::records::Records;
use tribune_config::{Environment, SecretUrl};
use tribune_core::{Error, Result};

use crate::cache::{MemoryCache, RedisCache, ReportCache, Timing, client};
use crate::exchange::Exchange;
use crate::service::ReportsSource;

const MEMORY: &str = "memory:";
const MAX_NAME_BYTES: usize = 64;

/// `[cache]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// `memory:`, or the address of a Redis that several processes share, for their rates too. May be a secret.
    pub url: Option<String>,
    /// What this process is called among those that share a cache. The default is the name of the machine.
    pub node: Option<String>,
}

/// What reports need from the rest of the process.
pub struct Market {
    /// The exchange that this process follows; `None` if it serves what other processes write.
    pub exchange: Option<Arc<dyn Exchange>>,
    /// How many citation records the market keeps, and how long.
    pub citations: Limits,
    /// Random: tells processes of one machine apart.
    pub process: String,
}

impl Config {
    /// Finds settings that cannot be meant. A process that does not follow an exchange needs a cache that others fill.
    pub fn check(&self, has_feed: bool, config_dir: &Path) -> Result<()> {
        self.node_name()?;
        if self.redis_url(config_dir)?.is_none() && !has_feed {
            return Err(Error::invalid_argument(
                "market.feed = false serves reports that other processes write, so it needs a shared cache: set `url` of [cache] to an address such as \"redis://127.0.0.1:6379\"",
            ));
        }
        Ok(())
    }

    /// The address of the shared cache; `None` for one in memory. Errors never repeat it: it may be a secret.
    fn redis_url(&self, config_dir: &Path) -> Result<Option<String>> {
        let text = self.url.as_deref().unwrap_or(MEMORY);
        let SecretUrl(url) = SecretUrl::parse("cache.url", text, config_dir)?;
        if url == MEMORY || url == "memory" {
            return Ok(None);
        }
        if ["redis://", "rediss://"].iter().any(|scheme| url.starts_with(scheme)) {
            return Ok(Some(url));
        }
        Err(Error::invalid_argument(
            "cache.url is neither \"memory:\" nor an address such as \"redis://127.0.0.1:6379\"",
        ))
    }

    /// A client of the shared cache, for what else processes share; `None` for a cache in memory.
    pub fn redis(&self, config_dir: &Path) -> Result<Option<redis::Client>> {
        self.redis_url(config_dir)?.map(|url| client(&url).map_err(named)).transpose()
    }

    fn node_name(&self) -> Result<String> {
        let node = self.node.clone().unwrap_or_else(host_name);
        if node.is_empty() || node.len() > MAX_NAME_BYTES || !node.chars().all(is_name) {
            return Err(Error::invalid_argument(format!(
                "cache.node = \"{node}\" is not a name: use up to {MAX_NAME_BYTES} letters, digits, -, _ and ."
            )));
        }
        Ok(node)
    }
}

fn named(error: Error) -> Error {
    Error::invalid_argument(format!("cache.url: {error}"))
}

const fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

fn host_name() -> String {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name: String = kernel.chars().filter(|c| is_name(*c)).take(MAX_NAME_BYTES).collect();
    if name.is_empty() { "node".to_owned() } else { name }
}

/// Builds the source of reports; it connects to the cache when it runs.
pub fn build(config: &Config, market: Market, environment: &Environment) -> Result<ReportsSource> {
    config.check(market.exchange.is_some(), &environment.config_dir)?;
    let clock = environment.clock.clone();
    // Apart from the market's, because programs read reports all day: their records must not displace others.
    let limits = Limits { most: market.citations.most.div_ceil(5), ..market.citations };
    let records = Records::open("citations-of-reports", limits, environment);
    let redis = config.redis_url(&environment.config_dir)?;
    // A command that asks one question must not take symbols over from the processes that serve.
    let writes = environment.is_server || redis.is_none();
    let cache: Arc<dyn ReportCache> = match redis {
        None => Arc::new(MemoryCache::new(clock.clone(), Timing::DEFAULT)),
        Some(url) => Arc::new(RedisCache::open(&url, clock.clone(), Timing::DEFAULT).map_err(named)?),
    };
    let node = format!("{}-{}", config.node_name()?, market.process).into();
    Ok(ReportsSource::new(cache, records, market.exchange, writes.then_some(node), clock))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config {
        toml::from_str(text).expect("TOML")
    }

    #[test]
    fn cache_is_memory_or_redis() {
        let redis = |text: &str| config(text).redis_url(Path::new("dir")).expect("an address");
        assert_eq!(redis(""), None);
        assert_eq!(redis("url = \"memory:\""), None);
        let url = "redis://10.0.0.1:6379/2";
        assert_eq!(redis(&format!("url = \"{url}\"")).as_deref(), Some(url));
        assert_eq!(config("node = \"a-1\"").node_name().expect("a name"), "a-1");
    }

    #[test]
    fn unusable_settings_are_refused_without_secrets() {
        for (text, has_feed, expected) in [
            ("", false, "such as \"redis://127.0.0.1:6379\""),
            ("url = \"memcached://x\"", true, "such as \"redis://127.0.0.1:6379\""),
            ("url = \"redis://user:hunter2@host\"", true, "\"env:NAME\" or \"file:PATH\""),
            ("url = \"redis://:hunter2@host/1\"", true, "\"env:NAME\" or \"file:PATH\""),
            ("node = \"a b\"", true, "is not a name"),
            ("node = \"\"", true, "is not a name"),
        ] {
            let error = config(text).check(has_feed, Path::new("dir")).expect_err(text);
            assert!(error.message().contains(expected), "{error}");
            assert!(!error.message().contains("hunter2"), "{error}");
        }
        let shared = config("url = \"redis://127.0.0.1\"");
        assert!(shared.check(false, Path::new("dir")).is_ok());
    }
}
