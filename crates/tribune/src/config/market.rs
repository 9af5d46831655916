//! `[market]`: a live exchange, as the configuration says it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use serde::Deserialize;
use tribune_market::number::Notional;

use super::Secret;

/// `[market]` in the file. Present means served.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Market {
    pub venue: Venue,
    pub feed: bool,
    pub rest_url: Option<String>,
    pub stream_url: Option<String>,
    pub symbols: Vec<String>,
    pub track_top: usize,
    pub max_books: usize,
    pub idle_secs: u64,
    pub coalesce_ms: u64,
    pub citation_days: u64,
    pub max_citations: usize,
    pub trading: Trading,
}

impl Default for Market {
    fn default() -> Self {
        Self {
            venue: Venue::Binance,
            feed: true,
            rest_url: None,
            stream_url: None,
            symbols: Vec::new(),
            track_top: 0,
            max_books: 200,
            idle_secs: 600,
            coalesce_ms: 1_000,
            citation_days: 30,
            max_citations: 100_000,
            trading: Trading::default(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Venue {
    Binance,
}

/// `[market.trading]`: the account and order tools exist only with all of this.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Trading {
    pub enabled: bool,
    pub api_key: Option<String>,
    pub api_secret: Option<String>,
    pub max_order_notional: Option<String>,
    pub order_symbols: Vec<String>,
    pub order_quotes: Vec<String>,
}

impl Default for Trading {
    fn default() -> Self {
        Self {
            enabled: false,
            api_key: None,
            api_secret: None,
            max_order_notional: None,
            order_symbols: Vec::new(),
            order_quotes: ["USDT", "USDC", "FDUSD"].map(str::to_owned).to_vec(),
        }
    }
}

/// The same, checked.
#[derive(Debug, Clone)]
pub struct MarketConfig {
    /// Without one, reports that other processes write are served, and nothing else.
    pub feed: bool,
    pub exchange: Exchange,
    pub symbols: Vec<String>,
    pub track_top: usize,
    pub max_books: usize,
    pub idle_after: Duration,
    pub coalesce: Duration,
    pub keep_citations: Duration,
    pub max_citations: usize,
    /// Whether what is cited is kept as it was.
    pub keep_records: bool,
    pub trading: Option<TradingConfig>,
}

/// Where the market is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exchange {
    At {
        rest_url: String,
        stream_url: String,
    },
    /// One of our own, started with the server: the demo's.
    Simulated {
        seed: u64,
    },
}

#[derive(Debug, Clone)]
pub struct TradingConfig {
    pub api_key: Secret,
    pub api_secret: Secret,
    pub max_order_notional: Notional,
    /// None for all.
    pub symbols: Vec<String>,
    /// The cap counts in these; what is quoted in another cannot be ordered.
    pub quote_assets: Vec<String>,
}

const DEFAULT_REST: &str = "https://data-api.binance.vision";
/// Where the streams of each REST address are.
const KNOWN_STREAMS: [(&str, &str); 4] = [
    (DEFAULT_REST, "wss://data-stream.binance.vision"),
    ("https://api.binance.com", "wss://stream.binance.com:9443"),
    ("https://api.binance.us", "wss://stream.binance.us:9443"),
    ("https://testnet.binance.vision", "wss://stream.testnet.binance.vision"),
];

impl Market {
    pub(super) fn checked(self, base: &Path) -> anyhow::Result<MarketConfig> {
        let Venue::Binance = self.venue;
        let within = |name: &str, value: u64, low: u64, high: u64| {
            if !(low..=high).contains(&value) {
                bail!("market.{name} = {value} must be between {low} and {high}");
            }
            Ok(())
        };
        within("max_books", self.max_books as u64, 1, 2_000)?;
        within("track_top", self.track_top as u64, 0, 1_000)?;
        within("idle_secs", self.idle_secs, 10, 86_400)?;
        within("coalesce_ms", self.coalesce_ms, 0, 10_000)?;
        within("citation_days", self.citation_days, 1, 3_650)?;
        within("max_citations", self.max_citations as u64, 100, 100_000_000)?;
        let pinned = self.symbols.len() + self.track_top;
        if pinned > self.max_books {
            bail!(
                "market.symbols and market.track_top name {pinned} books that are always kept, more than market.max_books = {}",
                self.max_books
            );
        }
        let (rest_url, stream_url) = addresses(self.rest_url, self.stream_url)?;
        Ok(MarketConfig {
            feed: self.feed,
            exchange: Exchange::At { rest_url, stream_url },
            symbols: self.symbols.iter().map(|symbol| symbol.trim().to_uppercase()).collect(),
            track_top: self.track_top,
            max_books: self.max_books,
            idle_after: Duration::from_secs(self.idle_secs),
            coalesce: Duration::from_millis(self.coalesce_ms),
            keep_citations: Duration::from_secs(self.citation_days * 86_400),
            max_citations: self.max_citations,
            keep_records: true,
            trading: self.trading.checked(base)?,
        })
    }
}

impl MarketConfig {
    /// The demo's: a simulated exchange.
    pub fn simulated() -> anyhow::Result<Self> {
        let mut config = Market::default().checked(&PathBuf::new())?;
        config.exchange = Exchange::Simulated { seed: 1 };
        config.symbols = ["BTCUSDT", "ETHUSDT", "SOLUSDT"].map(str::to_owned).to_vec();
        Ok(config)
    }
}

fn addresses(rest: Option<String>, stream: Option<String>) -> anyhow::Result<(String, String)> {
    let rest = rest.unwrap_or_else(|| DEFAULT_REST.to_owned());
    let rest = rest.trim_end_matches('/').to_owned();
    // They would be printed and logged with it.
    if [Some(&rest), stream.as_ref()]
        .into_iter()
        .flatten()
        .any(|address| address.contains('@'))
    {
        bail!("market.rest_url and market.stream_url must have no user or password in them");
    }
    if !rest.starts_with("https://") && !rest.starts_with("http://") {
        bail!("market.rest_url = \"{rest}\" is not an address such as \"{DEFAULT_REST}\"");
    }
    let stream = match stream {
        Some(stream) => stream.trim_end_matches('/').to_owned(),
        None => known_stream(&rest).with_context(|| {
            format!("market.stream_url is needed too: where the streams of {rest} are is not known")
        })?,
    };
    if !stream.starts_with("wss://") && !stream.starts_with("ws://") {
        bail!("market.stream_url = \"{stream}\" is not an address such as \"wss://data-stream.binance.vision\"");
    }
    Ok((rest, stream))
}

/// The simulator has both on one port.
fn known_stream(rest: &str) -> Option<String> {
    let known = KNOWN_STREAMS.iter().find(|(known, _)| *known == rest);
    let local = || {
        let address = rest.strip_prefix("http://")?;
        let is_local = ["127.0.0.1", "localhost", "[::1]"]
            .iter()
            .any(|host| address.starts_with(host));
        is_local.then(|| format!("ws://{address}"))
    };
    known.map(|(_, stream)| (*stream).to_owned()).or_else(local)
}

impl Trading {
    fn checked(self, base: &Path) -> anyhow::Result<Option<TradingConfig>> {
        if !self.enabled {
            return Ok(None);
        }
        let secret = |name: &str, text: Option<String>| {
            let text = text.with_context(|| format!("market.trading.enabled = true needs `{name}`"))?;
            Secret::parse(&text, base).with_context(|| format!("market.trading.{name}"))
        };
        let cap = self.max_order_notional.context(
            "market.trading.enabled = true needs `max_order_notional`: the most that one order may be worth in its quote asset, such as \"50\"",
        )?;
        let max_order_notional =
            positive(&cap).map_err(|why| anyhow::anyhow!("market.trading.max_order_notional = \"{cap}\": {why}"))?;
        Ok(Some(TradingConfig {
            api_key: secret("api_key", self.api_key)?,
            api_secret: secret("api_secret", self.api_secret)?,
            max_order_notional,
            symbols: self.order_symbols.iter().map(|symbol| symbol.to_uppercase()).collect(),
            quote_assets: self.order_quotes.iter().map(|quote| quote.to_uppercase()).collect(),
        }))
    }
}

/// A cap: a number with a sign is a number all the same, and refused for what it is.
fn positive(text: &str) -> Result<Notional, String> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let amount = Notional::parse(digits).map_err(|error| error.to_string())?;
    if text.starts_with('-') || amount == Notional::ZERO {
        return Err("must be more than zero, such as \"50\"".to_owned());
    }
    Ok(amount)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(text: &str) -> anyhow::Result<MarketConfig> {
        toml::from_str::<Market>(text)?.checked(Path::new("dir"))
    }

    #[test]
    fn streams_are_found_for_the_addresses_that_are_known() {
        let streams = |text: &str| match checked(text).expect("config").exchange {
            Exchange::At { stream_url, .. } => stream_url,
            Exchange::Simulated { .. } => panic!("not the demo"),
        };
        assert_eq!(streams(""), "wss://data-stream.binance.vision");
        assert_eq!(
            streams("rest_url = \"https://api.binance.us/\""),
            "wss://stream.binance.us:9443"
        );
        assert_eq!(streams("rest_url = \"http://127.0.0.1:9000\""), "ws://127.0.0.1:9000");
        assert_eq!(
            streams("rest_url = \"https://x\"\nstream_url = \"wss://y/\""),
            "wss://y"
        );
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_the_fix() {
        for (text, told) in [
            ("rest_url = \"https://proxy.example.org\"", "stream_url is needed too"),
            ("rest_url = \"binance.com\"", "is not an address such as"),
            ("stream_url = \"https://x\"", "is not an address such as"),
            ("track_top = 300", "more than market.max_books"),
            ("idle_secs = 1", "between 10 and 86400"),
            ("[trading]\nenabled = true", "needs `max_order_notional`"),
            (
                "[trading]\nenabled = true\nmax_order_notional = \"50\"\napi_key = \"abc\"",
                "write \"env:NAME\" or \"file:PATH\"",
            ),
            (
                "[trading]\nenabled = true\nmax_order_notional = \"fifty\"",
                "not a decimal number",
            ),
            (
                "[trading]\nenabled = true\nmax_order_notional = \"-50\"",
                "must be more than zero",
            ),
            (
                "[trading]\nenabled = true\nmax_order_notional = \"0\"",
                "must be more than zero",
            ),
        ] {
            let fault = format!("{:#}", checked(text).expect_err(text));
            assert!(fault.contains(told), "{fault}");
        }
        assert!(
            checked("[trading]\napi_key = \"env:X\"")
                .expect("off")
                .trading
                .is_none()
        );
    }
}
