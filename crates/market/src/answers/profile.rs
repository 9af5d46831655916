//! Where volume was traded, and where not.

use std::sync::Arc;

use serde_json::{Value, json};
use tribune_core::{Error, Result};

use super::answer::{Answer, Keep, Provenance, Table, exchange_time, no_figures, or_reason, or_unknown};
use crate::analytics::Window;
use crate::analytics::impact::amihud;
use crate::analytics::profile::{Histogram, RowWidth, counts, volume_profile};
use crate::analytics::vacuums::{DEFAULT_THRESHOLD_PCT, vacuums};
use crate::market::{Market, Origin};
use crate::model::{Candle, Interval, Symbol};
use crate::moment::Stamped;
use crate::number::Price;
use crate::rest::KlinesQuery;
use crate::symbols::{AnalyticsKind, Kind};

fn width(symbol: &Symbol, given: Option<Price>) -> Result<RowWidth> {
    match (given, symbol.tick_size) {
        (Some(given), _) if given.units() > 0 => Ok(RowWidth::Given(given)),
        (Some(_), _) => Err(Error::invalid_argument("tick_size must be above zero")),
        (None, Some(tick)) => Ok(RowWidth::FromTick(tick)),
        (None, None) => Ok(RowWidth::FromTick(Price::from_units(1))),
    }
}

struct Past {
    window: Window,
    interval: Interval,
    candles: Arc<Stamped<Vec<Candle>>>,
}

impl Past {
    /// Those of which the histogram is made.
    fn used(&self) -> impl Iterator<Item = &Candle> {
        let candles = self.candles.value.iter();
        candles.filter(|candle| counts(candle, &self.window))
    }

    /// Why figures are of less than was asked for, if there is data of only a part of the window. Candles lie on
    /// boundaries of their own, which the window's ends do not.
    fn shortfall(&self, coverage: Option<f64>) -> Option<String> {
        let missing = (1.0 - coverage?) * self.window.millis() as f64;
        if missing <= 2.0 * self.interval.millis() as f64 {
            return None;
        }
        let percent = (coverage? * 1_000.0).round() / 10.0;
        let hours = self.window.seconds() / 3_600.0;
        let from = self.used().next().map(|first| exchange_time(first.open_time));
        let from = from.as_ref().and_then(Value::as_str).unwrap_or("an unknown time");
        Some(format!(
            "of {percent}% of the {hours} h only: the exchange has no candles of the rest; the first is of {from}"
        ))
    }
}

/// The candles of the last hours, as fine as one request gives them.
async fn window(market: &Market, symbol: &Symbol, hours: u32) -> Result<Past> {
    let window = Window::last(hours * 3_600, market.exchange_now());
    let fine = [Interval::M1, Interval::M3, Interval::M5, Interval::M15];
    let interval = fine
        .into_iter()
        .find(|interval| window.millis() / interval.millis() < 1_000)
        .unwrap_or(Interval::M30);
    let query = KlinesQuery {
        interval,
        limit: 1_000,
        // On a candle's boundary, so that callers who ask a moment later ask the same.
        start: crate::candles::open_time(interval, window.start_ms),
        end: None,
    };
    Ok(Past {
        candles: market.rest.klines(&symbol.name, &query).await?,
        window,
        interval,
    })
}

pub async fn profile(market: &Market, symbol: &str, hours: u32, tick_size: Option<Price>) -> Result<Answer> {
    let symbol = market.traded(symbol).await?;
    let past = window(market, &symbol, hours).await?;
    let candles = &past.candles.value;
    let range = candles
        .iter()
        .map(|candle| candle.high)
        .max()
        .zip(candles.iter().map(|candle| candle.low).min());
    if let (Some(width), Some((high, low))) = (tick_size, range)
        && high > low
        && width.units() > high.units() - low.units()
    {
        return Err(Error::invalid_argument(format!(
            "tick_size {width} is wider than the whole range of {hours} h, {low} to {high}: give a smaller one, or none"
        )));
    }
    let made = Histogram::of_candles(candles, past.window, width(&symbol, tick_size)?)
        .and_then(|histogram| volume_profile(&histogram))
        .map_err(|reason| no_figures(&symbol, reason))?;
    let provenance = Provenance::new(market, Origin::Rest, past.candles.exchange_time, past.candles.received);
    let kind = Kind::Analytics(AnalyticsKind::VolumeProfile);
    let rows = made.volume_by_row.iter();
    let rows = rows.map(|row| vec![json!(row.low), json!(row.volume_base), json!(row.share)]);
    let table = Table {
        name: "volume_by_row",
        columns: &["price_from", "volume_base", "share"],
        rows: rows.collect(),
        keep: Keep::First,
        left_out: 0,
    };
    let mut answer = Answer::new(kind, &symbol, &format!("volume profile of {hours} h"), provenance)?
        .figure(format!(
            "{}, last {hours} h: most was traded around {} {quote} (point of control, {} to {}).",
            symbol.name,
            made.poc,
            made.poc_low,
            made.poc_high,
            quote = symbol.quote,
        ))
        .figure(format!(
            "{}% of the volume between {} and {} {} (value area); VWAP {}.",
            or_unknown(made.value_area_share.map(|share| (share * 1000.0).round() / 10.0)),
            made.val,
            made.vah,
            symbol.quote,
            or_unknown(made.vwap),
        ))
        .with(&made)?
        .with(&json!({
            "hours": hours,
            "candles_of": past.interval.as_str(),
            "candles": past.used().count(),
            "amihud": or_reason(&amihud(market.closed(&past.candles), past.interval)),
        }))?;
    answer.data.shift_remove("volume_by_row");
    answer = with_shortfall(answer, past.shortfall(made.coverage))?;
    Ok(answer.table(table))
}

fn with_shortfall(answer: Answer, shortfall: Option<String>) -> Result<Answer> {
    match shortfall {
        Some(why) => answer
            .figure(format!("This is {why}."))
            .with_field("coverage_note", &why),
        None => Ok(answer),
    }
}

pub async fn liquidity_vacuums(market: &Market, symbol: &str, hours: u32) -> Result<Answer> {
    let symbol = market.traded(symbol).await?;
    let past = window(market, &symbol, hours).await?;
    let found = Histogram::of_candles(&past.candles.value, past.window, width(&symbol, None)?)
        .and_then(|histogram| vacuums(&histogram, DEFAULT_THRESHOLD_PCT))
        .map_err(|reason| no_figures(&symbol, reason))?;
    let provenance = Provenance::new(market, Origin::Rest, past.candles.exchange_time, past.candles.received);
    let kind = Kind::Analytics(AnalyticsKind::LiquidityVacuums);
    let mut answer = Answer::new(kind, &symbol, &format!("liquidity vacuums of {hours} h"), provenance)?.figure(
        match found.vacuums.len() {
            0 => format!(
                "{}, last {hours} h: no price range between traded ones was nearly empty.",
                symbol.name
            ),
            count => format!(
                "{}, last {hours} h: {count} price ranges in which little was traded.",
                symbol.name
            ),
        },
    );
    for vacuum in found.vacuums.iter().take(5) {
        answer = answer.figure(format!(
            "{} to {} {}: {} {} traded.",
            vacuum.from, vacuum.to, symbol.quote, vacuum.volume_base, symbol.base
        ));
    }
    answer = with_shortfall(answer, past.shortfall(found.coverage))?;
    answer.with(&found)?.with(&json!({
        "hours": hours,
        "window_start_ms": past.window.start_ms,
        "window_end_ms": past.window.end_ms,
        "candles_of": past.interval.as_str(),
        "candles": past.used().count(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analytics::fixture::minute;
    use crate::moment::Moment;

    #[test]
    fn a_profile_of_a_part_of_the_window_says_so() {
        let now = Moment::now(&tribune_core::SystemClock);
        // One hour, of which candles begin with minute 54: six of 60.
        let past = |first: i64| Past {
            window: Window {
                start_ms: 0,
                end_ms: 3_600_000,
            },
            interval: Interval::M1,
            candles: Arc::new(Stamped {
                value: (first..60).map(|at| minute(at, ["5"; 4], "2")).collect(),
                exchange_time: None,
                sent: now,
                received: now,
                simulated: false,
            }),
        };
        let told = past(54).shortfall(Some(0.1)).expect("a part only");
        assert_eq!(
            told,
            "of 10% of the 1 h only: the exchange has no candles of the rest; the first is of 1970-01-01T00:54:00.000Z"
        );
        // A candle at either end may be cut by the window: 58 of 60 are all there are.
        assert_eq!(past(2).shortfall(Some(0.9667)), None);
        assert_eq!(past(0).shortfall(None), None);
    }
}
