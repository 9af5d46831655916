//! What a recorded line says. Lines are wrapped as combined streams have them, or bare.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::lists::{self, Tickers, ticker};
use super::{units, wire};
use crate::interval::{Interval, Millis};
use crate::market::candles::Recorded;
use crate::market::levels::Levels;
use crate::market::tape::{Aggregate, Trade};
use crate::market::ticker::Ticker;
use crate::market::{Average, Diff, Quote};

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
    Candle(Interval, Recorded),
    Quote(Quote),
    Average(Average),
    /// Of several symbols, each with its ticker.
    Tickers {
        read: Vec<Content>,
        /// Some of them are not understood.
        lacking: bool,
    },
    /// Entries of exchangeInfo.
    Listings(Vec<Value>),
    /// Whatever else has a stream but says nothing that the state lacks.
    Other,
    /// Something that should be understood and is not, and why.
    Unread(&'static str),
}

#[derive(Debug)]
pub struct Message<'a> {
    /// To whom it goes; answers to requests go to nobody.
    pub stream: Option<Cow<'a, str>>,
    pub symbol: Option<String>,
    /// The event itself, byte for byte but for times in another unit.
    pub data: Cow<'a, str>,
    /// When the exchange sent it.
    pub event_time: Option<Millis>,
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
pub struct Peek<'a> {
    #[serde(borrow)]
    pub e: Option<Cow<'a, str>>,
    #[serde(borrow, alias = "symbol")]
    s: Option<Cow<'a, str>>,
    #[serde(rename = "lastUpdateId")]
    last_update_id: Option<u64>,
    u: Option<u64>,
    #[serde(borrow, rename = "E")]
    event_time: Option<&'a RawValue>,
    #[serde(borrow, rename = "A")]
    ask_quantity: Option<&'a RawValue>,
    #[serde(borrow)]
    symbols: Option<&'a RawValue>,
}

/// Fails, with the reason, if a line is not JSON or of no symbol that could be one.
pub fn parse(json: &str) -> Result<Message<'_>, &'static str> {
    const NO_JSON: &str = "it is not JSON";
    if json.starts_with('[') {
        return parse_list(None, units::in_millis(json)).ok_or(NO_JSON);
    }
    let wrapper: Wrapper<'_> = serde_json::from_str(json).map_err(|_| NO_JSON)?;
    let data = wrapper.data.map_or(json, RawValue::get);
    let stream = wrapper.data.and(wrapper.stream);
    if stream.as_deref().is_some_and(|name| !is_stream(name)) {
        return Err("its stream has no name that a stream can have");
    }
    let stream = stream.map(in_lower_case);
    if data.starts_with('[') {
        return parse_list(stream, units::in_millis(data)).ok_or(NO_JSON);
    }
    parse_event(stream, units::in_millis(data))
}

fn parse_event<'a>(stream: Option<Cow<'a, str>>, data: Cow<'a, str>) -> Result<Message<'a>, &'static str> {
    const NO_EVENT: &str = "it is no event and no snapshot";
    let named = stream.as_deref().and_then(symbol_of).map(str::to_uppercase);
    let Ok(peek) = serde_json::from_str::<Peek<'_>>(&data) else {
        let stream = Some(stream.ok_or(NO_EVENT)?);
        return Ok(Message {
            stream,
            symbol: named.filter(|name| is_symbol(name)),
            event_time: None,
            content: Content::Unread(NO_EVENT),
            data,
        });
    };
    let symbol = peek.s.as_deref().map(str::to_owned).or(named);
    if symbol.as_deref().is_some_and(|name| !is_symbol(name)) {
        return Err("its symbol has no name that a symbol can have");
    }
    let (content, kind) = content(&data, &peek, stream.as_deref());
    let event_time = peek.event_time.and_then(|time| time.get().parse().ok());
    let stream = match content {
        // Somebody asked for it: it is no message of the stream that a recorder has filed it under.
        Content::Snapshot(_) | Content::Listings(_) => None,
        _ => stream.or_else(|| {
            let symbol = symbol.as_deref()?.to_lowercase();
            Some(Cow::Owned(format!("{symbol}@{}", kind?)))
        }),
    };
    Ok(Message {
        stream,
        symbol,
        event_time,
        content,
        data,
    })
}

fn parse_list<'a>(stream: Option<Cow<'a, str>>, data: Cow<'a, str>) -> Option<Message<'a>> {
    let Tickers { read, lacking } = lists::tickers(&data)?;
    let bare_name = match read.first() {
        Some(Content::Ticker(_)) => Some(Cow::Borrowed("!ticker@arr")),
        Some(_) => Some(Cow::Borrowed("!miniTicker@arr")),
        None => None,
    };
    Some(Message {
        stream: stream.or(bare_name),
        symbol: None,
        data,
        event_time: None,
        content: Content::Tickers { read, lacking },
    })
}

/// Streams are told with their symbol in lower case, however a recorder wrote it.
fn in_lower_case(stream: Cow<'_, str>) -> Cow<'_, str> {
    match stream.split_once('@') {
        Some((symbol, kind)) if !symbol.starts_with('!') && symbol.chars().any(char::is_uppercase) => {
            Cow::Owned(format!("{}@{kind}", symbol.to_lowercase()))
        }
        _ => stream,
    }
}

fn is_stream(name: &str) -> bool {
    let legal = |c: char| c.is_alphanumeric() || "-_.@!+:".contains(c);
    (1..=100).contains(&name.chars().count()) && name.chars().all(legal)
}

/// Names are written into messages as they are, so that they have to be nothing but names.
pub fn is_symbol(name: &str) -> bool {
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
fn content(data: &str, peek: &Peek<'_>, stream: Option<&str>) -> (Content, Option<Cow<'static, str>>) {
    let kind = |name: &'static str| Some(Cow::Borrowed(name));
    let or = |content: Option<Content>, what: &'static str| content.unwrap_or(Content::Unread(what));
    match peek.e.as_deref() {
        Some("depthUpdate") => (
            or(
                wire::diff(data).map(Content::Diff),
                "a depth update that is not understood",
            ),
            kind("depth@100ms"),
        ),
        Some("trade") => (
            or(wire::trade(data).map(Content::Trade), "a trade that is not understood"),
            kind("trade"),
        ),
        Some("aggTrade") => (
            or(
                wire::aggregate(data).map(Content::Aggregate),
                "an aggregate trade that is not understood",
            ),
            kind("aggTrade"),
        ),
        Some("24hrTicker") => (or(ticker(data), "a ticker that is not understood"), kind("ticker")),
        Some("24hrMiniTicker") => (
            or(ticker(data), "a mini ticker that is not understood"),
            kind("miniTicker"),
        ),
        Some("avgPrice") => (
            or(
                wire::average(data).map(Content::Average),
                "an average price that is not understood",
            ),
            kind("avgPrice"),
        ),
        Some("kline") => {
            let candle = wire::candle(data);
            let name = candle
                .as_ref()
                .map(|(interval, _)| format!("kline_{}", interval.name()));
            // Of another zone's days and weeks nothing is kept.
            let candle = candle.map(|(interval, told)| match told.candle.open_time {
                open if interval.open_of(open, 0) == open => Content::Candle(interval, told),
                _ => Content::Other,
            });
            (or(candle, "a candle that is not understood"), name.map(Cow::Owned))
        }
        Some(_) => (Content::Other, None),
        None if peek.last_update_id.is_some() => match (wire::levels(data), stream) {
            (Some(levels), Some(stream)) if is_partial(stream) => (Content::Partial(levels), None),
            (Some(levels), _) => (Content::Snapshot(levels), None),
            (None, _) => (Content::Unread("a snapshot that is not understood"), None),
        },
        None if peek.symbols.is_some() && peek.s.is_none() => {
            let listings = peek.symbols.and_then(|symbols| lists::listings(symbols.get()));
            (
                or(
                    listings.map(Content::Listings),
                    "an exchangeInfo that is not understood",
                ),
                None,
            )
        }
        None if peek.u.is_some() && peek.s.is_some() && peek.ask_quantity.is_some() => (
            or(
                wire::quote(data).map(Content::Quote),
                "a best quote that is not understood",
            ),
            kind("bookTicker"),
        ),
        None => (Content::Other, None),
    }
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
        let upper = format!(r#"{{"stream":"BNBUSDT@bookTicker","data":{best}}}"#);
        assert_eq!(stream(&upper).as_deref(), Some("bnbusdt@bookTicker"));
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
    fn a_snapshot_is_no_message_of_a_stream() {
        let book = r#"{"lastUpdateId":3,"bids":[["1.0","2.0"]],"asks":[]}"#;
        for name in ["btcusdt@depth", "btcusdt@depthSnapshot"] {
            let wrapped = format!(r#"{{"stream":"{name}","data":{book}}}"#);
            let message = parse(&wrapped).expect("a message");
            assert!(matches!(message.content, Content::Snapshot(_)), "{name}");
            assert_eq!((message.stream, message.symbol.as_deref()), (None, Some("BTCUSDT")));
        }
    }

    #[test]
    fn days_of_another_zone_are_passed_on_but_not_kept() {
        const MIDNIGHT: Millis = 1_749_945_600_000;
        let content = |open: Millis| {
            let data = format!(
                r#"{{"e":"kline","E":1,"s":"A","k":{{"t":{open},"i":"1d","f":1,"L":1,"o":"1","c":"1","h":"1","l":"1","v":"1","n":1,"q":"1","V":"0","Q":"0"}}}}"#
            );
            let wrapped = format!(r#"{{"stream":"a@kline_1d@+08:00","data":{data}}}"#);
            let message = parse(&wrapped).expect("a message");
            assert_eq!(message.stream.as_deref(), Some("a@kline_1d@+08:00"));
            message.content
        };
        assert!(matches!(content(MIDNIGHT), Content::Candle(..)));
        assert!(matches!(content(MIDNIGHT - 8 * 3_600_000), Content::Other));
    }

    #[test]
    fn what_is_broken_is_not_understood() {
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
            let understood = parse(json).is_ok_and(|message| !matches!(message.content, Content::Unread(_)));
            assert!(!understood, "{json}");
        }
    }

    #[test]
    fn what_has_a_stream_keeps_it_even_if_it_is_not_understood() {
        let odd = r#"{"e":"trade","E":1,"s":"A","t":"one","p":"1","q":"1","T":1,"m":true}"#;
        assert_eq!(stream(odd).as_deref(), Some("a@trade"));
        let message = parse(odd).expect("a message");
        assert!(matches!(
            message.content,
            Content::Unread("a trade that is not understood")
        ));
        assert_eq!(stream(r#"{"stream":"a@new","data":{"e":5}}"#).as_deref(), Some("a@new"));
        assert!(parse(r#"{"e":5}"#).is_err());
    }

    #[test]
    fn levels_may_have_a_third_element() {
        let old = r#"{"lastUpdateId":3,"bids":[["1.0","2.0",[]]],"asks":[["1.5","2.0", []]]}"#;
        let Content::Snapshot(levels) = parse(old).expect("a message").content else {
            panic!("no snapshot");
        };
        assert_eq!(
            levels.top(),
            (Some((100_000_000, 200_000_000)), Some((150_000_000, 200_000_000)))
        );
    }

    #[test]
    fn lists_of_tickers_are_read() {
        let mini = r#"[{"e":"24hrMiniTicker","E":1750000040123456,"s":"A","c":"1","o":"1","h":"1","l":"1","v":"1","q":"1"},{"e":"new"}]"#;
        let message = parse(mini).expect("a message");
        assert_eq!(message.stream.as_deref(), Some("!miniTicker@arr"));
        assert!(message.data.contains(r#""E":1750000040123,"#));
        assert!(matches!(message.content, Content::Tickers { read, lacking: false } if read.len() == 1));
        for odd in [
            r#"{"e":"24hrMiniTicker","s":"A"}"#,
            "7",
            &mini[1..]
                .split_once(']')
                .expect("a list")
                .0
                .replace(r#""A""#, r#""A\"B""#),
        ] {
            let message = parse(&format!("[{odd}]")).map(|message| message.content);
            assert!(
                matches!(message, Ok(Content::Tickers { read, lacking: true }) if read.is_empty()),
                "{odd}"
            );
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_panics(text in "[\\[{]?[ -~]{0,120}") {
            let _ = parse(&text);
        }
    }
}
