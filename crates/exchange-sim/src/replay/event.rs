//! Parses one recorded line. Every line is one of the kinds below, or the recording is refused.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::line::Refusal;
use crate::interval::{Interval, Millis};
use crate::market::Diff;
use crate::market::levels::{Level, Levels, Side};
use crate::market::tape::{Aggregate, Trade};
use crate::number::{self, Price, Quantity};

const PLAYABLE: &str =
    "record `depth` or `depth@100ms`, `trade` or `aggTrade`, `bookTicker` and `kline_<interval>` of each symbol";

#[derive(Debug)]
pub enum Event {
    Diff(Diff),
    Trade(Trade),
    Aggregate(Aggregate),
    BookTicker,
    Kline,
    /// The answer of `GET /api/v3/depth`.
    Snapshot(Levels),
    /// The entries of an exchangeInfo.
    Symbols(Vec<Value>),
    /// The answer to a `SUBSCRIBE`, which says nothing about the market.
    Acknowledgement,
}

#[derive(Debug)]
pub struct Message<'a> {
    /// `None` for answers of REST, which no stream carries.
    pub stream: Option<&'a str>,
    /// `None` for a snapshot that does not name its symbol.
    pub symbol: Option<String>,
    /// When the exchange sent it, if it says so.
    pub sent: Option<Millis>,
    /// The event as it was received, byte for byte.
    pub data: &'a str,
    pub event: Event,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    stream: Option<&'a str>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    id: Option<serde::de::IgnoredAny>,
    symbol: Option<String>,
    symbols: Option<Vec<Value>>,
    #[serde(rename = "lastUpdateId")]
    last_update_id: Option<u64>,
}

pub fn parse(json: &str) -> Result<Message<'_>, Refusal> {
    let envelope: Envelope<'_> = decode(json, "a JSON object")?;
    if let (Some(stream), Some(data)) = (envelope.stream, envelope.data) {
        return parse_stream(stream, data.get());
    }
    let (symbol, event) = if envelope.last_update_id.is_some() {
        let snapshot: Snapshot = decode(json, "a depth snapshot")?;
        (envelope.symbol, Event::Snapshot(snapshot.levels()))
    } else if let Some(symbols) = envelope.symbols {
        (None, Event::Symbols(symbols))
    } else if envelope.id.is_some() {
        (None, Event::Acknowledgement)
    } else {
        let problem = "neither a message of a combined stream nor an answer of depth or exchangeInfo";
        let remedy = "record `/stream?streams=…`, whose messages are `{\"stream\":…,\"data\":…}`";
        return Err(Refusal::new(problem, remedy));
    };
    if symbol.as_deref().is_some_and(|symbol| !is_symbol(symbol)) {
        return Err(Refusal::new(
            "the snapshot's `symbol` is not a symbol",
            "write it as `\"symbol\":\"BTCUSDT\"`",
        ));
    }
    Ok(Message {
        stream: None,
        symbol,
        sent: None,
        data: json,
        event,
    })
}

fn parse_stream<'a>(stream: &'a str, data: &'a str) -> Result<Message<'a>, Refusal> {
    let unplayable = || Refusal::new(format!("stream `{stream}` cannot be played"), PLAYABLE);
    let (symbol, kind) = stream.split_once('@').ok_or_else(unplayable)?;
    let is_kline = kind
        .strip_prefix("kline_")
        .is_some_and(|name| name.parse::<Interval>().is_ok());
    if !is_kline && !["depth", "depth@100ms", "trade", "aggTrade", "bookTicker"].contains(&kind) {
        return Err(unplayable());
    }
    let header: Header<'_> = decode(data, stream)?;
    if !is_symbol(header.s) || header.s.to_lowercase() != symbol {
        let problem = format!("the message names symbol `{}`, its stream `{stream}`", header.s);
        return Err(Refusal::new(problem, "record stream names as the exchange sends them"));
    }
    let event = match kind {
        "depth" | "depth@100ms" => Event::Diff(decode::<DepthUpdate>(data, stream)?.diff(stream)?),
        "trade" => Event::Trade(decode::<TradeEvent>(data, stream)?.0),
        "aggTrade" => Event::Aggregate(decode::<AggregateEvent>(data, stream)?.checked(stream)?),
        "bookTicker" => Event::BookTicker,
        _ => Event::Kline,
    };
    Ok(Message {
        stream: Some(stream),
        symbol: Some(header.s.to_owned()),
        sent: header.sent,
        data,
        event,
    })
}

fn decode<'a, T: Deserialize<'a>>(json: &'a str, what: &str) -> Result<T, Refusal> {
    serde_json::from_str(json).map_err(|error| {
        let remedy = "record messages as the exchange sends them, with times in milliseconds";
        Refusal::new(format!("not a valid message of {what} ({error})"), remedy)
    })
}

/// Symbols are written into messages as they are, so nothing else may be in them.
pub fn is_symbol(name: &str) -> bool {
    let legal = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    (1..=40).contains(&name.chars().count()) && name.chars().all(legal)
}

#[derive(Deserialize)]
struct Header<'a> {
    s: &'a str,
    #[serde(rename = "E", default, deserialize_with = "optional_millis")]
    sent: Option<Millis>,
}

#[derive(Deserialize)]
struct DepthUpdate {
    #[serde(rename = "U", deserialize_with = "id")]
    first_id: u64,
    #[serde(rename = "u", deserialize_with = "id")]
    last_id: u64,
    #[serde(rename = "b", deserialize_with = "levels")]
    bids: Vec<Level>,
    #[serde(rename = "a", deserialize_with = "levels")]
    asks: Vec<Level>,
}

impl DepthUpdate {
    fn diff(self, stream: &str) -> Result<Diff, Refusal> {
        let Self {
            first_id,
            last_id,
            bids,
            asks,
        } = self;
        check_order(first_id, last_id, stream)?;
        Ok(Diff {
            first_id,
            last_id,
            bids,
            asks,
        })
    }
}

#[derive(Deserialize)]
struct Snapshot {
    #[serde(rename = "lastUpdateId", deserialize_with = "id")]
    last_update_id: u64,
    #[serde(deserialize_with = "levels")]
    bids: Vec<Level>,
    #[serde(deserialize_with = "levels")]
    asks: Vec<Level>,
}

impl Snapshot {
    fn levels(self) -> Levels {
        let mut levels = Levels::at_update(self.last_update_id);
        self.bids
            .iter()
            .for_each(|(price, quantity)| levels.set(Side::Bid, *price, *quantity));
        self.asks
            .iter()
            .for_each(|(price, quantity)| levels.set(Side::Ask, *price, *quantity));
        levels
    }
}

#[derive(Deserialize)]
#[serde(transparent)]
struct TradeEvent(#[serde(with = "TradeFields")] Trade);

#[derive(Deserialize)]
#[serde(remote = "Trade")]
struct TradeFields {
    #[serde(rename = "t", deserialize_with = "id")]
    id: u64,
    #[serde(rename = "p", deserialize_with = "price")]
    price: Price,
    #[serde(rename = "q", deserialize_with = "quantity")]
    quantity: Quantity,
    #[serde(rename = "T", deserialize_with = "millis")]
    time: Millis,
    #[serde(rename = "m")]
    buyer_is_maker: bool,
}

#[derive(Deserialize)]
#[serde(transparent)]
struct AggregateEvent(#[serde(with = "AggregateFields")] Aggregate);

impl AggregateEvent {
    fn checked(self, stream: &str) -> Result<Aggregate, Refusal> {
        check_order(self.0.first_trade, self.0.last_trade, stream)?;
        Ok(self.0)
    }
}

fn check_order(first: u64, last: u64, stream: &str) -> Result<(), Refusal> {
    if first > last {
        let problem = format!("ids of `{stream}` run backwards, from {first} to {last}");
        return Err(Refusal::new(problem, "record messages as the exchange sends them"));
    }
    Ok(())
}

#[derive(Deserialize)]
#[serde(remote = "Aggregate")]
struct AggregateFields {
    #[serde(rename = "a", deserialize_with = "id")]
    id: u64,
    #[serde(rename = "p", deserialize_with = "price")]
    price: Price,
    #[serde(rename = "q", deserialize_with = "quantity")]
    quantity: Quantity,
    #[serde(rename = "f", deserialize_with = "id")]
    first_trade: u64,
    #[serde(rename = "l", deserialize_with = "id")]
    last_trade: u64,
    #[serde(rename = "T", deserialize_with = "millis")]
    time: Millis,
    #[serde(rename = "m")]
    buyer_is_maker: bool,
}

/// Far above any real id and far below an overflow.
fn id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let id = u64::deserialize(deserializer)?;
    (id < 1 << 60)
        .then_some(id)
        .ok_or_else(|| D::Error::custom(format!("{id} is not an id")))
}

/// Milliseconds of this century have 13 digits.
fn millis<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Millis, D::Error> {
    let time = Millis::deserialize(deserializer)?;
    let is_millis = (1_000_000_000_000..10_000_000_000_000).contains(&time);
    is_millis
        .then_some(time)
        .ok_or_else(|| D::Error::custom(format!("{time} is not a time in milliseconds")))
}

fn optional_millis<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Millis>, D::Error> {
    millis(deserializer).map(Some)
}

fn quantity<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Quantity, D::Error> {
    let text = <&str>::deserialize(deserializer)?;
    number::parse(text).ok_or_else(|| D::Error::custom(format!("`{text}` is not a quantity")))
}

fn price<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Price, D::Error> {
    let text = <&str>::deserialize(deserializer)?;
    number::parse_price(text).ok_or_else(|| D::Error::custom(format!("`{text}` is not a price")))
}

fn levels<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Level>, D::Error> {
    let pairs: Vec<(&str, &str)> = Vec::deserialize(deserializer)?;
    let level = |(price, quantity)| {
        let level = number::parse_price(price).zip(number::parse(quantity));
        level.ok_or_else(|| D::Error::custom(format!("[`{price}`, `{quantity}`] is not a level")))
    };
    pairs.into_iter().map(level).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOOK: &str = r#"{"lastUpdateId":3,"bids":[["1.0","2.0"]],"asks":[]}"#;

    #[test]
    fn stream_messages_are_parsed() {
        let data = r#"{"e":"depthUpdate","E":1750000040123,"s":"BTCUSDT","U":5,"u":7,"b":[["1.0","2.0"]],"a":[]}"#;
        let line = format!(r#"{{"stream":"btcusdt@depth","data":{data}}}"#);
        let message = parse(&line).expect("a message");
        assert_eq!((message.stream, message.data), (Some("btcusdt@depth"), data));
        assert_eq!(
            (message.symbol.as_deref(), message.sent),
            (Some("BTCUSDT"), Some(1_750_000_040_123))
        );
        assert!(matches!(
            message.event,
            Event::Diff(Diff {
                first_id: 5,
                last_id: 7,
                ..
            })
        ));
    }

    #[test]
    fn rest_answers_have_no_stream() {
        let bare = parse(BOOK).expect("a snapshot");
        assert!(matches!(bare.event, Event::Snapshot(_)) && bare.stream.is_none() && bare.symbol.is_none());
        let named = BOOK.replacen('{', r#"{"symbol":"BTCUSDT","#, 1);
        assert_eq!(parse(&named).expect("a snapshot").symbol.as_deref(), Some("BTCUSDT"));
        let acknowledgement = parse(r#"{"result":null,"id":1}"#).expect("an answer");
        assert!(matches!(acknowledgement.event, Event::Acknowledgement));
    }

    #[test]
    fn everything_else_is_refused_with_the_reason() {
        let stream = |name: &str, data: &str| format!(r#"{{"stream":"{name}","data":{data}}}"#);
        let trade = |fields: &str| stream("a@trade", &format!(r#"{{"e":"trade","s":"A",{fields}}}"#));
        for (line, problem) in [
            ("{".to_owned(), "EOF"),
            ("[]".to_owned(), "a JSON object"),
            (
                r#"{"e":"trade","s":"A"}"#.to_owned(),
                "neither a message of a combined stream",
            ),
            (stream("a@depth20", BOOK), "stream `a@depth20` cannot be played"),
            (stream("a@ticker", r#"{"s":"A"}"#), "stream `a@ticker` cannot be played"),
            (stream("!ticker@arr", "[]"), "stream `!ticker@arr` cannot be played"),
            (stream("b@bookTicker", r#"{"s":"A"}"#), "names symbol `A`"),
            (
                stream("a@depth", r#"{"s":"A","U":9,"u":7,"b":[],"a":[]}"#),
                "run backwards",
            ),
            (
                stream("a@depth", r#"{"s":"A","U":5,"u":7,"b":[["x","1"]],"a":[]}"#),
                "is not a level",
            ),
            (
                trade(r#""t":1,"p":"1","q":"1","T":1750000040123456,"m":true"#),
                "not a time in milliseconds",
            ),
            (
                trade(r#""t":1,"p":"1","q":"-1","T":1750000040123,"m":true"#),
                "not a quantity",
            ),
            (
                trade(r#""t":1,"q":"1","T":1750000040123,"m":true"#),
                "missing field `p`",
            ),
            (
                trade(r#""t":9223372036854775807,"p":"1","q":"1","T":1750000040123,"m":true"#),
                "is not an id",
            ),
        ] {
            let refusal = parse(&line).expect_err(&line);
            assert!(refusal.problem.contains(problem), "{line}: {}", refusal.problem);
        }
    }

    proptest::proptest! {
        #[test]
        fn no_line_panics(text in "[\\[{]?[ -~]{0,120}") {
            let _ = parse(&text);
        }
    }
}
