//! Candles with volume.

use jiff::Timestamp;
use tribune_core::view::{Candle, Candles, Content, Panel, Width};

use super::parts::panel_or_why;
use super::record::{Told, finite, places};

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
        "{} candles of {interval}, volume in {}; {}. Exact.",
        candles.len(),
        told.base,
        if is_open {
            "the last is still open and will change"
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
