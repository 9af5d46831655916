//! What the tools' figures say of themselves while things go wrong.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tribune_core::{Source as _, SourceStatus};
use tribune_exchange_sim::{Fault, Limits, Mode, Settings, Simulation};

use crate::by_hand::{T0, laid_out, trade, tricky};
use crate::recording::finished;
use crate::support::{Market, MarketSettings, PATIENCE, asked, call, exchange, simulation, until};

async fn told(market: &Market, tool: &str, arguments: Value) -> Value {
    let tools = Arc::clone(&market.source).tools();
    let tool = tools.iter().find(|known| known.spec().name == tool).expect("a tool");
    let arguments = arguments.as_object().cloned().expect("an object");
    let output = tool.call(arguments, &call()).await.expect("an answer");
    serde_json::from_str(output.json()).expect("JSON")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn order_flow_ends_at_the_last_message() {
    let exchange = exchange(simulation(), Limits::default()).await;
    let market = MarketSettings::of(&exchange).start().ready().await;
    market.live("orderbook:BTCUSDT").await;
    let flow = || told(&market, "binance_get_order_flow", json!({"symbol": "BTCUSDT", "window_seconds": 10}));
    until("ten seconds of the stream", || async { flow().await["source"] == "stream" }).await;
    // Until the silence is found out, every answer of the stream ends where it was last heard.
    until("an answer that has grown old", || async {
        exchange.faults().set(&Fault::Silence { on: true });
        let silent = flow().await;
        if silent["source"] != "stream" {
            // It was found out before this test looked: once more.
            exchange.faults().clear();
            return false;
        }
        let received = silent["received_time"].as_str().and_then(|time| time.parse::<jiff::Timestamp>().ok());
        let (received, end) = (received.expect("a time").as_millisecond(), silent["end_ms"].as_i64());
        assert!((received - end.expect("an end")).abs() < 1_000, "{silent}");
        silent["age_ms"].as_u64() >= Some(700)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prices_are_streamed_during_a_pause() {
    let exchange = exchange(simulation(), Limits::default()).await;
    let mut settings = MarketSettings::of(&exchange);
    settings.rest.window = Duration::ZERO;
    let market = settings.start().ready().await;
    market.live("orderbook:BTCUSDT").await;
    exchange.faults().set(&Fault::Reject { status: 418, retry_after_secs: Some(120), count: None });
    until("the ticker of the streams", || async {
        let ticker = told(&market, "binance_get_ticker", json!({"symbol": "BTCUSDT"})).await;
        ticker["source"] == "stream"
    })
    .await;
    let ticker = told(&market, "binance_get_ticker", json!({"symbol": "BTCUSDT"})).await;
    assert!(ticker["last_price"].is_string() && ticker["best_bid"]["price"].is_string(), "{ticker}");
    assert!(ticker["trades"].is_null(), "the streams do not count them: {ticker}");
    assert!(ticker["reason"].as_str().is_some_and(|reason| reason.contains("no number of trades")), "{ticker}");
    assert!(ticker["note"].as_str().is_some_and(|note| note.contains("try again in")), "{ticker}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn depth_lists_the_cost_of_default_sizes() {
    let exchange = exchange(simulation(), Limits::default()).await;
    let market = MarketSettings::of(&exchange).start().ready().await;
    let book = market.live("orderbook_l2:BTCUSDT").await;
    assert!(book.text.contains("cost_to_trade (side,notional_quote,vwap"), "{}", book.text);
    until("both of one book", || async {
        let order = json!({"symbol": "BTCUSDT", "side": "buy", "notional": "1000"});
        let exact = told(&market, "binance_cost_to_trade", order).await;
        let level = told(&market, "binance_orderbook_l2", json!({"symbol": "BTCUSDT"})).await;
        let row = &level["cost_to_trade"]["rows"][0];
        assert_eq!((&row[0], &row[1]), (&json!("buy"), &json!("1000")));
        let is_same_book = exact["last_update_id"] == level["last_update_id"];
        assert!(!is_same_book || row[2] == exact["vwap"], "{row} and {exact}");
        is_same_book
    })
    .await;
    let flow = told(&market, "binance_get_order_flow", json!({"symbol": "BTCUSDT"})).await;
    let impact = &flow["price_impact"];
    assert!(impact["kyle_lambda"].is_null() && impact["reason"].is_string(), "watched for too short: {flow}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failing_requests_degrade_the_source() {
    let exchange = exchange(simulation(), Limits::default()).await;
    let mut settings = MarketSettings::of(&exchange);
    settings.rest.window = Duration::ZERO;
    let market = settings.start().ready().await;
    exchange.faults().set(&Fault::Reject { status: 503, retry_after_secs: None, count: None });
    until("the trouble is told", || async {
        let _ = market.fetch("klines:BTCUSDT:1h").await;
        matches!(market.source.status(), SourceStatus::Degraded(why) if why.contains("requests") && why.contains("503"))
    })
    .await;
    exchange.faults().clear();
    until("it is over", || async {
        let _ = market.fetch("klines:BTCUSDT:1h").await;
        matches!(market.source.status(), SourceStatus::Ready)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unobserved_best_prices_have_no_flow() {
    let exchange = exchange(simulation(), Limits::default()).await;
    let market = MarketSettings::of(&exchange).start().ready().await;
    market.live("orderbook:BTCUSDT").await;
    let pressure = || async {
        let arguments = json!({"symbol": "BTCUSDT", "window_seconds": 5});
        let flow = told(&market, "binance_get_order_flow", arguments).await;
        (flow["source"] == "stream", flow["order_flow_imbalance"].clone())
    };
    until("five seconds that were watched", || async { pressure().await.1["complete"] == true }).await;
    exchange.faults().set(&Fault::Silence { on: true });
    let silent = Instant::now();
    until("five seconds that nobody watched", || async {
        // What was on its way still came, on a busy machine much later.
        let gone = silent.elapsed().saturating_sub(Duration::from_secs(3)).as_secs();
        let (is_streamed, told) = pressure().await;
        // Of the trades' window, which ends now, only what was before the silence was watched.
        if !is_streamed && gone >= 1 {
            assert_ne!(told["complete"], true, "{gone} s of silence: {told}");
            assert!(told["window_secs"].as_u64() <= Some(5 - gone.min(5)), "{gone} s of silence: {told}");
        }
        told["ofi_base"].is_null()
            && told["reason"].as_str().is_some_and(|reason| reason.contains("no stream data for"))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deep_snapshots_are_shared_for_a_while() {
    let deep = Simulation { levels: 1_300, ..simulation() };
    let exchange = exchange(deep, Limits::default()).await;
    let mut settings = MarketSettings::of(&exchange);
    settings.rest.window = Duration::ZERO;
    let market = settings.start().ready().await;
    let book = market.live("orderbook_l2:PEPEUSDT").await;
    let last = book.text.lines().find(|line| line.starts_with("buy,1000000,"));
    let last = last.unwrap_or_else(|| panic!("a row: {}", book.text));
    assert!(
        last.contains(",false,false,the known levels hold less than the size asked for"),
        "of a thousand levels: {last}"
    );
    let before = asked(&exchange, "depth");
    for notional in ["1000000000000", "2000000000000", "3000000000000"] {
        for side in ["buy", "sell"] {
            let order = json!({"symbol": "PEPEUSDT", "side": side, "notional": notional});
            let cost = told(&market, "binance_cost_to_trade", order).await;
            assert_eq!((&cost["filled"], &cost["complete"]), (&json!(false), &json!(true)), "{cost}");
            assert_eq!(cost["reason"], "the whole book holds less than the size asked for");
        }
    }
    assert_eq!(asked(&exchange, "depth"), before + 1, "one look serves them all");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whole_book_is_not_fetched_deeper() {
    let exchange = exchange(simulation(), Limits::default()).await;
    let market = MarketSettings::of(&exchange).start().ready().await;
    market.live("orderbook_l2:ETHUSDT").await;
    let before = asked(&exchange, "depth");
    let order = json!({"symbol": "ETHUSDT", "side": "buy", "notional": "1000000000000"});
    let cost = told(&market, "binance_cost_to_trade", order).await;
    assert_eq!((&cost["filled"], &cost["complete"]), (&json!(false), &json!(true)), "{cost}");
    assert_eq!(asked(&exchange, "depth"), before);
}

/// Whatever is called closed must be so when it is seen again, however late its answer was and however long it is shared.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closed_candle_does_not_change() {
    let exchange = exchange(simulation(), Limits::default()).await;
    let mut settings = MarketSettings::of(&exchange);
    settings.rest.window = Duration::from_millis(1_500);
    let market = settings.start().ready().await;
    exchange.faults().set(&Fault::Delay { millis: 200 });
    let mut closed: BTreeMap<i64, Value> = BTreeMap::new();
    let deadline = Instant::now() + PATIENCE;
    while closed.len() < 12 {
        assert!(Instant::now() < deadline, "{closed:?}");
        let arguments = json!({"symbol": "BTCUSDT", "interval": "1s", "limit": 5});
        let told = told(&market, "binance_get_klines", arguments).await;
        let rows = told["klines"]["rows"].as_array().expect("rows").clone();
        let open = usize::from(told["last_closed"] != true);
        for row in &rows[..rows.len() - open] {
            let known = closed.entry(row[0].as_i64().expect("a time")).or_insert_with(|| row.clone());
            assert_eq!(known, row, "it was called closed, and has changed");
        }
        tokio::time::sleep(Duration::from_millis(40)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn order_flow_callers_share_one_request() {
    let exchange = exchange(simulation(), Limits::default()).await;
    let mut settings = MarketSettings::of(&exchange);
    settings.rest.window = Duration::from_secs(3_600);
    // Nothing is tracked: trades are asked for.
    settings.feed.max_books = 0;
    let market = settings.start().ready().await;
    let before = asked(&exchange, "aggTrades");
    let flow = |_| async {
        tokio::time::sleep(Duration::from_millis(fastrand::u64(0..50))).await;
        told(&market, "binance_get_order_flow", json!({"symbol": "SOLUSDT"})).await
    };
    let told = futures::future::join_all((0..50).map(flow)).await;
    // One answer, read by all: the window ends when it was asked for, as well as the exchange's clock is known.
    let ends: Vec<i64> = told.iter().filter_map(|flow| flow["end_ms"].as_i64()).collect();
    let apart = ends.iter().max().zip(ends.iter().min()).map(|(last, first)| last - first);
    assert!(ends.len() == 50 && apart.is_some_and(|apart| apart <= 5_000), "{ends:?}");
    // The simulated market has traded for 20 s; of what was before nothing is known.
    let covered = told[0]["covered_secs"].as_f64().expect("seconds");
    assert!((10.0..60.0).contains(&covered) && told[0]["complete"] == false, "{covered}");
    assert_eq!(asked(&exchange, "aggTrades"), before + 1);
}

/// What a window of trades says once the recording is over, and whether it is of the streams.
async fn ended(market: &Market, symbol: &str) -> (Value, Value, Value) {
    let arguments = json!({"symbol": symbol, "window_seconds": 1});
    let flow = told(market, "binance_get_order_flow", arguments).await;
    (flow["source"].clone(), flow["end_ms"].clone(), flow["trades"].clone())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn window_stops_at_the_end_of_a_recording() {
    let mut values = tricky("EEEUSDT");
    // Two trades a second apart after all else: at 2.4 and 3.4 s.
    for number in 0..2 {
        while values.len() < 24 + 10 * number {
            values.push(json!({"result": null, "id": 1}));
        }
        let after = 100 * i64::try_from(values.len()).expect("few");
        values.push(trade("EEEUSDT", 1 + number as u64, after, "10.10", "1", false));
    }
    let last = T0 + 3_400;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("EEEUSDT.txt");
    laid_out(values).write(&path);
    let settings = Settings { mode: Mode::Replay { files: vec![path], speed: 1.0 }, ..Settings::default() };
    let exchange = tribune_exchange_sim::start(settings).await.expect("it starts");
    let market = MarketSettings::of(&exchange).start().ready().await;
    market.fetch("orderbook_l1:EEEUSDT").await.expect("an answer");
    until("it is played", || finished(&exchange)).await;
    // Until its clock was asked for twice more.
    let before = asked(&exchange, "time");
    until("its clock is asked for again", || async {
        let (source, end, trades) = ended(&market, "EEEUSDT").await;
        let end = end.as_i64().expect("an end");
        let late = end - last;
        assert!((-900..=900).contains(&late), "{source}: it ends {late} ms after the last word");
        if late >= 0 {
            // The second before it has one of the two.
            assert_eq!(trades, json!(1), "{source}");
        }
        asked(&exchange, "time") >= before + 2
    })
    .await;
}
