//! What exchangeInfo says about a symbol.

use serde::Serialize;
use serde_json::{Value, json};

use super::levels::Side;
use crate::number::{self, Price, Quantity, UNIT};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Status {
    Trading,
    /// Suspended for now.
    Halt,
    /// Delisted.
    Break,
}

#[derive(Debug, Clone)]
pub struct Symbol {
    pub name: String,
    pub base: String,
    pub quote: String,
    pub status: Status,
    pub tick: Price,
    pub step: Quantity,
    /// In 10⁻⁸ of the quote asset; `None` in a recording, whose order rules are not known.
    pub min_notional: Option<i128>,
    /// The symbol's entry in a recorded exchangeInfo.
    pub recorded_entry: Option<Value>,
}

/// The largest quantity of one order, in steps.
const MAX_STEPS: i128 = 900_000_000;
const MAX_NOTIONAL: i128 = 9_000_000;
/// The highest price of an order, in ticks.
const MAX_TICKS: i64 = 100_000_000;

impl Symbol {
    /// A symbol whose order rules are not known, with its tick and its step.
    pub fn new(name: &str, base: &str, quote: &str, grid: (Price, Quantity)) -> Self {
        Self {
            name: name.to_owned(),
            base: base.to_owned(),
            quote: quote.to_owned(),
            status: Status::Trading,
            tick: grid.0,
            step: grid.1,
            min_notional: None,
            recorded_entry: None,
        }
    }

    /// The asset that an order of this side spends; one of the other side receives it.
    pub fn spent_by(&self, side: Side) -> &str {
        match side {
            Side::Bid => &self.quote,
            Side::Ask => &self.base,
        }
    }

    pub fn max_quantity(&self) -> Quantity {
        self.step.saturating_mul(MAX_STEPS)
    }

    pub fn max_price(&self) -> Price {
        self.tick.saturating_mul(MAX_TICKS)
    }

    pub fn json(&self) -> Value {
        if let Some(entry) = &self.recorded_entry {
            return entry.clone();
        }
        json!({
            "symbol": self.name,
            "status": self.status,
            "baseAsset": self.base,
            "baseAssetPrecision": 8,
            "quoteAsset": self.quote,
            "quotePrecision": 8,
            "quoteAssetPrecision": 8,
            "baseCommissionPrecision": 8,
            "quoteCommissionPrecision": 8,
            "orderTypes": ["LIMIT", "MARKET"],
            "icebergAllowed": false,
            "ocoAllowed": false,
            "otoAllowed": false,
            "opoAllowed": false,
            "quoteOrderQtyMarketAllowed": true,
            "allowTrailingStop": false,
            "cancelReplaceAllowed": false,
            "amendAllowed": false,
            "pegInstructionsAllowed": false,
            "isSpotTradingAllowed": true,
            "isMarginTradingAllowed": false,
            "filters": self.filters(),
            "permissions": [],
            "permissionSets": [["SPOT"]],
            "defaultSelfTradePreventionMode": "NONE",
            "allowedSelfTradePreventionModes": ["NONE"]
        })
    }

    fn filters(&self) -> Vec<Value> {
        // A bound of zero is switched off: recorded messages do not tell the bounds.
        let bound = |value: i128| number::fixed(if self.min_notional.is_some() { value } else { 0 });
        let mut filters = vec![
            json!({
                "filterType": "PRICE_FILTER",
                "minPrice": bound(self.tick.into()),
                "maxPrice": bound(self.max_price().into()),
                "tickSize": number::fixed(self.tick)
            }),
            json!({
                "filterType": "LOT_SIZE",
                "minQty": bound(self.step),
                "maxQty": bound(self.max_quantity()),
                "stepSize": number::fixed(self.step)
            }),
        ];
        if let Some(min_notional) = self.min_notional {
            filters.push(json!({
                "filterType": "NOTIONAL",
                "minNotional": number::fixed(min_notional),
                "applyMinToMarket": true,
                "maxNotional": number::fixed(MAX_NOTIONAL * UNIT),
                "applyMaxToMarket": false,
                "avgPriceMins": 5
            }));
        }
        filters
    }
}
