//! `[[sources]]`: one variant per kind. The configuration type of a kind belongs to its crate.

use serde::Deserialize;
use tribune_core::Result;
use tribune_corpus::{Built, Environment, config as documents};
use {tribune_feed as feed, tribune_speeches as speeches};

use super::variables::expected;

#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SourceConfig {
    Documents(documents::Config),
    Speeches(speeches::Config),
    Feed(feed::Config),
}

impl SourceConfig {
    pub fn build(&self, environment: &Environment) -> Result<Built> {
        match self {
            Self::Documents(config) => documents::build(config, environment),
            Self::Speeches(config) => speeches::build(config, environment),
            Self::Feed(config) => feed::build(config, environment),
        }
    }
}

impl SourceConfig {
    /// Every kind with its keys, read from the type itself: its errors list what they expect.
    pub fn kinds() -> Vec<(String, Vec<String>)> {
        let table = |kind: &str| {
            let text = |text: &str| toml::Value::String(text.to_owned());
            toml::Table::from_iter([("kind".to_owned(), text(kind)), ("\u{1}".to_owned(), toml::Value::Boolean(true))])
        };
        let kinds = expected::<Self>(table("\u{1}"));
        let keys = |kind: String| (kind.clone(), expected::<Self>(table(&kind)));
        kinds.into_iter().map(keys).collect()
    }
}
