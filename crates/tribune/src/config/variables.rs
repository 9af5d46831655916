//! Environment variables such as `TRIBUNE_SERVER_LISTEN`, which override the file.

use std::collections::BTreeMap;

use anyhow::bail;
use serde::de::DeserializeOwned;
use tribune_limits::LimitSettings;

use super::audit::Audit;
use super::file::{AgentTable, Auth, MarketConfig};

/// Variables by name.
pub type Variables = BTreeMap<String, String>;

const PREFIX: &str = "TRIBUNE_";
/// Tables within a section; a variable cannot set a whole table.
const TABLES: [&str; 3] = ["trading", "servers", "login"];

/// A section of the file whose keys variables can set.
pub(super) struct Section {
    pub name: &'static str,
    pub keys: fn() -> Vec<String>,
    check: fn(toml::Table) -> Result<(), toml::de::Error>,
    /// Whether a variable may add the section to a file that lacks it.
    is_implied: bool,
}

const fn section<T: DeserializeOwned>(name: &'static str, is_implied: bool) -> Section {
    Section { name, keys: keys_of::<T>, check: |table| table.try_into::<T>().map(drop), is_implied }
}

pub(super) const SECTIONS: [Section; 8] = [
    section::<tribune_server::Config>("server", true),
    section::<Auth>("auth", true),
    section::<Audit>("audit", true),
    section::<LimitSettings>("limits", true),
    section::<tribune_storage::Config>("store", true),
    section::<AgentTable>("agent", true),
    section::<tribune_reports::Config>("cache", true),
    // Its presence means that markets are served.
    section::<MarketConfig>("market", false),
];

/// The variables of this process that set something. An empty one counts as not set.
pub fn variables() -> Variables {
    let readable =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    readable.filter(|(name, value)| section_of(name).is_some() && !value.is_empty()).collect()
}

/// `TRIBUNE_CACHE_URL` is `url` of `cache`.
fn section_of(variable: &str) -> Option<(&'static Section, String)> {
    let rest = variable.strip_prefix(PREFIX)?;
    SECTIONS.iter().find_map(|section| {
        let key = rest.strip_prefix(&section.name.to_uppercase())?.strip_prefix('_')?;
        Some((section, key.to_lowercase()))
    })
}

/// Puts the variables into the file's table; says whether there were any.
pub(super) fn overlay(table: &mut toml::Table, variables: &Variables) -> anyhow::Result<bool> {
    let mut any = false;
    for (variable, text) in variables {
        let Some((section, key)) = section_of(variable) else {
            continue;
        };
        let name = section.name;
        if !section.is_implied && !table.contains_key(name) {
            bail!("{variable} sets a key of [{name}], but the configuration has no [{name}]");
        }
        let keys = (section.keys)();
        if !keys.contains(&key) {
            let likeness = |known: &&String| (strsim::jaro_winkler(&key, known) * 1e6) as u64;
            let near = keys.iter().max_by_key(likeness).map(|key| key.to_uppercase());
            let near = near.unwrap_or_default();
            bail!("{variable} is not a setting; did you mean {PREFIX}{}_{near}?", name.to_uppercase());
        }
        if TABLES.contains(&key.as_str()) {
            bail!("{variable} cannot set a whole table; write [{name}] `{key}` in the file");
        }
        let value = match fitting_value(section, &key, text) {
            Ok(value) => value,
            Err(error) => bail!("{variable}={text} does not fit: {}", error.message()),
        };
        let section = table.entry(name).or_insert_with(|| toml::Value::Table(toml::Table::new()));
        if let Some(section) = section.as_table_mut() {
            section.insert(key, value);
            any = true;
        }
    }
    Ok(any)
}

/// The variable's text as the type that the key has.
fn fitting_value(section: &Section, key: &str, text: &str) -> Result<toml::Value, toml::de::Error> {
    let fits = |value: &toml::Value| (section.check)(toml::Table::from_iter([(key.to_owned(), value.clone())]));
    let string = toml::Value::String(text.to_owned());
    let Err(error) = fits(&string) else {
        return Ok(string);
    };
    let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
    let others = [
        text.parse().ok().map(toml::Value::Boolean),
        text.parse().ok().map(toml::Value::Integer),
        text.parse().ok().map(toml::Value::Float),
        Some(toml::Value::Array(items.map(|item| toml::Value::String(item.to_owned())).collect())),
    ];
    let fitting = others.into_iter().flatten().find(|value| fits(value).is_ok());
    fitting.ok_or(error)
}

/// The keys of a section, in order, from its type: the error for an unknown key lists them.
pub(super) fn keys_of<T: DeserializeOwned>() -> Vec<String> {
    expected::<T>(toml::Table::from_iter([("\u{1}".to_owned(), toml::Value::Boolean(true))]))
}

/// What the error for `wrong` says it expected.
pub(super) fn expected<T: DeserializeOwned>(wrong: toml::Table) -> Vec<String> {
    let Err(error) = wrong.try_into::<T>() else {
        return Vec::new();
    };
    let quoted = error.message().split('`').skip(3).step_by(2);
    quoted.map(str::to_owned).collect()
}
