//! Figures by their names: what people read for them, their units, and how their values look.

use serde_json::Value;
use tribune_page::parts::{signed, tone_of};
use tribune_page::text::{capitalised, derived, finite, plain, ratio, sum, time_of};
use tribune_page::{Amount, Tone};

use super::Page;

/// Shown elsewhere on the page, or for programs only.
const UNNAMED: &str = "id note annualisation mapping sampling interval last_closed levels_asked basis rules start_ms end_ms \
                      bid_complete ask_complete bid_levels_used ask_levels_used last_update_id reason";

/// Labels of figures whose names are not clear enough.
const NAMED: &[(&str, &str)] = &[
    ("aggressor", "Taker"),
    ("amihud_pct_per_million_quote", "price impact"),
    ("asked_base", "Requested quantity"),
    ("asked_quote", "Requested value"),
    ("atr", "ATR"),
    ("atr_pct", "ATR in percent"),
    ("band", "Near the mid"),
    ("buy_quote_volume", "Taker buy value"),
    ("buy_volume_base", "Taker buys"),
    ("cvd_base", "Cumulative delta"),
    ("cvd_high_base", "Cumulative delta, highest"),
    ("cvd_low_base", "Cumulative delta, lowest"),
    ("depth_25_bps", "Within 25 bps of mid"),
    ("distance_bps", "Distance from mid"),
    ("filled_base", "Filled quantity"),
    ("filled_quote", "Filled value"),
    ("found", "Unusual"),
    ("imbalance_l1", "Imbalance of the best levels"),
    ("max_notional", "Largest order"),
    ("mid", "Mid price"),
    ("min_notional", "Smallest order"),
    ("notional_quote", "Size"),
    ("orders_per_sec", "Trades a second"),
    ("poc", "Point of control"),
    ("price_change_pct", "Change"),
    ("quote", "value"),
    ("quote_volume", "Turnover"),
    ("score", "Health"),
    ("sell_quote_volume", "Taker sell value"),
    ("sell_volume_base", "Taker sells"),
    ("vah", "Value area high"),
    ("val", "Value area low"),
    ("volume_share_pct", "Share"),
    ("vwap", "Average price"),
];

/// Endings that are units, and values as such.
const ENDINGS: &[&str] = &["_bps", "_pct", "_base", "_quote", "_secs", "_ms"];
/// Names of prices and sums of money whose endings do not say so.
const MONEY: &str = "price mid spread microprice vwap row_width tick_size quote price_change from to atr poc vah val \
                     poc_low poc_high";
/// Computed prices and sums, which are rounded for people.
const DERIVED: &str = "vwap microprice atr poc";
const SUMS: &str = "volume_base quote_volume total_volume_base total_quote_volume";
/// Amounts of money that columns compare, to three digits and at least two places.
const ROUNDED: &str =
    "bid_notional_quote ask_notional_quote cost_quote net_flow_quote buy_quote_volume sell_quote_volume";
/// Numbers that rise and fall.
const SIGNED: &str = "price_change price_change_pct net_flow_base net_flow_quote cvd_base ofi_base";

/// Whether a name is one of a list, divided by spaces.
pub(super) fn has(names: &str, name: &str) -> bool {
    names.split_ascii_whitespace().any(|known| known == name)
}

pub(super) fn is_named(name: &str) -> bool {
    !has(UNNAMED, name) && !["standing", "_listed", "_cut", "_counts"].iter().any(|ending| name.ends_with(ending))
}

pub(super) fn label(name: &str) -> String {
    if let Some((_, label)) = NAMED.iter().find(|(known, _)| *known == name) {
        return (*label).to_owned();
    }
    let stem = ENDINGS.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name);
    capitalised(&stem.replace('_', " "))
}

/// A value under its name, for people; `None` of what has parts.
pub(super) fn amount(name: &str, value: &Value, page: &Page<'_>) -> Option<Amount> {
    let text = match value {
        Value::Bool(is_so) => return Some(Amount::plain(if *is_so { "yes" } else { "no" })),
        Value::Number(number) if number.is_f64() => number.as_f64().and_then(plain)?,
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    };
    if name == "time_ms" || name.ends_with("_start_ms") || name.ends_with("_end_ms") {
        return text.parse().ok().and_then(time_of).map(Amount::plain);
    }
    if finite(&text).is_none() {
        return Some(Amount::plain(text.replace('_', " ")));
    }
    let is_ratio = ["_bps", "_pct"].iter().any(|ending| name.ends_with(ending)) && !value.is_u64();
    let text = if has(DERIVED, name) {
        derived(&text)
    } else if has(SUMS, name) {
        sum(&text)
    } else if is_ratio || has(ROUNDED, name) {
        text.parse().map_or(text, ratio)
    } else {
        text
    };
    let text = if has(SIGNED, name) { signed(&text) } else { text };
    Some(Amount { text, unit: unit(name, page) })
}

/// The tone of a value: of a side, a severity, or a number that rises and falls.
pub(super) fn tone(name: &str, value: &Value) -> Tone {
    let number = || value.as_f64().or_else(|| finite(value.as_str()?));
    match value.as_str() {
        Some("buy" | "buyer") => Tone::Up,
        Some("sell" | "seller") => Tone::Down,
        Some("high") => Tone::Bad,
        Some("medium") => Tone::Warning,
        _ if name == "complete" && *value == Value::Bool(false) => Tone::Warning,
        _ if name == "buy_volume_base" => Tone::Up,
        _ if name == "sell_volume_base" => Tone::Down,
        _ if has(SIGNED, name) => tone_of(number()),
        _ => Tone::Plain,
    }
}

pub(super) fn unit(name: &str, page: &Page<'_>) -> Option<String> {
    let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    let unit = if name == "score" {
        "of 100"
    } else if name.ends_with("_pct_per_million_quote") {
        return Some(format!("% per million {}", page.about.quote()));
    } else if ends(&["_bps"]) {
        "bps"
    } else if ends(&["_pct"]) || name.starts_with("threshold_pct") {
        "%"
    } else if ends(&["_secs"]) {
        "s"
    } else if ends(&["_ms"]) {
        "ms"
    } else if ends(&["_base", "_quantity"]) || name == "step_size" {
        page.about.base()
    } else if ends(&["_price", "_quote", "quote_volume", "_notional", "true_range"]) || has(MONEY, name) {
        page.about.quote()
    } else {
        return None;
    };
    Some(unit.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_and_endings_units() {
        assert_eq!(label("weighted_average_price"), "Weighted average price");
        assert_eq!(label("threshold_bps"), "Threshold");
        assert!(!is_named("microprice_standing") && !is_named("bids_listed") && is_named("mid"));
    }

    #[test]
    fn values_look_as_their_names_say() {
        Page::example(|page| {
            let text = |name: &str, value: Value| amount(name, &value, page).map(|amount| amount.text);
            assert_eq!(text("quote_volume", "54762603.8".into()).as_deref(), Some("54.8 M"));
            assert_eq!(text("price_change_pct", 1.5.into()).as_deref(), Some("+1.50"));
            assert_eq!(text("distance_bps", 25.into()).as_deref(), Some("25"));
            assert_eq!(text("cost_quote", "709.86333427".into()).as_deref(), Some("709.86"));
            assert_eq!(text("spread_bps", 0.001_562_5.into()).as_deref(), Some("0.00156"));
            assert_eq!(text("time_ms", 0.into()).as_deref(), Some("1970-01-01 00:00:00 UTC"));
            assert_eq!(text("type", "quote_rate".into()).as_deref(), Some("quote rate"));
            assert_eq!((text("mid", Value::Null), unit("ofi_base", page)), (None, Some("BTC".to_owned())));
        });
    }
}
