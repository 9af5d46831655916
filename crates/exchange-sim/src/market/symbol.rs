//! What exchangeInfo says of a symbol.

use serde_json::{Value, json};

use crate::number::{self, Price, Quantity, UNIT};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Trading,
    /// Not for now.
    Halt,
    /// Delisted.
    Break,
}

impl Status {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Trading => "TRADING",
            Self::Halt => "HALT",
            Self::Break => "BREAK",
        }
    }
}

#[derive(Debug, Clone)]
pub struct Symbol {
    pub name: String,
    pub base: String,
    pub quote: String,
    pub status: Status,
    pub tick: Price,
    pub step: Quantity,
    /// In 10⁻⁸ of the quote asset; unknown in a recording.
    pub min_notional: Option<i128>,
    pub source: Source,
}

/// Who says it.
#[derive(Debug, Clone)]
pub enum Source {
    /// The exchange itself.
    Exchange,
    /// An answer of exchangeInfo in a recording: its whole entry.
    Recorded(Box<Value>),
    /// Nobody: base and quote are read off the name, the grid off the recorded numbers (0 if there are none), and the
    /// rest is not known.
    Inferred {
        /// The name can be read in several ways, or in none that is known.
        ambiguous: bool,
    },
}

impl Source {
    pub const fn is_ambiguous(&self) -> bool {
        matches!(self, Self::Inferred { ambiguous: true })
    }
}

/// What the recorded messages of a symbol do not say.
const UNKNOWN: [&str; 5] = ["status", "orderTypes", "permissions", "permissionSets", "filters"];
/// A filter's bound of zero is one that is switched off.
const NO_BOUND: &str = "0.00000000";

/// The largest quantity of one order, in steps.
const MAX_STEPS: i128 = 900_000_000;
const MAX_NOTIONAL: i128 = 9_000_000;
/// The highest price of an order, in ticks.
const MAX_TICKS: i64 = 100_000_000;

impl Symbol {
    pub fn max_quantity(&self) -> Quantity {
        self.step.saturating_mul(MAX_STEPS)
    }

    pub fn max_price(&self) -> Price {
        self.tick.saturating_mul(MAX_TICKS)
    }

    pub fn status(&self) -> &str {
        match &self.source {
            Source::Recorded(entry) => entry["status"].as_str().unwrap_or_default(),
            _ => self.status.as_str(),
        }
    }

    pub fn json(&self) -> Value {
        match &self.source {
            Source::Exchange => self.whole(),
            Source::Recorded(entry) => entry.as_ref().clone(),
            Source::Inferred { ambiguous } => self.inferred(*ambiguous),
        }
    }

    /// Clients need a status to list a symbol at all; that it is not known is said beside it, and so are assets that may
    /// be others.
    fn inferred(&self, ambiguous: bool) -> Value {
        let mut unknown = UNKNOWN.to_vec();
        if ambiguous {
            unknown.extend(["baseAsset", "quoteAsset"]);
        }
        self.with(json!({
            "filters": [
                {
                    "filterType": "PRICE_FILTER",
                    "minPrice": NO_BOUND,
                    "maxPrice": NO_BOUND,
                    "tickSize": number::fixed_price(self.tick)
                },
                {
                    "filterType": "LOT_SIZE",
                    "minQty": NO_BOUND,
                    "maxQty": NO_BOUND,
                    "stepSize": number::fixed(self.step)
                }
            ],
            "unknown": unknown
        }))
    }

    /// What is said of every symbol, and more.
    fn with(&self, mut more: Value) -> Value {
        let mut all = json!({
            "symbol": self.name,
            "status": self.status.as_str(),
            "baseAsset": self.base,
            "baseAssetPrecision": 8,
            "quoteAsset": self.quote,
            "quotePrecision": 8,
            "quoteAssetPrecision": 8
        });
        if let (Value::Object(all), Value::Object(more)) = (&mut all, &mut more) {
            all.append(more);
        }
        all
    }

    fn whole(&self) -> Value {
        self.with(json!({
            "baseCommissionPrecision": 8,
            "quoteCommissionPrecision": 8,
            "orderTypes": ["LIMIT", "LIMIT_MAKER", "MARKET"],
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
        }))
    }

    fn filters(&self) -> Vec<Value> {
        let mut filters = vec![
            json!({
                "filterType": "PRICE_FILTER",
                "minPrice": number::fixed_price(self.tick),
                "maxPrice": number::fixed_price(self.max_price()),
                "tickSize": number::fixed_price(self.tick)
            }),
            json!({
                "filterType": "LOT_SIZE",
                "minQty": number::fixed(self.step),
                "maxQty": number::fixed(self.max_quantity()),
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
