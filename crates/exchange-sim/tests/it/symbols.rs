//! What a recording says of its symbols, and in which forms it may come.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::oddities::{played, trade};
use crate::replay::{T0, finished, line, wrapped};

fn quote(symbol: &str, price: &str) -> Value {
    json!({"u": 5, "s": symbol, "b": price, "B": "1", "a": price, "A": "2"})
}

fn mini(symbol: &str, price: &str) -> Value {
    json!({"e": "24hrMiniTicker", "E": T0, "s": symbol, "c": price, "o": "1", "h": "9", "l": "1", "v": "3", "q": "9"})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_that_nobody_told_are_not_made_up() {
    let mut text = String::new();
    line(&mut text, 0, &quote("BTCIDRT", "1650000026"));
    line(&mut text, 1, &quote("BATUSD", "0.66"));
    let info = played(&[&text]).await.ask("exchangeInfo").await;
    let entry = |index: usize| &info["symbols"][index];
    assert_eq!(
        (&entry(0)["baseAsset"], &entry(0)["quoteAsset"]),
        (&json!("BAT"), &json!("USD"))
    );
    let rules = ["status", "orderTypes", "permissions", "permissionSets", "filters"];
    let guessed = [&rules[..], &["baseAsset", "quoteAsset"]].concat();
    assert_eq!(
        (&entry(0)["unknown"], &entry(1)["unknown"]),
        (&json!(guessed), &json!(rules))
    );
    assert_eq!(
        entry(1)["filters"],
        json!([
            {"filterType": "PRICE_FILTER", "minPrice": "0.00000000", "maxPrice": "0.00000000", "tickSize": "1.00000000"},
            {"filterType": "LOT_SIZE", "minQty": "0.00000000", "maxQty": "0.00000000", "stepSize": "1.00000000"}
        ])
    );
    assert!(entry(1).get("orderTypes").is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recorded_exchange_info_is_told_as_it_is() {
    let entry = json!({"symbol": "BATUSD", "status": "BREAK", "baseAsset": "BA", "quoteAsset": "TUSD",
        "filters": [{"filterType": "PRICE_FILTER", "minPrice": "0.1", "maxPrice": "7", "tickSize": "0.1"}], "new": [1]});
    let other =
        json!({"symbol": "ETHBTC", "status": "TRADING", "baseAsset": "ETH", "quoteAsset": "BTC", "filters": []});
    let mut text = String::new();
    line(&mut text, 0, &quote("BATUSD", "0.66"));
    line(
        &mut text,
        1,
        &json!({"timezone": "UTC", "serverTime": T0, "rateLimits": [], "symbols": [entry, other]}),
    );
    let told = played(&[&text]).await;
    assert_eq!(
        told.ask("exchangeInfo").await["symbols"],
        json!([entry]),
        "of what else is recorded"
    );
    assert_eq!(
        told.ask("exchangeInfo?symbolStatus=BREAK").await["symbols"],
        json!([entry])
    );
    assert_eq!(finished(&told.exchange).await["replay"]["linesMalformed"], 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_of_tickers_are_enough_for_a_market() {
    let mut text = String::new();
    let list = json!([mini("BTCUSDT", "5"), mini("ATOMUSDT", "4")]);
    line(&mut text, 0, &wrapped("!miniTicker@arr", &list));
    let told = played(&[&text]).await;
    assert_eq!(finished(&told.exchange).await["replay"]["linesMalformed"], 0);
    for (symbol, price) in [("BTCUSDT", "5.00000000"), ("ATOMUSDT", "4.00000000")] {
        assert_eq!(
            told.ask(&format!("exchangeInfo?symbol={symbol}")).await["symbols"][0]["symbol"],
            symbol
        );
        assert_eq!(told.ask(&format!("ticker/price?symbol={symbol}")).await["price"], price);
        assert_eq!(
            told.ask(&format!("ticker/24hr?symbol={symbol}")).await["lastPrice"],
            price
        );
    }
    for other in ["ticker", "ticker/tradingDay"] {
        let answer = told.ask(&format!("{other}?symbol=BTCUSDT")).await;
        assert_eq!(answer["code"], -1000, "of another time nothing is known: {answer}");
    }
    // One that cannot be read is counted, and takes nothing from the others.
    let mut odd = list;
    odd[1]["c"] = json!("four");
    line(&mut text, 10, &wrapped("!miniTicker@arr", &odd));
    let told = played(&[&text]).await;
    assert_eq!(finished(&told.exchange).await["replay"]["linesMalformed"], 1);
    assert_eq!(told.ask("ticker/price?symbol=ATOMUSDT").await["price"], "4.00000000");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn symbols_of_lists_do_not_make_snapshots_doubtful() {
    let mut text = String::new();
    let list = json!([mini("BTCUSDT", "5"), mini("ATOMUSDT", "4")]);
    line(&mut text, 0, &wrapped("!miniTicker@arr", &list));
    line(&mut text, 1, &trade(1, T0));
    line(
        &mut text,
        2,
        &json!({"lastUpdateId": 7, "bids": [["99", "1"]], "asks": [["100", "1"]]}),
    );
    let told = played(&[&text]).await;
    assert_eq!(told.ask("depth?symbol=BTCUSDT").await["lastUpdateId"], 7);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn times_may_be_written_in_other_ways() {
    let mut text = String::new();
    writeln!(text, "1750000040.5: {}", trade(1, T0 + 500)).expect("it is memory");
    writeln!(text, "2025-06-15T15:07:21.2500000Z {}", trade(2, T0 + 1_250)).expect("it is memory");
    let told = played(&[&text]).await;
    let state = finished(&told.exchange).await;
    assert_eq!(
        (
            &state["replay"]["firstNanos"],
            &state["replay"]["lastNanos"],
            &state["replay"]["linesMalformed"]
        ),
        (
            &json!((T0 + 500) * 1_000_000),
            &json!((T0 + 1_250) * 1_000_000),
            &json!(0)
        )
    );
}
