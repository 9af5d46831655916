//! The price, and the last day.

use rust_decimal::Decimal;

use super::observation::Observation;
use super::ten_places;
use crate::model::Section;
use tribune_binance::feed::Day;
use tribune_binance::moment::Moment;

pub(super) struct Ticker {
    pub last: Option<Decimal>,
    pub change_pct: Option<f64>,
    pub high: Option<Decimal>,
    pub low: Option<Decimal>,
    pub volume: Option<Decimal>,
    pub quote_volume: Option<Decimal>,
    pub section: Section,
}

impl Ticker {
    pub fn of(observed: &Observation<'_>) -> Self {
        let day = observed.inputs.day;
        let last = last_price(observed, day.as_ref());
        let change_pct = day.and_then(|day| change_pct(day.open.decimal(), last?));
        let reason = match (day, change_pct) {
            (None, _) => Some("the last 24 hours of the symbol are not known yet"),
            (Some(_), None) => Some("no price of 24 hours ago to compare with"),
            (Some(_), Some(_)) => None,
        };
        let age_ms = |received: Moment| {
            let now = observed.inputs.now.monotonic;
            super::observation::millis(now.saturating_duration_since(received.monotonic))
        };
        let mut section = observed.section(day.and_then(|day| day.exchange_time), 0, reason.map(str::to_owned));
        section.age_ms = day.map(|day| age_ms(day.received));
        Self {
            last,
            change_pct,
            high: day.map(|day| last.map_or(day.high.decimal(), |last| last.max(day.high.decimal()))),
            low: day.map(|day| last.map_or(day.low.decimal(), |last| last.min(day.low.decimal()))),
            volume: day.map(|day| day.volume.decimal()),
            quote_volume: day.map(|day| day.quote_volume.decimal()),
            section,
        }
    }
}

/// (last − open)/open in percent, from the last price in the report, so that both agree: trades arrive before the day's
/// figures.
fn change_pct(open: Decimal, last: Decimal) -> Option<f64> {
    let change = last.checked_sub(open)?.checked_div(open)?;
    ten_places(change.checked_mul(Decimal::ONE_HUNDRED)?)
}

/// The price of the last trade, unless trades have stopped and the day's figures have a later one.
fn last_price(observed: &Observation<'_>, day: Option<&Day>) -> Option<Decimal> {
    let Some(trade) = observed.last_trade else {
        return day.map(|day| day.last.decimal());
    };
    let later = day.filter(|day| !observed.is_current() && day.exchange_time > Some(trade.time));
    Some(later.map_or(trade.price, |day| day.last).decimal())
}
