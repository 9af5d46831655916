//! Parses one recorded line. Every line is one of the kinds below, or the recording is refused.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

use super::line::Refusal;
use crate::interval::Millis;
use crate::market::Diff;
use crate::market::levels::{self, Level, Levels};
use crate::market::publish::candles_of_kind;
use crate::market::tape::{Aggregate, Trade};

const PLAYABLE: &str =
    "record `depth` or `depth@100ms`, `trade`, `aggTrade`, `bookTicker` and `kline_<interval>` of each symbol";
const AS_SENT: &str = "record messages as the exchange sends them, with times in milliseconds";

#[derive(Debug)]
pub enum Event {
    Diff(Diff),
    Trade(Trade),
    Aggregate(Aggregate),
    /// The answer of `GET /api/v3/depth`.
    Snapshot(Levels),
    /// The entries of an exchangeInfo.
    Symbols(Vec<Value>),
    /// Best prices and candles, which are only passed on, and the answer to a `SUBSCRIBE`.
    Other,
}

#[derive(Debug)]
pub struct Message<'a> {
    /// `None` for answers, which no stream carries.
    pub stream: Option<StreamMessage<'a>>,
    /// `None` for a snapshot that does not name its symbol, and for what is about no symbol.
    pub symbol: Option<String>,
    pub event: Event,
}

#[derive(Debug)]
pub struct StreamMessage<'a> {
    pub name: &'a str,
    /// The name's part behind the symbol.
    pub kind: &'a str,
    /// When the exchange sent it, if it says so.
    pub sent: Option<Millis>,
    /// The event as it was received, byte for byte.
    pub data: &'a str,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    stream: Option<&'a str>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    id: Option<IgnoredAny>,
    symbol: Option<String>,
    symbols: Option<Vec<Value>>,
    #[serde(rename = "lastUpdateId")]
    last_update_id: Option<u64>,
}

#[derive(Deserialize)]
struct Snapshot {
    #[serde(deserialize_with = "levels::deserialize")]
    bids: Vec<Level>,
    #[serde(deserialize_with = "levels::deserialize")]
    asks: Vec<Level>,
}

#[derive(Deserialize)]
struct Header<'a> {
    s: &'a str,
    #[serde(rename = "E")]
    sent: Option<Millis>,
}

pub fn parse(json: &str) -> Result<Message<'_>, Refusal> {
    let envelope: Envelope<'_> = decode(json, "a JSON object")?;
    if let (Some(stream), Some(data)) = (envelope.stream, envelope.data) {
        return parse_stream(stream, data.get());
    }
    let mut symbol = None;
    let event = if let Some(id) = envelope.last_update_id {
        check_ids("depth", id, id)?;
        let Snapshot { bids, asks } = decode(json, "a depth snapshot")?;
        symbol = envelope.symbol;
        Event::Snapshot(Levels::snapshot(id, &bids, &asks))
    } else if let Some(symbols) = envelope.symbols {
        Event::Symbols(symbols)
    } else if envelope.id.is_some() {
        Event::Other
    } else {
        let problem = "neither a message of a combined stream nor an answer of depth or exchangeInfo";
        let remedy = "record `/stream?streams=…`, whose messages are `{\"stream\":…,\"data\":…}`";
        return Err(Refusal::new(problem, remedy));
    };
    if symbol.as_deref().is_some_and(|symbol| !is_symbol(symbol)) {
        let problem = "the snapshot's `symbol` is not a symbol";
        return Err(Refusal::new(problem, "write it as `\"symbol\":\"BTCUSDT\"`"));
    }
    Ok(Message { stream: None, symbol, event })
}

fn parse_stream<'a>(stream: &'a str, data: &'a str) -> Result<Message<'a>, Refusal> {
    let unplayable = || Refusal::new(format!("stream `{stream}` cannot be played"), PLAYABLE);
    let (symbol, kind) = stream.split_once('@').ok_or_else(unplayable)?;
    let is_candles = candles_of_kind(kind).is_some();
    if !is_candles && !["depth", "depth@100ms", "trade", "aggTrade", "bookTicker"].contains(&kind) {
        return Err(unplayable());
    }
    let Header { s: name, sent } = decode(data, stream)?;
    if !is_symbol(name) || name.to_lowercase() != symbol {
        let problem = format!("the message names symbol `{name}`, its stream `{stream}`");
        return Err(Refusal::new(problem, "record stream names as the exchange sends them"));
    }
    let mut time = None;
    let event = match kind {
        "depth" | "depth@100ms" => {
            let diff: Diff = decode(data, stream)?;
            check_ids(stream, diff.first_id, diff.last_id)?;
            Event::Diff(diff)
        }
        "trade" => {
            let trade: Trade = decode(data, stream)?;
            check_ids(stream, trade.id, trade.id)?;
            time = Some(trade.time);
            Event::Trade(trade)
        }
        "aggTrade" => {
            let aggregate: Aggregate = decode(data, stream)?;
            check_ids(stream, aggregate.first_trade, aggregate.last_trade)?;
            time = Some(aggregate.time);
            Event::Aggregate(aggregate)
        }
        _ => Event::Other,
    };
    // Milliseconds of this century have 13 digits.
    let is_wrong = |time: &Millis| !(1_000_000_000_000..10_000_000_000_000).contains(time);
    if let Some(time) = [sent, time].into_iter().flatten().find(is_wrong) {
        return Err(Refusal::new(format!("{time} is not a time in milliseconds"), AS_SENT));
    }
    Ok(Message { stream: Some(StreamMessage { name: stream, kind, sent, data }), symbol: Some(name.to_owned()), event })
}

fn decode<'a, T: Deserialize<'a>>(json: &'a str, what: &str) -> Result<T, Refusal> {
    let refuse = |error| Refusal::new(format!("not a valid message of {what} ({error})"), AS_SENT);
    serde_json::from_str(json).map_err(refuse)
}

/// Symbols are written into messages as they are, so nothing else may be in them.
fn is_symbol(name: &str) -> bool {
    let legal = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    (1..=40).contains(&name.chars().count()) && name.chars().all(legal)
}

/// The limit is far above any real id and far below an overflow.
fn check_ids(stream: &str, first: u64, last: u64) -> Result<(), Refusal> {
    let problem = match (first, last) {
        _ if first > last => format!("ids of `{stream}` run backwards, from {first} to {last}"),
        (_, 0x1000_0000_0000_0000..) => format!("{last} is not an id"),
        _ => return Ok(()),
    };
    Err(Refusal::new(problem, AS_SENT))
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
        let stream = message.stream.expect("a stream");
        assert_eq!((stream.name, stream.kind, stream.data), ("btcusdt@depth", "depth", data));
        assert_eq!((message.symbol.as_deref(), stream.sent), (Some("BTCUSDT"), Some(1_750_000_040_123)));
        assert!(matches!(message.event, Event::Diff(Diff { first_id: 5, last_id: 7, .. })));
    }

    #[test]
    fn rest_answers_have_no_stream() {
        let bare = parse(BOOK).expect("a snapshot");
        assert!(matches!(bare.event, Event::Snapshot(_)) && bare.stream.is_none() && bare.symbol.is_none());
        let named = BOOK.replacen('{', r#"{"symbol":"BTCUSDT","#, 1);
        assert_eq!(parse(&named).expect("a snapshot").symbol.as_deref(), Some("BTCUSDT"));
        let acknowledgement = parse(r#"{"result":null,"id":1}"#).expect("an answer");
        assert!(matches!(acknowledgement.event, Event::Other));
    }

    #[test]
    fn everything_else_is_refused_with_the_reason() {
        let stream = |name: &str, data: &str| format!(r#"{{"stream":"{name}","data":{data}}}"#);
        let trade = |fields: &str| stream("a@trade", &format!(r#"{{"e":"trade","s":"A",{fields}}}"#));
        for (line, problem) in [
            ("{".to_owned(), "EOF"),
            ("[]".to_owned(), "a JSON object"),
            (r#"{"e":"trade","s":"A"}"#.to_owned(), "neither a message of a combined stream"),
            (stream("a@depth20", BOOK), "stream `a@depth20` cannot be played"),
            (stream("a@ticker", r#"{"s":"A"}"#), "stream `a@ticker` cannot be played"),
            (stream("!ticker@arr", "[]"), "stream `!ticker@arr` cannot be played"),
            (stream("b@bookTicker", r#"{"s":"A"}"#), "names symbol `A`"),
            (stream("a@depth", r#"{"s":"A","U":9,"u":7,"b":[],"a":[]}"#), "run backwards"),
            (stream("a@depth", r#"{"s":"A","U":5,"u":7,"b":[["x","1"]],"a":[]}"#), "is not a level"),
            (trade(r#""t":1,"p":"1","q":"1","T":1750000040123456,"m":true"#), "not a time in milliseconds"),
            (trade(r#""t":1,"p":"1","q":"-1","T":1750000040123,"m":true"#), "not a quantity"),
            (trade(r#""t":1,"q":"1","T":1750000040123,"m":true"#), "missing field `p`"),
            (trade(r#""t":9223372036854775807,"p":"1","q":"1","T":1750000040123,"m":true"#), "is not an id"),
        ] {
            let refusal = parse(&line).expect_err(&line);
            assert!(refusal.0.contains(problem), "{line}: {}", refusal.0);
        }
    }

    proptest::proptest! {
        #[test]
        fn no_line_panics(text in "[\\[{]?[ -~]{0,120}") {
            let _ = parse(&text);
        }
    }
}
