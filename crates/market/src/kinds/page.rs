//! What the figures of an answer are drawn with.

use jiff::Timestamp;
use tribune_page::{Amount, Headline};

use super::{About, Provenance};

/// What drawing needs to know of an answer beside its figures.
pub(crate) struct Page<'a> {
    pub(crate) about: &'a About,
    pub(crate) provenance: &'a Provenance,
    pub(crate) age_ms: u64,
    /// The newest price, for charts that mark it.
    pub(crate) last_price: Option<f64>,
}

impl<'a> Page<'a> {
    pub(crate) fn of(about: &'a About, provenance: &'a Provenance) -> Self {
        Self {
            about,
            provenance,
            age_ms: provenance.age_ms,
            last_price: None,
        }
    }

    pub(crate) fn base(&self) -> &'a str {
        self.about.base()
    }

    pub(crate) fn quote(&self) -> &'a str {
        self.about.quote()
    }

    pub(crate) fn as_of(&self) -> Timestamp {
        self.provenance.as_of()
    }

    /// A headline without figures yet.
    pub(crate) fn headline(&self, label: &str, value: Amount) -> Headline {
        Headline {
            label: label.to_owned(),
            value,
            change: None,
            as_of: Some(self.as_of()),
            age_ms: Some(self.age_ms),
            figures: Vec::new(),
        }
    }
}

#[cfg(test)]
pub(crate) struct Example {
    about: About,
    provenance: Provenance,
}

#[cfg(test)]
impl Example {
    pub(crate) fn page(&self) -> Page<'_> {
        Page::of(&self.about, &self.provenance)
    }
}

#[cfg(test)]
impl Page<'_> {
    /// Of an answer about BTCUSDT, of a time and so old.
    pub(crate) fn example(as_of: &str, age_ms: u64) -> Example {
        let symbol = tribune_binance::model::Symbol::named("BTCUSDT", "BTC", "USDT");
        let provenance = serde_json::json!({"venue": "binance", "source": "rest", "exchange_time": as_of,
            "received_time": as_of, "age_ms": age_ms});
        Example {
            about: About::symbol(&symbol),
            provenance: serde_json::from_value(provenance).expect("a provenance"),
        }
    }
}
