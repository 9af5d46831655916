//! The events of a recording, field by field.

use serde::de::{Error as _, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::interval::{DAY, Interval, Millis};
use crate::market::candles::{Candle, Recorded};
use crate::market::levels::{Level, Levels, Side};
use crate::market::tape::{Aggregate, Trade};
use crate::market::ticker::Ticker;
use crate::market::{Average, Diff, Quote};
use crate::number::{self, Money, UNIT};

type Pairs<'a> = Vec<Pair<'a>>;

/// Price and quantity. Old recordings have a third element, which never said anything.
struct Pair<'a>(&'a str, &'a str);

impl<'de: 'a, 'a> Deserialize<'de> for Pair<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Elements;
        impl<'de> Visitor<'de> for Elements {
            type Value = Pair<'de>;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("a price and a quantity")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Pair<'de>, A::Error> {
                let missing = |index| A::Error::invalid_length(index, &self);
                let price = elements.next_element()?.ok_or_else(|| missing(0))?;
                let quantity = elements.next_element()?.ok_or_else(|| missing(1))?;
                while elements.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Pair(price, quantity))
            }
        }
        deserializer.deserialize_seq(Elements)
    }
}

fn read_levels(pairs: &[Pair<'_>]) -> Option<Vec<Level>> {
    let level = |Pair(price, quantity): &Pair<'_>| Some((number::parse_price(price)?, number::parse(quantity)?));
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

pub fn mini_ticker(data: &str) -> Option<Ticker> {
    let wire: MiniWire<'_> = serde_json::from_str(data).ok()?;
    let (open, last) = (number::parse_price(wire.o)?, number::parse_price(wire.c)?);
    let (volume, quote_volume) = (number::parse(wire.v)?, money(wire.q)?);
    Some(Ticker {
        symbol: wire.s,
        change: number::fixed_price(last - open),
        change_percent: number::percent(i128::from(last - open), i128::from(open)),
        average: number::fixed(if volume == 0 { 0 } else { quote_volume / volume }),
        previous_close: None,
        last,
        last_quantity: None,
        best: None,
        open,
        high: number::parse_price(wire.h)?,
        low: number::parse_price(wire.l)?,
        volume,
        quote_volume,
        open_time: time(wire.time)? - DAY,
        close_time: wire.time,
        first_id: None,
        last_id: None,
        count: None,
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
        previous_close: Some(number::parse_price(wire.x)?),
        last_quantity: Some(number::parse(wire.last_quantity)?),
        best: Some((
            (number::parse_price(wire.b)?, number::parse(wire.bid_quantity)?),
            (number::parse_price(wire.a)?, number::parse(wire.ask_quantity)?),
        )),
        open_time: time(wire.opened)?,
        close_time: time(wire.closed)?,
        first_id: Some(wire.first),
        last_id: Some(wire.last).filter(|last| *last < 1 << 60),
        count: Some(wire.n),
        ..mini_ticker(data)?
    })
}

/// The average price of five minutes.
pub fn average(data: &str) -> Option<Average> {
    #[derive(Deserialize)]
    struct Wire<'a> {
        i: &'a str,
        w: &'a str,
        #[serde(rename = "T")]
        time: Millis,
    }
    let wire: Wire<'_> = serde_json::from_str(data).ok()?;
    (wire.i == "5m").then_some(())?;
    Some(Average {
        price: number::parse(wire.w)?,
        time: time(wire.time)?,
    })
}

pub fn candle(data: &str) -> Option<(Interval, Recorded)> {
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
        /// It changes no more.
        #[serde(default)]
        x: bool,
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
    Some((wire.i.parse().ok()?, Recorded { candle, closed: wire.x }))
}
