//! Charts of figures: candles, order book, volume profile. The surroundings in a citation record have the same names.

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tribune_binance::{Depth, Level, Millis, Price, Quantity};
use tribune_core::JsonObject;
use tribune_market_parts::book::{Pair, depth_chart, ladder};
use tribune_page::parts::{noted, panel};
use tribune_page::text::places;
use tribune_page::{Candle, Candles, Content, Panel, ProfileBin, ProfileChart, Width};

use super::Page;
use super::draw::standing;

/// A chart for each table that has one.
pub(super) fn charts(figures: &JsonObject, page: &Page<'_>) -> Vec<Panel> {
    let candles = rows(figures, "klines").map(|rows| candles(&rows, figures, page));
    let profile = rows(figures, "volume_by_row").and_then(|rows| profile(&rows, figures, page));
    let book = rows(figures, "bids").zip(rows(figures, "asks")).map(|(bids, asks)| book(&bids, &asks, page));
    candles.into_iter().chain(profile).chain(book.into_iter().flatten()).collect()
}

fn rows<R: DeserializeOwned>(figures: &JsonObject, name: &str) -> Option<Vec<R>> {
    serde_json::from_value(figures.get(name)?.get("rows")?.clone()).ok()
}

fn text<'a>(figures: &'a JsonObject, name: &str) -> Option<&'a str> {
    figures.get(name).and_then(Value::as_str)
}

fn places_of(prices: impl Iterator<Item = Price>) -> usize {
    let written: Vec<String> = prices.map(|price| price.to_string()).collect();
    places(written.iter().map(String::as_str))
}

/// As candles have them; the last is the number of trades, which older records do not know.
type Row = (Millis, Price, Price, Price, Price, Quantity, Option<u64>);

fn candles(rows: &[Row], figures: &JsonObject, page: &Page<'_>) -> Panel {
    let interval = text(figures, "interval").unwrap_or_default();
    let last = rows.last().map(|row| row.0);
    // The last minute of a tape is always open.
    let has_open = figures.get("last_closed").is_none_or(|closed| *closed == Value::Bool(false));
    let drawn = rows.iter().filter_map(|(opened, open, high, low, close, volume, _)| {
        Some(Candle {
            opened: Timestamp::from_millisecond(*opened).ok()?,
            open: open.as_f64(),
            high: high.as_f64(),
            low: low.as_f64(),
            close: close.as_f64(),
            volume: volume.as_f64(),
            is_open: has_open && Some(*opened) == last,
        })
    });
    let chart = Candles {
        interval: interval.to_owned(),
        candles: drawn.collect(),
        price_unit: page.about.quote().to_owned(),
        volume_unit: page.about.base().to_owned(),
        price_places: places_of(rows.iter().flat_map(|row| [row.1, row.2, row.3, row.4])),
    };
    let state = if has_open { "the last is unfinished" } else { "all are closed" };
    let (count, base) = (rows.len(), page.about.base());
    let all = figures.get("candles").and_then(Value::as_u64).filter(|all| *all > count as u64);
    let of = all.map(|all| format!(" of {all}")).unwrap_or_default();
    let title = format!("{interval} candles");
    if chart.candles.is_empty() {
        let why = text(figures, "reason").unwrap_or("the exchange has no candles").to_owned();
        return panel("candles", title, Width::Whole, Content::Missing(why));
    }
    let note = format!("{count}{of} {interval} candles, volume in {base}; {state}. Exact.");
    noted(panel("candles", title, Width::Whole, Content::Candles(chart)), note)
}

fn book(bids: &[(Price, Quantity)], asks: &[(Price, Quantity)], page: &Page<'_>) -> [Panel; 2] {
    let level = |(price, quantity): &(Price, Quantity)| Level { price: *price, quantity: *quantity };
    let depth = Depth::listed(bids.iter().map(level).collect(), asks.iter().map(level).collect());
    whole_book(&depth, places_of(bids.iter().chain(asks).map(|level| level.0)), page)
}

pub(super) fn whole_book(depth: &Depth, price_places: usize, page: &Page<'_>) -> [Panel; 2] {
    let pair = Pair { base: page.about.base().to_owned(), quote: page.about.quote().to_owned(), price_places };
    [depth_chart(depth, &pair), ladder(depth, &pair)]
}

fn profile(rows: &[(Price, Quantity, Option<f64>)], figures: &JsonObject, page: &Page<'_>) -> Option<Panel> {
    let price = |name: &str| text(figures, name)?.parse::<Price>().ok();
    let width = price("row_width")?;
    let bin = |(low, volume, _): &(Price, Quantity, Option<f64>)| ProfileBin {
        from: low.as_f64(),
        to: low.as_f64() + width.as_f64(),
        volume: volume.as_f64(),
    };
    let (base, quote) = (page.about.base(), page.about.quote());
    let chart = ProfileChart {
        price_places: places_of(rows.iter().map(|row| row.0).chain([width])),
        bins: rows.iter().map(bin).collect(),
        poc: text(figures, "poc").and_then(|poc| poc.parse().ok()),
        value_area: price("val").zip(price("vah")).map(|(low, high)| (low.as_f64(), high.as_f64())),
        last_price: page.last_price,
        price_unit: quote.to_owned(),
        volume_unit: base.to_owned(),
    };
    let note = format!("Volume in {base}, in rows of {width} {quote}. {}", standing(figures));
    let title = tribune_page::text::capitalised(&page.named.what);
    Some(noted(panel("profile", title, Width::Whole, Content::Profile(chart)), note))
}
