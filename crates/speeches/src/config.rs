//! `[[sources]]` with `kind = "speeches"`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;
use tribune_core::{Readers, Result, Source};
use tribune_corpus::config::{Identity, default_max_document_mb};
use tribune_corpus::{Built, Collection, Duplicates, Environment, FieldMap, Reading};

use crate::holdings::ToolNames;
use crate::ingest::Incoming;
use crate::source::Speeches;
use crate::speech::{SpeechRules, collection, reading};

/// Hosts know the tools by this name; one of several speech sources has it.
const KNOWN_NAME: &str = "hansard";

/// `[[sources]]` with `kind = "speeches"`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub name: String,
    pub path: PathBuf,
    pub title: Option<String>,
    pub description: Option<String>,
    pub embedder: Option<String>,
    #[serde(default)]
    pub readers: Readers,
    #[serde(default = "default_max_document_mb")]
    pub max_document_mb: u64,
    /// By default only the first of several identical speeches is indexed.
    pub duplicates: Option<Duplicates>,
    #[serde(default)]
    pub fields: FieldMap,
    pub ingest_dir: Option<PathBuf>,
    #[serde(default)]
    pub parliament: Parliament,
    #[serde(default)]
    pub parties: Names,
    #[serde(default)]
    pub chambers: Names,
    #[serde(default)]
    pub states: Names,
}

/// Names with their variants.
type Names = BTreeMap<String, Vec<String>>;

/// The parliament whose names are built in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Parliament {
    #[default]
    Australia,
    Other,
}

/// Builds the source of `kind = "speeches"`.
pub fn build(config: &Config, environment: &Environment) -> Result<Built> {
    let rules = config.rules();
    let reading = Reading { fields: config.fields.clone(), ..reading(rules.clone()) };
    let defaults = collection();
    let collection = Collection { duplicates: config.duplicates.unwrap_or(defaults.duplicates), ..defaults };
    let folder = || environment.folder(&config.name, &config.path, config.max_document_mb, reading.clone());
    let identity = Identity {
        name: &config.name,
        title: config.title.as_deref(),
        description: config.description.as_deref(),
        embedder: config.embedder.as_deref(),
        readers: &config.readers,
    };
    let corpus = environment.corpus(identity, Arc::new(folder()?), collection)?;
    let has_known_name = is_first(&config.name, &environment.sources);
    let incoming = match &config.ingest_dir {
        None => None,
        Some(from) => Some(Incoming { from: environment.config_dir.join(from), into: Arc::new(folder()?) }),
    };
    let features = Speeches {
        title: corpus.facts().title,
        names: ToolNames::for_source(if has_known_name { KNOWN_NAME } else { &config.name }),
        rules,
        links: environment.links.clone(),
        incoming,
    };
    Ok(Built::from(corpus.with_features(Arc::new(features))))
}

impl Config {
    fn rules(&self) -> SpeechRules {
        let rules = match self.parliament {
            Parliament::Australia => SpeechRules::default(),
            Parliament::Other => SpeechRules::unknown(),
        };
        rules.with(&self.parties, &self.chambers, &self.states)
    }
}

/// Whether a source is the one named [`KNOWN_NAME`], or, without one, the first of its kind.
fn is_first(name: &str, sources: &[(String, String)]) -> bool {
    let names = || sources.iter().filter(|(kind, _)| kind == "speeches").map(|(_, name)| name);
    let first = names().find(|name| *name == KNOWN_NAME).or_else(|| names().next());
    first.is_none_or(|first| first == name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn configured_names_extend_the_rules() {
        let config: Config = serde_json::from_value(json!({
            "name": "hansard", "path": "x", "parliament": "other", "parties": {"Labour": ["LAB"]},
        }))
        .expect("a configuration");
        let rules = config.rules();
        assert_eq!(rules.parties.canonical("lab"), Some("Labour"));
        assert!(rules.chambers.is_empty());
    }
}
