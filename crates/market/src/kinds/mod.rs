//! One file for each kind of answer, top to bottom: its struct (which is its JSON, its output schema and what a citation
//! record keeps), how it is loaded, its sentences, its snippet and its page. Everything else is generic:
//!
//! - [`answer`]: what every answer has around its figures; documents, tool objects and records
//! - `page`: what figures are drawn with; `surroundings`: chart and book beside a citation; `search`: search results
//! - [`table`], [`known`], [`time`]: rows, figures that may be missing, moments; [`schema`]: output schemas
//!
//! A new figure is a field of its struct, and a word in `shown` if the headline or a panel has it: every other figure is
//! listed on the page by its name. A new kind is a file here, a line in `kinds!`, and an id or a tool that gives it.
//! `prelude` has what nearly every kind uses.

pub mod anomalies;
mod answer;
pub mod average;
pub mod book;
pub mod book_health;
pub(crate) mod candle_chart;
pub mod compare;
pub mod cost;
mod day;
pub mod depth;
pub mod flow;
pub mod health;
pub mod info;
pub mod klines;
pub(crate) mod known;
pub mod open_candle;
mod page;
mod prelude;
pub mod profile;
pub mod ranking;
pub(crate) mod schema;
mod search;
mod surroundings;
pub(crate) mod table;
pub mod ticker;
mod time;
pub mod trades;
pub mod vacuums;

pub use answer::{About, Answer, Provenance};
pub(crate) use answer::{Kept, Record, columns_and_rows, fields_of};
pub(crate) use page::Page;
pub(crate) use search::{Found, found, found_all};
pub(crate) use surroundings::Surroundings;
pub use time::Time;

use rust_decimal::Decimal;
use serde::{Deserialize, Serialize, Serializer};
use tribune_analytics::Unavailable;
use tribune_core::{Error, Result};
use tribune_page::{Headline, Panel};

use crate::market::Market;
use klines::Range;
use tribune_binance::model::Symbol;
use tribune_market_resolve::asset_name;
use tribune_market_resolve::id::{AnalyticsKind, Kind, MarketId};

/// The figures of one kind of answer.
pub(crate) trait Figures {
    /// What the answer is about its market, where that is not the same for all of its kind.
    fn what(&self, _about: &About) -> Option<String> {
        None
    }

    /// For a model to read, the most wanted figures first.
    fn sentences(&self, about: &About) -> Vec<String>;

    /// What a search result says; `None` if these figures say nothing of it.
    fn snippet(&self, _about: &About) -> Option<String> {
        None
    }

    /// The figure that a page has above all others.
    fn headline(&self, _page: &Page<'_>) -> Option<Headline> {
        None
    }

    /// Charts and tables.
    fn panels(&self, _page: &Page<'_>) -> Vec<Panel> {
        Vec::new()
    }

    /// Names of the figures that the headline and the panels have: the others are listed by name.
    fn shown(&self) -> &'static str {
        ""
    }

    /// What changes whenever the figures do, where that is less than all of them.
    fn version(&self) -> Option<(u64, usize)> {
        None
    }

    /// Notes above a cited page.
    fn notes(&self, _about: &About) -> Option<String> {
        None
    }
}

/// Defines the sum of all kinds. Serialised with the name of the kind, which a record keeps. Beside it stands what an
/// answer of this kind is about its market.
macro_rules! kinds {
    ($($name:ident = $word:literal, $what:literal: $figures:ty),* $(,)?) => {
        #[derive(Debug, Clone, Serialize, Deserialize)]
        #[serde(tag = "kind", content = "figures")]
        pub enum AnyFigures {
            $(#[serde(rename = $word)] $name(Box<$figures>)),*
        }

        $(impl From<$figures> for AnyFigures {
            fn from(figures: $figures) -> Self {
                Self::$name(Box::new(figures))
            }
        })*

        impl AnyFigures {
            pub(crate) fn kind(&self) -> &dyn Figures {
                match self {
                    $(Self::$name(figures) => &**figures),*
                }
            }

            /// What the answer is about its market: `order book`, `cost to trade`.
            pub(crate) fn what(&self, about: &About) -> String {
                let usual = match self {
                    $(Self::$name(_) => $what),*
                };
                self.kind().what(about).unwrap_or_else(|| usual.to_owned())
            }
        }

        impl Serialize for Plain<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
                match self.0 {
                    $(AnyFigures::$name(figures) => figures.serialize(serializer)),*
                }
            }
        }
    };
}

/// Figures without the name of their kind, as answers have them.
pub(crate) struct Plain<'a>(pub(crate) &'a AnyFigures);

kinds! {
    Ticker = "ticker", "price and last 24 hours": ticker::Ticker,
    Average = "average", "average price": average::AveragePrice,
    OrderBook = "order_book", "order book": book::OrderBook,
    BestPrices = "best_prices", "best bid and ask": book::BestPrices,
    Depth = "depth", "order book depth": depth::MarketDepth,
    BookHealth = "book_health", "order book health": book_health::BookHealth,
    Klines = "klines", "candles": klines::Klines,
    OpenCandle = "open_candle", "candles": open_candle::OpenCandle,
    Trades = "trades", "recent trades": trades::RecentTrades,
    Info = "info", "trading rules": info::TradingRules,
    Flow = "flow", "order flow": flow::OrderFlow,
    Profile = "profile", "volume profile": profile::Profile,
    Vacuums = "vacuums", "liquidity vacuums": vacuums::LiquidityVacuums,
    Anomalies = "anomalies", "market anomalies": anomalies::MarketAnomalies,
    Health = "health", "market health": health::MarketHealth,
    Cost = "cost", "cost to trade": cost::CostToTrade,
    Compare = "compare", "beside other markets": compare::Comparison,
    Ranking = "ranking", "all markets": ranking::TopMarkets,
    AllMarkets = "all_markets", "all markets": ranking::AllMarkets,
}

/// Sizes of documents; tools take them as arguments.
const DOCUMENT_LEVELS: usize = 50;
const DOCUMENT_CANDLES: usize = 120;
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
        Kind::Klines(interval) => klines::load(market, symbol, Range::newest(interval, DOCUMENT_CANDLES)).await,
        Kind::Trades => trades::load(market, symbol, DOCUMENT_TRADES).await,
        Kind::ExchangeInfo => info::load(market, symbol).await,
        Kind::Analytics(AnalyticsKind::OrderFlow) => flow::load(market, symbol, flow::FLOW_SECS).await,
        Kind::Analytics(AnalyticsKind::VolumeProfile) => profile::load(market, symbol, DOCUMENT_HOURS, None).await,
        Kind::Analytics(AnalyticsKind::LiquidityVacuums) => vacuums::load(market, symbol, DOCUMENT_HOURS).await,
        Kind::Analytics(AnalyticsKind::Anomalies) => anomalies::load(market, symbol).await,
        Kind::Analytics(AnalyticsKind::Health) => health::load(market, symbol).await,
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
    let change = change.and_then(decimal);
    known::or_unknown(change.map(|change| tribune_page::parts::signed(&change.normalize().to_string())))
}

/// A number of JSON as it is written there.
fn decimal(number: f64) -> Option<Decimal> {
    number.to_string().parse().ok()
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

/// How far a figure can be trusted, in a sentence: its standing and a note.
fn standing_sentence(standing: tribune_analytics::Standing, note: &str) -> String {
    let standing = serde_json::to_value(standing).unwrap_or_default();
    let word = tribune_page::text::capitalised(standing.as_str().unwrap_or_default());
    format!("{word}: {note}")
}
