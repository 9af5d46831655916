//! The ids of market documents: `ticker:BTCUSDT`, `klines:BTCUSDT:1h`, `analytics:order_flow:SOLUSDT`.

use std::fmt;
use std::sync::Arc;

use tribune_binance::model::Interval;
use tribune_core::{DocumentId, Error};

/// Longest symbol accepted, in bytes; the exchange's own stay far below it.
const MAX_SYMBOL_BYTES: usize = 64;

/// What can be computed of a market.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AnalyticsKind {
    OrderFlow,
    VolumeProfile,
    Anomalies,
    LiquidityVacuums,
    Health,
}

/// As written in an id.
const ANALYSES: [(&str, AnalyticsKind); 5] = [
    ("order_flow", AnalyticsKind::OrderFlow),
    ("volume_profile", AnalyticsKind::VolumeProfile),
    ("anomalies", AnalyticsKind::Anomalies),
    ("liquidity_vacuums", AnalyticsKind::LiquidityVacuums),
    ("health", AnalyticsKind::Health),
];

impl AnalyticsKind {
    /// As written in an id.
    pub fn as_str(self) -> &'static str {
        ANALYSES.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }

    pub fn named(text: &str) -> Option<Self> {
        ANALYSES.iter().find(|(name, _)| *name == text).map(|(_, kind)| *kind)
    }
}

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
    Analytics(AnalyticsKind),
    /// All of it at once; only of symbols that are always tracked.
    Report,
    /// All markets of one quote asset; the id has the asset where others have the symbol.
    Markets,
}

/// The kinds whose ids have only a symbol behind their scheme.
const PLAIN: [(&str, Kind); 8] = [
    ("ticker", Kind::Ticker),
    ("orderbook", Kind::OrderBook),
    ("orderbook_l1", Kind::OrderBookL1),
    ("orderbook_l2", Kind::OrderBookL2),
    ("trades", Kind::Trades),
    ("exchange_info", Kind::ExchangeInfo),
    ("report", Kind::Report),
    ("markets", Kind::Markets),
];

impl Kind {
    /// The scheme of its ids.
    pub fn scheme(self) -> &'static str {
        match self {
            Self::Klines(_) => "klines",
            Self::Analytics(_) => "analytics",
            plain => PLAIN.iter().find(|(_, kind)| *kind == plain).map_or("", |(scheme, _)| scheme),
        }
    }

    /// The kind of a scheme whose ids have only a symbol behind it.
    pub fn of_scheme(scheme: &str) -> Option<Self> {
        PLAIN.iter().find(|(known, _)| *known == scheme).map(|(_, kind)| *kind)
    }
}

/// The id of one market document. Symbols are in upper case; printing and parsing round-trip exactly.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MarketId {
    kind: Kind,
    symbol: Arc<str>,
}

impl MarketId {
    /// Schemes that the market itself answers to; `report` is the reports'.
    pub const SCHEMES: &[&str] = &[
        "ticker",
        "orderbook",
        "orderbook_l1",
        "orderbook_l2",
        "klines",
        "trades",
        "exchange_info",
        "analytics",
        "markets",
    ];

    pub const fn new(kind: Kind, symbol: Arc<str>) -> Self {
        Self { kind, symbol }
    }

    /// `None`: the scheme is not a market's. An error: it is, and the rest is wrong.
    pub fn parse(id: &DocumentId) -> Result<Option<Self>, Error> {
        match id.scheme() {
            "klines" => klines(id.key()).map(Some),
            "analytics" => analytics(id.key()).map(Some),
            scheme => match Kind::of_scheme(scheme) {
                Some(kind) => Ok(Some(Self::new(kind, symbol(id.key(), scheme)?))),
                None => Ok(None),
            },
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
        let (scheme, symbol) = (self.kind.scheme(), &self.symbol);
        match self.kind {
            Kind::Klines(interval) => write!(f, "{scheme}:{symbol}:{interval}"),
            Kind::Analytics(kind) => write!(f, "{scheme}:{}:{symbol}", kind.as_str()),
            _ => write!(f, "{scheme}:{symbol}"),
        }
    }
}

fn symbol(text: &str, scheme: &str) -> Result<Arc<str>, Error> {
    if text.contains(':') {
        return Err(Error::invalid_argument(format!(
            "a {scheme} id is `{scheme}:SYMBOL`, for example `{scheme}:BTCUSDT`; there is something after the symbol"
        )));
    }
    if text.is_empty() || text.len() > MAX_SYMBOL_BYTES || text.contains(|c: char| c.is_whitespace() || c.is_control())
    {
        return Err(Error::invalid_argument(format!(
            "the id names no symbol: one looks like `BTCUSDT`, without spaces and at most {MAX_SYMBOL_BYTES} bytes long"
        )));
    }
    Ok(Arc::from(text.to_uppercase()))
}

fn klines(key: &str) -> Result<MarketId, Error> {
    let (name, interval) = key.split_once(':').unwrap_or((key, ""));
    if let Ok(interval) = interval.parse() {
        return Ok(MarketId::new(Kind::Klines(interval), symbol(name, "klines")?));
    }
    let (fault, example) = if interval.is_empty() {
        ("the id has no interval".to_owned(), format!("{}:1h", clip(name)))
    } else if name.parse::<Interval>().is_ok() {
        let fault = "the symbol comes before the interval";
        (fault.to_owned(), format!("{}:{name}", clip(interval)))
    } else {
        // `1H` can only mean an hour; of `1M` and `1m` each is what it is.
        let meant = interval.to_lowercase().parse::<Interval>().unwrap_or(Interval::H1);
        let fault = format!("there is no interval `{}`", clip(interval));
        (fault, format!("{}:{meant}", clip(name)))
    };
    let intervals: Vec<&str> = Interval::ALL.iter().map(|interval| interval.as_str()).collect();
    Err(Error::invalid_argument(format!(
        "{fault}; write it as in `klines:{example}`, with one of {} (`1m` is a minute, `1M` a month)",
        intervals.join(", ")
    )))
}

fn analytics(key: &str) -> Result<MarketId, Error> {
    let (kind, name) = key.split_once(':').unwrap_or((key, ""));
    let (fault, example) = match AnalyticsKind::named(kind) {
        Some(kind) if !name.is_empty() => {
            return Ok(MarketId::new(Kind::Analytics(kind), symbol(name, "analytics:TYPE")?));
        }
        Some(_) => ("the id has no symbol".to_owned(), format!("{kind}:BTCUSDT")),
        None if AnalyticsKind::named(name).is_some() => {
            let fault = "the type comes before the symbol";
            (fault.to_owned(), format!("{name}:{}", clip(kind)))
        }
        None => (format!("there is no analysis `{}`", clip(kind)), "order_flow:BTCUSDT".to_owned()),
    };
    Err(Error::invalid_argument(format!(
        "{fault}; write it as in `analytics:{example}`, with one of {}",
        ANALYSES.map(|(name, _)| name).join(", ")
    )))
}

/// A piece of the caller's text, short enough to be quoted back.
fn clip(text: &str) -> &str {
    text.char_indices().nth(24).map_or(text, |(end, _)| &text[..end])
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
            assert!(MarketId::SCHEMES.contains(&id.kind().scheme()));
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
            ("klines:BTCUSDT:7h", "there is no interval `7h`; write it as in `klines:BTCUSDT:1h`, with one of 1s, 1m,"),
            ("klines:BTCUSDT:1H", "there is no interval `1H`; write it as in `klines:BTCUSDT:1h`"),
            ("klines:BTCUSDT:15M", "there is no interval `15M`; write it as in `klines:BTCUSDT:15m`"),
            ("klines:BTCUSDT", "no interval; write it as in `klines:BTCUSDT:1h`"),
            ("klines:1h:BTCUSDT", "the symbol comes before the interval; write it as in `klines:BTCUSDT:1h`"),
            (
                "analytics:BTCUSDT:order_flow",
                "the type comes before the symbol; write it as in `analytics:order_flow:BTCUSDT`",
            ),
            ("analytics:vpin:BTCUSDT", "there is no analysis `vpin`"),
            ("analytics:health", "the id has no symbol"),
            ("ticker:BTCUSDT:1h", "`ticker:SYMBOL`"),
            ("ticker:BTC USDT", "names no symbol"),
            ("analytics:health:BTC:USDT", "something after the symbol"),
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
