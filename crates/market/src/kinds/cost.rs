//! What it would cost to trade now.

use rust_decimal::prelude::ToPrimitive as _;
use tribune_core::source::thousands;
use tribune_market_parts::book::Pair;
use tribune_page::text::{capitalised, derived, padded, ratio};

use super::book::BookOf;
use super::depth::side_cell;
use super::prelude::*;
use crate::market::DEEPEST;
use tribune_analytics::cost::{Action, Cost, Size, cost, reach};
use tribune_binance::book::Depth;
use tribune_binance::number::PLACES;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CostToTrade {
    #[serde(flatten)]
    of: BookOf,
    /// What the exchange's rules say against one order of this size.
    #[serde(skip_serializing_if = "Option::is_none")]
    order_note: Option<String>,
    #[serde(flatten)]
    cost: Cost,
    #[serde(skip_serializing_if = "Option::is_none")]
    asked_quote: Option<Notional>,
    #[serde(skip_serializing_if = "Option::is_none")]
    asked_base: Option<Quantity>,
}

pub async fn load(market: &Market, symbol: &str, side: Action, size: Size) -> Result<Answer> {
    let is_nothing = match size {
        Size::Quote(money) => money.units() <= 0,
        Size::Base(quantity) => quantity.units() <= 0,
    };
    if is_nothing {
        return Err(Error::invalid_argument("the size must be above zero"));
    }
    let symbol = market.traded(symbol).await?;
    let mut book = market.book(&symbol).await?;
    let mut worked = cost(&book.view.depth, side, size).map_err(|reason| no_figures(&symbol, &reason))?;
    if !worked.filled && has_more(&book.view.depth, side) {
        // If the exchange cannot be asked now, the known part of the book says that it is incomplete.
        let deeper = market.deep_book(&symbol).await;
        if let Ok(deeper) = deeper
            && let Ok(better) = cost(&deeper.view.depth, side, size)
        {
            (book, worked) = (deeper, better);
        }
    }
    if worked.filled_base.is_zero() {
        return Err(Error::invalid_argument(format!(
            "the size is less than 0.00000001 {}, the smallest amount that can be traded: give a larger one",
            symbol.base
        )));
    }
    let (asked_quote, asked_base) = match size {
        Size::Quote(money) => (Some(money), None),
        Size::Base(quantity) => (None, Some(quantity)),
    };
    let figures = CostToTrade {
        of: BookOf::new(&book),
        order_note: beyond_rules(&symbol, size, &worked),
        cost: worked,
        asked_quote,
        asked_base,
    };
    Answer::new(Kind::OrderBookL2, &symbol, Provenance::of_book(market, &book), figures)
}

/// Whether the exchange may have levels of the walked side that a deeper look would show.
fn has_more(depth: &Depth, side: Action) -> bool {
    let known = match side {
        Action::Buy => depth.asks.len(),
        Action::Sell => depth.bids.len(),
    };
    reach(depth, side).is_some() && known < DEEPEST as usize
}

fn beyond_rules(symbol: &Symbol, size: Size, worked: &Cost) -> Option<String> {
    let (base, quote) = (&symbol.base, &symbol.quote);
    let least_worth = symbol.min_notional.filter(|least| worked.filled_quote < *least);
    let least = symbol.min_quantity.filter(|least| worked.filled_base < least.decimal());
    let most = symbol.max_quantity.filter(|most| !most.is_zero() && worked.filled_base > most.decimal());
    let step = match size {
        Size::Base(asked) => {
            symbol.step_size.filter(|step| asked.units().checked_rem(step.units()).is_some_and(|rest| rest != 0))
        }
        Size::Quote(_) => None,
    };
    let notes = [
        least_worth.map(|least| format!("the exchange takes no order worth less than {least} {quote}")),
        least.map(|least| format!("the exchange takes no order of less than {least} {base}")),
        step.map(|step| format!("the exchange takes quantities in steps of {step} {base}, and this is none")),
        most.map(|most| format!("the exchange takes no single order of more than {most} {base}: it would be several")),
    ];
    notes.into_iter().flatten().reduce(|all, one| format!("{all}; {one}"))
}

impl CostToTrade {
    /// `1000 USDT`
    fn asked(&self, about: &About) -> String {
        match (self.asked_quote, self.asked_base) {
            (Some(money), _) => format!("{money} {}", about.quote()),
            (None, Some(quantity)) => format!("{quantity} {}", about.base()),
            (None, None) => "an unknown size".to_owned(),
        }
    }

    const fn verb(&self) -> &'static str {
        match self.cost.side {
            Action::Buy => "buying",
            Action::Sell => "selling",
        }
    }
}

impl Figures for CostToTrade {
    fn sentences(&self, about: &About) -> Vec<String> {
        let (worked, name, base, quote) = (&self.cost, about.name(), about.base(), about.quote());
        let held = worked.filled_quote;
        let filled = match (worked.filled, worked.complete) {
            (true, true) => String::new(),
            (true, false) => " The book is not known this far: it may cost less.".to_owned(),
            (false, true) => format!(" Not filled: the whole book holds only {held} {quote}."),
            (false, false) => format!(
                " Not filled by the known levels, which hold {held} {quote}: what lies beyond them is not known."
            ),
        };
        let order = format!("{} {} of {name}", capitalised(self.verb()), self.asked(about));
        let (traded, average) = (worked.filled_base, worked.vwap);
        let (slippage, mid) = (or_unknown(worked.slippage_bps), or_unknown(worked.mid));
        let (levels, worst, cost) = (worked.levels_used, worked.worst_price, or_unknown(worked.cost_quote));
        vec![
            format!(
                "{order}: {traded} {base} at {average} {quote} on average, {slippage} basis points from mid {mid}; {levels} levels, worst price {worst}.{filled}"
            ),
            format!(
                "Cost against mid: {cost} {quote}, fees not included; hidden orders and what others do meanwhile are not known."
            ),
        ]
    }

    fn headline(&self, page: &Page<'_>) -> Option<Headline> {
        let cost = &self.cost;
        let known = |label: &str, value: Option<Amount>| figure(label, value, "it could not be computed");
        let bps = cost.slippage_bps.and_then(decimal);
        let label = format!("Average price, {} {}", self.verb(), self.asked(page.about));
        let figures = vec![
            known("From mid", bps.map(|bps| Amount::new(ratio(bps), "bps"))),
            known("Cost against mid", cost.cost_quote.map(|cost| page.money(cost))),
            known("Mid", cost.mid.map(|mid| page.money(mid))),
            known("Worst price", Some(page.money(cost.worst_price))),
        ];
        Some(page.headline(&label, page.money(derived(&cost.vwap.to_string())), figures))
    }

    fn shown(&self) -> &'static str {
        "vwap mid worst_price slippage_bps cost_quote cost_bps side"
    }

    /// The page of the present knows nothing of the size that was asked for.
    fn notes(&self, about: &About) -> Option<String> {
        let order = format!("{} {}", self.verb(), self.asked(about));
        Some(format!(
            "The page of the present has the book and the cost of other sizes; for {order} now, ask for the cost to trade again."
        ))
    }
}

/// What orders of several sizes would cost by a book.
pub(crate) fn cost_table(depth: &Depth, pair: &Pair, sizes: &[Notional]) -> Panel {
    let title = "Cost to trade";
    let worked: std::result::Result<Vec<(Notional, Cost)>, _> = [Action::Buy, Action::Sell]
        .into_iter()
        .flat_map(|side| sizes.iter().map(move |size| (side, *size)))
        .map(|(side, size)| cost(depth, side, Size::Quote(size)).map(|cost| (size, cost)))
        .collect();
    let worked = match worked {
        Ok(worked) => worked,
        Err(reason) => return panel("cost", title, Width::Whole, Content::Missing(reason.to_string())),
    };
    let most = worked.iter().filter_map(|(_, cost)| cost.cost_bps).fold(0.0, f64::max);
    let rows = worked.iter().map(|(size, cost)| row(*size, cost, pair, most)).collect();
    let note = "Market orders through the known levels, best price first; cost is against the mid, of what the known levels fill, without fees. Exact arithmetic; hidden orders and what others do meanwhile are not known.";
    listing("cost", title, rows, note)
}

fn row(size: Notional, cost: &Cost, pair: &Pair, most: f64) -> Vec<(Column, Cell)> {
    let average = cost.vwap.round_dp(pair.price_places as u32 + 2).normalize();
    let average = padded(&average.to_string(), pair.price_places + 2);
    let share = cost.cost_bps.filter(|_| most > 0.0).map(|bps| bps / most);
    let money = cost.cost_quote.map(|money| money.round_dp(cost_places(size)).normalize());
    let quote = &pair.quote;
    vec![
        (words("Order"), side_cell(cost.side)),
        (numbers(format!("Size ({quote})")), cell(size.to_string())),
        (numbers(format!("Average price ({quote})")), cell(average)),
        (numbers("From mid (bps)"), barred(cell(or_unknown(cost.exact_slippage_bps.map(ratio))), share)),
        (numbers(format!("Cost ({quote})")), cell(or_unknown(money))),
        (numbers("Levels"), cell(cost.levels_used.to_string())),
        (words("Filled"), filled(cost, pair)),
    ]
}

/// Of large sums the hundredths are enough; of small ones as many digits count.
fn cost_places(size: Notional) -> u32 {
    let whole_digits = size.decimal().trunc().to_string().len() as u32;
    if size.decimal() >= Decimal::ONE_HUNDRED { 8u32.saturating_sub(whole_digits).max(2) } else { PLACES }
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
    use tribune_analytics::sizes::sizes;
    use tribune_binance::testing::{depth, money, quantity};
    use tribune_page::Table;

    #[test]
    fn orders_against_the_rules_are_noted() {
        let symbol = Symbol {
            step_size: Some(quantity("0.001")),
            min_quantity: Some(quantity("0.01")),
            max_quantity: Some(quantity("5")),
            min_notional: Some(money("1")),
            ..Symbol::named("BTCUSDT", "BTC", "USDT")
        };
        let book = depth(&[("99", "10")], &[("100", "10")]);
        for (size, told) in [
            (Size::Base(quantity("1.001")), None),
            (Size::Base(quantity("1.0005")), Some("steps of 0.001 BTC, and this is none")),
            (Size::Base(quantity("0.0105")), Some("steps of 0.001 BTC")),
            (
                Size::Base(quantity("0.009")),
                Some("worth less than 1 USDT; the exchange takes no order of less than 0.01"),
            ),
            (Size::Base(quantity("6")), Some("more than 5 BTC")),
            // An amount of money is traded for what steps it makes.
            (Size::Quote(money("33.33")), None),
        ] {
            let worked = cost(&book, Action::Buy, size).expect("a cost");
            let note = beyond_rules(&symbol, size, &worked);
            match told {
                None => assert_eq!(note, None),
                Some(told) => assert!(note.as_ref().is_some_and(|note| note.contains(told)), "{note:?}"),
            }
        }
    }

    fn rows(panel: &Panel) -> Vec<Vec<String>> {
        let Content::Table(Table { rows, .. }) = &panel.content else { panic!("{panel:?}") };
        rows.iter().map(|row| row.iter().map(|cell| cell.text.clone()).collect()).collect()
    }

    fn bitcoin() -> Pair {
        Pair { base: "BTC".to_owned(), quote: "USDT".to_owned(), price_places: 2 }
    }

    #[test]
    fn costs_match_hand_computation() {
        let book = depth(&[("99", "1"), ("98", "2")], &[("101", "1"), ("102", "2")]);
        let table = cost_table(&book, &bitcoin(), &[money("203"), money("1000")]);
        // Buying: 101 of the first level, the other 102 of the second: 203 for 2, average 101.5, mid 100: 150 bps, and
        // 2 · 1.5 = 3. All asks: 101 + 204 = 305 for 3: 101.666…; 166.67 bps; 3 · 1.666… = 5.
        let rows = rows(&table);
        assert_eq!(rows[0], ["Buy", "203", "101.5000", "150.00", "3", "2", "yes"]);
        assert_eq!(rows[1], ["Buy", "1000", "101.6667", "166.67", "5", "2", "no, only 305 USDT"]);
        // Selling 203: 99 and 104 of 98: 203/(1 + 104/98) = 203/2.0612… = 98.4851….
        assert_eq!(rows[2][..3], ["Sell", "203", "98.4851"]);
        // 100 − 98.48514… of 100.
        assert_eq!(rows[2][3], "-151.49");
    }

    #[test]
    fn half_a_tick_is_shown() {
        let book = depth(&[("63999.99", "1")], &[("64000", "1")]);
        let rows = rows(&cost_table(&book, &bitcoin(), &[money("1000")]));
        // 0.005 from a mid of 63,999.995: 0.00078125 bps.
        assert_eq!((&*rows[0][3], &*rows[1][3]), ("0.000781", "-0.000781"));
    }

    #[test]
    fn dearest_order_has_the_longest_bar() {
        let book = depth(&[("99", "1"), ("98", "2")], &[("101", "1"), ("102", "2")]);
        let panel = cost_table(&book, &bitcoin(), &[money("101"), money("203")]);
        let Content::Table(table) = &panel.content else { panic!() };
        let shares: Vec<f64> = table.rows.iter().filter_map(|row| row[3].share).collect();
        // 101 costs 100 bps, 203 costs 150; selling 203 is the dearest.
        assert_eq!(shares.len(), 4);
        assert_eq!(shares[3], 1.0);
        assert!(shares[0] < shares[1] && shares[1] < shares[3]);
    }

    #[test]
    fn empty_or_crossed_book_has_no_costs() {
        for (book, why) in [
            (Depth::default(), "no bids"),
            (depth(&[("101", "1")], &[("100", "1")]), "not below"),
            (depth(&[("1", "1")], &[]), "no asks"),
        ] {
            let panel = cost_table(&book, &bitcoin(), &sizes("USDT", None));
            assert!(matches!(&panel.content, Content::Missing(reason) if reason.contains(why)), "{panel:?}");
        }
    }
}
