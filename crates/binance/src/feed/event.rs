//! Messages of the streams, as values.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::book::{BestQuote, Diff, Level};
use crate::model::{Millis, Trade};
use crate::number::{Notional, Price, Quantity};
use crate::wire::{self, TradeWire};

/// One message, with the symbol it is about. Text is borrowed from the message unless it is escaped there.
#[derive(Debug)]
pub enum Event<'a> {
    Depth {
        symbol: Cow<'a, str>,
        diff: Diff,
    },
    /// A single trade, or an aggregate of several.
    Trade {
        symbol: Cow<'a, str>,
        trade: Trade,
        aggregate: bool,
    },
    BestQuote {
        symbol: Cow<'a, str>,
        quote: BestQuote,
    },
    MiniTickers {
        tickers: Vec<MiniTicker<'a>>,
        /// How many could not be read; they do not affect the others.
        unreadable: usize,
    },
    /// The answer to a subscription.
    Answered {
        id: u64,
        error: Option<String>,
    },
    /// The server is about to close the connection.
    ServerShutdown,
    /// Ignored.
    Other,
}

/// The last day of one symbol.
#[derive(Debug, Clone, Deserialize)]
pub struct MiniTicker<'a> {
    #[serde(rename = "s", borrow)]
    pub symbol: Cow<'a, str>,
    #[serde(rename = "E", deserialize_with = "wire::millis")]
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
    msg: Option<String>,
}

#[derive(Deserialize)]
struct DepthWire<'a> {
    #[serde(borrow)]
    s: Cow<'a, str>,
    #[serde(rename = "E", default, deserialize_with = "wire::known_millis")]
    time: Option<Millis>,
    #[serde(rename = "U")]
    first_id: u64,
    #[serde(rename = "u")]
    last_id: u64,
    #[serde(deserialize_with = "wire::levels")]
    b: Vec<Level>,
    #[serde(deserialize_with = "wire::levels")]
    a: Vec<Level>,
}

#[derive(Deserialize)]
struct BestQuoteWire<'a> {
    #[serde(borrow)]
    s: Cow<'a, str>,
    u: u64,
    b: Price,
    #[serde(rename = "B")]
    bid_quantity: Quantity,
    a: Price,
    #[serde(rename = "A")]
    ask_quantity: Quantity,
}

/// Text, borrowed unless it is escaped. A newtype, because `Option<Cow>` would not borrow.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// Reads one message. The error is the stream that an unreadable one names, if that can be read; never its content.
pub fn decode(text: &str) -> Result<Event<'_>, Option<String>> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let read = reader.deserialize_map(Messages);
    read.and_then(|event| reader.end().map(|()| event)).map_err(|_| stream_of(text))
}

fn stream_of(text: &str) -> Option<String> {
    let (_, name) = text.split_once("\"stream\":")?;
    serde_json::Deserializer::from_str(name).into_iter().next()?.ok()
}

struct Messages;

impl<'de> Visitor<'de> for Messages {
    type Value = Event<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message of the exchange")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Event<'de>, A::Error> {
        let (mut stream, mut event) = (None, None);
        let (mut id, mut error, mut bare) = (None, None, None);
        while let Some(field) = map.next_key()? {
            match (field, &stream) {
                (Field::Stream, _) => stream = map.next_value::<Option<Text<'_>>>()?,
                // The stream comes first and says what the data are, which are then read in one pass.
                (Field::Data, Some(Text(stream))) => event = Some(map.next_value_seed(OfStream(stream))?),
                (Field::Id, _) => id = map.next_value::<Option<u64>>()?,
                (Field::Error, _) => error = map.next_value::<Option<ErrorAnswer>>()?,
                (Field::E, _) => bare = map.next_value::<Option<Text<'_>>>()?,
                (Field::Data, None) => return Err(de::Error::custom("data before their stream")),
                (Field::Unknown, _) => drop(map.next_value::<de::IgnoredAny>()?),
            }
        }
        if let Some(event) = event {
            return Ok(event);
        }
        Ok(match (bare.as_ref().map(|Text(name)| &**name), id) {
            (Some("serverShutdown"), _) => Event::ServerShutdown,
            (_, Some(id)) => Event::Answered { id, error: error.map(|error| error.msg.unwrap_or_default()) },
            _ => Event::Other,
        })
    }
}

/// The data of a stream, by its name.
struct OfStream<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for OfStream<'_> {
    type Value = Event<'de>;

    fn deserialize<D: Deserializer<'de>>(self, data: D) -> Result<Event<'de>, D::Error> {
        // The kind is the part after the symbol: `btcusdt@depth@100ms`, `!miniTicker@arr`.
        let (symbol, kind) = self.0.split_once('@').unwrap_or((self.0, ""));
        let kind = kind.split('@').next().unwrap_or_default();
        Ok(match kind {
            "depth" => {
                let DepthWire { s: symbol, time, first_id, last_id, b: bids, a: asks } =
                    Deserialize::deserialize(data)?;
                Event::Depth { symbol, diff: Diff { first_id, last_id, time, bids, asks } }
            }
            "trade" | "aggTrade" => trade(Deserialize::deserialize(data)?)?,
            "bookTicker" => {
                let wire = BestQuoteWire::deserialize(data)?;
                let bid = Level { price: wire.b, quantity: wire.bid_quantity };
                let ask = Level { price: wire.a, quantity: wire.ask_quantity };
                Event::BestQuote { symbol: wire.s, quote: BestQuote { update_id: wire.u, bid, ask } }
            }
            _ if symbol == "!miniTicker" => mini_tickers(&Vec::deserialize(data)?),
            _ => match <&RawValue>::deserialize(data)?.get() {
                data if data.contains("\"serverShutdown\"") => Event::ServerShutdown,
                _ => Event::Other,
            },
        })
    }
}

fn mini_tickers<'a>(raw: &[&'a RawValue]) -> Event<'a> {
    let read = raw.iter().filter_map(|ticker| serde_json::from_str(ticker.get()).ok());
    let tickers: Vec<MiniTicker<'a>> = read.collect();
    Event::MiniTickers { unreadable: raw.len() - tickers.len(), tickers }
}

fn trade<E: de::Error>(wire: TradeWire<'_>) -> Result<Event<'_>, E> {
    let trade = wire.trade().filter(|_| !wire.s.is_empty()).ok_or_else(|| E::custom("no symbol, or no id"))?;
    Ok(Event::Trade { aggregate: wire.f.is_some(), symbol: wire.s, trade })
}

#[cfg(test)]
mod tests;
