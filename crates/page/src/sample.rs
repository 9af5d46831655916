//! A board with invented, constant figures, for the design page and for tests.

use crate::{
    Amount, Badge, Board, Candle, Candles, Cell, Column, Content, DepthChart, Figure, Headline, Ladder, Line, Lines,
    Panel, ProfileBin, ProfileChart, Rung, Table, Tone, Width,
};
use jiff::{SignedDuration, Timestamp};

const LAST_PRICE: f64 = 61_234.5;
const LAST_CANDLE: usize = 95;

/// Everything a board can show.
pub fn board() -> Board {
    Board {
        title: "SAMPLE/USD".to_owned(),
        subtitle: Some("Figures made up for this page".to_owned()),
        badges: vec![
            Badge {
                label: "SIMULATED".to_owned(),
                tone: Tone::Simulated,
                meaning: Some("made up, not from the world".to_owned()),
            },
            Badge {
                label: "frozen".to_owned(),
                tone: Tone::Plain,
                meaning: Some("as it was, and as it will stay".to_owned()),
            },
        ],
        headline: Some(headline()),
        notes: vec!["Sample figures, made up for this page.".to_owned()],
        panels: panels(),
        is_live: false,
        ..Board::default()
    }
}

fn panels() -> Vec<Panel> {
    let half = |key, title: &str, note: &str, content| panel(key, title, note, Width::Half, content);
    let candles = panel(
        "candles",
        "Candles",
        "1h, the last four days",
        Width::Whole,
        Content::Candles(candles()),
    );
    vec![
        candles,
        half("depth", "Depth", "Within 1 % of the middle", Content::Depth(depth())),
        half(
            "ladder",
            "Order book",
            "The best 8 levels of each side",
            Content::Ladder(ladder()),
        ),
        half(
            "profile",
            "Volume by price",
            "The last four days, 40 bins",
            Content::Profile(profile()),
        ),
        half(
            "spread",
            "Spread and impact",
            "The last five minutes",
            Content::Lines(lines()),
        ),
        half(
            "imbalance",
            "Imbalance",
            "From −1 (all asks) to 1 (all bids)",
            Content::Lines(imbalance()),
        ),
        half(
            "costs",
            "Cost to trade",
            "Against the middle, now",
            Content::Table(costs()),
        ),
        half(
            "figures",
            "Figures",
            "Exact unless said otherwise",
            Content::Figures(figures()),
        ),
        half(
            "missing",
            "Trades",
            "The last ten",
            Content::Missing("Nothing was traded in the last hour.".to_owned()),
        ),
    ]
}

fn panel(key: &'static str, title: &str, note: &str, width: Width, content: Content) -> Panel {
    Panel {
        key,
        title: title.to_owned(),
        note: Some(format!("{note}. Sample figures.")),
        width,
        content,
    }
}

/// Deterministic noise from 0 to 1.
fn noise(index: usize, salt: u64) -> f64 {
    let mut state = (index as u64).wrapping_add(salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((state ^ (state >> 31)) % 10_000) as f64 / 10_000.0
}

fn start() -> Timestamp {
    // 2026-03-02 00:00 UTC.
    Timestamp::from_second(1_772_409_600).unwrap_or_default()
}

fn after(secs: usize) -> Timestamp {
    let since = SignedDuration::from_secs(i64::try_from(secs).unwrap_or(i64::MAX));
    start().saturating_add(since).unwrap_or_default()
}

pub fn headline() -> Headline {
    Headline {
        label: "Last price".to_owned(),
        value: Amount::new("61234.50", "USD"),
        change: Some((Amount::new("+1.703", "% in 24 h"), Tone::Up)),
        as_of: Some(after(4 * 86_400)),
        age_ms: Some(412),
        figures: vec![
            Figure::new("Bid", Amount::new("61234.40", "USD")),
            Figure::new("Ask", Amount::new("61234.60", "USD")),
            Figure::new("Spread", Amount::new("0.033", "bps")),
            Figure::new("24 h volume", Amount::new("18234.771", "SAMPLE")),
            Figure::unknown("Funding", "not a future"),
        ],
    }
}

pub fn candles() -> Candles {
    let mut close = 59_700.0;
    let candle = |index: usize| {
        let open = close;
        let drift = (index as f64 / 13.0).sin() * 90.0;
        close = open + drift + (noise(index, 1) - 0.5) * 420.0;
        if index == LAST_CANDLE {
            close = LAST_PRICE;
        }
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
    Candles {
        interval: "1h".to_owned(),
        candles: (0..=LAST_CANDLE).map(candle).collect(),
        price_unit: "USD".to_owned(),
        volume_unit: "SAMPLE".to_owned(),
        price_places: 2,
    }
}

pub fn depth() -> DepthChart {
    let side = |direction: f64, salt: u64| {
        let mut total = 0.0;
        let level = |index: usize| {
            total += noise(index, salt) * 1.6 + if index % 17 == 11 { 6.0 } else { 0.0 };
            (LAST_PRICE + direction * (0.1 + index as f64 * 6.1), total)
        };
        (0..100).map(level).collect()
    };
    DepthChart {
        bids: side(-1.0, 5),
        asks: side(1.0, 6),
        price_unit: "USD".to_owned(),
        quantity_unit: "SAMPLE".to_owned(),
        price_places: 2,
    }
}

pub fn profile() -> ProfileChart {
    let bin = |index: usize| {
        let from = 59_800.0 + index as f64 * 50.0;
        let hill = |middle: f64, width: f64| (-((from - middle) / width).powi(2)).exp();
        ProfileBin {
            from,
            to: from + 50.0,
            volume: 40.0 + 900.0 * hill(60_700.0, 320.0) + 420.0 * hill(61_300.0, 150.0) + noise(index, 7) * 60.0,
        }
    };
    let bins: Vec<ProfileBin> = (0..40).map(bin).collect();
    let most = bins.iter().max_by(|a, b| a.volume.total_cmp(&b.volume));
    ProfileChart {
        poc: most.map(|bin| bin.from / 2.0 + bin.to / 2.0),
        bins,
        value_area: Some((60_350.0, 61_300.0)),
        last_price: Some(LAST_PRICE),
        price_unit: "USD".to_owned(),
        volume_unit: "SAMPLE".to_owned(),
        price_places: 2,
    }
}

pub fn lines() -> Lines {
    let line = |label: &str, base: f64, salt: u64| Line {
        label: label.to_owned(),
        points: (0..150)
            .map(|index| {
                let is_known = !(60..68).contains(&index);
                let value = base + (index as f64 / 19.0).sin() * 0.4 + noise(index / 4, salt) * 0.3;
                (after(index * 2), is_known.then_some(value))
            })
            .collect(),
    };
    Lines {
        unit: "bps".to_owned(),
        places: 2,
        range: None,
        lines: vec![line("Spread", 1.2, 8), line("Impact of 10,000 USD", 2.6, 9)],
    }
}

pub fn imbalance() -> Lines {
    let point = |index: usize| {
        let value = (index as f64 / 23.0).sin() * 0.5 + (noise(index / 3, 10) - 0.5) * 0.3;
        (after(index * 2), Some(value))
    };
    Lines {
        unit: String::new(),
        places: 2,
        range: Some((-1.0, 1.0)),
        lines: vec![Line {
            label: "Imbalance".to_owned(),
            points: (0..150).map(point).collect(),
        }],
    }
}

pub fn ladder() -> Ladder {
    let side = |direction: i64, salt: u64| {
        let quantities: Vec<f64> = (0..8).map(|index| 0.05 + noise(index, salt) * 2.0).collect();
        let mut total = 0.0;
        let rung = |(index, quantity): (usize, &f64)| {
            total += quantity;
            let tenths = 612_345 + direction * (1 + 3 * index as i64);
            Rung {
                price: format!("{}.{}0", tenths / 10, tenths % 10),
                quantity: format!("{quantity:.5}"),
                total: format!("{total:.5}"),
                share: total / 10.0,
            }
        };
        quantities.iter().enumerate().map(rung).collect()
    };
    Ladder {
        bids: side(-1, 11),
        asks: side(1, 12),
        spread: Some(Amount::new("0.20", "USD (0.033 bps)")),
        price_unit: "USD".to_owned(),
        quantity_unit: "SAMPLE".to_owned(),
    }
}

pub fn costs() -> Table {
    let column = |title: &str, is_number| Column {
        title: title.to_owned(),
        is_number,
    };
    let rows = [
        ("1000", "0.02", "0.03"),
        ("10000", "0.41", "0.38"),
        ("100000", "2.10", "2.64"),
        ("1000000", "14.90", ""),
    ];
    let row = |(size, buy, sell): (&str, &str, &str)| {
        let cell = |text: &str, tone| Cell {
            text: text.to_owned(),
            tone,
            share: text.parse().ok().map(|cost: f64| cost / 15.0),
            ..Cell::default()
        };
        let sell = match sell {
            "" => Cell {
                text: "not enough bids".to_owned(),
                tone: Tone::Warning,
                ..Cell::default()
            },
            sell => cell(sell, Tone::Plain),
        };
        let size = Cell {
            text: size.to_owned(),
            ..Cell::default()
        };
        vec![size, cell(buy, Tone::Plain), sell]
    };
    Table {
        columns: vec![
            column("Size, USD", true),
            column("Buying, bps", true),
            column("Selling, bps", true),
        ],
        rows: rows.into_iter().map(row).collect(),
    }
}

pub fn figures() -> Vec<Figure> {
    let toned = |label: &str, text: &str, unit: &str, tone| Figure {
        tone,
        ..Figure::new(label, Amount::new(text, unit))
    };
    vec![
        toned("24 h change", "+1.703", "%", Tone::Up),
        toned("1 h change", "-0.412", "%", Tone::Down),
        toned("Bought in 5 min", "12.70411", "SAMPLE", Tone::Up),
        Figure {
            note: Some("descriptive: standard deviation of 5 min returns".to_owned()),
            ..Figure::new("Volatility", Amount::new("38.2", "% a year"))
        },
        Figure::unknown("Funding", "not a future"),
    ]
}
