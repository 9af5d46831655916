//! A board with invented, constant figures, for the design page and for tests.

use jiff::{SignedDuration, Timestamp};

use crate::parts::{cell, noted, numbers, table, toned};
use crate::{
    Amount, Badge, Board, Candle, Candles, Cell, Content, DepthChart, Figure, Headline, Ladder, Line, Lines, Panel,
    ProfileBin, ProfileChart, Rung, Tone, Width,
};

const LAST_PRICE: f64 = 61_234.5;
const LAST_CANDLE: usize = 95;
const PRICE_UNIT: &str = "USD";
const QUANTITY_UNIT: &str = "SAMPLE";

/// Everything a board can show.
pub fn board() -> Board {
    let badge =
        |label: &str, tone, meaning: &str| Badge { label: label.to_owned(), tone, meaning: Some(meaning.to_owned()) };
    Board {
        title: "SAMPLE/USD".to_owned(),
        subtitle: Some("Figures made up for this page".to_owned()),
        badges: vec![
            badge("SIMULATED", Tone::Simulated, "made up, not from the world"),
            badge("frozen", Tone::Plain, "as it was, and as it will stay"),
        ],
        headline: Some(headline()),
        notes: vec!["Sample figures, made up for this page.".to_owned()],
        panels: panels(),
        ..Board::default()
    }
}

fn panels() -> Vec<Panel> {
    let panel = |key, title: &str, note: &str, content| {
        let width = match content {
            Content::Candles(_) => Width::Whole,
            _ => Width::Half,
        };
        let note = format!("{note}. Sample figures.");
        noted(crate::parts::panel(key, title, width, content), note)
    };
    let none = Content::Missing("Nothing was traded in the last hour.".to_owned());
    vec![
        panel("candles", "Candles", "1h, the last four days", candles()),
        panel("depth", "Depth", "Within 1 % of the middle", depth()),
        panel("ladder", "Order book", "The best 8 levels of each side", ladder()),
        panel("profile", "Volume by price", "The last four days, 40 bins", profile()),
        panel("spread", "Spread and impact", "The last five minutes", lines()),
        panel("costs", "Cost to trade", "Against the middle, now", costs()),
        panel("figures", "Figures", "Exact unless said otherwise", figures()),
        panel("missing", "Trades", "The last ten", none),
    ]
}

/// Deterministic noise from 0 to 1.
fn noise(index: usize, salt: u64) -> f64 {
    let mut state = (index as u64).wrapping_add(salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((state ^ (state >> 31)) % 10_000) as f64 / 10_000.0
}

/// Seconds after 2026-03-02 00:00 UTC.
fn after(secs: usize) -> Timestamp {
    let start = Timestamp::from_second(1_772_409_600).unwrap_or_default();
    let since = SignedDuration::from_secs(i64::try_from(secs).unwrap_or(i64::MAX));
    start.saturating_add(since).unwrap_or_default()
}

pub fn headline() -> Headline {
    Headline {
        label: "Last price".to_owned(),
        value: Amount::new("61234.50", PRICE_UNIT),
        change: Some((Amount::new("+1.703", "% in 24 h"), Tone::Up)),
        as_of: Some(after(4 * 86_400)),
        age_ms: Some(412),
        figures: vec![
            Figure::new("Bid", Amount::new("61234.40", PRICE_UNIT)),
            Figure::new("Ask", Amount::new("61234.60", PRICE_UNIT)),
            Figure::new("Spread", Amount::new("0.033", "bps")),
            Figure::new("24 h volume", Amount::new("18234.771", QUANTITY_UNIT)),
            Figure::unknown("Funding", "not a future"),
        ],
    }
}

fn candles() -> Content {
    let mut close = 59_700.0;
    let candle = |index: usize| {
        let open = close;
        let drift = (index as f64 / 13.0).sin() * 90.0;
        close = match index {
            LAST_CANDLE => LAST_PRICE,
            _ => open + drift + (noise(index, 1) - 0.5) * 420.0,
        };
        Candle {
            opened: after(index * 3600),
            open,
            high: f64::max(open, close) + noise(index, 2) * 160.0,
            low: f64::min(open, close) - noise(index, 3) * 160.0,
            close,
            volume: 90.0 + noise(index, 4) * 160.0 + (close - open).abs() * 0.5,
            is_open: index == LAST_CANDLE,
        }
    };
    Content::Candles(Candles {
        interval: "1h".to_owned(),
        candles: (0..=LAST_CANDLE).map(candle).collect(),
        price_unit: PRICE_UNIT.to_owned(),
        volume_unit: QUANTITY_UNIT.to_owned(),
        price_places: 2,
    })
}

fn depth() -> Content {
    let side = |direction: f64, salt: u64| {
        let mut total = 0.0;
        let level = |index: usize| {
            total += noise(index, salt) * 1.6 + if index % 17 == 11 { 6.0 } else { 0.0 };
            (LAST_PRICE + direction * (0.1 + index as f64 * 6.1), total)
        };
        (0..100).map(level).collect()
    };
    Content::Depth(DepthChart {
        bids: side(-1.0, 5),
        asks: side(1.0, 6),
        price_unit: PRICE_UNIT.to_owned(),
        quantity_unit: QUANTITY_UNIT.to_owned(),
        price_places: 2,
    })
}

fn profile() -> Content {
    let bin = |index: usize| {
        let from = 59_800.0 + index as f64 * 50.0;
        let hill = |middle: f64, width: f64| (-((from - middle) / width).powi(2)).exp();
        ProfileBin {
            from,
            to: from + 50.0,
            volume: 40.0 + 900.0 * hill(60_700.0, 320.0) + 420.0 * hill(61_300.0, 150.0) + noise(index, 7) * 60.0,
        }
    };
    Content::Profile(ProfileChart {
        bins: (0..40).map(bin).collect(),
        poc: Some(60_725.0),
        value_area: Some((60_350.0, 61_300.0)),
        last_price: Some(LAST_PRICE),
        price_unit: PRICE_UNIT.to_owned(),
        volume_unit: QUANTITY_UNIT.to_owned(),
        price_places: 2,
    })
}

fn lines() -> Content {
    let line = |label: &str, base: f64, salt: u64| {
        let point = |index: usize| {
            let value = base + (index as f64 / 19.0).sin() * 0.4 + noise(index / 4, salt) * 0.3;
            let is_known = !(60..68).contains(&index);
            (after(index * 2), is_known.then_some(value))
        };
        Line { label: label.to_owned(), points: (0..150).map(point).collect() }
    };
    Content::Lines(Lines {
        unit: "bps".to_owned(),
        places: 2,
        range: None,
        lines: vec![line("Spread", 1.2, 8), line("Impact of 10,000 USD", 2.6, 9)],
    })
}

fn ladder() -> Content {
    let side = |direction: i64, salt: u64| {
        let mut total = 0.0;
        let rung = |index: usize| {
            let quantity = 0.05 + noise(index, salt) * 2.0;
            total += quantity;
            let tenths = 612_345 + direction * (1 + 3 * index as i64);
            Rung {
                price: format!("{}.{}0", tenths / 10, tenths % 10),
                quantity: format!("{quantity:.5}"),
                total: format!("{total:.5}"),
                share: total / 10.0,
            }
        };
        (0..8).map(rung).collect()
    };
    Content::Ladder(Ladder {
        bids: side(-1, 11),
        asks: side(1, 12),
        spread: Some(Amount::new("0.20", "USD (0.033 bps)")),
        price_unit: PRICE_UNIT.to_owned(),
        quantity_unit: QUANTITY_UNIT.to_owned(),
    })
}

fn costs() -> Content {
    let cost = |text: &str| Cell { share: text.parse().ok().map(|cost: f64| cost / 15.0), ..cell(text) };
    let few_bids = toned("not enough bids", Tone::Warning);
    table(
        ["Size, USD", "Buying, bps", "Selling, bps"].map(numbers).into(),
        vec![
            vec![cell("1000"), cost("0.02"), cost("0.03")],
            vec![cell("10000"), cost("0.41"), cost("0.38")],
            vec![cell("100000"), cost("2.10"), cost("2.64")],
            vec![cell("1000000"), cost("14.90"), few_bids],
        ],
    )
}

fn figures() -> Content {
    let toned =
        |label: &str, text: &str, unit: &str, tone| Figure { tone, ..Figure::new(label, Amount::new(text, unit)) };
    Content::Figures(vec![
        toned("24 h change", "+1.703", "%", Tone::Up),
        toned("1 h change", "-0.412", "%", Tone::Down),
        toned("Bought in 5 min", "12.70411", QUANTITY_UNIT, Tone::Up),
        Figure {
            note: Some("descriptive: standard deviation of 5 min returns".to_owned()),
            ..Figure::new("Volatility", Amount::new("38.2", "% a year"))
        },
        Figure::unknown("Funding", "not a future"),
    ])
}
