//! What is traded of each symbol, in one unit: a million of one money is not a million of another.

use std::collections::HashMap;
use std::sync::Arc;

use crate::resolve::SymbolTable;
use tribune_binance::feed::{Board, Day};
use tribune_binance::model::{Symbol, SymbolStatus};

/// The unit.
const UNIT: &str = "USDT";
/// The money over which another is valued where the two are not traded for one another.
const BRIDGE: &str = "BTC";

/// Every symbol that is traded, the most traded first by what a day's trades are worth. Where the worth of its quote
/// is not known, a symbol comes behind all others.
pub(super) fn by_worth(table: &SymbolTable, board: &Board) -> Vec<Arc<str>> {
    let days = board.days();
    let rates = Rates { table, days: &days };
    let mut known: HashMap<&str, Option<f64>> = HashMap::new();
    let mut worths: Vec<(Option<f64>, &Symbol)> = Vec::new();
    for symbol in table.symbols().iter().filter(|symbol| is_traded(symbol)) {
        let Some(day) = days.get(&symbol.name) else { continue };
        let rate = *known
            .entry(&symbol.quote)
            .or_insert_with(|| rates.in_unit(&symbol.quote));
        worths.push((rate.map(|rate| rate * day.quote_volume.as_f64()), symbol));
    }
    let order = |worth: Option<f64>| worth.unwrap_or(-1.0);
    worths.sort_by(|(one, a), (other, b)| order(*other).total_cmp(&order(*one)).then(a.name.cmp(&b.name)));
    worths.into_iter().map(|(_, symbol)| symbol.name.clone()).collect()
}

fn is_traded(symbol: &Symbol) -> bool {
    symbol.status == SymbolStatus::Trading
}

/// What one money is worth in another, by the exchange's own last prices.
struct Rates<'a> {
    table: &'a SymbolTable,
    days: &'a HashMap<Arc<str>, Day>,
}

impl Rates<'_> {
    fn in_unit(&self, money: &str) -> Option<f64> {
        self.between(money, UNIT)
            .or_else(|| Some(self.between(money, BRIDGE)? * self.between(BRIDGE, UNIT)?))
    }

    /// By the market of the two, whichever way round it is.
    fn between(&self, money: &str, other: &str) -> Option<f64> {
        if money == other {
            return Some(1.0);
        }
        let inverse = || self.last(other, money).map(|price| 1.0 / price);
        self.last(money, other).or_else(inverse)
    }

    fn last(&self, base: &str, quote: &str) -> Option<f64> {
        let symbol = self.table.pair(base, quote).filter(|symbol| is_traded(symbol))?;
        let price = self.days.get(&symbol.name)?.last.as_f64();
        Some(price).filter(|price| *price > 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tribune_binance::moment::Moment;
    use tribune_binance::number::{Notional, Price, Quantity};
    use tribune_binance::testing::ManualClock;

    #[test]
    fn symbols_are_ranked_by_what_their_trades_are_worth() {
        let now = Moment::now(&ManualClock::at(0));
        // Base, quote, last price, money traded.
        let markets = [
            ("BTC", "USDT", "100000", "2000000"),
            ("USDT", "COP", "4000", "4000000000"),
            ("ETH", "BTC", "0.05", "15"),
            ("BTC", "XYZ", "50000", "1000000"),
            ("ADA", "XYZ", "2", "200000"),
            ("ETH", "ODD", "1", "999999999999"),
            ("DOGE", "USDT", "0.1", "900000"),
        ];
        let symbols = markets.map(|(base, quote, ..)| Symbol {
            status: SymbolStatus::Trading,
            ..Symbol::named(format!("{base}{quote}"), base, quote)
        });
        let board = Board::default();
        board.fill(markets.map(|(base, quote, last, traded)| {
            let price = Price::parse(last).expect("a price");
            let day = Day {
                last: price,
                open: price,
                high: price,
                low: price,
                volume: Quantity::ZERO,
                quote_volume: Notional::parse(traded).expect("money"),
                exchange_time: None,
                received: now,
            };
            (Arc::from(format!("{base}{quote}")), day)
        }));
        let table = SymbolTable::new(symbols.to_vec(), &HashMap::new());
        let ranked = by_worth(&table, &board);
        let names: Vec<&str> = ranked.iter().map(|name| &**name).collect();
        // 2 m, 2 m over BTC, 1.5 m, 1 m, 0.9 m, 0.4 m, and one whose money nobody can value.
        let expected = ["BTCUSDT", "BTCXYZ", "ETHBTC", "USDTCOP", "DOGEUSDT", "ADAXYZ", "ETHODD"];
        assert_eq!(names, expected);
    }
}
