//! Ranks symbols by turnover, converted to one unit.

use std::collections::HashMap;
use std::sync::Arc;

use tribune_binance::{Board, Symbol};
use tribune_market_resolve::SymbolTable;

const UNIT: &str = "USDT";

/// Every traded symbol, the largest turnover first. Symbols whose quote asset cannot be converted come last.
pub(super) fn by_worth(table: &SymbolTable, board: &Board) -> Vec<Arc<str>> {
    let days = board.days();
    let last = |base: &str, quote: &str| {
        let symbol = table.pair(base, quote).filter(|symbol| symbol.is_traded())?;
        let price = days.get(&symbol.name)?.last.as_f64();
        Some(price).filter(|price| *price > 0.0)
    };
    // By the market of the two, in either direction.
    let in_unit = |money: &str| {
        let inverse = || last(UNIT, money).map(|price| 1.0 / price);
        let same = (money == UNIT).then_some(1.0);
        same.or_else(|| last(money, UNIT)).or_else(inverse)
    };
    let mut rates: HashMap<&str, Option<f64>> = HashMap::new();
    let mut worths: Vec<(f64, &Symbol)> = Vec::new();
    for symbol in table.symbols().iter().filter(|symbol| symbol.is_traded()) {
        let Some(day) = days.get(&symbol.name) else { continue };
        let money: &str = &symbol.quote;
        let rate = *rates.entry(money).or_insert_with(|| in_unit(money));
        let worth = rate.map(|rate| rate * day.quote_volume.as_f64());
        worths.push((worth.unwrap_or(-1.0), symbol));
    }
    worths.sort_by(|(one, a), (other, b)| other.total_cmp(one).then(a.name.cmp(&b.name)));
    worths.into_iter().map(|(_, symbol)| symbol.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tribune_binance::testing::ManualClock;
    use tribune_binance::{Day, Moment, Notional, Price, Quantity};

    #[test]
    fn symbols_are_ranked_by_converted_turnover() {
        let now = Moment::now(&ManualClock::at(0));
        // Base, quote, last price, money traded.
        let markets = [
            ("BTC", "USDT", "100000", "2000000"),
            ("USDT", "COP", "4000", "4000000000"),
            ("ETH", "BTC", "0.05", "15"),
            ("ETH", "ODD", "1", "999999999999"),
            ("DOGE", "USDT", "0.1", "900000"),
        ];
        let symbols = markets.map(|(base, quote, ..)| Symbol::named(format!("{base}{quote}"), base, quote));
        let board = Board::default();
        board.fill(markets.map(|(base, quote, last, traded)| {
            let price = last.parse::<Price>().expect("a price");
            let day = Day {
                last: price,
                open: price,
                high: price,
                low: price,
                volume: Quantity::ZERO,
                quote_volume: traded.parse::<Notional>().expect("money"),
                exchange_time: None,
                received: now,
            };
            (Arc::from(format!("{base}{quote}")), day)
        }));
        let table = SymbolTable::new(symbols.to_vec(), |_| None);
        let ranked = by_worth(&table, &board);
        let names: Vec<&str> = ranked.iter().map(|name| &**name).collect();
        // 2 m, 1.5 m, 1 m, 0.9 m, and one whose money nobody can value.
        let expected = ["BTCUSDT", "ETHBTC", "USDTCOP", "DOGEUSDT", "ETHODD"];
        assert_eq!(names, expected);
    }
}
