//! Figures that come as lists of parts: components of a score, checks, ranges, bands.

use rust_decimal::Decimal;
use rust_decimal::prelude::FromPrimitive;
use serde_json::Value;
use tribune_core::view::{Amount, Cell, Column, Content, Figure, Headline, Panel, Tone, Width};

use super::parts::{cell, noted, numbers, panel, table, toned, words};
use super::profile::vacuums_title;
use super::record::Told;
use super::words::{capitalised, standing};

/// Rows that a page lists of anything.
const MOST_ROWS: usize = 100;

/// Names of the fields that are shown here.
pub(crate) const LISTS: &[&str] = &["components", "checks", "vacuums", "bands"];

/// Every list that the answer has.
pub(crate) fn panels(told: &Told) -> Vec<Panel> {
    let list = |name: &str| match told.parts(name) {
        Some(Value::Array(parts)) => Some(parts),
        _ => None,
    };
    let made = [
        list("components").map(|parts| components(told, &parts)),
        list("checks").map(|parts| checks(&parts)),
        list("vacuums").map(|parts| vacuums(told, &parts)),
        list("bands").map(|parts| bands(told, &parts)),
    ];
    made.into_iter().flatten().collect()
}

/// The score of a market's health, or how many checks found something.
pub(crate) fn headline(told: &Told) -> Option<Headline> {
    let (label, value, figures) = if told.fields.contains_key("components") {
        let score = told.text("score").map_or_else(
            || Amount::plain("unknown"),
            |score| Amount::new(score.strip_suffix(".0").unwrap_or(score), "of 100"),
        );
        let used = told.number("weights_used").map(|used| (used * 100.0).round());
        let used = used.map(|used| Figure::new("Weight with inputs", Amount::new(used.to_string(), "%")));
        ("Health", score, used.into_iter().collect())
    } else if told.fields.contains_key("checks") {
        let text = |name: &str| told.text(name).unwrap_or("?").to_owned();
        let found = Amount::new(text("found"), format!("of {} checks", text("checked")));
        ("Unusual", found, Vec::new())
    } else {
        return None;
    };
    Some(Headline {
        label: label.to_owned(),
        value,
        change: None,
        as_of: told.as_of,
        age_ms: told.age_ms(),
        figures,
    })
}

/// What a table of the components of a score has.
pub(crate) fn of_components() -> Vec<Column> {
    vec![
        words("Component"),
        numbers("Points"),
        numbers("Weight"),
        numbers("Contribution"),
        words("From"),
    ]
}

fn components(told: &Told, parts: &[Value]) -> Panel {
    let columns = of_components();
    let row = |part: &Value| {
        let points = part.get("score").and_then(Value::as_f64);
        let input = match (number(part, "input"), text(part, "reason")) {
            (Some(input), _) => {
                let input = input_of(&input, &text(part, "input_unit").unwrap_or_default());
                text(part, "note").map_or(input.clone(), |note| format!("{input}; {note}"))
            }
            (None, reason) => format!("not known: {}; its weight is left out", reason.unwrap_or_default()),
        };
        vec![
            cell(capitalised(&text(part, "name").unwrap_or_default())),
            Cell {
                share: points.map(|points| (points / 100.0).clamp(0.0, 1.0)),
                ..cell(number(part, "score").unwrap_or_else(dash))
            },
            cell(number(part, "weight").unwrap_or_else(dash)),
            cell(number(part, "contribution").unwrap_or_else(dash)),
            cell(input),
        ]
    };
    let note = "Each component has from 0 to 100 points.";
    let note = standing(told).map_or_else(|| note.to_owned(), |standing| format!("{note} {standing}."));
    let rows = parts.iter().take(MOST_ROWS).map(row).collect();
    noted(
        panel(
            "components",
            "Components of the score",
            Width::Whole,
            table(columns, rows),
        ),
        note,
    )
}

/// `1.2 bps of mid`; longer words on what the number is stand in brackets.
pub(crate) fn input_of(input: &str, unit: &str) -> String {
    if unit.split(' ').count() > 3 {
        format!("{input} ({unit})")
    } else {
        format!("{input} {unit}")
    }
}

fn checks(parts: &[Value]) -> Panel {
    let columns = vec![
        words("Check"),
        words("Found"),
        words("Over"),
        numbers("Value"),
        numbers("Usual"),
        numbers("Found from"),
        numbers("Samples"),
        words("What it is"),
    ];
    let row = |part: &Value| {
        let severity = text(part, "severity");
        let found = match part.get("found").and_then(Value::as_bool) {
            Some(true) => toned(
                format!("yes, {}", severity.as_deref().unwrap_or("severity unknown")),
                severe(severity.as_deref()),
            ),
            Some(false) => toned("no", Tone::Good),
            None => cell("not checked"),
        };
        let note = match text(part, "reason") {
            Some(reason) => format!("{reason}; {}", text(part, "note").unwrap_or_default()),
            None => text(part, "note").unwrap_or_default(),
        };
        vec![
            cell(capitalised(&text(part, "type").unwrap_or_default().replace('_', " "))),
            found,
            cell(text(part, "window").unwrap_or_else(dash)),
            cell(number(part, "value").unwrap_or_else(dash)),
            cell(number(part, "baseline").unwrap_or_else(dash)),
            cell(number(part, "threshold").unwrap_or_else(dash)),
            cell(number(part, "samples").unwrap_or_else(dash)),
            cell(note),
        ]
    };
    let note = format!(
        "{} checks against the market's own past. Hints, not findings.",
        parts.len()
    );
    let rows = parts.iter().take(MOST_ROWS).map(row).collect();
    noted(panel("checks", "Checks", Width::Whole, table(columns, rows)), note)
}

fn vacuums(told: &Told, parts: &[Value]) -> Panel {
    let title = vacuums_title(told);
    if parts.is_empty() {
        let nothing = "No price range between traded ones was nearly empty.";
        return panel("vacuums", title, Width::Whole, Content::Text(nothing.to_owned()));
    }
    let columns = vec![
        numbers(format!("From ({})", told.quote)),
        numbers(format!("To ({})", told.quote)),
        numbers(format!("Traded ({})", told.base)),
        numbers("Emptiness"),
        words("Severity"),
    ];
    let row = |part: &Value| {
        let severity = text(part, "severity");
        vec![
            cell(text(part, "from").unwrap_or_else(dash)),
            cell(text(part, "to").unwrap_or_else(dash)),
            cell(text(part, "volume_base").unwrap_or_else(dash)),
            Cell {
                share: part
                    .get("emptiness")
                    .and_then(Value::as_f64)
                    .map(|share| share.clamp(0.0, 1.0)),
                ..cell(number(part, "emptiness").unwrap_or_else(dash))
            },
            toned(severity.clone().unwrap_or_else(dash), severe(severity.as_deref())),
        ]
    };
    let note = format!(
        "Price ranges in which little was traded, from {} candles of {}. {}.",
        told.text("candles").unwrap_or("?"),
        told.text("candles_of").unwrap_or("?"),
        standing(told).unwrap_or_default()
    );
    let rows = parts.iter().take(MOST_ROWS).map(row).collect();
    noted(panel("vacuums", title, Width::Whole, table(columns, rows)), note)
}

fn bands(told: &Told, parts: &[Value]) -> Panel {
    let columns = vec![
        numbers("Within (bps of mid)"),
        numbers(format!("Bids ({})", told.quote)),
        numbers(format!("Asks ({})", told.quote)),
        numbers("Imbalance"),
        words("Known"),
    ];
    let row = |part: &Value| {
        let complete = part.get("complete").and_then(Value::as_bool) == Some(true);
        vec![
            cell(number(part, "distance_bps").unwrap_or_else(dash)),
            cell(text(part, "bid_notional_quote").unwrap_or_else(dash)),
            cell(text(part, "ask_notional_quote").unwrap_or_else(dash)),
            cell(number(part, "imbalance").unwrap_or_else(dash)),
            if complete {
                toned("whole", Tone::Good)
            } else {
                toned("at least: the book is not known that far", Tone::Warning)
            },
        ]
    };
    let note = format!(
        "Money that rests near the mid, in {}. Sums are exact where the book is known that far.",
        told.quote
    );
    let rows = parts.iter().take(MOST_ROWS).map(row).collect();
    noted(
        panel("bands", "Depth near the mid", Width::Whole, table(columns, rows)),
        note,
    )
}

/// The more severe, the louder.
pub(crate) fn severe(severity: Option<&str>) -> Tone {
    match severity {
        Some("high") => Tone::Bad,
        Some("medium") => Tone::Warning,
        _ => Tone::Plain,
    }
}

fn text(part: &Value, name: &str) -> Option<String> {
    part.get(name)?.as_str().map(str::to_owned)
}

/// As JSON has it, without an exponent.
pub(crate) fn number(part: &Value, name: &str) -> Option<String> {
    plain(part.get(name)?.as_f64()?)
}

pub(crate) fn plain(number: f64) -> Option<String> {
    let exact = Decimal::from_f64(number).map(|number| number.normalize().to_string());
    exact.or_else(|| number.is_finite().then(|| number.to_string()))
}

pub(crate) fn dash() -> String {
    "–".to_owned()
}
