//! Best prices and depth.

use rust_decimal::Decimal;

use super::observation::Observation;
use super::ten_places;
use crate::model::{Depth, LISTED_LEVELS, Level, Section};
use tribune_analytics::Unavailable;
use tribune_analytics::figure::{PRICE_PLACES, quotient};
use tribune_analytics::quotes::Touch;
use tribune_binance::book;
use tribune_binance::number::Quantity;

#[derive(Default)]
pub(super) struct Book {
    pub best_bid: Option<Level>,
    pub best_ask: Option<Level>,
    pub spread_bps: Option<f64>,
    pub mid: Option<Decimal>,
    pub micro: Option<Decimal>,
    pub depth: Option<Depth>,
    pub section: Section,
}

impl Book {
    pub fn of(observed: &Observation<'_>) -> Self {
        let figures = match &observed.view {
            Some(view) => Self::figures(&view.depth, view.last_update_id),
            None => Ok((Self::default(), None)),
        };
        let (book, missing) = figures.unwrap_or_else(|reason| (Self::default(), Some(reason)));
        let reasons = [observed.trouble(), missing.map(|reason| reason.to_string())];
        let reason = reasons.into_iter().flatten().reduce(|all, one| format!("{all}; {one}"));
        Self {
            section: observed.book_section(reason),
            ..book
        }
    }

    /// With one empty side the other is still reported, with the reason; a crossed book has no figures.
    fn figures(depth: &book::Depth, last_update_id: u64) -> Result<(Self, Option<Unavailable>), Unavailable> {
        let bids = Listed::of(depth.known_bids())?;
        let asks = Listed::of(depth.known_asks())?;
        let touch = match (bids.best, asks.best) {
            (Some(bid), Some(ask)) => Ok(Touch::new(bid, ask)?),
            (None, _) => Err(Unavailable::NoBids),
            (_, None) => Err(Unavailable::NoAsks),
        };
        let known = touch.as_ref().ok();
        let book = Self {
            best_bid: bids.levels.first().copied(),
            best_ask: asks.levels.first().copied(),
            spread_bps: known.and_then(Touch::spread_bps).and_then(ten_places),
            mid: known.map(Touch::mid),
            micro: known
                .and_then(Touch::microprice)
                .map(|micro| micro.round_dp(PRICE_PLACES).normalize()),
            depth: Some(Depth {
                imbalance: known.and_then(|_| imbalance(bids.total, asks.total)),
                total_bid_qty: bids.total.decimal(),
                total_ask_qty: asks.total.decimal(),
                bids: bids.levels,
                asks: asks.levels,
                last_update_id,
            }),
            section: Section::default(),
        };
        Ok((book, touch.err()))
    }
}

/// The best levels of one side.
struct Listed {
    best: Option<book::Level>,
    levels: Vec<Level>,
    total: Quantity,
}

impl Listed {
    fn of(known: impl Iterator<Item = book::Level> + Clone) -> Result<Self, Unavailable> {
        let best = known.clone().take(LISTED_LEVELS);
        let mut quantities = best.clone().map(|level| level.quantity);
        Ok(Self {
            best: best.clone().next(),
            total: quantities
                .try_fold(Quantity::ZERO, Quantity::checked_add)
                .ok_or(Unavailable::TooLarge)?,
            levels: best
                .map(|level| Level {
                    price: level.price.decimal(),
                    qty: level.quantity.decimal(),
                })
                .collect(),
        })
    }
}

fn imbalance(bids: Quantity, asks: Quantity) -> Option<f64> {
    let difference = bids.checked_sub(asks)?;
    ten_places(quotient(difference.units(), bids.checked_add(asks)?.units())?)
}
