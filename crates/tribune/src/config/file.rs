//! The configuration as it stands in the file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::bail;
use serde::Deserialize;
use tribune_corpus::{Duplicates, FieldMap, Reading, SpeechRules};

use super::agent::Agent;
use super::cache::Cache;
use super::embedder::Embedder;
use super::market::Market;
use super::store::Store;

/// The variables that set something.
pub type Environment = BTreeMap<String, String>;

const PREFIX: &str = "TRIBUNE_";
/// The sections whose keys variables can set.
const SECTIONS: [&str; 6] = ["server", "auth", "store", "agent", "cache", "market"];

/// This process's own. An empty one counts as not set.
pub fn environment() -> Environment {
    let readable =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    readable
        .filter(|(name, value)| section_of(name).is_some() && !value.is_empty())
        .collect()
}

/// `TRIBUNE_CACHE_URL` is `url` of `cache`.
fn section_of(variable: &str) -> Option<(&'static str, String)> {
    let rest = variable.strip_prefix(PREFIX)?;
    SECTIONS.iter().find_map(|section| {
        let key = rest.strip_prefix(&section.to_uppercase())?.strip_prefix('_')?;
        Some((*section, key.to_lowercase()))
    })
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigFile {
    #[serde(default)]
    pub server: Server,
    #[serde(default)]
    pub embedder: Embedder,
    #[serde(default)]
    pub sources: Vec<Source>,
    #[serde(default)]
    pub profiles: BTreeMap<String, Profile>,
    pub market: Option<Market>,
    pub cache: Option<Cache>,
    #[serde(default)]
    pub auth: Auth,
    pub store: Option<Store>,
    pub agent: Option<Agent>,
}

/// `[auth]` in the file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Auth {
    pub required: bool,
}

impl ConfigFile {
    pub(super) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.cache.is_some() && self.market.is_none() {
            warnings.push("[cache] keeps market reports, and without [market] there are none".to_owned());
        }
        warnings
    }
}

/// Every setting is documented in docs/configuration.md; a test compares the two.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Server {
    pub listen: Option<String>,
    pub public_url: Option<String>,
    pub data_dir: Option<PathBuf>,
    pub auto_index: bool,
    pub watch: bool,
    pub allowed_hosts: Vec<String>,
    pub allowed_origins: Vec<String>,
    pub sessions: bool,
    pub session_idle_secs: u64,
    pub max_sessions: usize,
    pub max_body_mb: usize,
    pub call_timeout_secs: u64,
    pub source_timeout_secs: u64,
    pub keep_alive_secs: u64,
    pub sse_max_secs: u64,
    pub drain_secs: u64,
    pub legacy_results: bool,
    pub admin_token: Option<String>,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            listen: None,
            public_url: None,
            data_dir: None,
            auto_index: true,
            watch: true,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            sessions: true,
            session_idle_secs: 300,
            max_sessions: 2_000,
            max_body_mb: 4,
            call_timeout_secs: 45,
            source_timeout_secs: 10,
            keep_alive_secs: 15,
            sse_max_secs: 3600,
            drain_secs: 25,
            legacy_results: false,
            admin_token: None,
        }
    }
}

impl Server {
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let within = |name: &str, value: u64, low: u64, high: u64| {
            if !(low..=high).contains(&value) {
                bail!("server.{name} = {value} must be between {low} and {high}");
            }
            Ok(())
        };
        within("keep_alive_secs", self.keep_alive_secs, 1, 15)?;
        within("sse_max_secs", self.sse_max_secs, 1, 3600)?;
        within("session_idle_secs", self.session_idle_secs, 1, 86_400)?;
        within("call_timeout_secs", self.call_timeout_secs, 1, 300)?;
        within("source_timeout_secs", self.source_timeout_secs, 1, 300)?;
        within("max_sessions", self.max_sessions as u64, 1, 1_000_000)?;
        within("drain_secs", self.drain_secs, 0, 600)?;
        within("max_body_mb", self.max_body_mb as u64, 1, 64)
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    pub name: String,
    pub kind: Kind,
    pub path: PathBuf,
    pub title: Option<String>,
    pub description: Option<String>,
    #[serde(default = "default_max_document_mb")]
    pub max_document_mb: u64,
    pub embedder: Option<String>,
    /// Without one, plain documents are all kept and of the same speech the first is.
    pub duplicates: Option<Duplicates>,
    #[serde(default)]
    pub fields: FieldMap,
    pub ingest_dir: Option<PathBuf>,
    pub parliament: Option<Parliament>,
    #[serde(default)]
    pub parties: Names,
    #[serde(default)]
    pub chambers: Names,
    #[serde(default)]
    pub states: Names,
}

/// Names, and what else they are written as.
type Names = BTreeMap<String, Vec<String>>;

impl Source {
    /// How the source's files are to be read.
    pub(super) fn reading(&self) -> anyhow::Result<Reading> {
        let reading = match self.kind {
            Kind::Documents => {
                self.refuse_speech_settings()?;
                Reading::default()
            }
            Kind::Speeches => {
                let known = match self.parliament.unwrap_or_default() {
                    Parliament::Australia => SpeechRules::australia(),
                    Parliament::Other => SpeechRules::unknown(),
                };
                Reading::speeches(known.with(&self.parties, &self.chambers, &self.states))
            }
        };
        Ok(Reading {
            duplicates: self.duplicates.unwrap_or(reading.duplicates),
            fields: self.fields.clone(),
            ..reading
        })
    }

    fn refuse_speech_settings(&self) -> anyhow::Result<()> {
        let set = [
            ("ingest_dir", self.ingest_dir.is_some()),
            ("parliament", self.parliament.is_some()),
            ("parties", !self.parties.is_empty()),
            ("chambers", !self.chambers.is_empty()),
            ("states", !self.states.is_empty()),
        ];
        match set.iter().find(|(_, is_set)| *is_set) {
            Some((key, _)) => bail!(
                "source `{}`: `{key}` says something about speeches; remove it or set kind = \"speeches\"",
                self.name
            ),
            None => Ok(()),
        }
    }
}

/// Whose parties, chambers and states are known without being told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Parliament {
    #[default]
    Australia,
    Other,
}

const fn default_max_document_mb() -> u64 {
    16
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Documents,
    Speeches,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    pub sources: Option<Vec<String>>,
    pub tools: Option<Vec<String>>,
    #[serde(default)]
    pub hosts: Vec<String>,
}

/// Reads the file's text, with variables such as `TRIBUNE_SERVER_LISTEN` laid over it.
pub(super) fn parse(text: &str, path: &Path, environment: &Environment) -> anyhow::Result<ConfigFile> {
    // Once as it is, so that mistakes are told with their line.
    let file: ConfigFile = toml::from_str(text).map_err(|error| explain(&error, text, path))?;
    let mut table: toml::Table = toml::from_str(text).map_err(|error| explain(&error, text, path))?;
    if !overlay_environment(&mut table, environment)? {
        return Ok(file);
    }
    Ok(table.try_into()?)
}

fn explain(error: &toml::de::Error, text: &str, path: &Path) -> anyhow::Error {
    let message = error.message();
    let hint = near_key(message)
        .map(|near| format!("; did you mean `{near}`?"))
        .unwrap_or_default();
    let place = error.span().map_or_else(String::new, |span| {
        let before = &text[..span.start.min(text.len())];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
        format!(":{line}:{column}")
    });
    anyhow::anyhow!("{}{place}: {message}{hint}", path.display())
}

/// The key nearest to the unknown one that an "unknown field … expected one of …" message names.
fn near_key(message: &str) -> Option<&str> {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let wrong = quoted.next()?;
    if !message.starts_with("unknown ") {
        return None;
    }
    quoted
        .map(|known| (strsim::jaro_winkler(wrong, known), known))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, known)| known)
}

/// Names of a section's keys, in order, from the section itself.
pub(super) fn keys_of<T: for<'de> Deserialize<'de>>() -> Vec<String> {
    let probe = toml::Table::from_iter([("\u{1}".to_owned(), toml::Value::Boolean(true))]);
    let Err(error) = probe.try_into::<T>() else {
        return Vec::new();
    };
    error
        .message()
        .split('`')
        .skip(3)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

/// `TRIBUNE_SERVER_LISTEN` and so on for every plain key of [`SECTIONS`]; says whether there were any.
pub(super) fn overlay_environment(table: &mut toml::Table, environment: &Environment) -> anyhow::Result<bool> {
    let mut any = false;
    for (variable, text) in environment {
        let Some((section, name)) = section_of(variable) else {
            continue;
        };
        if section == "market" && !table.contains_key(section) {
            bail!("the variable {variable} sets something of [market], and the configuration has no [market]");
        }
        let keys = match section {
            "server" => keys_of::<Server>(),
            "auth" => keys_of::<Auth>(),
            "store" => keys_of::<Store>(),
            "agent" => keys_of::<Agent>(),
            "cache" => keys_of::<Cache>(),
            _ => keys_of::<Market>(),
        };
        let is_plain = |key: &str| !matches!(key, "trading" | "servers");
        if keys.contains(&name) && !is_plain(&name) {
            bail!("the variable {variable} cannot set a whole table: write [{section}] `{name}` in the file");
        }
        let Some(key) = keys.iter().find(|key| **key == name && is_plain(key)) else {
            let near = keys
                .iter()
                .max_by(|a, b| strsim::jaro_winkler(&name, a).total_cmp(&strsim::jaro_winkler(&name, b)));
            let near = near.map(|key| key.to_uppercase()).unwrap_or_default();
            let section = section.to_uppercase();
            bail!("the variable {variable} sets nothing; did you mean {PREFIX}{section}_{near}?");
        };
        let value = value_of(key, text);
        let alone = toml::Table::from_iter([(key.clone(), value.clone())]);
        let fits = match section {
            "server" => alone.try_into::<Server>().map(drop),
            "auth" => alone.try_into::<Auth>().map(drop),
            "store" => alone.try_into::<Store>().map(drop),
            "agent" => alone.try_into::<Agent>().map(drop),
            "cache" => alone.try_into::<Cache>().map(drop),
            _ => alone.try_into::<Market>().map(drop),
        };
        if let Err(error) = fits {
            bail!("the variable {variable}={text} does not fit: {}", error.message());
        }
        let place = table
            .entry(section)
            .or_insert_with(|| toml::Value::Table(toml::Table::new()));
        if let Some(place) = place.as_table_mut() {
            place.insert(key.clone(), value);
            any = true;
        }
    }
    Ok(any)
}

/// A variable's text as the key wants it.
fn value_of(key: &str, text: &str) -> toml::Value {
    let string = || toml::Value::String(text.to_owned());
    match key {
        "listen" | "public_url" | "data_dir" | "admin_token" | "url" | "node" | "rest_url" | "stream_url" | "venue"
        | "base_url" | "model" | "api_key" | "profile" | "instructions" => string(),
        "temperature" => text.parse().map_or_else(|_| string(), toml::Value::Float),
        "allowed_hosts" | "allowed_origins" | "symbols" => {
            let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
            toml::Value::Array(names.map(|name| toml::Value::String(name.to_owned())).collect())
        }
        _ => text
            .parse::<i64>()
            .map(toml::Value::Integer)
            .or_else(|_| text.parse::<bool>().map(toml::Value::Boolean))
            .unwrap_or_else(|_| string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_in_the_reference_and_in_what_init_writes() {
        let reference = include_str!("../../../../docs/configuration.md");
        let written = include_str!("../init.toml");
        let sections = [
            ("server", keys_of::<Server>()),
            ("embedder", keys_of::<Embedder>()),
            ("sources", keys_of::<Source>()),
            ("profiles", keys_of::<Profile>()),
            ("market", keys_of::<Market>()),
            ("cache", keys_of::<Cache>()),
            ("auth", keys_of::<Auth>()),
            ("store", keys_of::<Store>()),
            ("agent", keys_of::<Agent>()),
            ("agent.servers", keys_of::<super::super::agent::Server>()),
            ("market.trading", keys_of::<super::super::market::Trading>()),
        ];
        for (section, keys) in sections {
            assert!(!keys.is_empty(), "{section}");
            for key in keys {
                assert!(
                    reference.contains(&format!("| `{key}` |")),
                    "docs/configuration.md lacks {section}.{key}"
                );
                assert!(
                    written.contains(&format!("{key} = ")) || written.contains(&format!("[{section}.{key}]")),
                    "init.toml lacks {section}.{key}"
                );
            }
        }
    }

    #[test]
    fn what_init_writes_loads_with_every_line_switched_on() {
        let all_on: String = include_str!("../init.toml")
            .lines()
            .map(|line| match line.strip_prefix("#:") {
                Some(setting) => format!("{setting}\n"),
                None => format!("{line}\n"),
            })
            .collect();
        for text in [include_str!("../init.toml"), &all_on] {
            let text = text.replace("{folder}", "notes");
            parse(&text, Path::new("tribune.toml"), &Environment::new()).expect("loads");
        }
    }
}
