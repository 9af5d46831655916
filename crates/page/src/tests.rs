//! Hostile input for every drawing: the page must stay valid.

use crate::{
    Candle, Candles, Cell, Column, Content, DepthChart, Figure, Ladder, Line, Lines, Panel, ProfileBin, ProfileChart,
    Rung, Table, Tone, Width,
};
use jiff::Timestamp;
use proptest::prelude::*;

use crate::panel;

/// Any float, often one that breaks arithmetic.
fn value() -> impl Strategy<Value = f64> {
    let nasty =
        [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN, f64::MIN_POSITIVE, 0.0, -0.0, 1e18, 1e-12];
    prop_oneof![any::<f64>(), prop::sample::select(nasty.to_vec()), -1e5..1e5f64]
}

fn moment() -> impl Strategy<Value = Timestamp> {
    let any_moment = (Timestamp::MIN.as_millisecond()..=Timestamp::MAX.as_millisecond())
        .prop_map(|millis| Timestamp::from_millisecond(millis).expect("in range"));
    let near = (0i64..1000).prop_map(|second| Timestamp::from_second(second).expect("in range"));
    prop_oneof![any_moment, near]
}

fn words() -> impl Strategy<Value = String> {
    let nasty = ["", "\u{202e}</svg><script>", "-", "ضضض", "\0\r\n", "1e999", "NaNo"];
    prop_oneof![prop::sample::select(nasty.to_vec()).prop_map(str::to_owned), "\\PC{0,40}", "[0-9]{1,30}"]
}

fn candles() -> impl Strategy<Value = Content> {
    let candle = (moment(), value(), value(), value(), value(), value(), any::<bool>());
    let candle = candle.prop_map(|(opened, open, high, low, close, volume, is_open)| Candle {
        opened,
        open,
        high,
        low,
        close,
        volume,
        is_open,
    });
    (prop::collection::vec(candle, 0..8), words(), 0usize..400).prop_map(|(candles, unit, price_places)| {
        Content::Candles(Candles {
            interval: "1h".to_owned(),
            candles,
            price_unit: unit.clone(),
            volume_unit: unit,
            price_places,
        })
    })
}

fn depth() -> impl Strategy<Value = Content> {
    let side = || prop::collection::vec((value(), value()), 0..8);
    (side(), side(), 0usize..400).prop_map(|(bids, asks, price_places)| {
        Content::Depth(DepthChart { bids, asks, price_places, ..DepthChart::default() })
    })
}

fn profile() -> impl Strategy<Value = Content> {
    let bin = (value(), value(), value()).prop_map(|(from, to, volume)| ProfileBin { from, to, volume });
    let marks = (prop::option::of(value()), prop::option::of((value(), value())), prop::option::of(value()));
    (prop::collection::vec(bin, 0..8), marks).prop_map(|(bins, (poc, value_area, last_price))| {
        Content::Profile(ProfileChart { bins, poc, value_area, last_price, ..ProfileChart::default() })
    })
}

fn lines() -> impl Strategy<Value = Content> {
    let points = prop::collection::vec((moment(), prop::option::of(value())), 0..12);
    let line = (words(), points).prop_map(|(label, points)| Line { label, points });
    let range = prop::option::of((value(), value()));
    (prop::collection::vec(line, 0..6), range, 0usize..400)
        .prop_map(|(lines, range, places)| Content::Lines(Lines { unit: String::new(), places, range, lines }))
}

fn rung() -> impl Strategy<Value = Rung> {
    (words(), words(), words(), value()).prop_map(|(price, quantity, total, share)| Rung {
        price,
        quantity,
        total,
        share,
    })
}

fn ladder() -> impl Strategy<Value = Content> {
    let side = || prop::collection::vec(rung(), 0..4);
    (side(), side()).prop_map(|(bids, asks)| Content::Ladder(Ladder { bids, asks, ..Ladder::default() }))
}

fn table() -> impl Strategy<Value = Content> {
    let cell = (words(), prop::option::of(value())).prop_map(|(text, share)| Cell {
        text,
        share,
        tone: Tone::Down,
        link: None,
    });
    let column = (words(), any::<bool>()).prop_map(|(title, is_number)| Column { title, is_number });
    let rows = prop::collection::vec(prop::collection::vec(cell, 0..4), 0..4);
    (prop::collection::vec(column, 0..4), rows).prop_map(|(columns, rows)| Content::Table(Table { columns, rows }))
}

fn other() -> impl Strategy<Value = Content> {
    let figure = (words(), words()).prop_map(|(label, why)| Figure::unknown(label, why));
    prop_oneof![
        prop::collection::vec(figure, 0..4).prop_map(Content::Figures),
        words().prop_map(Content::Text),
        words().prop_map(Content::Markdown),
        words().prop_map(Content::Missing),
    ]
}

fn content() -> impl Strategy<Value = Content> {
    prop_oneof![candles(), depth(), profile(), lines(), ladder(), table(), other()]
}

/// The values of geometry attributes.
fn geometry(html: &str) -> impl Iterator<Item = (&'static str, &str)> {
    const NAMES: [&str; 7] = [" d=\"", " x=\"", " y=\"", " width=\"", " height=\"", " viewBox=\"", " rx=\""];
    NAMES.into_iter().flat_map(move |name| {
        let values = html.split(name).skip(1);
        values.map(move |rest| (name, rest.split('"').next().unwrap_or_default()))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn hostile_content_gives_valid_geometry(content in content(), is_whole: bool) {
        let shown = Panel {
            key: "any",
            title: "Any".to_owned(),
            note: None,
            width: if is_whole { Width::Whole } else { Width::Half },
            content,
        };
        let html = panel(&shown, &|id| format!("/data/{id}")).to_string();
        prop_assert!(!html.contains("<script"), "{}", html);
        for (name, value) in geometry(&html) {
            let mut characters = value.chars();
            prop_assert!(characters.all(|c| c.is_ascii_digit() || "MLHVhvz .-%em".contains(c)), "{name}{value}");
            if let Some(share) = value.strip_suffix('%') {
                let share: f64 = share.parse().expect("a number");
                prop_assert!((0.0..=100.0).contains(&share), "{name}{value}");
            }
        }
    }
}
