//! Account and order tools. They exist only where `[market.trading]` is enabled and has a key. In reading order:
//!
//! - `order`: an order and the exchange's rules for it; `estimate`: its value by the current book
//! - `preview`: tokens that make every order take two calls
//! - `entry`: the lines of the journal; `history`: what became of each order in it; `unresolved`: orders whose outcome is
//!   unknown; `journal`: writes lines and reads them back
//! - `account`: checks and sends orders; `answers`: the exchange's answers
//! - `config`: `[market.trading]` and [`build`]
//! - `place`, `cancel`, `queries`: what the tools do; `spec`: what their specs share; `tool`: the seven tools

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use the machine's clock"))]

mod account;
mod answers;
mod cancel;
mod config;
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
mod unresolved;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use tribune_core::{Error, Result, Tool};

use account::TradingAccount;

pub use config::{Config, build};
use tribune_binance::book::Depth;
use tribune_binance::model::Symbol;
use tribune_binance::number::Notional;
use tribune_binance::rest::{Rest, Signer};
use tribune_market_parts::exchange_error;

/// The host for public data; it has no accounts.
const MARKET_DATA_ONLY: &str = "data-api.binance.vision";
/// Orders are not checked against older prices.
pub const MAX_PRICE_AGE_MS: u64 = 10_000;

pub struct Settings {
    pub api_key: String,
    /// An HMAC secret or an Ed25519 private key.
    pub api_secret: String,
    /// The most that one order may be worth, in its quote asset.
    pub max_order_notional: Notional,
    /// Quote assets that the cap counts in. A pair quoted in another cannot be traded: a hundred of one
    /// asset is not a hundred of the next.
    pub quote_assets: Vec<String>,
    /// The symbols that may be traded; `None` for all.
    pub symbols: Option<Vec<String>>,
    pub journal: PathBuf,
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

/// The seven tools. `rest` must lead to an exchange that has accounts, and shares the budget of the process.
pub fn tools(settings: Settings, rest: Rest, market: Arc<dyn Market>) -> Result<Vec<Arc<dyn Tool>>> {
    if !rest.is_private() {
        return Err(Error::invalid_argument(
            "[market.trading] needs an encrypted connection: market.rest_url must begin with https://",
        ));
    }
    if rest.host() == MARKET_DATA_ONLY {
        return Err(Error::invalid_argument(format!(
            "[market.trading]: {MARKET_DATA_ONLY} has no accounts; set market.rest_url to https://api.binance.com or \
             https://testnet.binance.vision",
        )));
    }
    let signer = Signer::new(&settings.api_key, &settings.api_secret).map_err(exchange_error)?;
    let account = Arc::new(TradingAccount::new(settings, signer, rest, market)?);
    Ok(tool::all(&account))
}
