//! What is asked of an exchange that lists little: what it has not must not be answered with something else.

use super::super::SymbolTable;
use super::listing;
use super::search;

const FEW: &[&str] = &[
    "BTC USDT USDC",
    "ETH USDT BTC",
    "BNB USDT",
    "SOL USDT",
    "XRP USDT",
    "DOGE USDT",
    "ADA USDT",
    "LINK USDT",
    "PEPE USDT",
    "AVAX USDT",
    "LUNA (USDT)",
    "XMR (USDT)",
    "GRT BTC",
    "USDT TRY",
];

/// A query, the documents that must come first, and how much of the query the first accounts for.
type Case = (&'static str, &'static [&'static str], f32);

fn check(table: &SymbolTable, cases: &[Case]) {
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|(query, wanted, coverage)| {
            let found = search(table, query, wanted.len().max(1));
            let ids: Vec<&str> = found.iter().map(|found| found.id.as_str()).collect();
            let first = found.first().map_or(0.0, |found| found.coverage);
            let right = ids == *wanted && (first - coverage).abs() < 0.01;
            (!right).then(|| format!("{query:?}: {ids:?} at {first:.2}, and not {wanted:?} at {coverage:.2}"))
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
}

#[test]
fn an_asset_that_is_not_listed_is_no_other() {
    check(
        &listing(FEW),
        &[
            ("bitcoin cash price", &[], 0.0),
            ("Bitcoin Cash", &[], 0.0),
            ("bcash/usdt price", &[], 0.0),
            ("BCH/USDT price", &[], 0.0),
            ("bch usdt price", &[], 0.0),
            ("XYZW/USDT price", &[], 0.0),
            ("bitcoin sv", &[], 0.0),
            ("wrapped bitcoin", &[], 0.0),
            ("wrapped btc in dollars", &[], 0.0),
            ("ethereum classic", &[], 0.0),
            ("eth classic order book", &[], 0.0),
            ("terra classic", &[], 0.0),
            ("staked ether", &[], 0.0),
            ("litecoin price in tether", &[], 0.0),
            ("bitcoin and bitcoin cash", &["ticker:BTCUSDT"], 1.0 / 3.0),
            ("solana, bitcoin gold", &["ticker:SOLUSDT"], 1.0 / 3.0),
            ("litecoin vs ethereum spread", &["orderbook_l1:ETHUSDT"], 2.0 / 3.0),
            ("bitcoin price cash", &["ticker:BTCUSDT"], 2.0 / 3.0),
            ("tether", &["ticker:USDTTRY"], 1.0),
        ],
    );
}

#[test]
fn a_quote_that_is_not_traded_is_no_other() {
    check(
        &listing(FEW),
        &[
            ("BTC/EUR", &[], 0.0),
            ("btc-eur", &[], 0.0),
            ("btc eur", &[], 0.0),
            ("BTCEUR", &[], 0.0),
            ("BTCUSDP", &[], 0.0),
            ("btc jpy", &[], 0.0),
            ("eur/btc", &[], 0.0),
            ("bitcoin in euros", &[], 0.0),
            ("bitcoin price in yen", &[], 0.0),
            ("bitcoin in pounds", &[], 0.0),
            ("bitcoin in rupees", &[], 0.0),
            ("how many euros is one bitcoin", &[], 0.0),
            ("btc chf order book", &[], 0.0),
            ("ETH/EUR, SOL/EUR", &[], 0.0),
            ("SOL/USDC", &[], 0.0),
            ("USDT/EUR", &[], 0.0),
            ("eur to usdt", &[], 0.0),
            ("usdt usdc", &[], 0.0),
            ("USDT/TRY", &["ticker:USDTTRY"], 1.0),
            ("dogecoin in aussie dollars", &[], 0.0),
            ("BTC/EUR, DOGE", &["ticker:DOGEUSDT"], 1.0 / 3.0),
            ("btc usdt in euros", &["ticker:BTCUSDT"], 2.0 / 3.0),
            ("bitcoin in usd and euros", &["ticker:BTCUSDT"], 0.5),
            ("sol and btc in usdc", &["ticker:BTCUSDC"], 2.0 / 3.0),
            ("BTC/USDC", &["ticker:BTCUSDC"], 1.0),
            ("bitcoin in dollars", &["ticker:BTCUSDT"], 1.0),
            ("BTC/USD", &["ticker:BTCUSDT"], 1.0),
            ("btc usd", &["ticker:BTCUSDT"], 1.0),
            ("BTCUSD", &["ticker:BTCUSDT"], 1.0),
            ("SOL, XRP in dollars", &["ticker:SOLUSDT", "ticker:XRPUSDT"], 1.0),
            ("GRT", &["ticker:GRTBTC"], 1.0),
            ("GRT in dollars", &[], 0.0),
            ("BTC/XYZW", &[], 0.0),
            ("XYZ/BTC", &[], 0.0),
            ("foo/eth price", &[], 0.0),
            ("BTC-XYZ", &[], 0.0),
            ("one/btc", &[], 0.0),
            ("wbtc/btc", &[], 0.0),
            ("bitcoin-backed loans", &["ticker:BTCUSDT"], 1.0 / 3.0),
            ("btc €", &[], 0.0),
            ("sol/doge", &["ticker:SOLUSDT", "ticker:DOGEUSDT"], 0.25),
        ],
    );
}

#[test]
fn a_length_that_no_candle_has_is_not_accounted_for() {
    check(
        &listing(FEW),
        &[
            ("btc 10 minute candles", &["klines:BTCUSDT:1h"], 0.5),
            ("btc ten minute candles", &["klines:BTCUSDT:1h"], 0.5),
            ("sol 30 sec candles", &["klines:SOLUSDT:1h"], 0.5),
            ("btc 2.5 minute candles", &["klines:BTCUSDT:1h"], 2.0 / 3.0),
            ("btc ninety minute candles", &["klines:BTCUSDT:1h"], 0.5),
            ("btc 10m candles", &["klines:BTCUSDT:1h"], 2.0 / 3.0),
            ("btc 1 year chart", &["klines:BTCUSDT:1w"], 1.0),
            ("btc year candles", &["klines:BTCUSDT:1h"], 2.0 / 3.0),
            ("btc 7 day change", &["klines:BTCUSDT:4h"], 1.0),
            (
                "btc candles of the last 10 minutes",
                &["klines:BTCUSDT:1m", "ticker:BTCUSDT"],
                1.0,
            ),
            ("btc 60 minute candles", &["klines:BTCUSDT:1h"], 1.0),
            ("doge day candles", &["klines:DOGEUSDT:1d"], 1.0),
            ("btc hour chart", &["klines:BTCUSDT:1h"], 1.0),
            ("minute candles of ether", &["klines:ETHUSDT:1m"], 1.0),
            ("candles of btc day", &["klines:BTCUSDT:1d"], 1.0),
            ("btc week candles", &["klines:BTCUSDT:1w"], 1.0),
            ("month chart bitcoin", &["klines:BTCUSDT:1M"], 1.0),
            ("btc 24h candles", &["klines:BTCUSDT:1d"], 1.0),
            ("btc chart this week", &["klines:BTCUSDT:1d"], 1.0),
        ],
    );
}

#[test]
fn what_is_not_spot_data_is_not_accounted_for() {
    check(
        &listing(FEW),
        &[
            ("open interest btc", &["ticker:BTCUSDT"], 1.0 / 7.0),
            ("btc funding rate", &["ticker:BTCUSDT"], 1.0 / 7.0),
            ("btc liquidations", &["ticker:BTCUSDT"], 0.25),
            ("ada futures", &["ticker:ADAUSDT"], 0.25),
            ("btc perpetual", &["ticker:BTCUSDT"], 0.25),
            ("BTC-PERP", &["ticker:BTCUSDT"], 0.25),
            ("eth options", &["ticker:ETHUSDT"], 0.25),
            ("bitcoin dominance", &["ticker:BTCUSDT"], 0.25),
            ("bitcoin market cap", &["ticker:BTCUSDT"], 1.0 / 7.0),
            ("bitcoin price prediction", &["ticker:BTCUSDT"], 1.0 / 7.0),
            ("bitcoin futures price", &["ticker:BTCUSDT"], 0.4),
        ],
    );
}

#[test]
fn names_side_by_side_are_each_an_asset() {
    check(
        &listing(FEW),
        &[
            ("bitcoin ripple", &["ticker:BTCUSDT", "ticker:XRPUSDT"], 1.0),
            ("solana ripple", &["ticker:SOLUSDT", "ticker:XRPUSDT"], 1.0),
            ("ripple solana", &["ticker:XRPUSDT", "ticker:SOLUSDT"], 1.0),
            ("bitcoin, ripple", &["ticker:BTCUSDT", "ticker:XRPUSDT"], 1.0),
            ("bitcoin and ripple price", &["ticker:BTCUSDT", "ticker:XRPUSDT"], 1.0),
            (
                "bitcoin avalanche spread",
                &["orderbook_l1:BTCUSDT", "orderbook_l1:AVAXUSDT"],
                1.0,
            ),
            ("solana tether", &["ticker:SOLUSDT"], 1.0),
            ("solana ripple effect on schools", &["ticker:SOLUSDT"], 0.25),
        ],
    );
}

#[test]
fn what_a_minus_leaves_out_is_not_found() {
    check(
        &listing(FEW),
        &[
            ("-bitcoin price", &[], 0.0),
            ("-BTC", &[], 0.0),
            ("-\"bitcoin\" price", &[], 0.0),
            ("btc -usdt", &["ticker:BTCUSDC"], 1.0),
            ("eth -usdt", &["ticker:ETHBTC"], 1.0),
            ("solana -usdt", &[], 0.0),
            ("bitcoin ether -bitcoin", &["ticker:ETHUSDT"], 1.0),
            ("btc -price", &["ticker:BTCUSDT"], 1.0),
            ("eth-btc", &["ticker:ETHBTC"], 1.0),
            ("eth - btc", &["ticker:ETHBTC"], 1.0),
            ("btc - eth", &["ticker:BTCUSDT", "ticker:ETHUSDT"], 1.0),
        ],
    );
}

#[test]
fn what_words_leave_out_is_not_found() {
    check(
        &listing(FEW),
        &[
            ("not bitcoin, ethereum", &["ticker:ETHUSDT"], 1.0),
            ("anything but bitcoin", &[], 0.0),
            ("every coin except bitcoin", &[], 0.0),
            ("btc in usdc not usdt", &["ticker:BTCUSDC"], 1.0),
            (
                "price of ETH, not the order book",
                &["ticker:ETHUSDT", "orderbook:ETHUSDT"],
                1.0,
            ),
            (
                "order book but not trades for SOL",
                &["orderbook:SOLUSDT", "ticker:SOLUSDT"],
                1.0,
            ),
            ("never mind doge, what's ada at", &["ticker:ADAUSDT"], 1.0),
            ("why not bitcoin", &["ticker:BTCUSDT"], 1.0),
            ("no BTC trades?", &["trades:BTCUSDT"], 1.0),
            ("why is eth not liquid", &["orderbook_l2:ETHUSDT"], 1.0),
        ],
    );
}

#[test]
fn times_that_are_over_have_candles_and_account_for_nothing() {
    check(
        &listing(FEW),
        &[
            ("bitcoin last 30 days", &["klines:BTCUSDT:1d", "ticker:BTCUSDT"], 1.0),
            ("eth price an hour ago", &["klines:ETHUSDT:1m"], 1.0),
            ("sol 7d", &["klines:SOLUSDT:4h"], 1.0),
            (
                "btc 4h candles last month",
                &["klines:BTCUSDT:4h", "ticker:BTCUSDT"],
                1.0,
            ),
            ("btc spread last week", &["orderbook_l1:BTCUSDT"], 1.0),
            ("btc last 24 hours", &["ticker:BTCUSDT"], 1.0),
            ("btc price today, 16 November 2026", &["ticker:BTCUSDT"], 1.0),
            ("bitcoin bill reading march 2025", &["klines:BTCUSDT:1w"], 1.0 / 3.0),
            ("top gainers", &["markets:USDT"], 1.0),
            ("top gainers this week", &[], 0.0),
        ],
    );
}

#[test]
fn something_unknown_in_money_is_not_the_money() {
    check(
        &listing(FEW),
        &[
            ("kaspa usdt price", &[], 0.0),
            ("HYPE USDT price", &[], 0.0),
            ("kaspa price in usdt", &[], 0.0),
            ("kaspa in btc", &[], 0.0),
            ("in/usdt", &[], 0.0),
            ("he believes in bitcoin", &["ticker:BTCUSDT"], 0.5),
            ("usdt price", &["ticker:USDTTRY"], 1.0),
        ],
    );
}

#[test]
fn wishes_in_other_words_and_names_in_other_scripts() {
    check(
        &listing(FEW),
        &[
            ("who is buying bitcoin", &["analytics:order_flow:BTCUSDT"], 1.0),
            ("who's selling ether?", &["analytics:order_flow:ETHUSDT"], 1.0),
            ("how volatile is solana", &["klines:SOLUSDT:1h"], 1.0),
            ("iceberg orders eth", &["analytics:anomalies:ETHUSDT"], 1.0),
            ("what would 500,000 dollars of XRP cost", &["orderbook_l2:XRPUSDT"], 1.0),
            ("what does $2 million worth of XRP cost", &["orderbook_l2:XRPUSDT"], 1.0),
            (
                "how much would it cost to buy 200,000 dollars of SOL",
                &["orderbook_l2:SOLUSDT"],
                1.0,
            ),
            ("cost of $500,000 of XRP", &["orderbook_l2:XRPUSDT"], 1.0),
            ("can i sell 50,000 usdt of doge", &["orderbook_l2:DOGEUSDT"], 1.0),
            ("how much is one bitcoin in dollars", &["ticker:BTCUSDT"], 1.0),
            ("is XMR trading", &["exchange_info:XMRUSDT"], 1.0),
            ("is monero trading right now?", &["exchange_info:XMRUSDT"], 1.0),
            ("is XMR halted", &["exchange_info:XMRUSDT"], 1.0),
            ("is bitcoin trading higher", &["ticker:BTCUSDT"], 0.5),
            ("what is bitcoin trading at", &["ticker:BTCUSDT"], 1.0),
            ("link price", &["ticker:LINKUSDT"], 1.0),
            ("near price", &[], 0.0),
            ("link prices today", &[], 0.0),
            ("LINK price", &["ticker:LINKUSDT"], 1.0),
            ("chainlink price", &["ticker:LINKUSDT"], 1.0),
            ("比特币", &["ticker:BTCUSDT"], 1.0),
            ("биткоин", &["ticker:BTCUSDT"], 1.0),
            ("₿ price", &["ticker:BTCUSDT"], 1.0),
            ("₿/usdc", &["ticker:BTCUSDC"], 1.0),
            ("以太坊", &["ticker:ETHUSDT"], 1.0),
            ("эфириум", &["ticker:ETHUSDT"], 1.0),
        ],
    );
}
