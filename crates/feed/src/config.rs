//! `[[sources]]` with `kind = "feed"`.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tribune_config::{check_range, is_http_url};
use tribune_core::{Error, Readers, Result};
use tribune_corpus::config::Identity;
use tribune_corpus::{Built, Collection, Environment};

use crate::provider::Feeds;

/// More feeds than this belong in several sources.
const MAX_URLS: u64 = 500;
const MINUTES_PER_WEEK: u64 = 7 * 24 * 60;

/// `[[sources]]` with `kind = "feed"`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub embedder: Option<String>,
    #[serde(default)]
    pub readers: Readers,
    pub urls: Vec<String>,
    #[serde(default = "default_every_mins")]
    pub every_mins: u64,
}

const fn default_every_mins() -> u64 {
    15
}

/// Builds the source of `kind = "feed"`.
pub fn build(config: &Config, environment: &Environment) -> Result<Built> {
    let name = &config.name;
    let setting = |key: &str| format!("source `{name}`: {key}");
    check_range(&setting("every_mins"), config.every_mins, 1, MINUTES_PER_WEEK)?;
    check_range(&setting("the number of urls"), config.urls.len() as u64, 1, MAX_URLS)?;
    if let Some(url) = config.urls.iter().find(|url| !is_http_url(url)) {
        return Err(Error::invalid_argument(format!(
            "source `{name}`: \"{url}\" is not a URL such as \"https://example.org/feed.xml\""
        )));
    }
    let feeds = Feeds::new(
        config.urls.clone(),
        Duration::from_secs(config.every_mins * 60),
        environment.data_dir.join("feeds").join(name),
        environment.clock.clone(),
    );
    let identity = Identity {
        name,
        title: config.title.as_deref(),
        description: config.description.as_deref(),
        embedder: config.embedder.as_deref(),
        readers: &config.readers,
    };
    let collection = Collection { noun: "entries".to_owned(), ..Collection::default() };
    environment.corpus(identity, Arc::new(feeds), collection).map(Built::from)
}
