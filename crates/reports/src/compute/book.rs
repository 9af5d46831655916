//! Best prices and depth.

use super::observation::Observation;
use super::ten_places;
use crate::model::{Depth, LISTED_LEVELS, Level, Report};
use tribune_analytics::{PRICE_PLACES, Touch, Unavailable, quotient};
use tribune_binance::{BookView, Level as BookLevel, Quantity};

pub(super) fn fill(report: &mut Report, observed: &Observation<'_>) {
    let missing = observed.view.as_ref().and_then(|view| figures(report, view).err());
    let reasons = [observed.trouble(), missing.map(|reason| reason.to_string())];
    let reason = reasons.into_iter().flatten().reduce(|all, one| format!("{all}; {one}"));
    report.sections.book = observed.book_section(reason);
}

/// With one empty side the other is still reported, with the reason; a crossed book has no figures.
fn figures(report: &mut Report, view: &BookView) -> Result<(), Unavailable> {
    let bids = Listed::of(view.depth.bids.known())?;
    let asks = Listed::of(view.depth.asks.known())?;
    let touch = match (bids.best, asks.best) {
        (Some(bid), Some(ask)) => Ok(Touch::new(bid, ask)?),
        (None, _) => Err(Unavailable::NoBids),
        (_, None) => Err(Unavailable::NoAsks),
    };
    report.best_bid = bids.levels.first().copied();
    report.best_ask = asks.levels.first().copied();
    if let Ok(touch) = &touch {
        report.spread_bps = touch.spread_bps().and_then(ten_places);
        report.mid_price = Some(touch.mid());
        report.micro_price = touch.microprice().map(|micro| micro.round_dp(PRICE_PLACES).normalize());
    }
    report.depth = Some(Depth {
        imbalance: touch.as_ref().ok().and_then(|_| imbalance(bids.total, asks.total)),
        total_bid_qty: bids.total.decimal(),
        total_ask_qty: asks.total.decimal(),
        bids: bids.levels,
        asks: asks.levels,
        last_update_id: view.last_update_id,
    });
    touch.map(drop)
}

struct Listed {
    best: Option<BookLevel>,
    levels: Vec<Level>,
    total: Quantity,
}

impl Listed {
    fn of(known: impl Iterator<Item = BookLevel> + Clone) -> Result<Self, Unavailable> {
        let best = known.take(LISTED_LEVELS);
        let mut quantities = best.clone().map(|level| level.quantity);
        let total = quantities.try_fold(Quantity::ZERO, Quantity::checked_add);
        let level = |level: BookLevel| Level { price: level.price, qty: level.quantity };
        Ok(Self {
            best: best.clone().next(),
            levels: best.map(level).collect(),
            total: total.ok_or(Unavailable::TooLarge)?,
        })
    }
}

fn imbalance(bids: Quantity, asks: Quantity) -> Option<f64> {
    let difference = bids.checked_sub(asks)?;
    ten_places(quotient(difference.units(), bids.checked_add(asks)?.units())?)
}
