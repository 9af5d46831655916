//! All markets at once: what is told of them is what the exchange's tickers say of each.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use rust_decimal::Decimal;
use serde_json::{Value, json};
use tribune_core::{Cited, Query, Source as _};
use tribune_exchange_sim::{Exchange, Fault, Limits, Simulation};
use tribune_page::{Content, View};

use crate::support::{Market, MarketSettings, call, exchange, id, simulation, until};

fn decimal(value: &Value) -> Decimal {
    value.as_str().expect("a text").parse().expect("a number")
}

async fn get(exchange: &Exchange, endpoint: &str) -> Value {
    let url = format!("{}/api/v3/{endpoint}", exchange.rest_url());
    let answer = reqwest::get(url).await.expect("an answer");
    serde_json::from_str(&answer.text().await.expect("a body")).expect("JSON")
}

/// The exchange's own tickers of all markets of one money that are traded, asked for beside Tribune.
async fn tickers(exchange: &Exchange, money: &str) -> HashMap<String, Value> {
    let (info, tickers) = (get(exchange, "exchangeInfo").await, get(exchange, "ticker/24hr").await);
    let symbols = info["symbols"].as_array().expect("symbols");
    let is_wanted = |symbol: &&Value| symbol["quoteAsset"] == money && symbol["status"] == "TRADING";
    let name = |of: &Value| of["symbol"].as_str().expect("a symbol").to_owned();
    let wanted: HashSet<String> = symbols.iter().filter(is_wanted).map(name).collect();
    let all = tickers.as_array().expect("tickers").iter();
    let all = all.map(|ticker| (name(ticker), ticker.clone()));
    all.filter(|(name, _)| wanted.contains(name)).collect()
}

async fn top(market: &Market, arguments: Value) -> tribune_core::Result<Value> {
    let tools = Arc::clone(&market.source).tools();
    let mut tools = tools.into_iter();
    let tool = tools.find(|tool| tool.spec().name == "binance_top_markets");
    let arguments = arguments.as_object().cloned().expect("an object");
    let output = tool.expect("the tool").call(arguments, &call()).await?;
    Ok(serde_json::from_str(output.json()).expect("JSON"))
}

fn rows(answer: &Value) -> Vec<&Vec<Value>> {
    let rows = answer["markets"]["rows"].as_array().expect("rows");
    rows.iter().map(|row| row.as_array().expect("a row")).collect()
}

/// Nothing happens on it, so that two looks at it see the same.
async fn still() -> Exchange {
    let simulation = Simulation { events_per_second: 0.0, ..simulation() };
    exchange(simulation, Limits::default()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn figures_are_those_of_the_exchanges_tickers() {
    let exchange = still().await;
    let market = MarketSettings::of(&exchange).start().ready().await;
    let truth = tickers(&exchange, "USDT").await;
    assert!(truth.len() > 5, "{}", truth.len());
    let answer = top(&market, json!({"limit": 100})).await.expect("an answer");
    let total: Decimal = truth.values().map(|ticker| decimal(&ticker["quoteVolume"])).sum();
    assert_eq!(decimal(&answer["quote_volume"]), total.normalize());
    assert_eq!(answer["markets_counted"], truth.len());
    let rows_of_all = rows(&answer);
    assert_eq!(rows_of_all.len(), truth.len());
    let hundred = Decimal::ONE_HUNDRED;
    for row in &rows_of_all {
        let own = &truth[row[0].as_str().expect("a symbol")];
        let [last, open, high, low] =
            ["lastPrice", "openPrice", "highPrice", "lowPrice"].map(|name| decimal(&own[name]));
        let volume = decimal(&own["quoteVolume"]);
        assert_eq!((decimal(&row[1]), decimal(&row[4])), (last, volume), "{row:?}");
        let parts = [(last - open) / open, (high - low) / low, volume / total];
        for (told, part) in row[2..4].iter().chain(&row[5..]).zip(parts) {
            let exact = (part * hundred).round_dp(4).to_string();
            assert_eq!(told.as_f64(), exact.parse().ok(), "{row:?}");
        }
    }
    let volumes: Vec<Decimal> = rows_of_all.iter().map(|row| decimal(&row[4])).collect();
    assert!(volumes.is_sorted_by(|one, next| one >= next), "{volumes:?}");
    for (order, rises) in [("gain", true), ("loss", false)] {
        let answer = top(&market, json!({"sort_by": order, "limit": 100})).await.expect("an answer");
        let changes: Vec<f64> = rows(&answer).iter().filter_map(|row| row[2].as_f64()).collect();
        let truly = |ticker: &&Value| {
            (decimal(&ticker["priceChange"]) > Decimal::ZERO) == rises && !decimal(&ticker["priceChange"]).is_zero()
        };
        assert_eq!(changes.len(), truth.values().filter(truly).count(), "{order}");
        assert!(changes.is_sorted_by(|one, next| if rises { one >= next } else { one <= next }), "{changes:?}");
    }
    // Of other money only what is priced in it.
    let bitcoin = top(&market, json!({"quote_asset": "btc"})).await.expect("an answer");
    assert!(rows(&bitcoin).iter().all(|row| row[0].as_str().is_some_and(|name| name.ends_with("BTC"))));
    let unknown = top(&market, json!({"quote_asset": "XYZ"})).await.expect_err("no such money");
    assert!(unknown.message().contains("Quote assets: USDT"), "{unknown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn search_without_market_cites_all_markets() {
    let exchange = exchange(simulation(), Limits::default()).await;
    let market = MarketSettings::of(&exchange).start().ready().await;
    until("the stream of all tickers speaks", || async {
        let document = market.fetch("markets:USDT").await;
        document.is_ok_and(|document| document.metadata["data_source"] == "stream")
    })
    .await;
    let query = Query { text: "Where is volume concentrated?".to_owned(), limit: 10 };
    let found = market.source.search(&query, &call()).await.expect("an answer");
    let [hit] = &*found else { panic!("{found:?}") };
    assert_eq!(hit.id.as_str(), "markets:USDT");
    assert!(hit.snippet.starts_with("SIMULATED ") && hit.snippet.contains("volume BTCUSDT "), "{}", hit.snippet);
    assert!(hit.snippet.chars().count() <= 200, "{}", hit.snippet);

    let document = market.fetch("markets:USDT").await.expect("a document");
    let url = document.url.clone().expect("a citation");
    let record = url.split_once("?at=").expect("a record").1;
    let cited = market.source.cited(&id("markets:USDT"), record).await.expect("an answer");
    let Some(Cited::Kept { document: kept, at }) = cited else { panic!("{cited:?}") };
    assert_eq!(kept.text, document.text);
    for (document, at) in [(&*kept, Some(at)), (&document, None)] {
        let view = market.source.view(document, at, &call()).await.expect("a view");
        let Some(View::Board(board)) = view else { panic!("{view:?}") };
        assert_eq!((&*board.title, board.is_live), ("USDT markets", at.is_none()));
        let tables = board.panels.iter().filter(|panel| matches!(&panel.content, Content::Table(_)));
        assert_eq!(tables.count(), 4, "{board:?}");
        assert!(board.badges.iter().any(|badge| badge.label == "SIMULATED"));
    }

    // Neither streams nor requests: what was known is told, and said to be old.
    exchange.faults().set(&Fault::Silence { on: true });
    exchange.faults().set(&Fault::Reject { status: 503, retry_after_secs: None, count: None });
    until("it says that it is stale", || async {
        let document = market.fetch("markets:USDT").await.expect("what was known");
        document.text.contains("STALE: the streams are silent, and the request to the exchange failed")
    })
    .await;
}
