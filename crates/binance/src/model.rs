//! The exchange's data as values.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::number::{Notional, Price, Quantity};

/// Milliseconds since 1970 by the exchange's clock.
pub type Millis = i64;

/// Who crossed the spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Aggressor {
    Buyer,
    Seller,
}

/// One trade, or several of one order at one price (an aggregate).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trade {
    pub price: Price,
    pub quantity: Quantity,
    pub time: Millis,
    pub aggressor: Aggressor,
    /// Ids of the first and last trade of the aggregate; equal for a single trade.
    pub first_id: u64,
    pub last_id: u64,
}

/// One candle, as the exchange's klines have it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Candle {
    pub open_time: Millis,
    /// The last millisecond that belongs to it.
    pub close_time: Millis,
    pub open: Price,
    pub high: Price,
    pub low: Price,
    pub close: Price,
    pub volume: Quantity,
    pub quote_volume: Notional,
    pub trades: u64,
}

macro_rules! intervals {
    ($($variant:ident $text:literal $millis:expr),* $(,)?) => {
        /// How long a candle is. `1M` is a calendar month; weeks begin on Monday; all in UTC.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Interval { $($variant),* }

        impl Interval {
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// As the exchange writes it; upper and lower case differ.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),* }
            }

            /// Its length; of a month 30 days.
            pub const fn millis(self) -> Millis {
                match self { $(Self::$variant => $millis),* }
            }
        }
    };
}

const MINUTE: Millis = 60_000;
const HOUR: Millis = 60 * MINUTE;
const DAY: Millis = 24 * HOUR;

intervals! {
    S1 "1s" 1_000,
    M1 "1m" MINUTE, M3 "3m" 3 * MINUTE, M5 "5m" 5 * MINUTE, M15 "15m" 15 * MINUTE, M30 "30m" 30 * MINUTE,
    H1 "1h" HOUR, H2 "2h" 2 * HOUR, H4 "4h" 4 * HOUR, H6 "6h" 6 * HOUR, H8 "8h" 8 * HOUR, H12 "12h" 12 * HOUR,
    D1 "1d" DAY, D3 "3d" 3 * DAY, W1 "1w" 7 * DAY, Mo1 "1M" 30 * DAY,
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Interval {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.iter().copied().find(|interval| interval.as_str() == text).ok_or(())
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Symbol {
    pub name: Arc<str>,
    pub base: Arc<str>,
    pub quote: Arc<str>,
    /// The exchange's word: `TRADING`, `HALT`, or `BREAK`, which is most often delisted.
    pub status: Arc<str>,
    pub tick_size: Option<Price>,
    pub step_size: Option<Quantity>,
    pub min_quantity: Option<Quantity>,
    pub max_quantity: Option<Quantity>,
    pub min_notional: Option<Notional>,
    pub max_notional: Option<Notional>,
    /// Which of its rules could not be read, if any: a `None` above may then mean unknown instead of no rule.
    pub unread_rule: Option<Arc<str>>,
}

impl Symbol {
    /// A symbol that trades, with nothing known but its names.
    pub fn named(name: impl Into<Arc<str>>, base: impl Into<Arc<str>>, quote: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), base: base.into(), quote: quote.into(), status: "TRADING".into(), ..Self::default() }
    }

    pub fn is_traded(&self) -> bool {
        &*self.status == "TRADING"
    }
}
