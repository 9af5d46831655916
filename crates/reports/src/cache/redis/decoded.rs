//! Decodes stored reports, each only once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::super::MAX_TOKEN;
use super::failure::quoted;
use crate::model::{Report, SCHEMA_VERSION};

const MAX_KNOWN: usize = 2_000;
/// Several times the size of a report.
const MAX_KNOWN_BYTES: usize = 32 << 10;

/// The last report of each symbol: reports are read more often than they change, and comparing bytes is cheaper than
/// decoding them.
#[derive(Default)]
pub(super) struct Decoded {
    known: Mutex<HashMap<Arc<str>, Known>>,
}

struct Known {
    json: Vec<u8>,
    report: Arc<Report>,
}

impl Decoded {
    /// The report, or what is stored instead.
    pub(super) fn report(&self, symbol: &Arc<str>, json: Vec<u8>) -> Result<Arc<Report>, String> {
        if let Some(known) = self.known().get(symbol).filter(|known| known.json == json) {
            return Ok(known.report.clone());
        }
        let report = Arc::new(decode(symbol, &json)?);
        if json.len() <= MAX_KNOWN_BYTES {
            self.keep(symbol, json, report.clone());
        }
        Ok(report)
    }

    fn keep(&self, symbol: &Arc<str>, json: Vec<u8>, report: Arc<Report>) {
        let mut known = self.known();
        if known.len() >= MAX_KNOWN && !known.contains_key(symbol) {
            known.clear();
        }
        known.insert(symbol.clone(), Known { json, report });
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Arc<str>, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn decode(symbol: &str, json: &[u8]) -> Result<Report, String> {
    let report: Report = serde_json::from_slice(json).map_err(|error| match foreign_version(json) {
        Some(version) => not_this_version(&version),
        None => format!("something that is no report: {}", quoted(&error.to_string())),
    })?;
    if major(&report.schema_version) != major(SCHEMA_VERSION) {
        return Err(not_this_version(&report.schema_version));
    }
    if report.symbol != symbol {
        return Err(format!("a report of {}", quoted(&report.symbol)));
    }
    if report.writer.writer_token > MAX_TOKEN {
        return Err("a report with a token that no writer can have".to_owned());
    }
    Ok(report)
}

fn major(version: &str) -> &str {
    version.split('.').next().unwrap_or_default()
}

fn not_this_version(version: &str) -> String {
    format!(
        "a report of schema version {}, and {SCHEMA_VERSION} is read here",
        quoted(version)
    )
}

/// The version of a report that cannot be read, if it is another one.
fn foreign_version(json: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Versioned {
        #[serde(rename = "schemaVersion")]
        version: String,
    }
    let versioned: Versioned = serde_json::from_slice(json).ok()?;
    (major(&versioned.version) != major(SCHEMA_VERSION)).then_some(versioned.version)
}
