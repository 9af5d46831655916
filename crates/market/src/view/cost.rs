//! What it would cost to trade now, in several sizes.

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use tribune_core::source::thousands;
use tribune_core::view::{Amount, Cell, Content, Figure, Headline, Panel, Tone, Width};

use super::book::Pair;
use super::parts::{cell, noted, numbers, panel, table, toned, words};
use super::record::{Told, padded};
use super::words::{amount, ratio};
use crate::analytics::cost::{Action, Cost, Size, cost};
use crate::book::Depth;
use crate::number::{Notional, PLACES};

pub(crate) fn cost_table(depth: &Depth, pair: &Pair, sizes: &[Notional]) -> Panel {
    let title = "Cost to trade";
    let worked: Result<Vec<(Notional, Cost)>, _> = [Action::Buy, Action::Sell]
        .into_iter()
        .flat_map(|side| sizes.iter().map(move |size| (side, *size)))
        .map(|(side, size)| cost(depth, side, Size::Quote(size)).map(|cost| (size, cost)))
        .collect();
    let worked = match worked {
        Ok(worked) => worked,
        Err(reason) => return panel("cost", title, Width::Whole, Content::Missing(reason.to_string())),
    };
    let most = worked.iter().filter_map(|(_, cost)| cost.cost_bps).fold(0.0, f64::max);
    let columns = vec![
        words("Order"),
        numbers(format!("Size ({})", pair.quote)),
        numbers(format!("Average price ({})", pair.quote)),
        numbers("From mid (bps)"),
        numbers(format!("Cost ({})", pair.quote)),
        numbers("Levels"),
        words("Filled"),
    ];
    let rows = worked.iter().map(|(size, cost)| row(*size, cost, pair, most)).collect();
    noted(
        panel("cost", title, Width::Whole, table(columns, rows)),
        "Market orders through the known levels, best price first; cost is against the mid, of what the known levels fill, without fees. Exact arithmetic; hidden orders and what others do meanwhile are not known.",
    )
}

/// What an answer tells of trades of several sizes, as it told it.
pub(crate) fn of_record(told: &Told) -> Option<Panel> {
    let listed = told.table("cost_to_trade")?;
    let listed = listed.select(["side", "notional_quote", "vwap", "cost_bps", "filled", "complete"])?;
    let row = |[side, size, vwap, bps, filled, complete]: [&str; 6]| {
        let side = match side {
            "buy" => toned("Buy", Tone::Up),
            _ => toned("Sell", Tone::Down),
        };
        let known = match (filled, complete) {
            ("true", "true") => toned("whole", Tone::Good),
            ("true", _) => toned("the book is not known that far", Tone::Warning),
            _ => toned("the known levels do not suffice", Tone::Warning),
        };
        vec![side, cell(size), cell(vwap), cell(bps), known]
    };
    let columns = vec![
        words("Order"),
        numbers(format!("Size ({})", told.quote)),
        numbers(format!("Average price ({})", told.quote)),
        numbers("Cost (bps of mid)"),
        words("Filled"),
    ];
    let rows: Vec<Vec<Cell>> = listed.map(row).collect();
    (!rows.is_empty()).then(|| {
        noted(
            panel("cost", "Cost to trade", Width::Whole, table(columns, rows)),
            "Market orders through the known levels, best price first, without fees.",
        )
    })
}

/// What the headline of one order's cost has.
pub(crate) const SHOWN: &[&str] = &[
    "vwap",
    "mid",
    "worst_price",
    "slippage_bps",
    "cost_quote",
    "cost_bps",
    "side",
];

/// The page of the present knows nothing of the size that was asked for; `None` if none was.
pub(crate) fn ask_again(told: &Told) -> Option<String> {
    let headline = headline(told)?;
    let asked = headline.label.strip_prefix("Average price, ")?;
    Some(format!(
        "The page of the present has the book and the cost of other sizes; for {asked} now, ask for the cost to trade again."
    ))
}

/// The cost of one order, as it was answered; `None` if the answer is not about that.
pub(crate) fn headline(told: &Told) -> Option<Headline> {
    let side = told.text("side").filter(|_| told.fields.contains_key("levels_used"))?;
    let asked = match (told.text("asked_quote"), told.text("asked_base")) {
        (Some(money), _) => format!("{money} {}", told.quote),
        (None, Some(quantity)) => format!("{quantity} {}", told.base),
        (None, None) => return None,
    };
    let verb = if side == "sell" { "selling" } else { "buying" };
    let figure = |label: &str, name: &str| match told.text(name) {
        Some(value) if name.ends_with("_bps") => {
            let shown = value.parse().map_or_else(|_| value.to_owned(), ratio);
            Figure::new(label, Amount::new(shown, "bps"))
        }
        Some(value) => Figure::new(label, amount(name, value, told)),
        None => Figure::unknown(label, "it could not be computed"),
    };
    Some(Headline {
        label: format!("Average price, {verb} {asked}"),
        value: amount("vwap", told.text("vwap")?, told),
        change: None,
        as_of: told.as_of,
        age_ms: told.age_ms(),
        figures: vec![
            figure("From mid", "slippage_bps"),
            figure("Cost against mid", "cost_quote"),
            figure("Mid", "mid"),
            figure("Worst price", "worst_price"),
        ],
    })
}

fn row(size: Notional, cost: &Cost, pair: &Pair, most: f64) -> Vec<Cell> {
    let side = match cost.side {
        Action::Buy => toned("Buy", Tone::Up),
        Action::Sell => toned("Sell", Tone::Down),
    };
    let average = cost.vwap.round_dp(pair.price_places as u32 + 2).normalize();
    let bps = cost.exact_slippage_bps.map(ratio);
    let share = cost
        .cost_bps
        .filter(|_| most > 0.0)
        .map(|bps| (bps / most).clamp(0.0, 1.0));
    let money = cost
        .cost_quote
        .map(|money| money.round_dp(cost_places(size)).normalize().to_string());
    let unknown = || "unknown".to_owned();
    vec![
        side,
        cell(size.to_string()),
        cell(padded(&average.to_string(), pair.price_places + 2)),
        Cell {
            share,
            ..cell(bps.unwrap_or_else(unknown))
        },
        cell(money.unwrap_or_else(unknown)),
        cell(cost.levels_used.to_string()),
        filled(cost, pair),
    ]
}

/// Of large sums the hundredths are enough; of small ones as many digits count.
fn cost_places(size: Notional) -> u32 {
    let whole_digits = size.decimal().trunc().to_string().len() as u32;
    if size.decimal() >= Decimal::ONE_HUNDRED {
        8u32.saturating_sub(whole_digits).max(2)
    } else {
        PLACES
    }
}

fn filled(cost: &Cost, pair: &Pair) -> Cell {
    match (cost.filled, cost.complete) {
        (true, true) => toned("yes", Tone::Good),
        (true, false) => toned("yes, or better: levels may be missing", Tone::Warning),
        (false, _) => {
            let held = cost.filled_quote.decimal().trunc().to_u64().map(thousands);
            let held = held.filter(|_| cost.filled_quote.decimal() >= Decimal::ONE_HUNDRED);
            let held = held.unwrap_or_else(|| cost.filled_quote.to_string());
            toned(format!("no, only {held} {}", pair.quote), Tone::Warning)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analytics::fixture::{depth, money};
    use crate::analytics::sizes::sizes;
    use tribune_core::view::Table;

    fn rows(panel: &Panel) -> Vec<Vec<String>> {
        let Content::Table(Table { rows, .. }) = &panel.content else {
            panic!("{panel:?}")
        };
        rows.iter()
            .map(|row| row.iter().map(|cell| cell.text.clone()).collect())
            .collect()
    }

    #[test]
    fn costs_worked_by_hand() {
        let book = depth(&[("99", "1"), ("98", "2")], &[("101", "1"), ("102", "2")]);
        let table = cost_table(&book, &Pair::bitcoin(), &[money("203"), money("1000")]);
        // Buying: 101 of the first level, the other 102 of the second: 203 for 2, average 101.5, mid 100: 150 bps, and
        // 2 · 1.5 = 3. All asks: 101 + 204 = 305 for 3: 101.666…; 166.67 bps; 3 · 1.666… = 5.
        let rows = rows(&table);
        assert_eq!(rows[0], ["Buy", "203", "101.5000", "150.00", "3", "2", "yes"]);
        assert_eq!(
            rows[1],
            ["Buy", "1000", "101.6667", "166.67", "5", "2", "no, only 305 USDT"]
        );
        // Selling 203: 99 and 104 of 98: 203/(1 + 104/98) = 203/2.0612… = 98.4851….
        assert_eq!(rows[2][..3], ["Sell", "203", "98.4851"]);
        // 100 − 98.48514… of 100.
        assert_eq!(rows[2][3], "-151.49");
    }

    #[test]
    fn half_a_tick_is_not_nothing() {
        let book = depth(&[("63999.99", "1")], &[("64000", "1")]);
        let rows = rows(&cost_table(&book, &Pair::bitcoin(), &[money("1000")]));
        // 0.005 from a mid of 63,999.995: 0.00078125 bps.
        assert_eq!((&*rows[0][3], &*rows[1][3]), ("0.000781", "-0.000781"));
    }

    #[test]
    fn the_dearest_has_the_longest_bar() {
        let book = depth(&[("99", "1"), ("98", "2")], &[("101", "1"), ("102", "2")]);
        let panel = cost_table(&book, &Pair::bitcoin(), &[money("101"), money("203")]);
        let Content::Table(table) = &panel.content else {
            panic!()
        };
        let shares: Vec<f64> = table.rows.iter().filter_map(|row| row[3].share).collect();
        // 101 costs 100 bps, 203 costs 150; selling 203 is the dearest.
        assert_eq!(shares.len(), 4);
        assert_eq!(shares[3], 1.0);
        assert!(shares[0] < shares[1] && shares[1] < shares[3]);
    }

    #[test]
    fn a_book_that_is_empty_or_wrong_has_no_costs() {
        for (book, why) in [
            (Depth::default(), "no bids"),
            (depth(&[("101", "1")], &[("100", "1")]), "not below"),
            (depth(&[("1", "1")], &[]), "no asks"),
        ] {
            let panel = cost_table(&book, &Pair::bitcoin(), &sizes("USDT", None));
            assert!(
                matches!(&panel.content, Content::Missing(reason) if reason.contains(why)),
                "{panel:?}"
            );
        }
    }
}
