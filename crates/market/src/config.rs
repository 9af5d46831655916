//! `[market]`: a live exchange.

use std::time::Duration;

use serde::Deserialize;
use tribune_binance::{feed, rest};
use tribune_citations::Limits;
use tribune_citations::records::Records;
use tribune_config::{Environment, check_range};
use tribune_core::{Error, Result};

use crate::market::{Market, Settings};
use crate::source::MarketSource;

const DEFAULT_REST: &str = "https://data-api.binance.vision";
const EXAMPLE_STREAM: &str = "wss://data-stream.binance.vision";
/// Where the streams of each REST address are.
const KNOWN_STREAMS: [(&str, &str); 4] = [
    (DEFAULT_REST, EXAMPLE_STREAM),
    ("https://api.binance.com", "wss://stream.binance.com:9443"),
    ("https://api.binance.us", "wss://stream.binance.us:9443"),
    ("https://testnet.binance.vision", "wss://stream.testnet.binance.vision"),
];

/// `[market]`. Present means served. `Trading` is the type of `[market.trading]`, which belongs to another crate.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config<Trading: Default> {
    pub venue: Venue,
    /// Without a feed, only reports that other processes write are served.
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
    /// What the operator sees instead of `rest_url`.
    #[serde(skip)]
    pub origin: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Venue {
    Binance,
}

impl<Trading: Default> Default for Config<Trading> {
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
            origin: None,
        }
    }
}

impl<Trading: Default> Config<Trading> {
    /// Finds settings that cannot be meant; `[market.trading]` is checked by its own type.
    pub fn check(&self) -> Result<()> {
        check_range("market.max_books", self.max_books as u64, 1, 2_000)?;
        check_range("market.track_top", self.track_top as u64, 0, 1_000)?;
        check_range("market.idle_secs", self.idle_secs, 10, 86_400)?;
        check_range("market.coalesce_ms", self.coalesce_ms, 0, 10_000)?;
        check_range("market.citation_days", self.citation_days, 1, 3_650)?;
        check_range("market.max_citations", self.max_citations as u64, 100, 100_000_000)?;
        let pinned = self.symbols.len() + self.track_top;
        if pinned > self.max_books {
            return Err(Error::invalid_argument(format!(
                "market.symbols and market.track_top name {pinned} books that are always kept, more than market.max_books = {}",
                self.max_books
            )));
        }
        self.stream_url().map(drop)
    }

    pub fn rest_url(&self) -> &str {
        self.rest_url.as_deref().unwrap_or(DEFAULT_REST).trim_end_matches('/')
    }

    /// How long citation records are kept, and how many.
    pub const fn citation_limits(&self) -> Limits {
        Limits { keep: Duration::from_secs(self.citation_days * 86_400), most: self.max_citations }
    }

    /// The address of the streams, once both addresses are known to be usable.
    fn stream_url(&self) -> Result<String> {
        let rest = self.rest_url();
        let refused = |message: String| Err(Error::invalid_argument(message));
        // They would be printed and logged with it.
        if rest.contains('@') || self.stream_url.as_deref().is_some_and(|stream| stream.contains('@')) {
            return refused("market.rest_url and market.stream_url must have no user or password in them".to_owned());
        }
        if !rest.starts_with("https://") && !rest.starts_with("http://") {
            return refused(format!("market.rest_url = \"{rest}\" is not an address such as \"{DEFAULT_REST}\""));
        }
        let given = self.stream_url.as_deref();
        let given = given.map(|stream| stream.trim_end_matches('/').to_owned());
        match given.or_else(|| known_stream(rest)) {
            None => {
                refused(format!("market.stream_url is needed too: the address of the streams of {rest} is not known"))
            }
            Some(stream) if !stream.starts_with("wss://") && !stream.starts_with("ws://") => {
                refused(format!("market.stream_url = \"{stream}\" is not an address such as \"{EXAMPLE_STREAM}\""))
            }
            Some(stream) => Ok(stream),
        }
    }
}

/// The simulator has both on one port.
fn known_stream(rest: &str) -> Option<String> {
    if let Some((_, stream)) = KNOWN_STREAMS.iter().find(|(known, _)| *known == rest) {
        return Some((*stream).to_owned());
    }
    let address = rest.strip_prefix("http://")?;
    let is_local = ["127.0.0.1", "localhost", "[::1]"].iter().any(|host| address.starts_with(host));
    is_local.then(|| format!("ws://{address}"))
}

/// Builds the source of `[market]`; it connects when it runs.
pub fn build<Trading: Default>(config: &Config<Trading>, environment: &Environment) -> Result<MarketSource> {
    config.check()?;
    let settings = Settings {
        rest: rest::Settings {
            base_url: config.rest_url().to_owned(),
            window: Duration::from_millis(config.coalesce_ms),
            ..rest::Settings::default()
        },
        feed: feed::Settings {
            max_books: config.max_books,
            idle_after: Duration::from_secs(config.idle_secs),
            ..feed::Settings::new(config.stream_url()?)
        },
        symbols: config.symbols.iter().map(|symbol| symbol.trim().to_uppercase()).collect(),
        track_top: config.track_top,
    };
    let market = Market::new(settings, environment.clock.clone())?;
    let records = Records::open("citations", config.citation_limits(), environment);
    let origin = config.origin.as_deref().unwrap_or_else(|| config.rest_url());
    let mut source = MarketSource::new(market, records);
    source.origin = Some(origin.to_owned());
    Ok(source)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config<()> {
        toml::from_str(text).expect("TOML")
    }

    #[test]
    fn stream_address_follows_from_known_rest_address() {
        let stream = |text: &str| config(text).stream_url().expect("an address");
        assert_eq!(stream(""), EXAMPLE_STREAM);
        assert_eq!(stream("rest_url = \"https://api.binance.us/\""), "wss://stream.binance.us:9443");
        assert_eq!(stream("rest_url = \"http://127.0.0.1:9000\""), "ws://127.0.0.1:9000");
        assert_eq!(stream("rest_url = \"https://x\"\nstream_url = \"wss://y/\""), "wss://y");
    }

    #[test]
    fn unusable_settings_are_refused_with_the_fix() {
        for (text, expected) in [
            ("rest_url = \"https://proxy.example.org\"", "stream_url is needed too"),
            ("rest_url = \"binance.com\"", "is not an address such as"),
            ("rest_url = \"https://ann:secret@x\"", "no user or password"),
            ("stream_url = \"https://x\"", "is not an address such as"),
            ("track_top = 300", "more than market.max_books"),
            ("idle_secs = 1", "between 10 and 86400"),
        ] {
            let error = config(text).check().expect_err(text);
            assert!(error.message().contains(expected), "{error}");
        }
    }
}
