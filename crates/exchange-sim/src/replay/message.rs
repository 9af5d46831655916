//! What a recorded line says. Lines are wrapped as combined streams have them, or bare.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::interval::{DAY, Interval, Millis};
use crate::market::Diff;
use crate::market::candles::Candle;
use crate::market::levels::{Level, Levels, Side};
use crate::market::tape::{Aggregate, Trade};
use crate::market::ticker::Ticker;
use crate::number::{self, Money, UNIT};

#[derive(Debug)]
pub enum Content {
    Diff(Diff),
    /// A whole book, as REST gave it; its symbol may have to be guessed from the ids around it.
    Snapshot(Levels),
    /// The best few levels, of a partial depth stream.
    Partial(Levels),
    Trade(Trade),
    Aggregate(Aggregate),
    Ticker(Box<Ticker>),
    MiniTicker(Box<Ticker>),
    Candle(Interval, Candle),
    /// Best levels and whatever else has a stream but says nothing that the state lacks.
    Other,
}

#[derive(Debug)]
pub struct Message<'a> {
    /// To whom it goes; answers to requests go to nobody.
    pub stream: Option<Cow<'a, str>>,
    pub symbol: Option<String>,
    /// The event itself, byte for byte.
    pub data: &'a str,
    pub content: Content,
}

#[derive(Deserialize)]
struct Wrapper<'a> {
    #[serde(borrow)]
    stream: Option<Cow<'a, str>>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Peek<'a> {
    #[serde(borrow)]
    e: Option<Cow<'a, str>>,
    #[serde(borrow, alias = "symbol")]
    s: Option<Cow<'a, str>>,
    #[serde(rename = "lastUpdateId")]
    last_update_id: Option<u64>,
    u: Option<u64>,
    #[serde(borrow, rename = "A")]
    ask_quantity: Option<&'a RawValue>,
}

/// `None` if the line is not JSON, or not what it says it is.
pub fn parse(json: &str) -> Option<Message<'_>> {
    if json.starts_with('[') {
        return parse_list(None, json);
    }
    let wrapper: Wrapper<'_> = serde_json::from_str(json).ok()?;
    let data = wrapper.data.map_or(json, RawValue::get);
    let stream = wrapper.data.and(wrapper.stream);
    if data.starts_with('[') {
        return parse_list(stream, data);
    }
    let peek: Peek<'_> = serde_json::from_str(data).ok()?;
    let named = stream.as_deref().and_then(symbol_of).map(str::to_uppercase);
    let symbol = peek.s.as_deref().map(str::to_owned).or(named);
    let (content, kind) = content(data, &peek, stream.as_deref())?;
    let stream = stream.or_else(|| {
        let symbol = symbol.as_deref()?.to_lowercase();
        Some(Cow::Owned(format!("{symbol}@{}", kind?)))
    });
    Some(Message {
        stream,
        symbol,
        data,
        content,
    })
}

fn parse_list<'a>(stream: Option<Cow<'a, str>>, data: &'a str) -> Option<Message<'a>> {
    serde_json::from_str::<serde::de::IgnoredAny>(data).ok()?;
    let bare_name = data
        .contains("\"24hrMiniTicker\"")
        .then_some(Cow::Borrowed("!miniTicker@arr"));
    Some(Message {
        stream: stream.or(bare_name),
        symbol: None,
        data,
        content: Content::Other,
    })
}

fn symbol_of(stream: &str) -> Option<&str> {
    let (symbol, _) = stream.split_once('@')?;
    (!symbol.is_empty() && !symbol.starts_with('!')).then_some(symbol)
}

/// `…@depth20` and `…@depth20@100ms`, but not `…@depth@100ms`.
fn is_partial(stream: &str) -> bool {
    let kind = stream.split('@').nth(1).and_then(|kind| kind.strip_prefix("depth"));
    kind.is_some_and(|levels| !levels.is_empty() && levels.bytes().all(|byte| byte.is_ascii_digit()))
}

/// What it says, and the stream that has messages of its kind.
fn content(data: &str, peek: &Peek<'_>, stream: Option<&str>) -> Option<(Content, Option<Cow<'static, str>>)> {
    let kind = |name: &'static str| Some(Cow::Borrowed(name));
    let found = match peek.e.as_deref() {
        Some("depthUpdate") => (Content::Diff(diff(data)?), kind("depth@100ms")),
        Some("trade") => (Content::Trade(trade(data)?), kind("trade")),
        Some("aggTrade") => (Content::Aggregate(aggregate(data)?), kind("aggTrade")),
        Some("24hrTicker") => (Content::Ticker(Box::new(ticker(data)?)), kind("ticker")),
        Some("24hrMiniTicker") => (Content::MiniTicker(Box::new(mini_ticker(data)?)), kind("miniTicker")),
        Some("kline") => {
            let (interval, candle) = candle(data)?;
            let name = format!("kline_{}", interval.name());
            (Content::Candle(interval, candle), Some(Cow::Owned(name)))
        }
        Some(_) => (Content::Other, None),
        None if peek.last_update_id.is_some() => {
            let levels = levels(data)?;
            match stream {
                Some(stream) if is_partial(stream) => (Content::Partial(levels), None),
                _ => (Content::Snapshot(levels), None),
            }
        }
        None if peek.u.is_some() && peek.s.is_some() && peek.ask_quantity.is_some() => {
            (Content::Other, kind("bookTicker"))
        }
        None => (Content::Other, None),
    };
    Some(found)
}

type Pairs<'a> = Vec<(&'a str, &'a str)>;

fn read_levels(pairs: &[(&str, &str)]) -> Option<Vec<Level>> {
    let level = |(price, quantity): &(&str, &str)| Some((number::parse_price(price)?, number::parse(quantity)?));
    pairs.iter().map(level).collect()
}

fn diff(data: &str) -> Option<Diff> {
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

fn levels(data: &str) -> Option<Levels> {
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

fn trade(data: &str) -> Option<Trade> {
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

fn aggregate(data: &str) -> Option<Aggregate> {
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
fn mini_ticker(data: &str) -> Option<Ticker> {
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

fn ticker(data: &str) -> Option<Ticker> {
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

fn candle(data: &str) -> Option<(Interval, Candle)> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(json: &str) -> Option<String> {
        parse(json).expect("a message").stream.map(Cow::into_owned)
    }

    #[test]
    fn wrapped_and_bare_events_are_known() {
        let bare = r#"{"e":"depthUpdate","E":1,"s":"BTCUSDT","U":5,"u":7,"b":[["1.0","2.0"]],"a":[]}"#;
        assert_eq!(stream(bare).as_deref(), Some("btcusdt@depth@100ms"));
        let wrapped = format!(r#"{{"stream":"btcusdt@depth","data":{bare}}}"#);
        let message = parse(&wrapped).expect("a message");
        assert_eq!(message.stream.as_deref(), Some("btcusdt@depth"));
        assert_eq!(message.data, bare);
        assert!(matches!(
            message.content,
            Content::Diff(Diff {
                first_id: 5,
                last_id: 7,
                ..
            })
        ));
        let best = r#"{"u":4,"s":"BNBUSDT","b":"25.3","B":"31.2","a":"25.4","A":"40.6"}"#;
        assert_eq!(stream(best).as_deref(), Some("bnbusdt@bookTicker"));
        assert_eq!(stream(r#"{"result":null,"id":1}"#), None);
    }

    #[test]
    fn a_partial_book_is_no_snapshot() {
        let book = r#"{"lastUpdateId":3,"bids":[["1.0","2.0"]],"asks":[]}"#;
        assert!(matches!(parse(book).expect("a message").content, Content::Snapshot(_)));
        for name in ["btcusdt@depth20@100ms", "btcusdt@depth5"] {
            let wrapped = format!(r#"{{"stream":"{name}","data":{book}}}"#);
            let message = parse(&wrapped).expect("a message");
            assert!(matches!(message.content, Content::Partial(_)), "{name}");
            assert_eq!(message.symbol.as_deref(), Some("BTCUSDT"));
        }
    }

    #[test]
    fn what_is_broken_is_none() {
        for json in [
            "{",
            "[1,",
            r#"{"e":"depthUpdate","s":"A","U":9,"u":7,"b":[],"a":[]}"#,
            r#"{"e":"depthUpdate","s":"A","U":5,"u":7,"b":[["x","1"]],"a":[]}"#,
            r#"{"e":"trade","s":"A","t":1,"p":"1","q":"-1","T":1,"m":true}"#,
            r#"{"lastUpdateId":1,"bids":[["1"]],"asks":[]}"#,
            r#"{"lastUpdateId":18446744073709551615,"bids":[],"asks":[]}"#,
            r#"{"e":"trade","s":"A","t":1,"p":"1","q":"1","T":9223372036854775807,"m":true}"#,
        ] {
            assert!(parse(json).is_none(), "{json}");
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_panics(text in "[\\[{]?[ -~]{0,120}") {
            let _ = parse(&text);
        }
    }
}
