//! What reports need from the exchange and its symbol names. The composition root provides both, so that reports
//! depend on no other source.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::civil::Date;
use tribune_analytics::Feed;
use tribune_binance::model::{Millis, Symbol};
use tribune_core::{Clock, Result};

/// The exchange that this process is connected to.
#[async_trait]
pub trait Exchange: Send + Sync {
    fn feed(&self) -> &Feed;
    fn clock(&self) -> &dyn Clock;
    /// The exchange's clock.
    fn exchange_now(&self) -> Millis;
    /// The sentence that labels data of a simulated exchange.
    fn simulated(&self) -> Option<&'static str>;
    /// The listed symbols, if they are known.
    fn known_symbols(&self) -> Option<Arc<dyn Symbols>>;
    /// The same; waits a little if the process has just started.
    async fn symbols(&self) -> Result<Arc<dyn Symbols>>;
    /// The symbols whose books are always kept: these have reports.
    fn always_tracked(&self) -> Vec<Arc<str>>;
    /// Whether the configuration tracks any symbol.
    fn is_to_track(&self) -> bool;
    /// Whether the configuration names the symbol.
    fn is_to_be_tracked(&self, symbol: &str) -> bool;
    /// Why the exchange cannot be followed now.
    fn current_trouble(&self) -> Option<String>;
}

/// Symbols that can be searched by name.
pub trait Symbols: Send + Sync {
    fn lookup(&self, name: &str) -> Option<Symbol>;
    /// Spells a symbol (`btc/usdt`) as the exchange does.
    fn spelled(&self, text: &str) -> String;
    /// Best first; a symbol may be found more than once.
    fn search(&self, text: &str, limit: usize, today: Date) -> Vec<Found>;
}

/// Names of symbols and assets.
pub trait Names: Send + Sync {
    fn index(&self, symbols: Vec<Symbol>) -> Arc<dyn Symbols>;
    /// The name of an asset: `Bitcoin` for `BTC`.
    fn asset(&self, ticker: &str) -> Option<&'static str>;
}

/// How far a report answers a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// The query asks for the report.
    Whole,
    /// The report has it among other figures.
    Part,
    /// The report does not have it: candles, single trades, trading rules.
    Missing,
}

/// A symbol that matches a query.
#[derive(Debug, Clone)]
pub struct Found {
    pub symbol: Arc<str>,
    pub fit: Fit,
    /// What the query matched.
    pub matched_on: &'static str,
    pub score: f32,
    pub coverage: f32,
    /// Other symbols that match the same words.
    pub alternatives: Vec<Arc<str>>,
}
