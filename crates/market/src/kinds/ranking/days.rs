//! 24-hour figures of all markets of one quote asset, from the streams or a request.

use std::sync::Arc;

use tribune_core::{Error, Result};
use tribune_market_parts::exchange_error;

use super::SILENT_MS;
use crate::market::{Market, Origin};
use tribune_binance::{Day, Moment, Simulation};

const MOST_MONEYS: usize = 15;

/// 24-hour figures of every market of one quote asset, and when they were received.
pub(super) struct Days {
    pub(super) money: Arc<str>,
    pub(super) days: Vec<(Arc<str>, Day)>,
    /// What the figures are of.
    pub(super) window: &'static str,
    pub(super) heard: Moment,
    pub(super) origin: Origin,
    /// Why it is stale.
    pub(super) stale: Option<String>,
}

impl Days {
    pub(super) fn at_hand(market: &Market, money: &str) -> Option<Self> {
        let table = market.known_symbols()?;
        let traded = table.of_quote(money).filter(|symbol| symbol.is_traded());
        let board = &market.feed.board;
        let days = board.lookup_all(traded.map(|symbol| &symbol.name));
        let newest = days.iter().map(|(_, day)| day.received).max_by_key(|moment| moment.monotonic)?;
        Some(Self {
            money: table.money(money)?.clone(),
            days,
            heard: board.heard().unwrap_or(newest),
            origin: Origin::Stream,
            window: match market.rest.simulation() {
                Some(Simulation::Replay) => "as much of the last 24 hours as was recorded",
                _ => "the last 24 hours",
            },
            stale: None,
        })
    }

    /// From the streams, or from a request if they are silent.
    pub(super) async fn load(market: &Market, money: &str) -> Result<Self> {
        market.symbols().await?;
        let is_current = |heard: Moment| heard.age_ms(&*market.clock) < SILENT_MS;
        let at_hand = Self::at_hand(market, money).filter(|_| market.feed.board.heard().is_some_and(is_current));
        if let Some(days) = at_hand {
            return Ok(days);
        }
        let asked = market.days_loaded().await;
        let Some(days) = Self::at_hand(market, money) else {
            return Err(match asked {
                Ok(_) => Error::unavailable(format!("The exchange reports no trades in {money} for 24 hours.")),
                Err(error) => exchange_error(error),
            });
        };
        Ok(match asked {
            Ok(heard) => Self { heard, origin: Origin::Rest, ..days },
            Err(error) => Self {
                stale: Some(format!("STALE: the streams are silent, and the request to the exchange failed: {error}")),
                ..days
            },
        })
    }
}

/// The quote asset as the exchange writes it; by default the usual one.
pub(super) async fn quote_asset(market: &Market, given: Option<&str>) -> Result<Arc<str>> {
    let table = market.symbols().await?;
    let moneys = table.moneys();
    let Some(given) = given else {
        let main = moneys.first().map(|money| Arc::clone(money));
        return main.ok_or_else(|| Error::unavailable("The exchange lists no markets now; ask again in a minute."));
    };
    let known = table.money(&given.trim().to_uppercase()).cloned();
    known.ok_or_else(|| {
        let given = tribune_core::wire::clip(given, 40);
        let moneys: Vec<&str> = moneys.iter().take(MOST_MONEYS).map(|money| &***money).collect();
        let moneys = moneys.join(", ");
        Error::not_found(format!("The exchange has no markets in {given}. Quote assets: {moneys}."))
    })
}
