//! Decodes stored reports, each only once.

use std::sync::Arc;

use quick_cache::sync::Cache;
use serde::Deserialize;

use super::quoted;
use crate::model::{Report, SCHEMA_VERSION};

const MAX_KNOWN: usize = 2_000;
/// Several times the size of a report.
const MAX_KNOWN_BYTES: usize = 32 << 10;

/// The last report of each symbol with its JSON: reports are read more often than they change, and comparing bytes is
/// cheaper than decoding them.
pub(super) struct Decoded(Cache<Arc<str>, Arc<Known>>);

struct Known {
    json: Vec<u8>,
    report: Arc<Report>,
}

impl Decoded {
    pub(super) fn new() -> Self {
        Self(Cache::new(MAX_KNOWN))
    }

    /// The report, or what is stored instead.
    pub(super) fn report(&self, symbol: &Arc<str>, json: Vec<u8>) -> Result<Arc<Report>, String> {
        if let Some(known) = self.0.get(symbol).filter(|known| known.json == json) {
            return Ok(known.report.clone());
        }
        let report = Arc::new(decode(symbol, &json)?);
        if json.len() <= MAX_KNOWN_BYTES {
            let known = Known { json, report: report.clone() };
            self.0.insert(symbol.clone(), Arc::new(known));
        }
        Ok(report)
    }
}

#[derive(Deserialize)]
struct Versioned {
    #[serde(rename = "schemaVersion")]
    version: String,
}

fn decode(symbol: &str, json: &[u8]) -> Result<Report, String> {
    let no_report = |error: serde_json::Error| format!("something that is no report: {}", quoted(&error.to_string()));
    // The version first: a report of another one may have other fields.
    let Versioned { version } = serde_json::from_slice(json).map_err(no_report)?;
    let major = |version: &str| version.split('.').next().map(str::to_owned);
    if major(&version) != major(SCHEMA_VERSION) {
        return Err(format!("a report of schema version {}, and {SCHEMA_VERSION} is read here", quoted(&version)));
    }
    let report: Report = serde_json::from_slice(json).map_err(no_report)?;
    if report.symbol != symbol {
        return Err(format!("a report of {}", quoted(&report.symbol)));
    }
    Ok(report)
}
