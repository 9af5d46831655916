//! Decodes stored reports, each only once.

use std::sync::Arc;

use quick_cache::sync::Cache;

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

fn decode(symbol: &str, json: &[u8]) -> Result<Report, String> {
    let report: Report = serde_json::from_slice(json)
        .map_err(|error| format!("no report of schema version {SCHEMA_VERSION}: {}", quoted(&error.to_string())))?;
    let major = |version: &str| version.split('.').next().map(str::to_owned);
    if report.symbol != symbol || major(&report.schema_version) != major(SCHEMA_VERSION) {
        let (version, symbol) = (quoted(&report.schema_version), quoted(&report.symbol));
        return Err(format!("a report of {symbol} with schema version {version}; {SCHEMA_VERSION} is read here"));
    }
    Ok(report)
}
