//! Names of figures as people read them, and their units.

use tribune_page::Amount;

use crate::kinds::Page;
use tribune_page::text::{capitalised, derived, time_of};

/// Said elsewhere on the page, or for programs only.
const UNNAMED: &str = "note annualisation mapping sampling interval last_closed levels_asked basis rules start_ms end_ms \
                      bid_complete ask_complete last_update_id window_start window_end";

/// Names whose words do not say enough, of figures that no headline or panel shows.
const NAMED: &[(&str, &str)] = &[
    ("atr", "ATR"),
    ("atr_pct", "ATR in percent"),
    ("amihud_pct_per_million_quote", "moved by a million"),
    ("band", "Near the mid"),
    ("filled_base", "Filled quantity"),
    ("filled_quote", "Filled worth"),
    ("asked_base", "Asked quantity"),
    ("asked_quote", "Asked worth"),
    ("spread_bps", "Spread in basis points"),
    ("depth_25_bps", "Within 25 bps of mid"),
    ("quote", "worth"),
    ("quote_volume", "Worth"),
    ("cvd_base", "Cumulative delta"),
    ("cvd_high_base", "Cumulative delta, highest"),
    ("cvd_low_base", "Cumulative delta, lowest"),
    ("buy_quote_volume", "Bought, worth"),
    ("sell_quote_volume", "Sold, worth"),
    ("imbalance_l1", "Imbalance of the best levels"),
    ("bid_levels_known", "Bid levels known"),
    ("ask_levels_known", "Ask levels known"),
    ("tick_size", "Price step"),
    ("step_size", "Quantity step"),
    ("min_notional", "Smallest order"),
    ("max_notional", "Largest order"),
];

/// Endings that are units, and values as such.
const ENDINGS: &[&str] = &["_bps", "_pct", "_base", "_quote", "_secs", "_ms"];

/// Whether a name is one of a list, divided by spaces.
pub(super) fn has(names: &str, name: &str) -> bool {
    names.split(' ').any(|known| known == name)
}

pub(super) fn is_named(name: &str) -> bool {
    !has(UNNAMED, name) && !name.ends_with("standing") && !name.ends_with("_listed")
}

pub(super) fn label(name: &str) -> String {
    if let Some((_, label)) = NAMED.iter().find(|(known, _)| *known == name) {
        return (*label).to_owned();
    }
    let stem = ENDINGS.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name);
    capitalised(&stem.replace('_', " "))
}

/// A value under its name, for people: with its unit, and times as times.
pub(super) fn amount(name: &str, value: &str, page: &Page<'_>) -> Amount {
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
        unit: unit(name, page),
    }
}

/// Prices that come from a division: their last places say nothing.
const DERIVED: &[&str] = &["vwap", "microprice", "atr"];

/// Names of prices and sums of money whose endings do not say so.
const MONEY: &str = "price mid spread microprice vwap row_width tick_size quote price_change \
                     from to atr";

fn unit(name: &str, page: &Page<'_>) -> Option<String> {
    let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    if name.ends_with("_pct_per_million_quote") {
        return Some(format!("% per million {}", page.quote()));
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
        page.base()
    } else if ends(&["_price", "_quote", "quote_volume", "_notional", "true_range"]) || has(MONEY, name) {
        page.quote()
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
        assert_eq!(label("spread_bps"), "Spread in basis points");
        assert_eq!(label("threshold_bps"), "Threshold");
        assert!(!is_named("microprice_standing") && !is_named("bids_listed") && is_named("mid"));
    }
}
