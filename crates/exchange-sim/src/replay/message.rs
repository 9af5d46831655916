//! What a recorded line says. Lines are wrapped as combined streams have them, or bare.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::wire;
use crate::interval::Interval;
use crate::market::candles::Candle;
use crate::market::levels::Levels;
use crate::market::tape::{Aggregate, Trade};
use crate::market::ticker::Ticker;
use crate::market::{Diff, Quote};

#[derive(Debug)]
pub enum Content {
    Diff(Diff),
    /// A whole book, as REST gave it; its symbol may have to be guessed from the ids around it.
    Snapshot(Levels),
    /// The best few levels, of a partial depth stream: too few to begin a book with.
    Partial(Levels),
    Trade(Trade),
    Aggregate(Aggregate),
    Ticker(Box<Ticker>),
    MiniTicker(Box<Ticker>),
    Candle(Interval, Candle),
    Quote(Quote),
    /// Whatever else has a stream but says nothing that the state lacks.
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
    if symbol.as_deref().is_some_and(|name| !is_symbol(name)) {
        return None;
    }
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

/// Names are written into messages as they are, so that they have to be nothing but names.
fn is_symbol(name: &str) -> bool {
    let legal = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    (1..=40).contains(&name.chars().count()) && name.chars().all(legal)
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
        Some("depthUpdate") => (Content::Diff(wire::diff(data)?), kind("depth@100ms")),
        Some("trade") => (Content::Trade(wire::trade(data)?), kind("trade")),
        Some("aggTrade") => (Content::Aggregate(wire::aggregate(data)?), kind("aggTrade")),
        Some("24hrTicker") => (Content::Ticker(Box::new(wire::ticker(data)?)), kind("ticker")),
        Some("24hrMiniTicker") => (
            Content::MiniTicker(Box::new(wire::mini_ticker(data)?)),
            kind("miniTicker"),
        ),
        Some("kline") => {
            let (interval, candle) = wire::candle(data)?;
            let name = format!("kline_{}", interval.name());
            (Content::Candle(interval, candle), Some(Cow::Owned(name)))
        }
        Some(_) => (Content::Other, None),
        None if peek.last_update_id.is_some() => {
            let levels = wire::levels(data)?;
            match stream {
                Some(stream) if is_partial(stream) => (Content::Partial(levels), None),
                _ => (Content::Snapshot(levels), None),
            }
        }
        None if peek.u.is_some() && peek.s.is_some() && peek.ask_quantity.is_some() => {
            (Content::Quote(wire::quote(data)?), kind("bookTicker"))
        }
        None => (Content::Other, None),
    };
    Some(found)
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
            r#"{"u":4,"s":"A\"B","b":"1","B":"1","a":"2","A":"1"}"#,
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
