//! What the exchange answers, as values.

mod info;
mod ticker;

use serde_json::value::RawValue;

use super::decode::{self, Fields, Read, Row, Wrong};
use crate::book::Level;
use crate::model::{Aggressor, Candle, Millis, Trade};
use crate::number::{Notional, Price, Quantity};

pub(super) use info::exchange_info;
pub use info::{ExchangeInfo, RateLimit};
pub use ticker::{Ticker, TickerQuote};
pub(super) use ticker::{all_tickers, ticker, tickers};

/// A decoded answer, and when it was true where the exchange says so.
pub(crate) type Decoded<T> = Read<(T, Option<Millis>)>;

/// A book as it was at one update id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DepthSnapshot {
    pub last_update_id: u64,
    /// Best first, as the exchange sends them.
    pub bids: Vec<Level>,
    pub asks: Vec<Level>,
    /// How many levels a side were asked for: a side that has as many may go on beyond.
    pub limit: u32,
}

/// The mean price of the last minutes, as the exchange reckons it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AvgPrice {
    pub minutes: u64,
    /// `None` where nothing was ever traded, of which the exchange says 0.
    pub price: Option<Price>,
    /// When the last trade in it was.
    pub close_time: Option<Millis>,
}

pub(super) fn server_time(body: &[u8]) -> Decoded<Millis> {
    let time = decode::object(body)?.millis("serverTime")?;
    Ok((time, Some(time)))
}

pub(super) fn depth(body: &[u8], limit: u32) -> Decoded<DepthSnapshot> {
    let fields = decode::object(body)?;
    let snapshot = DepthSnapshot {
        last_update_id: fields.count("lastUpdateId")?,
        bids: fields.levels("bids")?,
        asks: fields.levels("asks")?,
        limit,
    };
    Ok((snapshot, None))
}

pub(super) fn avg_price(body: &[u8]) -> Decoded<AvgPrice> {
    let fields = decode::object(body)?;
    let average = AvgPrice {
        minutes: fields.count("mins")?,
        price: Some(fields.price("price")?).filter(|price| price.units() > 0),
        // Binance.US does not say it.
        close_time: match fields.lookup("closeTime") {
            Some(_) => Some(fields.millis("closeTime")?).filter(|time| *time > 0),
            None => None,
        },
    };
    Ok((average, average.close_time))
}

/// Oldest first; true as of the last of them.
pub(super) fn trades(body: &[u8]) -> Decoded<Vec<Trade>> {
    let trades = decode::each(body, |fields| {
        let id = fields.count("id")?;
        trade(&fields, ["price", "qty", "time", "isBuyerMaker"], (id, id))
    })?;
    let last = trades.iter().map(|trade| trade.time).max();
    Ok((trades, last))
}

/// Trades in which the fills of one order at one price are one, oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aggregates {
    /// The exchange's id of the first: those before it have lower ones.
    pub first_id: Option<u64>,
    pub trades: Vec<Trade>,
}

pub(super) fn agg_trades(body: &[u8]) -> Decoded<Aggregates> {
    let mut first_id = None;
    let trades = decode::each(body, |fields| {
        first_id.get_or_insert(fields.count("a")?);
        let ids = (fields.count("f")?, fields.count("l")?);
        if ids.1 < ids.0 {
            return Err(Wrong::new("l", "is before `f`"));
        }
        trade(&fields, ["p", "q", "T", "m"], ids)
    })?;
    let last = trades.iter().map(|trade| trade.time).max();
    Ok((Aggregates { first_id, trades }, last))
}

fn trade(fields: &Fields<'_>, names: [&str; 4], (first_id, last_id): (u64, u64)) -> Read<Trade> {
    let [price, quantity, time, buyer_made] = names;
    Ok(Trade {
        price: fields.price(price)?,
        quantity: fields.quantity(quantity)?,
        time: fields.millis(time)?,
        // Whoever did not make the price took it.
        aggressor: if fields.truth(buyer_made)? {
            Aggressor::Seller
        } else {
            Aggressor::Buyer
        },
        first_id,
        last_id,
    })
}

/// Oldest first.
pub(super) fn klines(body: &[u8]) -> Decoded<Vec<Candle>> {
    let rows: Vec<&RawValue> = decode::parse(body, "a list")?;
    let candle = |(at, row): (usize, &RawValue)| candle(row).map_err(|wrong| wrong.within(&format!("[{at}]")));
    let candles: Read<Vec<Candle>> = rows.into_iter().enumerate().map(candle).collect();
    Ok((candles?, None))
}

/// The exchange's twelve columns, of which the last means nothing.
fn candle(raw: &RawValue) -> Read<Candle> {
    let row = Row::parse(raw)?;
    Ok(Candle {
        open_time: row.millis(0, "open time")?,
        open: row.number(1, "open", Price::parse)?,
        high: row.number(2, "high", Price::parse)?,
        low: row.number(3, "low", Price::parse)?,
        close: row.number(4, "close", Price::parse)?,
        volume: row.number(5, "volume", Quantity::parse)?,
        close_time: row.millis(6, "close time")?,
        quote_volume: row.number(7, "quote volume", Notional::parse)?,
        trades: row.count(8, "number of trades")?,
        taker_buy_volume: row.number(9, "taker buy volume", Quantity::parse)?,
        taker_buy_quote_volume: row.number(10, "taker buy quote volume", Notional::parse)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
            Wrong::new("bids[1]", "is wrong: not a decimal number")
        );
        assert_eq!(
            wrong(br#"{"lastUpdateId":1,"bids":[]}"#),
            Wrong::new("asks", "is missing")
        );
        assert_eq!(wrong(br#"{"lastUpdateId":1,"bids":{}}"#).field, "bids");
        assert_eq!(wrong(b"<html>"), Wrong::new("", "it is not JSON and so not an object"));
        assert_eq!(wrong(b"[]"), Wrong::new("", "it is not an object"));
    }

    #[test]
    fn candles_are_read_by_their_columns() {
        let body = br#"[[1499040000000,"0.01634790","0.80000000","0.01575800","0.01577100","148976.11427815",1499644799999,"2434.19055334",308,"1756.87402397","28.46694368","0"]]"#;
        let (candles, _) = klines(body).expect("candles");
        let candle = candles[0];
        assert_eq!(
            (candle.open_time, candle.close_time),
            (1_499_040_000_000, 1_499_644_799_999)
        );
        assert_eq!(candle.close.to_string(), "0.015771");
        assert_eq!(candle.quote_volume.to_string(), "2434.19055334");
        assert_eq!(
            (candle.trades, candle.taker_buy_volume.to_string().as_str()),
            (308, "1756.87402397")
        );
        let short = klines(br#"[[1499040000000,"1","1"]]"#).expect_err("short");
        assert_eq!(short, Wrong::new("[0].low", "is missing"));
        let typed = klines(br#"[[1499040000000,1.5]]"#).expect_err("a number");
        assert_eq!(typed, Wrong::new("[0].open", "has the wrong type"));
    }

    #[test]
    fn trades_say_who_crossed_the_spread() {
        let body = br#"[{"id":28457,"price":"4.00000100","qty":"12.0","quoteQty":"48.0","time":1499865549590,"isBuyerMaker":true,"isBestMatch":true}]"#;
        let (list, time) = trades(body).expect("trades");
        assert_eq!((list[0].aggressor, list[0].count()), (Aggressor::Seller, 1));
        assert_eq!(time, Some(1_499_865_549_590));
        let body = br#"[{"a":26129,"p":"0.01633102","q":"4.70443515","f":27781,"l":27783,"T":1498793709153,"m":false,"M":true}]"#;
        let (list, _) = agg_trades(body).expect("aggregates");
        assert_eq!(
            (list.trades[0].aggressor, list.trades[0].count()),
            (Aggressor::Buyer, 3)
        );
        assert_eq!(list.first_id, Some(26_129));
        let back = br#"[{"a":1,"p":"1","q":"1","f":9,"l":8,"T":1,"m":true}]"#;
        assert_eq!(agg_trades(back).expect_err("backwards").field, "[0].l");
        let (none, time) = agg_trades(b"[]").expect("none");
        assert_eq!((none.first_id, none.trades.len(), time), (None, 0, None));
    }

    #[test]
    fn times_and_averages() {
        assert_eq!(
            server_time(br#"{"serverTime":1499827319559}"#),
            Ok((1_499_827_319_559, Some(1_499_827_319_559)))
        );
        let (average, time) =
            avg_price(br#"{"mins":5,"price":"9.35751834","closeTime":1694061154503}"#).expect("average");
        let price = average.price.expect("a price").to_string();
        assert_eq!((average.minutes, price.as_str()), (5, "9.35751834"));
        assert_eq!(time, Some(1_694_061_154_503));
    }
}
