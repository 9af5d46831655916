//! Tickers of all kinds.

use std::sync::Arc;

use rust_decimal::Decimal;

use super::Decoded;
use crate::book::Level;
use crate::model::Millis;
use crate::number::{Notional, Price, Quantity};
use crate::rest::decode::{self, Fields, Read};

/// What happened to a symbol in a window of time. Prices are `None` where there were no trades.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticker {
    pub symbol: Arc<str>,
    pub price_change: Decimal,
    pub price_change_percent: Decimal,
    /// Volume-weighted.
    pub average: Option<Price>,
    pub open: Option<Price>,
    pub high: Option<Price>,
    pub low: Option<Price>,
    pub last: Option<Price>,
    pub volume: Quantity,
    pub quote_volume: Notional,
    pub open_time: Millis,
    pub close_time: Millis,
    pub first_id: Option<u64>,
    pub last_id: Option<u64>,
    pub trades: u64,
    /// `None` where the exchange does not say these: only the 24-hour ticker does, and that of Binance.US without
    /// sizes, so that a price of its says nothing of a best level.
    pub quote: Option<TickerQuote>,
}

/// What the 24-hour ticker says besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TickerQuote {
    pub previous_close: Option<Price>,
    pub last_quantity: Quantity,
    pub bid: Option<Level>,
    pub ask: Option<Level>,
}

fn window(fields: &Fields<'_>) -> Read<Ticker> {
    Ok(Ticker {
        symbol: fields.word("symbol")?.into(),
        price_change: fields.signed("priceChange")?,
        price_change_percent: fields.signed("priceChangePercent")?,
        average: fields.price_unless_zero("weightedAvgPrice")?,
        open: fields.price_unless_zero("openPrice")?,
        high: fields.price_unless_zero("highPrice")?,
        low: fields.price_unless_zero("lowPrice")?,
        last: fields.price_unless_zero("lastPrice")?,
        volume: fields.quantity("volume")?,
        quote_volume: fields.notional("quoteVolume")?,
        open_time: fields.millis("openTime")?,
        close_time: fields.millis("closeTime")?,
        first_id: fields.id("firstId")?,
        last_id: fields.id("lastId")?,
        trades: fields.count("count")?,
        quote: None,
    })
}

fn full(fields: &Fields<'_>) -> Read<Ticker> {
    let has_sizes = ["bidQty", "askQty"].iter().any(|name| fields.lookup(name).is_some());
    Ok(Ticker {
        quote: has_sizes.then(|| quote(fields)).transpose()?,
        ..window(fields)?
    })
}

fn quote(fields: &Fields<'_>) -> Read<TickerQuote> {
    Ok(TickerQuote {
        previous_close: fields.price_unless_zero("prevClosePrice")?,
        last_quantity: fields.quantity("lastQty")?,
        bid: fields.level("bidPrice", "bidQty")?,
        ask: fields.level("askPrice", "askQty")?,
    })
}

fn one(body: &[u8], read: fn(&Fields<'_>) -> Read<Ticker>) -> Decoded<Ticker> {
    let ticker = read(&decode::object(body)?)?;
    let time = ticker.close_time;
    Ok((ticker, Some(time)))
}

fn many(body: &[u8], read: fn(&Fields<'_>) -> Read<Ticker>) -> Decoded<Vec<Ticker>> {
    let tickers = decode::each(body, |fields| read(&fields))?;
    let latest = tickers.iter().map(|ticker| ticker.close_time).max();
    Ok((tickers, latest))
}

pub(in crate::rest) fn ticker(body: &[u8]) -> Decoded<Ticker> {
    one(body, full)
}

pub(in crate::rest) fn tickers(body: &[u8]) -> Decoded<Vec<Ticker>> {
    many(body, full)
}

/// Every ticker that can be read: one that cannot must not take away all others.
pub(in crate::rest) fn all_tickers(body: &[u8]) -> Decoded<Vec<Ticker>> {
    let mut first_wrong = None;
    let read = decode::each(body, |fields| {
        let ticker = full(&fields).map_err(|wrong| {
            first_wrong.get_or_insert(wrong);
        });
        Ok(ticker.ok())
    })?;
    let count = read.len();
    let tickers: Vec<Ticker> = read.into_iter().flatten().collect();
    if let Some(wrong) = first_wrong {
        if tickers.is_empty() {
            return Err(wrong);
        }
        tracing::warn!(
            count = count - tickers.len(),
            why = format!("`{}` {}", wrong.field, wrong.why),
            "tickers of the exchange cannot be read"
        );
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
    fn a_ticker_is_read_exactly_and_an_empty_side_is_none() {
        let (ticker, time) = ticker(FULL.as_bytes()).expect("ticker");
        assert_eq!(ticker.price_change.to_string(), "-94.999998");
        assert_eq!(ticker.price_change_percent.to_string(), "-95.96");
        assert_eq!(ticker.last.map(Price::units), Some(400_000_200));
        let quote = ticker.quote.expect("quote");
        assert_eq!((quote.bid.is_some(), quote.ask), (true, None));
        assert_eq!((ticker.trades, ticker.first_id), (76, Some(28_385)));
        assert_eq!(time, Some(1_499_869_899_040));
    }

    #[test]
    fn a_symbol_without_trades_has_no_price_instead_of_zero() {
        let quiet = FULL
            .replace("4.00000200", "0.00000000")
            .replace("28385", "-1")
            .replace("28460", "-1");
        let (ticker, _) = ticker(quiet.as_bytes()).expect("ticker");
        assert_eq!((ticker.last, ticker.first_id, ticker.last_id), (None, None, None));
    }

    #[test]
    fn one_ticker_that_cannot_be_read_leaves_the_others() {
        let odd = FULL.replace("8913.30000000", "0.123456789");
        let (read, time) = all_tickers(format!("[{FULL},{odd},{FULL}]").as_bytes()).expect("tickers");
        assert_eq!((read.len(), time), (2, Some(1_499_869_899_040)));
        assert_eq!(
            all_tickers(format!("[{odd}]").as_bytes()).expect_err("none").field,
            "volume"
        );
        assert!(all_tickers(b"[]").expect("none are none").0.is_empty());
    }

    /// As Binance.US documents it.
    #[test]
    fn best_prices_without_sizes_are_unknown() {
        let without = FULL
            .replace(r#""bidQty":"100.00000000","#, "")
            .replace(r#""askQty":"0.00000000","#, "");
        let (read, _) = ticker(without.as_bytes()).expect("ticker");
        assert_eq!((read.quote, read.trades), (None, 76));
        assert_eq!(all_tickers(format!("[{without}]").as_bytes()).expect("all").0.len(), 1);
    }

    #[test]
    fn each_field_is_needed_and_named() {
        let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(FULL).expect("object");
        for name in object.keys() {
            let mut without = object.clone();
            without.shift_remove(name);
            let body = serde_json::to_vec(&vec![without]).expect("JSON");
            let wrong = tickers(&body).expect_err(name);
            assert_eq!(wrong, Wrong::new(&format!("[0].{name}"), "is missing"));
        }
    }
}
