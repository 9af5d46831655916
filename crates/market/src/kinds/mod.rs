//! One file for each kind of answer, top to bottom: its struct (which is its JSON and its output schema), how it is
//! loaded, and its sentences. Documents, records and pages are made of the figures' names:
//!
//! - [`answer`]: what every answer has around its figures; documents, tool objects and records
//! - [`table`], [`known`], [`time`]: rows, figures that may be missing, moments; [`schema`]: output schemas
//! - `search`: search results
//!
//! A new figure is a field of its struct; `page/names.rs` has labels and units of names that do not say enough. A new kind
//! is a file here, and an id or a tool that gives it. `prelude` has what nearly every kind uses.

pub mod anomalies;
mod answer;
pub mod average;
pub mod book;
pub mod book_health;
pub mod compare;
pub mod cost;
pub mod depth;
pub mod flow;
pub mod health;
pub mod info;
pub mod klines;
pub(crate) mod known;
mod prelude;
pub mod profile;
pub mod ranking;
pub(crate) mod schema;
mod search;
pub(crate) mod table;
pub mod ticker;
mod time;
pub mod trades;
pub mod vacuums;

use std::borrow::Cow;
use std::fmt;

use rust_decimal::Decimal;
use tribune_analytics::Unavailable;
use tribune_core::{Error, Result};

pub use answer::{About, Answer, Provenance};
pub(crate) use answer::{Fields, Named, Record, columns_and_rows};
pub(crate) use search::{Found, at_hand, found, found_all};
pub use time::Time;

use crate::market::Market;
use tribune_binance::{KlinesQuery, Symbol};
use tribune_market_resolve::asset_name;
use tribune_market_resolve::id::{Kind, MarketId};

pub(crate) trait Figures: Fields + fmt::Debug + Send + Sync {
    /// What the answer is about its market, where that is not what all documents of its kind are about.
    fn what(&self, _about: &About) -> Option<String> {
        None
    }

    /// For a model to read. The first says what matters most: a search result has that one alone.
    fn sentences(&self, about: &About) -> Vec<String>;

    /// Names of the figures above a page, the largest first; one with a plus is the change of that.
    fn headline(&self) -> &'static str {
        ""
    }
}

fn title(kind: Kind) -> Cow<'static, str> {
    Cow::Borrowed(match kind {
        Kind::Klines(interval) => return format!("{interval} candles").into(),
        Kind::Ticker => "price and last 24 hours",
        Kind::OrderBook => "order book",
        Kind::OrderBookL1 => "best bid and ask",
        Kind::OrderBookL2 => "order book depth",
        Kind::Trades => "recent trades",
        Kind::ExchangeInfo => "trading rules",
        Kind::Report => "market report",
        Kind::Markets => "all markets",
        Kind::OrderFlow => "order flow",
        Kind::VolumeProfile => "volume profile",
        Kind::Anomalies => "market anomalies",
        Kind::LiquidityVacuums => "liquidity vacuums",
        Kind::Health => "market health",
    })
}

/// Sizes of documents; tools take them as arguments.
const DOCUMENT_LEVELS: usize = 50;
const DOCUMENT_CANDLES: u32 = 120;
const DOCUMENT_TRADES: usize = 100;
const DOCUMENT_HOURS: u32 = 24;
const DOCUMENT_DEPTH_LEVELS: usize = 20;

/// The answer that a document is made of.
pub(crate) async fn load(market: &Market, id: &MarketId) -> Result<Answer> {
    let symbol = id.symbol();
    match id.kind() {
        Kind::Ticker => ticker::load(market, symbol).await,
        Kind::OrderBook => book::load(market, symbol, DOCUMENT_LEVELS).await,
        Kind::OrderBookL1 => book::load_best(market, symbol).await,
        Kind::OrderBookL2 => depth::load(market, symbol, DOCUMENT_DEPTH_LEVELS).await,
        Kind::Klines(interval) => klines::load(market, symbol, KlinesQuery::newest(interval, DOCUMENT_CANDLES)).await,
        Kind::Trades => trades::load(market, symbol, DOCUMENT_TRADES).await,
        Kind::ExchangeInfo => info::load(market, symbol).await,
        Kind::OrderFlow => flow::load(market, symbol, flow::FLOW_SECS).await,
        Kind::VolumeProfile => profile::load(market, symbol, DOCUMENT_HOURS, None).await,
        Kind::LiquidityVacuums => vacuums::load(market, symbol, DOCUMENT_HOURS).await,
        Kind::Anomalies => anomalies::load(market, symbol).await,
        Kind::Health => health::load(market, symbol).await,
        Kind::Markets => ranking::load(market, symbol).await,
        Kind::Report => Err(Error::not_found("reports are a source of their own")),
    }
}

/// `Bitcoin / Tether`, or the tickers where the names are not known.
fn pair_name(about: &About) -> String {
    let name = |ticker: &str| asset_name(ticker).map_or_else(|| ticker.to_owned(), str::to_owned);
    format!("{} / {}", name(about.base()), name(about.quote()))
}

/// A change for a sentence: `+1.5`, `-0.2`, `unknown`.
fn change_word(change: Option<f64>) -> String {
    known::or_unknown(change.map(|change| format!("{change:+}")))
}

/// An amount rounded for people.
fn short(amount: Decimal) -> Decimal {
    let digits = if amount.abs() >= Decimal::ONE_THOUSAND { 0 } else { 4 };
    amount.round_dp(digits).normalize()
}

/// Why there are no figures, as an error.
fn no_figures(symbol: &Symbol, reason: &Unavailable) -> Error {
    Error::unavailable(format!("{} has no such figures now: {reason}", symbol.name))
}
