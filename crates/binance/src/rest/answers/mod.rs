//! What the exchange answers, as values.

mod info;
mod ticker;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::decode::{Read, Wrong, parse};
use crate::book::Snapshot;
use crate::model::{Candle, Millis, Trade};
use crate::number::{Notional, Price, Quantity};
use crate::wire::{TradeWire, known_millis, millis, nonzero};

pub use info::ExchangeInfo;
pub(super) use info::exchange_info;
pub use ticker::Ticker;
pub(super) use ticker::{ticker, tickers};

/// A decoded answer, and when it was true where the exchange says so.
pub type Decoded<T> = Read<(T, Option<Millis>)>;

/// The mean price of the last minutes, as the exchange reckons it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an object")]
pub struct AvgPrice {
    #[serde(rename = "mins")]
    pub minutes: u64,
    /// `None` if it was never traded; the exchange writes 0.
    #[serde(deserialize_with = "nonzero")]
    pub price: Option<Price>,
    /// When the last trade in it was. Binance.US does not say it.
    #[serde(default, deserialize_with = "known_millis")]
    pub close_time: Option<Millis>,
}

pub(super) fn avg_price(body: &[u8]) -> Decoded<AvgPrice> {
    let average: AvgPrice = parse(body)?;
    Ok((average, average.close_time))
}

pub(super) fn server_time(body: &[u8]) -> Decoded<Millis> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase", expecting = "an object")]
    struct ServerTime {
        #[serde(deserialize_with = "millis")]
        server_time: Millis,
    }
    let ServerTime { server_time } = parse(body)?;
    Ok((server_time, Some(server_time)))
}

pub(super) fn depth(body: &[u8], limit: u32) -> Decoded<Snapshot> {
    let snapshot = Snapshot { limit: limit as usize, ..parse(body)? };
    Ok((snapshot, None))
}

/// Trades in which the fills of one order at one price are one, oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aggregates {
    /// The exchange's id of the first: those before it have lower ones.
    pub first_id: Option<u64>,
    pub trades: Vec<Trade>,
}

/// True as of the last trade.
fn read_trades(body: &[u8]) -> Decoded<Aggregates> {
    let wires: Vec<TradeWire<'_>> = parse(body)?;
    let trades = wires.iter().enumerate().map(|(at, wire)| {
        let wrong = || Wrong::new(&format!("[{at}]"), "has no ids, or impossible ones");
        wire.trade().ok_or_else(wrong)
    });
    let trades: Vec<Trade> = trades.collect::<Read<_>>()?;
    let last = trades.iter().map(|trade| trade.time).max();
    Ok((Aggregates { first_id: wires.first().and_then(|first| first.a), trades }, last))
}

/// Oldest first.
pub(super) fn trades(body: &[u8]) -> Decoded<Vec<Trade>> {
    read_trades(body).map(|(read, last)| (read.trades, last))
}

pub(super) fn agg_trades(body: &[u8]) -> Decoded<Aggregates> {
    let (aggregates, last) = read_trades(body)?;
    if aggregates.first_id.is_none() && !aggregates.trades.is_empty() {
        return Err(Wrong::new("[0].a", "is missing"));
    }
    Ok((aggregates, last))
}

/// Oldest first.
pub(super) fn klines(body: &[u8]) -> Decoded<Vec<Candle>> {
    /// The exchange's twelve columns; the last three are unused.
    #[derive(Deserialize)]
    #[serde(expecting = "twelve columns")]
    struct Row(
        #[serde(deserialize_with = "millis")] Millis,
        Price,
        Price,
        Price,
        Price,
        Quantity,
        #[serde(deserialize_with = "millis")] Millis,
        Notional,
        u64,
        IgnoredAny,
        IgnoredAny,
        IgnoredAny,
    );
    let rows: Vec<Row> = parse(body)?;
    let candle = |row: Row| Candle {
        open_time: row.0,
        open: row.1,
        high: row.2,
        low: row.3,
        close: row.4,
        volume: row.5,
        close_time: row.6,
        quote_volume: row.7,
        trades: row.8,
    };
    Ok((rows.into_iter().map(candle).collect(), None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Aggressor;

    #[test]
    fn a_snapshot_is_read_exactly() {
        let body = br#"{"lastUpdateId":1027024,"bids":[["4.00000000","431.00000000"]],"asks":[["4.00000200","12.5"]],"new":1}"#;
        let (snapshot, time) = depth(body, 100).expect("snapshot");
        assert_eq!((snapshot.last_update_id, time), (1_027_024, None));
        assert_eq!(snapshot.bids[0].price.units(), 400_000_000);
        assert_eq!(snapshot.asks[0].quantity.to_string(), "12.5");
        let wrong = |body: &[u8]| depth(body, 100).expect_err("wrong");
        assert_eq!(
            wrong(br#"{"lastUpdateId":1,"bids":[["4","1"],["x","1"]],"asks":[]}"#),
            Wrong::new("bids[1][0]", "is wrong: not a decimal number")
        );
        assert_eq!(wrong(br#"{"lastUpdateId":1,"bids":[]}"#), Wrong::new("asks", "is missing"));
        assert_eq!(wrong(br#"{"lastUpdateId":1,"bids":{}}"#).field, "bids");
        assert_eq!(wrong(b"<html>"), Wrong::new("", "is not JSON"));
        assert_eq!(wrong(b"[]"), Wrong::new("", "is not an object"));
    }

    #[test]
    fn candles_are_read_by_their_columns() {
        let body = br#"[[1499040000000,"0.01634790","0.80000000","0.01575800","0.01577100","148976.11427815",1499644799999,"2434.19055334",308,"1756.87402397","28.46694368","0"]]"#;
        let (candles, _) = klines(body).expect("candles");
        let candle = candles[0];
        assert_eq!((candle.open_time, candle.close_time), (1_499_040_000_000, 1_499_644_799_999));
        assert_eq!(candle.close.to_string(), "0.015771");
        assert_eq!(candle.quote_volume.to_string(), "2434.19055334");
        assert_eq!(candle.trades, 308);
        let short = klines(br#"[[1499040000000,"1","1"]]"#).expect_err("short");
        assert_eq!(short, Wrong::new("[0]", "is not twelve columns"));
        let typed = klines(br#"[[1499040000000,1.5]]"#).expect_err("a number");
        assert_eq!(typed, Wrong::new("[0][1]", "is not a string"));
    }

    #[test]
    fn trades_say_who_crossed_the_spread() {
        let body = br#"[{"id":28457,"price":"4.00000100","qty":"12.0","quoteQty":"48.0","time":1499865549590,"isBuyerMaker":true,"isBestMatch":true}]"#;
        let (list, time) = trades(body).expect("trades");
        assert_eq!((list[0].aggressor, list[0].last_id - list[0].first_id), (Aggressor::Seller, 0));
        assert_eq!(time, Some(1_499_865_549_590));
        let body = br#"[{"a":26129,"p":"0.01633102","q":"4.70443515","f":27781,"l":27783,"T":1498793709153,"m":false,"M":true}]"#;
        let (list, _) = agg_trades(body).expect("aggregates");
        assert_eq!((list.trades[0].aggressor, list.trades[0].last_id - list.trades[0].first_id), (Aggressor::Buyer, 2));
        assert_eq!(list.first_id, Some(26_129));
        let back = br#"[{"a":1,"p":"1","q":"1","f":9,"l":8,"T":1,"m":true}]"#;
        assert_eq!(agg_trades(back).expect_err("backwards").field, "[0]");
        let without = br#"[{"p":"1","q":"1","f":8,"l":9,"T":1,"m":true}]"#;
        assert_eq!(agg_trades(without).expect_err("no id"), Wrong::new("[0].a", "is missing"));
        let nameless = br#"[{"price":"1","qty":"1","time":1,"isBuyerMaker":true}]"#;
        assert_eq!(trades(nameless).expect_err("no id").field, "[0]");
        let (none, time) = agg_trades(b"[]").expect("none");
        assert_eq!((none.first_id, none.trades.len(), time), (None, 0, None));
    }

    #[test]
    fn times_and_averages() {
        assert_eq!(server_time(br#"{"serverTime":1499827319559}"#), Ok((1_499_827_319_559, Some(1_499_827_319_559))));
        let (average, time) =
            avg_price(br#"{"mins":5,"price":"9.35751834","closeTime":1694061154503}"#).expect("average");
        let price = average.price.expect("a price").to_string();
        assert_eq!((average.minutes, price.as_str()), (5, "9.35751834"));
        assert_eq!(time, Some(1_694_061_154_503));
    }
}
