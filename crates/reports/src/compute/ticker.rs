//! The price, and the last day.

use rust_decimal::Decimal;

use super::observation::Observation;
use super::ten_places;
use crate::aged::millis;
use crate::model::{Report, Section};
use tribune_binance::Day;

pub(super) fn fill(report: &mut Report, observed: &Observation<'_>) {
    let day = observed.inputs.day;
    let last = last_price(observed, day.as_ref());
    // The day's figures may be older than the last trade.
    let extreme =
        |of_day: Decimal, choose: fn(Decimal, Decimal) -> Decimal| last.map_or(of_day, |last| choose(of_day, last));
    report.last_price = last;
    report.change_24h_pct = day.and_then(|day| change_pct(day.open.decimal(), last?));
    report.high_24h = day.map(|day| extreme(day.high.decimal(), Decimal::max));
    report.low_24h = day.map(|day| extreme(day.low.decimal(), Decimal::min));
    report.volume_24h = day.map(|day| day.volume.decimal());
    report.quote_volume_24h = day.map(|day| day.quote_volume.decimal());
    let reason = match (day, report.change_24h_pct) {
        (None, _) => Some("the last 24 hours of the symbol are not known yet"),
        (Some(_), None) => Some("no price of 24 hours ago to compare with"),
        (Some(_), Some(_)) => None,
    };
    let age_ms = |day: Day| millis(observed.inputs.now.monotonic.saturating_duration_since(day.received.monotonic));
    report.sections.ticker = Section {
        age_ms: day.map(age_ms),
        ..observed.section(day.and_then(|day| day.exchange_time), 0, reason.map(str::to_owned))
    };
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
