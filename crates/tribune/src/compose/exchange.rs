//! The market as other sources need it: reports read its feed, orders its symbols and books.

use std::sync::Arc;

use async_trait::async_trait;
use tribune_analytics::Feed;
use tribune_binance::{Millis, Symbol};
use tribune_core::{Clock, ErrorKind, Result};
use tribune_market::market::Market;
use tribune_market_resolve::SymbolTable;
use tribune_reports::exchange::Exchange;
use tribune_trading::{CurrentBook, MAX_PRICE_AGE_MS};

/// The market of this process, for reports.
pub struct MarketExchange(pub Arc<Market>);

#[async_trait]
impl Exchange for MarketExchange {
    fn feed(&self) -> &Feed {
        &self.0.feed
    }

    fn clock(&self) -> &dyn Clock {
        &*self.0.clock
    }

    fn exchange_now(&self) -> Millis {
        self.0.exchange_now()
    }

    fn simulated(&self) -> Option<&'static str> {
        self.0.simulated()
    }

    fn known_symbols(&self) -> Option<Arc<SymbolTable>> {
        self.0.known_symbols()
    }

    async fn symbols(&self) -> Result<Arc<SymbolTable>> {
        self.0.symbols().await
    }

    fn always_tracked(&self) -> Vec<Arc<str>> {
        self.0.always_tracked()
    }

    fn is_to_track(&self) -> bool {
        self.0.is_to_track()
    }

    fn is_to_be_tracked(&self, symbol: &str) -> bool {
        self.0.is_to_be_tracked(symbol)
    }

    fn current_trouble(&self) -> Option<String> {
        self.0.current_trouble()
    }
}

/// The market of this process, for orders.
pub struct OrderMarket(pub Arc<Market>);

#[async_trait]
impl tribune_trading::Market for OrderMarket {
    async fn symbol(&self, name: &str) -> Result<Option<Symbol>> {
        match self.0.symbol(name).await {
            Ok(symbol) => Ok(Some(symbol)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn book(&self, symbol: &str) -> Result<CurrentBook> {
        let (depth, age_ms) = self.0.current_book(symbol, MAX_PRICE_AGE_MS).await?;
        Ok(CurrentBook { depth, age_ms })
    }
}
