//! Names of figures as people read them, and their units.

use jiff::Timestamp;
use rust_decimal::Decimal;
use tribune_core::view::Amount;

use super::record::Told;

/// Said elsewhere on the page, or for programs only.
const UNTOLD: &[&str] = &[
    "venue",
    "source",
    "exchange_time",
    "received_time",
    "age_ms",
    "book_state",
    "book_state_reason",
    "clock_note",
    "simulated",
    "note",
    "annualisation",
    "mapping",
    "sampling",
    "interval",
    "last_closed",
    "levels_asked",
    "basis",
    "rules",
    "start_ms",
    "end_ms",
    "bid_complete",
    "ask_complete",
    "last_update_id",
    "window_start",
    "window_end",
];

/// Names whose words do not say enough.
const NAMED: &[(&str, &str)] = &[
    ("poc", "Point of control"),
    ("poc_low", "Its row from"),
    ("poc_high", "Its row up to"),
    ("vah", "Value area high"),
    ("val", "Value area low"),
    ("vwap", "VWAP"),
    ("atr", "ATR"),
    ("atr_pct", "ATR in percent"),
    ("amihud_pct_per_million_quote", "moved by a million"),
    ("band", "Near the mid"),
    ("filled_base", "Filled quantity"),
    ("filled_quote", "Filled worth"),
    ("cost_bps", "Cost against mid"),
    ("cost_quote", "Cost in money"),
    ("asked_base", "Asked quantity"),
    ("asked_quote", "Asked worth"),
    ("spread_bps", "Spread in basis points"),
    ("depth_25_bps", "Within 25 bps of mid"),
    ("quote", "worth"),
    ("quote_volume", "Worth"),
    ("volume_base", "Volume"),
    ("cvd_base", "Cumulative delta"),
    ("cvd_high_base", "Cumulative delta, highest"),
    ("cvd_low_base", "Cumulative delta, lowest"),
    ("ofi_base", "Order-flow imbalance"),
    ("net_flow_base", "Net flow"),
    ("net_flow_quote", "Net flow, worth"),
    ("buy_volume_base", "Bought"),
    ("sell_volume_base", "Sold"),
    ("buy_quote_volume", "Bought, worth"),
    ("sell_quote_volume", "Sold, worth"),
    ("orders_per_sec", "Orders a second"),
    ("imbalance_l1", "Imbalance of the best levels"),
    ("bid_levels_known", "Bid levels known"),
    ("ask_levels_known", "Ask levels known"),
    ("tick_size", "Price step"),
    ("step_size", "Quantity step"),
    ("min_notional", "Smallest order"),
    ("max_notional", "Largest order"),
];

/// Endings that are units, and told as such.
const ENDINGS: &[&str] = &["_bps", "_pct", "_base", "_quote", "_secs", "_ms"];

pub(crate) fn is_told(name: &str) -> bool {
    !UNTOLD.contains(&name) && !name.ends_with("standing") && !name.ends_with("_listed")
}

pub(crate) fn label(name: &str) -> String {
    if let Some((_, label)) = NAMED.iter().find(|(known, _)| *known == name) {
        return (*label).to_owned();
    }
    let stem = ENDINGS
        .iter()
        .find_map(|ending| name.strip_suffix(ending))
        .unwrap_or(name);
    capitalised(&stem.replace('_', " "))
}

pub(crate) fn capitalised(words: &str) -> String {
    let mut letters = words.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}

/// A value under its name, for people: with its unit, and times as times.
pub(crate) fn amount(name: &str, value: &str, told: &Told) -> Amount {
    match value {
        "true" => return Amount::plain("yes"),
        "false" => return Amount::plain("no"),
        _ => {}
    }
    let is_time =
        matches!(name, "start_ms" | "end_ms" | "time_ms") || name.ends_with("_start_ms") || name.ends_with("_end_ms");
    if is_time && let Some(time) = value.parse().ok().and_then(time_of) {
        return Amount::plain(time);
    }
    Amount {
        text: if DERIVED.contains(&name) {
            derived(value)
        } else {
            value.strip_suffix(".0").unwrap_or(value).to_owned()
        },
        unit: unit(name, told),
    }
}

/// Prices that come from a division: their last places say nothing.
const DERIVED: &[&str] = &["vwap", "microprice", "atr"];
/// Digits that they are shown with.
const DERIVED_DIGITS: u32 = 8;

/// A quotient as people read it; what is not a number stays as it is.
pub(crate) fn derived(text: &str) -> String {
    let number = text
        .parse::<Decimal>()
        .ok()
        .and_then(|number| number.round_sf(DERIVED_DIGITS));
    number.map_or_else(|| text.to_owned(), |number| number.normalize().to_string())
}

/// `2026-01-02 03:04:05`, in UTC.
pub(crate) fn time_of(millis: i64) -> Option<String> {
    let time = Timestamp::from_millisecond(millis).ok()?;
    Some(time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
}

fn unit(name: &str, told: &Told) -> Option<String> {
    let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    if name.ends_with("_pct_per_million_quote") {
        return Some(format!("% per million {}", told.quote));
    }
    let unit = if ends(&["_bps"]) {
        "bps"
    } else if ends(&["_pct"]) || name.starts_with("threshold_pct") {
        "%"
    } else if ends(&["_secs"]) {
        "s"
    } else if ends(&["_ms"]) {
        "ms"
    } else if ends(&["_base", "_quantity"]) || name == "step_size" {
        &told.base
    } else if ends(&["_price", "_quote", "quote_volume", "_notional", "true_range"]) || is_price(name) {
        &told.quote
    } else {
        return None;
    };
    Some(unit.to_owned())
}

fn is_price(name: &str) -> bool {
    const PRICES: &[&str] = &[
        "price",
        "mid",
        "spread",
        "microprice",
        "vwap",
        "poc",
        "poc_low",
        "poc_high",
        "vah",
        "val",
        "row_width",
        "tick_size",
        "quote",
        "price_change",
        "from",
        "to",
        "atr",
    ];
    PRICES.contains(&name)
}

/// How far a figure can be trusted, in a sentence: its standing and what is to be known.
pub(crate) fn standing(told: &Told) -> Option<String> {
    let standing = told.text("standing").map(capitalised);
    let note = told.text("note").map(str::to_owned);
    match (standing, note) {
        (Some(standing), Some(note)) => Some(format!("{standing}: {note}")),
        (standing, note) => standing.or(note),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_and_endings_units() {
        assert_eq!(label("weighted_average_price"), "Weighted average price");
        assert_eq!(label("cost_bps"), "Cost against mid");
        assert_eq!(label("threshold_bps"), "Threshold");
        assert_eq!(
            (
                &*derived("63998.9486070129"),
                &*derived("0.0000123456789"),
                &*derived("?")
            ),
            ("63998.949", "0.000012345679", "?")
        );
        assert_eq!(label("vah"), "Value area high");
        assert!(!is_told("microprice_standing") && !is_told("bids_listed") && is_told("mid"));
        assert_eq!(time_of(0).as_deref(), Some("1970-01-01 00:00:00 UTC"));
        assert_eq!((time_of(i64::MAX), capitalised("")), (None, String::new()));
    }
}
