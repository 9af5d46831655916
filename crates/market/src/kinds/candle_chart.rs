//! A chart of candles.

use jiff::Timestamp;
use tribune_page::parts::panel_or_why;
use tribune_page::text::places;
use tribune_page::{Candle, Candles, Content, Panel, Width};

use super::klines::Kline;
use crate::kinds::Page;

/// A chart of candles, or why there is none.
pub(crate) fn chart(
    rows: &[Kline],
    interval: &str,
    is_open: bool,
    count: &str,
    missing: &str,
    page: &Page<'_>,
) -> Panel {
    let prices = rows.iter().flat_map(|row| [row.open, row.high, row.low, row.close]);
    let prices: Vec<String> = prices.map(|price| price.to_string()).collect();
    let mut candles: Vec<Candle> = rows.iter().filter_map(drawn).collect();
    if let Some(last) = candles.last_mut() {
        last.is_open = is_open;
    }
    let state = match is_open {
        true => "the last is unfinished",
        false => "all are closed",
    };
    let note = format!("{count} of {interval}, volume in {}; {state}. Exact.", page.base());
    let is_empty = candles.is_empty();
    let chart = Candles {
        interval: interval.to_owned(),
        candles,
        price_unit: page.quote().to_owned(),
        volume_unit: page.base().to_owned(),
        price_places: places(prices.iter().map(String::as_str)),
    };
    let content = match is_empty {
        true => Err(missing.to_owned()),
        false => Ok((Content::Candles(chart), Some(note))),
    };
    panel_or_why("candles", &format!("{interval} candles"), Width::Whole, content)
}

fn drawn(row: &Kline) -> Option<Candle> {
    Some(Candle {
        opened: Timestamp::from_millisecond(row.open_time).ok()?,
        open: row.open.as_f64(),
        high: row.high.as_f64(),
        low: row.low.as_f64(),
        close: row.close.as_f64(),
        volume: row.volume.as_f64(),
        is_open: false,
    })
}
