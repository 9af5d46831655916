//! Candles with volume.

use jiff::Timestamp;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use tribune_core::view::{Amount, Candle, Candles, Content, Figure, Headline, Panel, Width};

use super::parts::{panel_or_why, signed, tone_of};
use super::record::{Told, finite, places};
use super::ticker::RATIO_PLACES;

const COLUMNS: [&str; 6] = ["open_time_ms", "open", "high", "low", "close", "volume_base"];

/// `None` if the answer has no candles in it at all.
pub(crate) fn candles(told: &Told) -> Option<Panel> {
    let table = told.table("klines")?;
    let interval = told.text("interval").unwrap_or_default();
    let prices = table
        .select(COLUMNS)?
        .flat_map(|[_, open, high, low, close, _]| [open, high, low, close]);
    let price_places = places(prices);
    let mut candles: Vec<Candle> = table.select(COLUMNS)?.filter_map(candle).collect();
    let is_open = told.text("last_closed") == Some("false");
    if let Some(last) = candles.last_mut() {
        last.is_open = is_open;
    }
    let note = format!(
        "{} {} of {interval}, volume in {}; {}. Exact.",
        candles.len(),
        if candles.len() == 1 { "candle" } else { "candles" },
        told.base,
        if is_open {
            "the last is unfinished"
        } else {
            "all are closed"
        },
    );
    let content = if candles.is_empty() {
        let reason = told.text("reason").unwrap_or("the exchange has no candles of it");
        Err(reason.to_owned())
    } else {
        Ok((
            Content::Candles(Candles {
                interval: interval.to_owned(),
                candles,
                price_unit: told.quote.clone(),
                volume_unit: told.base.clone(),
                price_places,
            }),
            Some(note),
        ))
    };
    Some(panel_or_why(
        "candles",
        &format!("{interval} candles"),
        Width::Whole,
        content,
    ))
}

/// What the headline has.
pub(crate) const SHOWN: &[&str] = &["high_price", "low_price", "candles"];

/// The last close, and how far it is from the first open. `None` if there are no candles.
pub(crate) fn headline(told: &Told) -> Option<Headline> {
    let rows = || told.table("klines")?.select(["open", "close"]);
    let ([open, _], [_, close]) = (rows()?.next()?, rows()?.last()?);
    let is_open = told.text("last_closed") == Some("false");
    let figure = |label: &str, name: &str| match told.text(name) {
        Some(price) => Figure::new(label, Amount::new(price, &told.quote)),
        None => Figure::unknown(label, "there are no candles"),
    };
    let change = change_pct(open, close).map(|change| {
        let unit = format!("% over {} candles", told.text("candles").unwrap_or("these"));
        (Amount::new(signed(&change.to_string()), unit), tone_of(change.to_f64()))
    });
    Some(Headline {
        label: if is_open { "Last price" } else { "Last close" }.to_owned(),
        value: Amount::new(close, &told.quote),
        change,
        as_of: told.as_of,
        age_ms: told.age_ms(),
        figures: vec![figure("Highest", "high_price"), figure("Lowest", "low_price")],
    })
}

fn change_pct(from: &str, to: &str) -> Option<Decimal> {
    let (from, to) = (from.parse::<Decimal>().ok()?, to.parse::<Decimal>().ok()?);
    let share = to.checked_sub(from)?.checked_div(from)?;
    Some(
        share
            .checked_mul(Decimal::ONE_HUNDRED)?
            .round_dp(RATIO_PLACES)
            .normalize(),
    )
}

/// How many there are.
pub(crate) fn count(told: &Told) -> usize {
    told.table("klines").map_or(0, |table| table.rows.len())
}

/// What is not a number is not drawn.
fn candle([opened, open, high, low, close, volume]: [&str; 6]) -> Option<Candle> {
    Some(Candle {
        opened: Timestamp::from_millisecond(opened.parse().ok()?).ok()?,
        open: finite(open)?,
        high: finite(high)?,
        low: finite(low)?,
        close: finite(close)?,
        volume: finite(volume)?,
        is_open: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_of_the_first_open() {
        // (110 − 80)/80 = 37.5 %; (2 − 3)/3 = −33.333… %.
        assert_eq!(
            change_pct("80", "110").map(|change| change.to_string()).as_deref(),
            Some("37.5")
        );
        assert_eq!(
            change_pct("3", "2").map(|change| change.to_string()).as_deref(),
            Some("-33.333")
        );
        assert_eq!((change_pct("0", "1"), change_pct("NaN", "1")), (None, None));
    }

    #[test]
    fn what_is_not_a_number_is_not_drawn() {
        let row = ["0", "1", "2", "0.5", "1.5", "10"];
        assert!(candle(row).is_some());
        for place in 0..6 {
            for odd in ["NaN", "inf", "", "null", "1e400"] {
                let mut row = row;
                row[place] = odd;
                assert_eq!(candle(row), None, "{odd} at {place}");
            }
        }
    }
}
