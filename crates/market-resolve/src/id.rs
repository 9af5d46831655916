//! The ids of market documents: `ticker:BTCUSDT`, `klines:BTCUSDT:1h`, `analytics:order_flow:SOLUSDT`.

use std::fmt;
use std::sync::Arc;

use tribune_binance::Interval;
use tribune_core::{DocumentId, Error};

/// Longest symbol accepted, in bytes; the exchange's own stay far below it.
const MAX_SYMBOL_BYTES: usize = 64;

/// What a document tells of its symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    Ticker,
    OrderBook,
    OrderBookL1,
    OrderBookL2,
    Klines(Interval),
    Trades,
    ExchangeInfo,
    OrderFlow,
    VolumeProfile,
    Anomalies,
    LiquidityVacuums,
    Health,
    /// All of it at once; only of symbols that are always tracked.
    Report,
    /// All markets of one quote asset; the id has the asset where others have the symbol.
    Markets,
}

/// What ids have before their symbol. Those of candles have an interval behind it as well.
const PREFIXES: [(&str, Kind); 13] = [
    ("ticker", Kind::Ticker),
    ("orderbook", Kind::OrderBook),
    ("orderbook_l1", Kind::OrderBookL1),
    ("orderbook_l2", Kind::OrderBookL2),
    ("trades", Kind::Trades),
    ("exchange_info", Kind::ExchangeInfo),
    ("analytics:order_flow", Kind::OrderFlow),
    ("analytics:volume_profile", Kind::VolumeProfile),
    ("analytics:anomalies", Kind::Anomalies),
    ("analytics:liquidity_vacuums", Kind::LiquidityVacuums),
    ("analytics:health", Kind::Health),
    ("report", Kind::Report),
    ("markets", Kind::Markets),
];

impl Kind {
    fn prefix(self) -> &'static str {
        PREFIXES.iter().find(|(_, kind)| *kind == self).map_or("klines", |(prefix, _)| prefix)
    }

    /// The kind of ids that have this before their symbol and nothing behind it.
    pub(crate) fn of_prefix(prefix: &str) -> Option<Self> {
        PREFIXES.iter().find(|(known, _)| *known == prefix).map(|(_, kind)| *kind)
    }
}

/// The id of one market document. Symbols are in upper case; printing and parsing round-trip exactly.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MarketId {
    kind: Kind,
    symbol: Arc<str>,
}

impl MarketId {
    /// Whether ids of this scheme are the market's; `report` is the reports'.
    pub fn owns(scheme: &str) -> bool {
        matches!(scheme, "klines" | "analytics") || Kind::of_prefix(scheme).is_some_and(|kind| kind != Kind::Report)
    }

    pub const fn new(kind: Kind, symbol: Arc<str>) -> Self {
        Self { kind, symbol }
    }

    /// `None`: the scheme is not a market's. An error: it is, and the rest is wrong.
    pub fn parse(id: &DocumentId) -> Result<Option<Self>, Error> {
        match id.scheme() {
            "klines" => klines(id.key()).map(Some),
            "analytics" => analytics(id.key()).map(Some),
            scheme => {
                let id = |kind| Ok(Self::new(kind, symbol(id.key())?));
                Kind::of_prefix(scheme).map(id).transpose()
            }
        }
    }

    /// For all markets at once, their quote asset.
    pub const fn symbol(&self) -> &Arc<str> {
        &self.symbol
    }

    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// An error only for a symbol that no id can hold: an empty one, or one of thousands of bytes.
    pub fn document_id(&self) -> Result<DocumentId, Error> {
        DocumentId::parse(&self.to_string())
            .map_err(|e| Error::invalid_argument(format!("no id can be made of this symbol: {e}")))
    }
}

impl fmt::Display for MarketId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind.prefix(), self.symbol)?;
        match self.kind {
            Kind::Klines(interval) => write!(f, ":{interval}"),
            _ => Ok(()),
        }
    }
}

fn symbol(text: &str) -> Result<Arc<str>, Error> {
    let text = text.to_uppercase();
    if text.is_empty()
        || text.len() > MAX_SYMBOL_BYTES
        || text.contains(|c: char| c == ':' || c.is_whitespace() || c.is_control())
    {
        return Err(Error::invalid_argument(format!(
            "the id names no symbol, or has something after the symbol: one looks like `BTCUSDT`, without spaces and colons and at most {MAX_SYMBOL_BYTES} bytes long"
        )));
    }
    Ok(Arc::from(text))
}

fn klines(key: &str) -> Result<MarketId, Error> {
    let (name, interval) = key.split_once(':').unwrap_or((key, ""));
    if let Ok(interval) = interval.parse() {
        return Ok(MarketId::new(Kind::Klines(interval), symbol(name)?));
    }
    let intervals: Vec<&str> = Interval::ALL.iter().map(|interval| interval.as_str()).collect();
    Err(Error::invalid_argument(format!(
        "the id names no interval behind its symbol; write it as in `klines:BTCUSDT:1h`, with one of {} (`1m` is a minute, `1M` a month)",
        intervals.join(", ")
    )))
}

fn analytics(key: &str) -> Result<MarketId, Error> {
    let (analysis, name) = key.split_once(':').unwrap_or((key, ""));
    if let Some(kind) = Kind::of_prefix(&format!("analytics:{analysis}")) {
        return Ok(MarketId::new(kind, symbol(name)?));
    }
    let analyses = PREFIXES.iter().filter_map(|(prefix, _)| prefix.strip_prefix("analytics:"));
    Err(Error::invalid_argument(format!(
        "the id names no analysis before its symbol; write it as in `analytics:order_flow:BTCUSDT`, with one of {}",
        analyses.collect::<Vec<_>>().join(", ")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(text: &str) -> Result<Option<MarketId>, Error> {
        MarketId::parse(&DocumentId::parse(text).expect("an id"))
    }

    #[test]
    fn every_documented_id_round_trips() {
        for text in [
            "ticker:BTCUSDT",
            "orderbook:BTCUSDT",
            "orderbook_l1:BTCUSDT",
            "orderbook_l2:BTCUSDT",
            "klines:BTCUSDT:1m",
            "klines:BTCUSDT:1M",
            "trades:BTCUSDT",
            "exchange_info:BTCUSDT",
            "analytics:order_flow:SOLUSDT",
            "analytics:volume_profile:SOLUSDT",
            "analytics:anomalies:SOLUSDT",
            "analytics:liquidity_vacuums:SOLUSDT",
            "analytics:health:SOLUSDT",
            "ticker:币安人生USDT",
            "markets:USDT",
        ] {
            let id = parsed(text).expect(text).expect("ours");
            assert_eq!(id.to_string(), text);
            assert_eq!(id.document_id().expect("an id").as_str(), text);
            assert_eq!(MarketId::new(id.kind(), Arc::clone(id.symbol())), id);
            assert!(MarketId::owns(text.split(':').next().expect("a scheme")));
        }
        assert_eq!(
            parsed("klines:btcusdt:1h").expect("lower case"),
            Some(MarketId::new(Kind::Klines(Interval::H1), Arc::from("BTCUSDT")))
        );
        assert_eq!(parsed("notes:a.md").expect("another source's"), None);
    }

    #[test]
    fn wrong_ids_say_how_they_are_written() {
        for (text, part) in [
            ("klines:BTCUSDT:7h", "write it as in `klines:BTCUSDT:1h`, with one of 1s, 1m,"),
            ("klines:BTCUSDT", "no interval behind its symbol"),
            ("klines:1h:BTCUSDT", "no interval behind its symbol"),
            ("analytics:BTCUSDT:order_flow", "no analysis before its symbol"),
            ("analytics:vpin:BTCUSDT", "write it as in `analytics:order_flow:BTCUSDT`, with one of order_flow,"),
            ("analytics:health", "names no symbol"),
            ("ticker:BTCUSDT:1h", "names no symbol"),
            ("ticker:BTC USDT", "names no symbol"),
            ("analytics:health:BTC:USDT", "without spaces and colons"),
        ] {
            let error = parsed(text).expect_err(text);
            assert_eq!(error.kind(), tribune_core::ErrorKind::InvalidArgument);
            assert!(error.message().contains(part), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_id_is_read_refused_or_left_to_others(
            scheme in "ticker|orderbook|klines|trades|exchange_info|analytics|notes",
            key in "\\PC{1,80}|[A-Za-z0-9_:]{1,40}|order_flow:\\PC{0,20}|\\PC{0,20}:1h",
        ) {
            prop_assume!(!key.is_empty());
            if let Ok(Some(id)) = parsed(&format!("{scheme}:{key}")) {
                prop_assert_eq!(parsed(&id.to_string()).expect("printed"), Some(id));
            }
        }
    }
}
