//! What reports need from the exchange. The composition root provides it, so that reports depend on no other source.

use std::sync::Arc;

use async_trait::async_trait;
use tribune_analytics::Feed;
use tribune_binance::Millis;
use tribune_core::{Clock, Result};
use tribune_market_resolve::SymbolTable;

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
    fn known_symbols(&self) -> Option<Arc<SymbolTable>>;
    /// The same; waits a little if the process has just started.
    async fn symbols(&self) -> Result<Arc<SymbolTable>>;
    /// The symbols whose books are always kept: these have reports.
    fn always_tracked(&self) -> Vec<Arc<str>>;
    /// Whether the configuration tracks any symbol.
    fn is_to_track(&self) -> bool;
    /// Whether the configuration names the symbol.
    fn is_to_be_tracked(&self, symbol: &str) -> bool;
    /// Why the exchange cannot be followed now.
    fn current_trouble(&self) -> Option<String>;
}
