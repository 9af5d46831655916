//! Tickers of the last 24 hours.

use std::sync::Arc;

use rust_decimal::Decimal;
use serde::Deserialize;

use super::Decoded;
use crate::book::Level;
use crate::model::Millis;
use crate::number::{Notional, Price, Quantity};
use crate::rest::decode::{Lenient, parse, signed, word};
use crate::wire::{millis, nonzero};

/// What happened to a symbol in 24 hours. Prices are `None` where there were no trades.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an object")]
pub struct Ticker {
    #[serde(deserialize_with = "word")]
    pub symbol: Arc<str>,
    #[serde(deserialize_with = "signed")]
    pub price_change: Decimal,
    #[serde(deserialize_with = "signed")]
    pub price_change_percent: Decimal,
    /// Volume-weighted.
    #[serde(rename = "weightedAvgPrice", deserialize_with = "nonzero")]
    pub average: Option<Price>,
    #[serde(rename = "openPrice", deserialize_with = "nonzero")]
    pub open: Option<Price>,
    #[serde(rename = "highPrice", deserialize_with = "nonzero")]
    pub high: Option<Price>,
    #[serde(rename = "lowPrice", deserialize_with = "nonzero")]
    pub low: Option<Price>,
    #[serde(rename = "lastPrice", deserialize_with = "nonzero")]
    pub last: Option<Price>,
    pub volume: Quantity,
    pub quote_volume: Notional,
    #[serde(deserialize_with = "millis")]
    pub open_time: Millis,
    #[serde(deserialize_with = "millis")]
    pub close_time: Millis,
    #[serde(rename = "count")]
    pub trades: u64,
    #[serde(default, deserialize_with = "nonzero")]
    pub bid_price: Option<Price>,
    /// Binance.US does not send sizes.
    pub bid_qty: Option<Quantity>,
    #[serde(default, deserialize_with = "nonzero")]
    pub ask_price: Option<Price>,
    pub ask_qty: Option<Quantity>,
}

impl Ticker {
    /// The best bid and ask, which are `None` for an empty side; `None` without sizes.
    pub fn quote(&self) -> Option<(Option<Level>, Option<Level>)> {
        let level = |price: Option<Price>, quantity: Quantity| {
            let price = price.filter(|_| !quantity.is_zero())?;
            Some(Level { price, quantity })
        };
        Some((level(self.bid_price, self.bid_qty?), level(self.ask_price, self.ask_qty?)))
    }
}

pub(in crate::rest) fn ticker(body: &[u8]) -> Decoded<Ticker> {
    let ticker: Ticker = parse(body)?;
    let time = ticker.close_time;
    Ok((ticker, Some(time)))
}

/// Every ticker that can be read: one that cannot must not take away all others.
pub(in crate::rest) fn tickers(body: &[u8]) -> Decoded<Vec<Ticker>> {
    let all: Vec<Lenient<Ticker>> = parse(body)?;
    let count = all.len();
    let (mut tickers, mut first_wrong) = (Vec::with_capacity(count), None);
    for Lenient(ticker) in all {
        match ticker {
            Ok(ticker) => tickers.push(ticker),
            Err(wrong) => drop(first_wrong.get_or_insert(wrong)),
        }
    }
    if let Some(wrong) = first_wrong {
        if tickers.is_empty() {
            return Err(wrong);
        }
        let unreadable = count - tickers.len();
        tracing::warn!(unreadable, %wrong, "tickers of the exchange cannot be read");
    }
    let latest = tickers.iter().map(|ticker| ticker.close_time).max();
    Ok((tickers, latest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rest::decode::Wrong;

    const FULL: &str = r#"{"symbol":"BNBBTC","priceChange":"-94.99999800","priceChangePercent":"-95.960",
        "weightedAvgPrice":"0.29628482","prevClosePrice":"0.10002000","lastPrice":"4.00000200","lastQty":"200.00000000",
        "bidPrice":"4.00000000","bidQty":"100.00000000","askPrice":"0.00000000","askQty":"0.00000000",
        "openPrice":"99.00000000","highPrice":"100.00000000","lowPrice":"0.10000000","volume":"8913.30000000",
        "quoteVolume":"15.30000000","openTime":1499783499040,"closeTime":1499869899040,"firstId":28385,"lastId":28460,
        "count":76}"#;

    #[test]
    fn ticker_is_read_exactly() {
        let (ticker, time) = ticker(FULL.as_bytes()).expect("ticker");
        assert_eq!(ticker.price_change.to_string(), "-94.999998");
        assert_eq!(ticker.price_change_percent.to_string(), "-95.96");
        assert_eq!(ticker.last.map(Price::units), Some(400_000_200));
        let (bid, ask) = ticker.quote().expect("quote");
        assert_eq!((bid.is_some(), ask), (true, None));
        assert_eq!(ticker.trades, 76);
        assert_eq!(time, Some(1_499_869_899_040));
    }

    #[test]
    fn untraded_symbol_has_no_price() {
        let quiet = FULL.replace("4.00000200", "0.00000000");
        let (ticker, _) = ticker(quiet.as_bytes()).expect("ticker");
        assert_eq!(ticker.last, None);
    }

    #[test]
    fn one_unreadable_ticker_leaves_the_others() {
        let odd = FULL.replace("8913.30000000", "0.123456789");
        let (read, time) = tickers(format!("[{FULL},{odd},{FULL}]").as_bytes()).expect("tickers");
        assert_eq!((read.len(), time), (2, Some(1_499_869_899_040)));
        assert_eq!(tickers(format!("[{odd}]").as_bytes()).expect_err("none").field, "volume");
        assert!(tickers(b"[]").expect("none are none").0.is_empty());
    }

    /// As Binance.US documents it.
    #[test]
    fn best_prices_without_sizes_are_unknown() {
        let without = FULL.replace(r#""bidQty":"100.00000000","#, "").replace(r#""askQty":"0.00000000","#, "");
        let (read, _) = ticker(without.as_bytes()).expect("ticker");
        assert_eq!((read.quote(), read.trades), (None, 76));
        assert_eq!(tickers(format!("[{without}]").as_bytes()).expect("all").0.len(), 1);
    }

    #[test]
    fn each_field_is_needed_and_named() {
        let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(FULL).expect("object");
        let optional = ["prevClosePrice", "lastQty", "firstId", "lastId", "bidPrice", "bidQty", "askPrice", "askQty"];
        for name in object.keys().filter(|name| !optional.contains(&name.as_str())) {
            let mut without = object.clone();
            without.shift_remove(name);
            let body = serde_json::to_vec(&vec![without]).expect("JSON");
            let wrong = tickers(&body).expect_err(name);
            assert_eq!(wrong, Wrong::new(name, "is missing"));
        }
    }
}
