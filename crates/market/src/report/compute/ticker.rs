//! The price, and the last day.

use rust_decimal::Decimal;

use super::sight::Sight;
use super::ten_places;
use crate::feed::Day;
use crate::moment::Moment;
use crate::report::model::Section;

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
    pub fn of(sight: &Sight<'_>) -> Self {
        let day = sight.inputs.day;
        let last = last_price(sight, day.as_ref());
        let change_pct = day.and_then(|day| change_pct(day.open.decimal(), last?));
        let reason = match (day, change_pct) {
            (None, _) => Some("the last 24 hours of the symbol are not known yet"),
            (Some(_), None) => Some("no price of 24 hours ago to compare with"),
            (Some(_), Some(_)) => None,
        };
        let age_ms = |received: Moment| {
            let now = sight.inputs.now.monotonic;
            super::sight::millis(now.saturating_duration_since(received.monotonic))
        };
        let mut section = sight.section(day.and_then(|day| day.exchange_time), 0, reason.map(str::to_owned));
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

/// (last − open)/open in percent. Trades come before the day's figures do: what is reckoned from the price that is told
/// agrees with it.
fn change_pct(open: Decimal, last: Decimal) -> Option<f64> {
    let change = last.checked_sub(open)?.checked_div(open)?;
    ten_places(change.checked_mul(Decimal::ONE_HUNDRED)?)
}

/// The last trade's, unless trades have stopped coming and the board has heard of a later one.
fn last_price(sight: &Sight<'_>, day: Option<&Day>) -> Option<Decimal> {
    let Some(trade) = sight.last_trade else {
        return day.map(|day| day.last.decimal());
    };
    let later = day.filter(|day| !sight.is_current() && day.exchange_time > Some(trade.time));
    Some(later.map_or(trade.price, |day| day.last).decimal())
}
