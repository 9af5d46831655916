//! The events of a recording, field by field.

use serde::Deserialize;

use crate::interval::{DAY, Interval, Millis};
use crate::market::candles::Candle;
use crate::market::levels::{Level, Levels, Side};
use crate::market::tape::{Aggregate, Trade};
use crate::market::ticker::Ticker;
use crate::market::{Diff, Quote};
use crate::number::{self, Money, UNIT};

type Pairs<'a> = Vec<(&'a str, &'a str)>;

fn read_levels(pairs: &[(&str, &str)]) -> Option<Vec<Level>> {
    let level = |(price, quantity): &(&str, &str)| Some((number::parse_price(price)?, number::parse(quantity)?));
    pairs.iter().map(level).collect()
}

pub fn diff(data: &str) -> Option<Diff> {
    #[derive(Deserialize)]
    struct Wire<'a> {
        #[serde(rename = "U")]
        first: u64,
        u: u64,
        #[serde(borrow)]
        b: Pairs<'a>,
        #[serde(borrow)]
        a: Pairs<'a>,
    }
    let wire: Wire<'_> = serde_json::from_str(data).ok()?;
    (wire.first <= id(wire.u)?).then_some(())?;
    Some(Diff {
        first_id: wire.first,
        last_id: wire.u,
        bids: read_levels(&wire.b)?,
        asks: read_levels(&wire.a)?,
    })
}

pub fn levels(data: &str) -> Option<Levels> {
    #[derive(Deserialize)]
    struct Wire<'a> {
        #[serde(rename = "lastUpdateId")]
        last: u64,
        #[serde(borrow)]
        bids: Pairs<'a>,
        #[serde(borrow)]
        asks: Pairs<'a>,
    }
    let wire: Wire<'_> = serde_json::from_str(data).ok()?;
    let mut levels = Levels::standing_at(id(wire.last)?);
    for (price, quantity) in read_levels(&wire.bids)? {
        levels.set(Side::Bid, price, quantity);
    }
    for (price, quantity) in read_levels(&wire.asks)? {
        levels.set(Side::Ask, price, quantity);
    }
    Some(levels)
}

/// Best levels; a side that is empty has the price and the quantity 0.
pub fn quote(data: &str) -> Option<Quote> {
    #[derive(Deserialize)]
    struct Wire<'a> {
        u: u64,
        b: &'a str,
        #[serde(rename = "B")]
        bid_quantity: &'a str,
        a: &'a str,
        #[serde(rename = "A")]
        ask_quantity: &'a str,
    }
    let wire: Wire<'_> = serde_json::from_str(data).ok()?;
    Some(Quote {
        id: id(wire.u)?,
        bid: (number::parse_price(wire.b)?, number::parse(wire.bid_quantity)?),
        ask: (number::parse_price(wire.a)?, number::parse(wire.ask_quantity)?),
    })
}

pub fn trade(data: &str) -> Option<Trade> {
    #[derive(Deserialize)]
    struct Wire<'a> {
        t: u64,
        p: &'a str,
        q: &'a str,
        #[serde(rename = "T")]
        time: Millis,
        m: bool,
    }
    let wire: Wire<'_> = serde_json::from_str(data).ok()?;
    Some(Trade {
        id: id(wire.t)?,
        price: number::parse_price(wire.p)?,
        quantity: number::parse(wire.q)?,
        time: time(wire.time)?,
        buyer_is_maker: wire.m,
    })
}

pub fn aggregate(data: &str) -> Option<Aggregate> {
    #[derive(Deserialize)]
    struct Wire<'a> {
        a: u64,
        p: &'a str,
        q: &'a str,
        f: u64,
        l: u64,
        #[serde(rename = "T")]
        time: Millis,
        m: bool,
    }
    let wire: Wire<'_> = serde_json::from_str(data).ok()?;
    (wire.f <= id(wire.l)?).then_some(())?;
    Some(Aggregate {
        id: id(wire.a)?,
        price: number::parse_price(wire.p)?,
        quantity: number::parse(wire.q)?,
        first_trade: wire.f,
        last_trade: wire.l,
        time: time(wire.time)?,
        buyer_is_maker: wire.m,
    })
}

/// Ids and times far beyond any real one are refused here, so that nobody has to fear for arithmetic later.
fn id(id: u64) -> Option<u64> {
    (id < 1 << 60).then_some(id)
}

fn time(time: Millis) -> Option<Millis> {
    const YEAR_9999: Millis = 253_370_764_800_000;
    (0..YEAR_9999).contains(&time).then_some(time)
}

fn money(text: &str) -> Option<Money> {
    number::parse(text).map(|units| units * UNIT)
}

#[derive(Deserialize)]
struct MiniWire<'a> {
    #[serde(rename = "E")]
    time: Millis,
    s: String,
    c: &'a str,
    o: &'a str,
    h: &'a str,
    l: &'a str,
    v: &'a str,
    q: &'a str,
}

/// What a mini ticker does not say is told as the exchange tells that there is nothing.
pub fn mini_ticker(data: &str) -> Option<Ticker> {
    let wire: MiniWire<'_> = serde_json::from_str(data).ok()?;
    let (open, last) = (number::parse_price(wire.o)?, number::parse_price(wire.c)?);
    let (volume, quote_volume) = (number::parse(wire.v)?, money(wire.q)?);
    Some(Ticker {
        symbol: wire.s,
        change: number::fixed_price(last - open),
        change_percent: number::percent(i128::from(last - open), i128::from(open)),
        average: number::fixed(if volume == 0 { 0 } else { quote_volume / volume }),
        previous_close: 0,
        last,
        last_quantity: 0,
        bid: (0, 0),
        ask: (0, 0),
        open,
        high: number::parse_price(wire.h)?,
        low: number::parse_price(wire.l)?,
        volume,
        quote_volume,
        open_time: time(wire.time)? - DAY,
        close_time: wire.time,
        first_id: -1,
        last_id: -1,
        count: 0,
    })
}

pub fn ticker(data: &str) -> Option<Ticker> {
    #[derive(Deserialize)]
    struct Wire<'a> {
        p: String,
        #[serde(rename = "P")]
        percent: String,
        w: String,
        x: &'a str,
        #[serde(rename = "Q")]
        last_quantity: &'a str,
        b: &'a str,
        #[serde(rename = "B")]
        bid_quantity: &'a str,
        a: &'a str,
        #[serde(rename = "A")]
        ask_quantity: &'a str,
        #[serde(rename = "O")]
        opened: Millis,
        #[serde(rename = "C")]
        closed: Millis,
        #[serde(rename = "F")]
        first: i64,
        #[serde(rename = "L")]
        last: i64,
        n: u64,
    }
    let wire: Wire<'_> = serde_json::from_str(data).ok()?;
    Some(Ticker {
        change: wire.p,
        change_percent: wire.percent,
        average: wire.w,
        previous_close: number::parse_price(wire.x)?,
        last_quantity: number::parse(wire.last_quantity)?,
        bid: (number::parse_price(wire.b)?, number::parse(wire.bid_quantity)?),
        ask: (number::parse_price(wire.a)?, number::parse(wire.ask_quantity)?),
        open_time: wire.opened,
        close_time: wire.closed,
        first_id: wire.first,
        last_id: wire.last,
        count: wire.n,
        ..mini_ticker(data)?
    })
}

pub fn candle(data: &str) -> Option<(Interval, Candle)> {
    #[derive(Deserialize)]
    struct Wire<'a> {
        #[serde(borrow)]
        k: Inner<'a>,
    }
    #[derive(Deserialize)]
    struct Inner<'a> {
        t: Millis,
        i: &'a str,
        f: i64,
        #[serde(rename = "L")]
        last: i64,
        o: &'a str,
        c: &'a str,
        h: &'a str,
        l: &'a str,
        v: &'a str,
        n: u64,
        q: &'a str,
        #[serde(rename = "V")]
        buy: &'a str,
        #[serde(rename = "Q")]
        buy_quote: &'a str,
    }
    let Wire { k: wire } = serde_json::from_str(data).ok()?;
    let candle = Candle {
        open_time: time(wire.t)?,
        open: number::parse_price(wire.o)?,
        high: number::parse_price(wire.h)?,
        low: number::parse_price(wire.l)?,
        close: number::parse_price(wire.c)?,
        volume: number::parse(wire.v)?,
        quote_volume: money(wire.q)?,
        trades: wire.n,
        buy_volume: number::parse(wire.buy)?,
        buy_quote_volume: money(wire.buy_quote)?,
        first_trade: u64::try_from(wire.f).ok().and_then(id).unwrap_or(0),
        last_trade: u64::try_from(wire.last).ok().and_then(id).unwrap_or(0),
    };
    Some((wire.i.parse().ok()?, candle))
}
