//! The configuration file as it is written: every section, and errors with their line.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use tribune_corpus::EmbedderConfig;
use tribune_limits::LimitSettings;

use super::audit::Audit;
use super::exposed;
use super::sources::SourceConfig;
use super::variables::{self, Variables};

/// `[agent]`, with the servers whose tools the agent may use.
pub type AgentTable = tribune_agent::Config<tribune_upstream::Config>;

/// `[market]`, with the orders that it may place.
pub type MarketConfig = tribune_market::Config<tribune_trading::Config>;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigFile {
    #[serde(default)]
    pub server: tribune_server::Config,
    #[serde(default)]
    pub embedder: EmbedderConfig,
    #[serde(default)]
    pub sources: Vec<SourceConfig>,
    #[serde(default)]
    pub profiles: BTreeMap<String, Profile>,
    pub market: Option<MarketConfig>,
    pub cache: Option<tribune_reports::Config>,
    #[serde(default)]
    pub auth: Auth,
    #[serde(default)]
    pub audit: Audit,
    #[serde(default)]
    pub limits: LimitSettings,
    pub store: Option<tribune_storage::Config>,
    pub agent: Option<AgentTable>,
}

/// `[auth]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Auth {
    pub required: bool,
    /// `builtin`, or the address of an OpenID provider.
    pub issuer: Option<String>,
    /// What the tokens of another issuer must be for.
    pub audience: Option<String>,
    /// Hosts of this network, `host:port`, whose descriptions of programs may be fetched.
    pub client_hosts: Vec<String>,
    pub login: Login,
}

/// `[auth.login]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Login {
    pub oidc: Option<Oidc>,
}

/// A provider at which people sign in.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Oidc {
    pub issuer: String,
    pub client_id: String,
    pub client_secret: String,
    /// Addresses (`ann@example.org`) and domains (`@example.org`) that may sign in; empty for all.
    #[serde(default)]
    pub allow: Vec<String>,
}

/// `[profiles.NAME]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    pub sources: Option<Vec<String>>,
    pub tools: Option<Vec<String>>,
    #[serde(default)]
    pub hosts: Vec<String>,
}

/// A file that was read, with the kind and the name of each source.
#[derive(Debug, Default)]
pub struct Parsed {
    pub file: ConfigFile,
    pub source_names: Vec<(String, String)>,
    /// Warnings of secrets that others could read.
    pub exposed: Vec<String>,
}

/// Reads the file's text, with variables such as `TRIBUNE_SERVER_LISTEN` over it.
pub(super) fn parse(text: &str, path: &Path, variables: &Variables) -> anyhow::Result<Parsed> {
    // First without variables, so that errors have a line.
    let mut file: ConfigFile = toml::from_str(text).map_err(|error| explain(&error, text, path))?;
    let mut table: toml::Table = toml::from_str(text).map_err(|error| explain(&error, text, path))?;
    if variables::overlay(&mut table, variables)? {
        file = table.clone().try_into()?;
    }
    let dir = path.parent().unwrap_or(Path::new(""));
    Ok(Parsed { file, source_names: source_names(&table), exposed: exposed::warnings(&table, dir) })
}

fn source_names(table: &toml::Table) -> Vec<(String, String)> {
    let sources = table.get("sources").and_then(toml::Value::as_array);
    let sources = sources.into_iter().flatten().map(|source| {
        let text = |key: &str| source.get(key).and_then(toml::Value::as_str).unwrap_or_default();
        (text("kind").to_owned(), text("name").to_owned())
    });
    sources.collect()
}

fn explain(error: &toml::de::Error, text: &str, path: &Path) -> anyhow::Error {
    let message = &["u64", "usize"].iter().fold(error.message().to_owned(), |message, kind| {
        message.replace(&format!("expected {kind}"), "expected a whole number")
    });
    let hint = near_key(message)
        .map(|near| format!("; did you mean `{near}`?"))
        .or_else(|| other_kind(message))
        .unwrap_or_default();
    let place = error.span().map_or_else(String::new, |span| {
        let at = offset_of_key(message, text, span.start).unwrap_or(span.start);
        let before = &text[..at.min(text.len())];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
        format!(":{line}:{column}")
    });
    anyhow::anyhow!("{}{place}: {message}{hint}", path.display())
}

/// The key that an "unknown field …" message is about.
fn unknown_key(message: &str) -> Option<&str> {
    message.strip_prefix("unknown field `")?.split('`').next()
}

/// Where the unknown key is: errors within a source name only the whole table.
fn offset_of_key(message: &str, text: &str, from: usize) -> Option<usize> {
    let key = unknown_key(message)?;
    let mut offset = text[..from.min(text.len())].rfind('\n').map_or(0, |at| at + 1);
    for line in text.get(offset..)?.split_inclusive('\n') {
        let trimmed = line.trim_start();
        let rest = trimmed.strip_prefix(key).map(str::trim_start);
        if rest.is_some_and(|rest| rest.starts_with('=')) {
            return Some(offset + line.len() - trimmed.len());
        }
        offset += line.len();
    }
    None
}

/// A key of one kind of source in a table of another.
fn other_kind(message: &str) -> Option<String> {
    let key = unknown_key(message)?;
    let kinds = SourceConfig::kinds();
    let kind = kinds.iter().find(|(_, keys)| keys.iter().any(|known| known == key))?;
    Some(format!("; only kind = \"{}\" has it", kind.0))
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
