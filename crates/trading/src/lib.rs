//! Account and order tools. They exist only where `[market.trading]` is enabled and has a key. In reading order:
//!
//! - `order`: an order and the exchange's rules for it; `estimate`: its value by the current book
//! - `preview`: tokens that make every order take two calls
//! - `entry`: a line of the journal; `history`: what became of each order in it, and what the limits say of the next one;
//!   `journal`: writes lines and reads them back
//! - `account`: checks and sends orders; `answers`: the exchange's answers
//! - [`confirm`]: orders that wait for a person
//! - `config`: `[market.trading]` and [`build`]
//! - `place`, `cancel`, `queries`: what the tools do; `spec`: what their specs share; `tool`: the seven tools

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use the machine's clock"))]

mod account;
mod answers;
mod cancel;
mod config;
pub mod confirm;
mod entry;
mod estimate;
mod history;
mod journal;
mod order;
mod place;
mod preview;
mod queries;
mod spec;
#[cfg(test)]
mod tests;
mod tool;

use std::path::PathBuf;

use async_trait::async_trait;
use tribune_core::Result;

use confirm::WaitingOrders;

pub use config::{Config, build};
use tribune_binance::{Depth, Notional, Symbol};

/// Orders are not checked against older prices.
pub const MAX_PRICE_AGE_MS: u64 = 10_000;

pub(crate) struct Settings {
    pub(crate) limits: Limits,
    /// Where orders wait for a person, if they do.
    pub(crate) waiting: Option<WaitingOrders>,
    /// Quote assets that the limits count in. A pair quoted in another cannot be traded: a hundred of one
    /// asset is not a hundred of the next.
    pub(crate) quote_assets: Vec<String>,
    /// The symbols that may be traded; `None` for all.
    pub(crate) symbols: Option<Vec<String>>,
    pub(crate) journal: PathBuf,
    /// While it exists, no order is placed.
    pub(crate) stop_file: PathBuf,
}

/// The most that may be ordered, in the quote asset of each order.
pub(crate) struct Limits {
    pub(crate) order_notional: Notional,
    /// Of all orders within 24 hours.
    pub(crate) daily_notional: Option<Notional>,
    pub(crate) orders_per_minute: Option<u32>,
}

/// The book that an order is checked against.
#[derive(Debug, Clone)]
pub struct CurrentBook {
    pub depth: Depth,
    /// Since the last confirmation: the book of a quiet market is not old.
    pub age_ms: u64,
}

/// Market data for checking orders.
#[async_trait]
pub trait Market: Send + Sync {
    /// The exchange's rules for a symbol; `None` if it has no such symbol.
    async fn symbol(&self, name: &str) -> Result<Option<Symbol>>;

    async fn book(&self, symbol: &str) -> Result<CurrentBook>;
}
