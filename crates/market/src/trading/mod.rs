//! An account and its orders, as tools. They exist only where a key *and* the switch are set. In reading
//! order:
//!
//! - `order`: what somebody wants to trade, and whether the exchange's rules allow it; `estimate`: what it
//!   comes to by the book of the moment
//! - `preview`: tokens that make an order take two steps
//! - `journal`: what was sent, written down before it is; `past`: the same read back; `questions`: what it leaves open
//! - `desk`: sends orders; `answers` reads what comes back
//! - `place`, `cancel`, `look`: the tools; `spec` has what their schemas share

mod answers;
mod cancel;
mod desk;
mod estimate;
mod journal;
mod look;
mod order;
mod past;
mod place;
mod preview;
mod questions;
mod spec;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use tribune_core::{Error, Result, Tool};

use crate::book::Depth;
use crate::model::Symbol;
use crate::number::Notional;
use crate::rest::{Rest, Signer};
use desk::Desk;

/// The public host, which has prices and nothing else.
const MARKET_DATA_ONLY: &str = "data-api.binance.vision";
/// Prices older than this are nothing to reckon an order by.
pub(crate) const MAX_PRICE_AGE_MS: u64 = 10_000;

/// An API key and its secret: that of an HMAC key, or an Ed25519 private key.
pub struct Credentials {
    pub api_key: String,
    pub secret: String,
}

pub struct Settings {
    /// The explicit switch. Without it a key alone does nothing.
    pub trading: bool,
    pub credentials: Option<Credentials>,
    /// The most that one order may be worth, in its quote asset.
    pub max_order_notional: Notional,
    /// Quote assets that the cap counts in. A pair quoted in another cannot be traded: a hundred of one
    /// asset is not a hundred of the next.
    pub quote_assets: Vec<String>,
    /// The symbols that may be traded; `None` for all.
    pub symbols: Option<Vec<String>>,
    pub journal: PathBuf,
}

/// The book that an order is reckoned by.
#[derive(Debug, Clone)]
pub struct CurrentBook {
    pub depth: Depth,
    /// Since it was last known to be what it is: a quiet market's book is not old.
    pub age_ms: u64,
}

/// What the tools have to know of the market to check an order.
#[async_trait]
pub trait Market: Send + Sync {
    /// The exchange's rules for a symbol; `None` if it has no such symbol.
    async fn symbol(&self, name: &str) -> Result<Option<Symbol>>;

    async fn book(&self, symbol: &str) -> Result<CurrentBook>;
}

/// The seven tools; none if trading is not switched on. `rest` must lead to an exchange that has
/// accounts, and shares the budget of the process.
pub fn tools(settings: Settings, rest: Rest, market: Arc<dyn Market>) -> Result<Vec<Arc<dyn Tool>>> {
    if !settings.trading {
        return Ok(Vec::new());
    }
    let Some(credentials) = &settings.credentials else {
        return Err(Error::invalid_argument(
            "trading is switched on but there is no API key; set the key and its secret, or switch trading off",
        ));
    };
    if settings.max_order_notional <= Notional::ZERO {
        return Err(Error::invalid_argument(
            "trading is switched on but no order may be worth anything; set the most that one order may be worth",
        ));
    }
    if !rest.is_private() {
        return Err(Error::invalid_argument(
            "trading is switched on but the exchange's base URL is not encrypted; it must begin with https://",
        ));
    }
    if rest.host() == MARKET_DATA_ONLY {
        return Err(Error::invalid_argument(format!(
            "trading is switched on but {MARKET_DATA_ONLY} has no accounts; set the base URL to https://api.binance.com \
             or https://testnet.binance.vision",
        )));
    }
    let signer = Signer::new(&credentials.api_key, &credentials.secret)?;
    let desk = Arc::new(Desk::new(settings, signer, rest, market)?);
    Ok(vec![
        Arc::new(look::Look::account(&desk)),
        Arc::new(look::Look::my_trades(&desk)),
        Arc::new(place::PlaceOrder::new(&desk)),
        Arc::new(cancel::CancelOrder::new(&desk)),
        Arc::new(look::Look::order(&desk)),
        Arc::new(look::Look::open_orders(&desk)),
        Arc::new(look::Look::all_orders(&desk)),
    ])
}
