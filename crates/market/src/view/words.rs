//! Names of figures as people read them, and their units.

use jiff::Timestamp;
use rust_decimal::Decimal;
use tribune_core::view::Amount;

use super::record::{Told, padded};

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
    ("orders_per_sec", "Trades a second"),
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

/// Digits that count of a ratio, and the places that they may take.
const RATIO_DIGITS: i64 = 3;
const FEWEST_PLACES: i64 = 2;
const MOST_PLACES: i64 = 6;

/// Places with which a ratio of this size is shown: basis points of one market are thousandths, of another hundreds.
/// What is not nothing has a digit however small it is.
pub(crate) fn ratio_places(ratio: Decimal) -> u32 {
    let Some(digits) = ratio.mantissa().unsigned_abs().checked_ilog10() else {
        return FEWEST_PLACES as u32;
    };
    let first = i64::from(ratio.scale()) - i64::from(digits);
    let places = (first + RATIO_DIGITS - 1).clamp(FEWEST_PLACES, MOST_PLACES);
    places.max(first) as u32
}

/// A ratio as people read it: `0.00156`, `12.35`, `150.00`.
pub(crate) fn ratio(ratio: Decimal) -> String {
    let shown = ratio.round_dp(ratio_places(ratio)).normalize();
    padded(&shown.to_string(), FEWEST_PLACES as usize)
}

/// `4 s`, `3 min`, `5 h`: whole ones, so that nothing is said to be older than it is.
pub(crate) fn age(millis: u64) -> String {
    match millis / 1_000 {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3_600),
    }
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
    use proptest::prelude::*;

    #[test]
    fn ratios_have_the_digits_that_their_size_takes() {
        let shown = |text: &str| ratio(text.parse().expect("a number"));
        // A tick of 0.01 at 64,000 is 0.01/64,000 · 10,000 = 0.0015625 bps.
        for (exact, expected) in [
            ("0.0015625", "0.00156"),
            ("0.0016", "0.0016"),
            ("-0.0015625", "-0.00156"),
            ("0.5", "0.50"),
            ("0.12345", "0.123"),
            ("1.23456", "1.23"),
            ("12.3456", "12.35"),
            ("150", "150.00"),
            ("1234.5678", "1234.57"),
            ("0.00000123456", "0.000001"),
            ("0.000000000123456", "0.0000000001"),
            ("0", "0.00"),
            ("0.999999", "1.00"),
        ] {
            assert_eq!(shown(exact), expected, "{exact}");
        }
    }

    #[test]
    fn ages_are_in_the_unit_that_fits() {
        assert_eq!((&*age(999), &*age(119_999), &*age(120_000)), ("0 s", "119 s", "2 min"));
        assert_eq!((&*age(7_199_999), &*age(7_200_000)), ("119 min", "2 h"));
    }

    proptest! {
        #[test]
        fn what_is_not_nothing_never_looks_like_it(mantissa in any::<i64>(), scale in 0..=28u32) {
            let exact = Decimal::from_i128_with_scale(i128::from(mantissa), scale);
            let shown: Decimal = ratio(exact).parse().expect("a number");
            prop_assert_eq!(shown.is_zero(), exact.is_zero());
            prop_assert!(exact.is_zero() || shown.is_sign_negative() == exact.is_sign_negative());
        }
    }

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
