//! What the figures of an answer are drawn with.

use jiff::Timestamp;
use tribune_page::parts::{cell, noted, panel, table};
use tribune_page::text::{dash, places, plain};
use tribune_page::{Amount, Cell, Column, Figure, Headline, Panel, Width};

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
        Self { about, provenance, age_ms: provenance.age_ms, last_price: None }
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

    /// In the quote asset: a price or a sum of money.
    pub(crate) fn money(&self, amount: impl ToString) -> Amount {
        Amount::new(amount.to_string(), self.quote())
    }

    /// In the base asset.
    pub(crate) fn size(&self, amount: impl ToString) -> Amount {
        Amount::new(amount.to_string(), self.base())
    }

    pub(crate) fn headline(&self, label: &str, value: Amount, figures: Vec<Figure>) -> Headline {
        Headline {
            label: label.to_owned(),
            value,
            change: None,
            as_of: Some(self.as_of()),
            age_ms: Some(self.age_ms),
            figures,
        }
    }
}

/// A figure, or why it is not known.
pub(super) fn figure(label: impl Into<String>, value: Option<Amount>, why: &str) -> Figure {
    match value {
        Some(value) => Figure::new(label, value),
        None => Figure::unknown(label, why),
    }
}

/// The decimal places of the finest of these numbers.
pub(super) fn places_of(numbers: impl Iterator<Item = impl ToString>) -> usize {
    let written = numbers.map(|number| number.to_string());
    places(written.collect::<Vec<_>>().iter().map(String::as_str))
}

/// A number, or a dash where it is not known.
pub(super) fn number(value: Option<f64>) -> Cell {
    cell(value.and_then(plain).unwrap_or_else(dash))
}

/// A cell with a bar behind it, which is as long as a share from 0 to 1.
pub(super) fn barred(cell: Cell, share: Option<f64>) -> Cell {
    Cell { share: share.map(|share| share.clamp(0.0, 1.0)), ..cell }
}

/// A table whose rows name the columns of their cells.
pub(super) fn listing(
    key: &'static str,
    title: impl Into<String>,
    rows: Vec<Vec<(Column, Cell)>>,
    note: impl Into<String>,
) -> Panel {
    let columns = rows.first().into_iter().flatten().map(|(column, _)| column.clone()).collect();
    let cells = |row: Vec<(Column, Cell)>| row.into_iter().map(|(_, cell)| cell).collect();
    let rows = rows.into_iter().map(cells).collect();
    noted(panel(key, title, Width::Whole, table(columns, rows)), note)
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
        Example { about: About::symbol(&symbol), provenance: serde_json::from_value(provenance).expect("a provenance") }
    }
}
