//! What holds for any query.

use proptest::prelude::*;

use super::super::SymbolTable;
use super::{search, symbol, table};
use crate::id::MarketId;

/// Words of every sort, so that chance makes sentences of them.
fn sentence() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        "bitcoin|BTC|eth|ETH/BTC|near|NEAR|usdt|the graph|币安人生|4|1inch|solanna|USD|euros|tether",
        "price|order flow|depth|1h|4 hour|1M|daily|vs|and|to|in|pair|compare|the|spread|cost to buy|24h",
        "not|except|no|last|7 days|ago|this week|30d|5m|sell|of|how many|in October|2025-01-31|4 Stunden|top|pairs|all|funding",
        "[a-zA-Z0-9$/:,_-]{1,12}",
        "\\PC{1,8}",
    ];
    proptest::collection::vec(word, 0..12).prop_map(|words| words.join(" "))
}

proptest! {
    #[test]
    fn any_query_finds_listed_markets_in_order(query in sentence(), limit in 0usize..15) {
        let table = table();
        let found = search(&table, &query, limit);
        prop_assert!(found.len() <= limit);
        prop_assert!(found.is_sorted_by(|a, b| a.score >= b.score));
        for (at, one) in found.iter().enumerate() {
            let id = MarketId::parse(&one.id).expect("well formed").expect("ours");
            prop_assert!(table.lookup(id.symbol()).is_some() || table.money(id.symbol()).is_some());
            prop_assert_eq!((id.symbol(), id.kind()), (&one.symbol, one.kind));
            prop_assert!((0.0..=1.0).contains(&one.score) && (0.0..=1.0).contains(&one.coverage));
            prop_assert!(one.alternatives.iter().all(|other| table.lookup(other).is_some() && *other != one.symbol));
            prop_assert!(found[..at].iter().all(|before| before.id != one.id));
        }
    }

    #[test]
    fn any_text_is_survived(query in "\\PC{0,200}|[\\x00-\\x7f]{0,200}") {
        let table = table();
        search(&table, &query, 10);
        table.near(&query, 5);
    }
}

#[test]
fn every_symbol_and_pair_finds_itself() {
    let table = table();
    for symbol in table.symbols() {
        let first = |query: &str| search(&table, query, 1).first().map(|found| found.symbol.to_string());
        let name = Some(symbol.name.to_string());
        assert_eq!(first(&symbol.name), name);
        assert_eq!(first(&symbol.name.to_lowercase()), name);
        assert_eq!(first(&format!("{}/{}", symbol.base, symbol.quote)), name);
        assert_eq!(first(&format!("{}-{}", symbol.base, symbol.quote).to_lowercase()), name);
    }
}

/// 2,000 symbols that begin alike, which is the worst for comparing spellings.
fn crowd() -> SymbolTable {
    let symbols = (0..2_000u32).map(|number| {
        let base: String = [number / 676, number / 26 % 26, number % 26]
            .iter()
            .map(|letter| char::from(b'A' + u8::try_from(letter % 26).expect("a letter")))
            .collect();
        let quote = ["USDT", "BTC", "TRY"][number as usize % 3];
        symbol(&format!("COIN{base}"), quote, "TRADING")
    });
    SymbolTable::new(symbols.collect(), |_| None)
}

/// Long and repetitive queries finish at once: what a token costs does not grow with the number of symbols.
#[test]
fn worst_queries_of_many_symbols_are_survived() {
    let table = crowd();
    for query in [
        "coinabx price".to_owned(),
        "COINABCUSDR".to_owned(),
        "bitcoin ".repeat(125),
        "coinqq ".repeat(140),
        "a ".repeat(500),
        "near ".repeat(200),
        "x/y-z_".repeat(160),
    ] {
        assert!(search(&table, &query, 10).len() <= 10, "{query:?}");
    }
}
