//! Messages of the streams, as values.

use std::fmt;

use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::book::{BestQuote, Diff, Level};
use crate::model::{Aggressor, Candle, Millis, Trade};
use crate::number::{Notional, Price, Quantity};

/// One message, with the symbol it is about.
#[derive(Debug)]
pub enum Event<'a> {
    Depth {
        symbol: &'a str,
        diff: Diff,
    },
    /// A single trade, or an aggregate of several.
    Trade {
        symbol: &'a str,
        trade: Trade,
        aggregate: bool,
    },
    BestQuote {
        symbol: &'a str,
        quote: BestQuote,
    },
    Candle {
        symbol: &'a str,
        interval: &'a str,
        candle: Candle,
        closed: bool,
    },
    MiniTickers(Vec<MiniTicker<'a>>),
    /// The answer to a subscription.
    Answered {
        id: u64,
        error: Option<String>,
    },
    /// The server is about to close the connection.
    ServerShutdown,
    /// Of no interest here.
    Other,
}

/// The last day of one symbol.
#[derive(Debug, Clone, Deserialize)]
pub struct MiniTicker<'a> {
    #[serde(rename = "s")]
    pub symbol: &'a str,
    #[serde(rename = "E")]
    pub time: Millis,
    #[serde(rename = "c")]
    pub close: Price,
    #[serde(rename = "o")]
    pub open: Price,
    #[serde(rename = "h")]
    pub high: Price,
    #[serde(rename = "l")]
    pub low: Price,
    #[serde(rename = "v")]
    pub volume: Quantity,
    #[serde(rename = "q")]
    pub quote_volume: Notional,
}

/// Fields of a combined-stream wrapper, of an answer, or of a bare event.
#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Field {
    Stream,
    Data,
    Id,
    Error,
    E,
    #[serde(other)]
    Unknown,
}

#[derive(Deserialize)]
struct ErrorAnswer {
    code: Option<i64>,
    msg: Option<String>,
}

#[derive(Deserialize)]
struct DepthWire<'a> {
    s: &'a str,
    #[serde(rename = "E")]
    time: Option<Millis>,
    #[serde(rename = "U")]
    first_id: u64,
    #[serde(rename = "u")]
    last_id: u64,
    #[serde(deserialize_with = "levels")]
    b: Vec<Level>,
    #[serde(deserialize_with = "levels")]
    a: Vec<Level>,
}

#[derive(Deserialize)]
struct TradeWire<'a> {
    s: &'a str,
    p: Price,
    q: Quantity,
    #[serde(rename = "T")]
    time: Millis,
    /// Whether the buyer was the maker: then the seller crossed the spread.
    m: bool,
    /// Of a single trade.
    t: Option<u64>,
    /// Of an aggregate.
    f: Option<u64>,
    l: Option<u64>,
}

#[derive(Deserialize)]
struct BestQuoteWire<'a> {
    s: &'a str,
    u: u64,
    b: Price,
    #[serde(rename = "B")]
    bid_quantity: Quantity,
    a: Price,
    #[serde(rename = "A")]
    ask_quantity: Quantity,
}

#[derive(Deserialize)]
struct KlineWire<'a> {
    s: &'a str,
    #[serde(borrow)]
    k: CandleWire<'a>,
}

#[derive(Deserialize)]
struct CandleWire<'a> {
    i: &'a str,
    t: Millis,
    #[serde(rename = "T")]
    close_time: Millis,
    o: Price,
    h: Price,
    l: Price,
    c: Price,
    v: Quantity,
    q: Notional,
    n: u64,
    #[serde(rename = "V")]
    taker_buy_volume: Quantity,
    #[serde(rename = "Q")]
    taker_buy_quote_volume: Notional,
    x: bool,
}

/// Reads one message. What is not understood is an error that names no content.
pub fn decode(text: &str) -> Result<Event<'_>, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let event = reader.deserialize_map(Messages)?;
    reader.end()?;
    Ok(event)
}

struct Messages;

impl<'de> Visitor<'de> for Messages {
    type Value = Event<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message of the exchange")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Event<'de>, A::Error> {
        let (mut stream, mut early, mut event) = (None, None, None);
        let (mut id, mut error, mut bare) = (None, None, None);
        while let Some(field) = map.next_key()? {
            match (field, stream) {
                (Field::Stream, _) => stream = map.next_value::<Option<&str>>()?,
                // The stream comes first and says what the data are, which are then read in one go.
                (Field::Data, Some(stream)) => event = Some(map.next_value_seed(OfStream(stream))?),
                (Field::Data, None) => early = map.next_value::<Option<&RawValue>>()?,
                (Field::Id, _) => id = map.next_value::<Option<u64>>()?,
                (Field::Error, _) => error = map.next_value::<Option<ErrorAnswer>>()?,
                (Field::E, _) => bare = map.next_value::<Option<&str>>()?,
                (Field::Unknown, _) => drop(map.next_value::<de::IgnoredAny>()?),
            }
        }
        if let Some(event) = event {
            return Ok(event);
        }
        if let (Some(stream), Some(data)) = (stream, early) {
            return OfStream(stream).deserialize(data).map_err(de::Error::custom);
        }
        Ok(match (bare, id) {
            (Some("serverShutdown"), _) => Event::ServerShutdown,
            (_, Some(id)) => Event::Answered {
                id,
                error: error.map(ErrorAnswer::in_words),
            },
            _ => Event::Other,
        })
    }
}

impl ErrorAnswer {
    fn in_words(self) -> String {
        format!("{} ({})", self.msg.unwrap_or_default(), self.code.unwrap_or_default())
    }
}

/// The data of a stream, by its name.
struct OfStream<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for OfStream<'_> {
    type Value = Event<'de>;

    fn deserialize<D: Deserializer<'de>>(self, data: D) -> Result<Event<'de>, D::Error> {
        // The kind is what stands behind the symbol: `btcusdt@depth@100ms`, `!miniTicker@arr`.
        let (symbol, kind) = self.0.split_once('@').unwrap_or((self.0, ""));
        let kind = kind.split('@').next().unwrap_or_default();
        Ok(match kind {
            "depth" => depth(Deserialize::deserialize(data)?),
            "trade" | "aggTrade" => trade(&Deserialize::deserialize(data)?),
            "bookTicker" => best_quote(&Deserialize::deserialize(data)?),
            _ if kind.starts_with("kline_") => candle(&Deserialize::deserialize(data)?),
            _ if symbol == "!miniTicker" => Event::MiniTickers(Deserialize::deserialize(data)?),
            _ => match <&RawValue>::deserialize(data)?.get() {
                data if data.contains("\"serverShutdown\"") => Event::ServerShutdown,
                _ => Event::Other,
            },
        })
    }
}

fn depth(wire: DepthWire<'_>) -> Event<'_> {
    Event::Depth {
        symbol: wire.s,
        diff: Diff {
            first_id: wire.first_id,
            last_id: wire.last_id,
            time: wire.time,
            bids: wire.b,
            asks: wire.a,
        },
    }
}

fn trade<'a>(wire: &TradeWire<'a>) -> Event<'a> {
    let aggregate = wire.f.is_some();
    let first_id = wire.f.or(wire.t).unwrap_or_default();
    Event::Trade {
        symbol: wire.s,
        aggregate,
        trade: Trade {
            price: wire.p,
            quantity: wire.q,
            time: wire.time,
            aggressor: if wire.m { Aggressor::Seller } else { Aggressor::Buyer },
            first_id,
            last_id: wire.l.or(wire.t).unwrap_or(first_id),
        },
    }
}

fn best_quote<'a>(wire: &BestQuoteWire<'a>) -> Event<'a> {
    let level = |price, quantity| Level { price, quantity };
    Event::BestQuote {
        symbol: wire.s,
        quote: BestQuote {
            update_id: wire.u,
            bid: level(wire.b, wire.bid_quantity),
            ask: level(wire.a, wire.ask_quantity),
        },
    }
}

fn candle<'a>(wire: &KlineWire<'a>) -> Event<'a> {
    let k = &wire.k;
    Event::Candle {
        symbol: wire.s,
        interval: k.i,
        closed: k.x,
        candle: Candle {
            open_time: k.t,
            close_time: k.close_time,
            open: k.o,
            high: k.h,
            low: k.l,
            close: k.c,
            volume: k.v,
            quote_volume: k.q,
            trades: k.n,
            taker_buy_volume: k.taker_buy_volume,
            taker_buy_quote_volume: k.taker_buy_quote_volume,
        },
    }
}

macro_rules! read_from_decimal_strings {
    ($($kind:ty),*) => {$(
        impl<'de> Deserialize<'de> for $kind {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl Visitor<'_> for Text {
                    type Value = $kind;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("a decimal string")
                    }

                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$kind, E> {
                        <$kind>::parse(text).map_err(E::custom)
                    }
                }
                deserializer.deserialize_str(Text)
            }
        }
    )*};
}

read_from_decimal_strings!(Price, Quantity, Notional);

/// `["97123.45","0.5"]`; what may follow is ignored.
impl<'de> Deserialize<'de> for Level {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pair;
        impl<'de> Visitor<'de> for Pair {
            type Value = Level;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a price and a quantity")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut pair: A) -> Result<Level, A::Error> {
                let missing = || de::Error::invalid_length(0, &"a price and a quantity");
                let price = pair.next_element()?.ok_or_else(missing)?;
                let quantity = pair.next_element()?.ok_or_else(missing)?;
                while pair.next_element::<de::IgnoredAny>()?.is_some() {}
                Ok(Level { price, quantity })
            }
        }
        deserializer.deserialize_seq(Pair)
    }
}

/// The levels of one side, with room for as many as a message usually has.
fn levels<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Level>, D::Error> {
    struct Levels;
    impl<'de> Visitor<'de> for Levels {
        type Value = Vec<Level>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of levels")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<Level>, A::Error> {
            let mut levels = Vec::with_capacity(32);
            while let Some(level) = list.next_element()? {
                levels.push(level);
            }
            Ok(levels)
        }
    }
    deserializer.deserialize_seq(Levels)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn messages_of_every_stream_are_read() {
        let depth = r#"{"stream":"btcusdt@depth@100ms","data":{"e":"depthUpdate","E":1700000000123,"s":"BTCUSDT","U":5,"u":9,"b":[["100.10000000","0.50000000"]],"a":[["100.20","0"]]}}"#;
        let Ok(Event::Depth { symbol, diff }) = decode(depth) else {
            panic!("depth")
        };
        assert_eq!((symbol, diff.first_id, diff.last_id), ("BTCUSDT", 5, 9));
        assert_eq!(diff.bids[0].price.to_string(), "100.1");
        assert!(diff.asks[0].quantity.is_zero());

        let trade = r#"{"stream":"btcusdt@trade","data":{"e":"trade","E":1,"s":"BTCUSDT","t":12345,"p":"0.001","q":"100","T":1672515782136,"m":true,"M":true}}"#;
        let Ok(Event::Trade { trade, aggregate, .. }) = decode(trade) else {
            panic!("trade")
        };
        assert_eq!(
            (trade.aggressor, trade.count(), aggregate),
            (Aggressor::Seller, 1, false)
        );

        let several = r#"{"stream":"btcusdt@aggTrade","data":{"e":"aggTrade","E":1,"s":"BTCUSDT","a":9,"p":"0.001","q":"100","f":100,"l":105,"T":1,"m":false,"M":true}}"#;
        let Ok(Event::Trade { trade, aggregate, .. }) = decode(several) else {
            panic!("aggregate")
        };
        assert_eq!((trade.aggressor, trade.count(), aggregate), (Aggressor::Buyer, 6, true));

        let quote = r#"{"stream":"bnbusdt@bookTicker","data":{"u":400900217,"s":"BNBUSDT","b":"25.35","B":"31.21","a":"25.36","A":"40.66"}}"#;
        let Ok(Event::BestQuote { symbol, quote }) = decode(quote) else {
            panic!("quote")
        };
        assert_eq!((symbol, quote.ask.price.to_string()), ("BNBUSDT", "25.36".to_owned()));

        let candle = r#"{"stream":"bnbbtc@kline_1m","data":{"e":"kline","E":1,"s":"BNBBTC","k":{"t":60000,"T":119999,"s":"BNBBTC","i":"1m","f":100,"L":200,"o":"1","c":"2","h":"3","l":"0.5","v":"1000","n":100,"x":true,"q":"1.5","V":"500","Q":"0.5","B":"123456"}}}"#;
        assert!(matches!(
            decode(candle),
            Ok(Event::Candle {
                interval: "1m",
                closed: true,
                ..
            })
        ));

        let tickers = r#"{"stream":"!miniTicker@arr","data":[{"e":"24hrMiniTicker","E":1,"s":"BNBBTC","c":"1","o":"2","h":"3","l":"1","v":"5","q":"6"}]}"#;
        assert!(matches!(decode(tickers), Ok(Event::MiniTickers(tickers)) if tickers[0].symbol == "BNBBTC"));

        assert!(matches!(
            decode(r#"{"result":null,"id":7}"#),
            Ok(Event::Answered { id: 7, error: None })
        ));
        assert!(matches!(
            decode(r#"{"error":{"code":2,"msg":"Invalid request"},"id":7}"#),
            Ok(Event::Answered { id: 7, error: Some(_) })
        ));
        for shutdown in [
            r#"{"e":"serverShutdown","E":1}"#,
            r#"{"stream":"","data":{"e":"serverShutdown","E":1}}"#,
        ] {
            assert!(matches!(decode(shutdown), Ok(Event::ServerShutdown)));
        }
        // The other way round, as nobody sends it, and with fields that nobody knows.
        let late = r#"{"new":[{}],"data":{"s":"BTCUSDT","U":5,"u":9,"b":[],"a":[]},"stream":"btcusdt@depth@100ms"}"#;
        assert!(matches!(decode(late), Ok(Event::Depth { symbol: "BTCUSDT", .. })));
        assert!(decode(r#"{"id":7} and more"#).is_err());
        let partial = r#"{"stream":"btcusdt@depth20@100ms","data":{"lastUpdateId":1,"bids":[],"asks":[]}}"#;
        assert!(matches!(decode(partial), Ok(Event::Other)));
    }

    proptest! {
        #[test]
        fn garbage_is_refused_and_never_harms(text in "\\PC{0,200}", stream in "[a-z@!_0-9]{0,20}", data in "\\PC{0,60}") {
            let _ = decode(&text);
            let _ = decode(&format!("{{\"stream\":\"{stream}\",\"data\":{data}}}"));
        }
    }
}
