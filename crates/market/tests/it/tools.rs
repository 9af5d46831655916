//! The tools, as hosts call them: by their schemas, with what people write, and while the exchange does not answer.

use serde_json::{Value, json};
use tribune_core::Source as _;
use tribune_exchange_sim::{Fault, Limits};
use tribune_registry::Registry;

use crate::support::{Market, MarketSettings, call, exchange, simulation, until};

/// What a small answer's description may take of a model's context.
const MAX_OUTPUT_SCHEMA_BYTES: usize = 1_600;

struct Tools {
    registry: Registry,
    market: Market,
}

impl Tools {
    fn of(market: Market) -> Self {
        let mut registry = Registry::default();
        for tool in market.source.clone().tools() {
            registry.add(tool).expect("a tool that hosts take");
        }
        Self { registry, market }
    }

    /// As a host does it: arguments are prepared, and the answer is held to its schema.
    async fn call(&self, name: &str, arguments: Value) -> Result<Value, String> {
        let tool = self.registry.lookup(name).expect("the tool");
        let arguments = arguments.as_object().cloned().expect("an object");
        let arguments = tool.prepare(arguments).map_err(|error| error.to_string())?;
        let output = tool.tool().call(arguments, &call()).await;
        let output = output.map_err(|error| error.message().to_owned())?;
        let answer: Value = serde_json::from_str(output.json()).expect("JSON");
        let schema = Value::Object(tool.spec().output_schema.clone());
        let validator = jsonschema::validator_for(&schema).expect("a schema");
        let faults: Vec<String> = validator.iter_errors(&answer).map(|fault| fault.to_string()).collect();
        assert!(faults.is_empty(), "{name}: {faults:?} of {answer}");
        Ok(answer)
    }

    async fn answer(&self, name: &str, arguments: Value) -> Value {
        let answer = self.call(name, arguments).await;
        answer.unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    async fn fault(&self, name: &str, arguments: Value) -> String {
        self.call(name, arguments).await.expect_err("it is refused")
    }
}

async fn tools() -> (tribune_exchange_sim::Exchange, Tools) {
    let exchange = exchange(simulation(), Limits::default()).await;
    let market = MarketSettings::of(&exchange).start().ready().await;
    market.live("orderbook_l1:BTCUSDT").await;
    (exchange, Tools::of(market))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_answer_has_the_figures_that_its_schema_names() {
    let (_exchange, tools) = tools().await;
    let one = json!({"symbol": "BTCUSDT"});
    let calls = [
        ("binance_get_ticker", one.clone()),
        ("binance_get_orderbook", json!({"symbol": "BTCUSDT", "limit": 5})),
        ("binance_get_recent_trades", json!({"symbol": "BTCUSDT", "limit": 7})),
        ("binance_get_klines", json!({"symbol": "BTCUSDT", "interval": "1m"})),
        ("binance_get_exchange_info", one.clone()),
        ("binance_get_avg_price", one.clone()),
        ("binance_orderbook_l1", one.clone()),
        ("binance_orderbook_l2", one.clone()),
        ("binance_orderbook_health", one.clone()),
        ("binance_get_order_flow", one.clone()),
        ("binance_get_volume_profile", one.clone()),
        ("binance_detect_market_anomalies", one.clone()),
        ("binance_get_microstructure_health", one.clone()),
        ("binance_get_liquidity_vacuums", one.clone()),
        ("binance_cost_to_trade", json!({"symbol": "BTCUSDT", "side": "sell", "notional": 1000})),
        ("binance_compare_markets", json!({"symbols": ["BTCUSDT", "ETHUSDT"]})),
        ("binance_top_markets", json!({})),
    ];
    assert_eq!(calls.len(), tools.registry.names().count(), "every tool is called");
    // Told only where there is something to tell, or of several symbols, or of the exchange as a whole.
    let sometimes = [
        "results",
        "failed",
        "clock_note",
        "book_state_reason",
        "order_note",
        "coverage_note",
        "symbols_traded",
        "request_weight_used_this_minute",
        "request_weight_budget_a_minute",
        "symbols",
        "quote_assets",
        "unfilled_base",
        "unfilled_quote",
        "asked_base",
        "klines_unlisted",
        "flow",
        "icebergs",
        "vanished_untraded",
    ];
    for (name, arguments) in calls {
        let answer = tools.answer(name, arguments).await;
        let schema = tools.registry.lookup(name).expect("the tool").spec().output_schema.clone();
        let schema = Value::Object(schema);
        let size = schema.to_string().len();
        assert!(size <= MAX_OUTPUT_SCHEMA_BYTES, "{name}: {size}");
        let (answer, schema) = match name {
            "binance_compare_markets" => (&answer["results"][0], &schema["properties"]["results"]["items"]),
            _ => (&answer, &schema),
        };
        let named = schema["properties"].as_object().expect("figures").keys();
        for figure in named.filter(|figure| !sometimes.contains(&figure.as_str())) {
            assert!(answer.get(figure).is_some(), "{name} has no {figure}: {answer}");
        }
    }
    tools.answer("binance_get_exchange_info", json!({})).await;
    let empty = json!({"symbol": "BTCUSDT", "interval": "1m", "start_time": "2099-01-01"});
    assert_eq!(tools.answer("binance_get_klines", empty).await["candles"], 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spellings_are_accepted_and_lists_stay_lists() {
    let (_exchange, tools) = tools().await;
    for symbols in [json!(["BTCUSDT"]), json!(["BTCUSDT", "btc/usdt"]), json!("[\"BTCUSDT\"]")] {
        let answer = tools.answer("binance_get_ticker", json!({"symbols": symbols})).await;
        assert_eq!(answer["results"].as_array().map(Vec::len), Some(1), "{answer}");
        assert_eq!(answer["results"][0]["symbol"], "BTCUSDT");
    }
    let both = json!({"symbols": "[\"BTCUSDT\",\"ETHUSDT\"]"});
    let answer = tools.answer("binance_orderbook_l1", both.clone()).await;
    assert_eq!(answer["results"].as_array().map(Vec::len), Some(2), "{answer}");
    tools.answer("binance_compare_markets", both).await;
    for symbols in [json!(["BTCUSDT", "BTCUSDT"]), json!(["BTCUSDT", "btcusdt"])] {
        let fault = tools.fault("binance_compare_markets", json!({"symbols": symbols})).await;
        assert!(fault.contains("two different symbols"), "{fault}");
    }
    let trades = json!({"symbol": "BTCUSDT", "limit": "10"});
    let answer = tools.answer("binance_get_recent_trades", trades).await;
    assert_eq!(answer["trades_used"], 10);
    let fault = tools.fault("binance_get_recent_trades", json!({"symbol": "BTCUSDT", "limit": "ten"})).await;
    assert!(fault.contains("`limit` has the wrong type"), "{fault}");
    // As text, as a number, as a day: the same time.
    let seconds = jiff::Timestamp::now().as_second() - 3_600;
    let hour = jiff::Timestamp::from_second(seconds - seconds % 60 + 30).expect("a time");
    let from = |start: Value| json!({"symbol": "BTCUSDT", "interval": "1m", "limit": 5, "start_time": start});
    let mut first = Vec::new();
    for start in [
        json!(hour.to_string()),
        json!(hour.as_millisecond()),
        json!(hour.as_millisecond().to_string()),
        json!(hour.as_second()),
    ] {
        let answer = tools.answer("binance_get_klines", from(start)).await;
        first.push(answer["klines"]["rows"][0][0].clone());
    }
    first.dedup();
    assert_eq!(first.len(), 1, "{first:?}");
    let fault = tools.fault("binance_get_klines", from(json!("yesterday"))).await;
    assert!(fault.contains("`start_time` is no time since 1970: yesterday"), "{fault}");
    for (size, told) in [
        (json!("0.123456789"), "at most 8 places"),
        (json!("-1"), "above zero"),
        (json!("0"), "above zero"),
        (json!(0), "above zero"),
    ] {
        let order = json!({"symbol": "BTCUSDT", "side": "buy", "quantity": size});
        let fault = tools.fault("binance_cost_to_trade", order).await;
        assert!(fault.contains(told), "{fault}");
    }
}

/// What the streams bring is told although the exchange asks for a pause; the rest is null and says why.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pause_falls_back_to_streams() {
    let (exchange, tools) = tools().await;
    tools.market.live("orderbook_l1:ETHUSDT").await;
    until("the stream has brought both tickers", || async {
        let answer = tools.answer("binance_top_markets", json!({"limit": 100})).await;
        answer["source"] == "stream"
    })
    .await;
    exchange.faults().set(&Fault::Reject { status: 429, retry_after_secs: Some(60), count: None });
    let symbols = json!({"symbols": ["BTCUSDT", "ETHUSDT"]});
    let compared = tools.answer("binance_compare_markets", symbols.clone()).await;
    assert_eq!(compared["failed"], json!([]));
    for row in compared["results"].as_array().expect("rows") {
        assert!(row["last_price"].is_string() && row["mid"].is_string(), "{row}");
        assert!(row["trades"].is_null(), "they are not counted: {row}");
        let note = row["ticker_note"].as_str().expect("a note");
        assert!(note.contains("from the exchange's streams"), "{note}");
        let why = row["reasons"]["realised_volatility_24h_pct"].as_str();
        assert!(row["realised_volatility_24h_pct"].is_null() && why.is_some(), "{row}");
    }
    let several = tools.answer("binance_get_ticker", symbols).await;
    assert_eq!(several["results"].as_array().map(Vec::len), Some(2), "{several}");
    let one = json!({"symbol": "BTCUSDT"});
    let found = tools.answer("binance_detect_market_anomalies", one.clone()).await;
    assert!(found["candles"]["value"].is_null() && found["candles"]["reason"].is_string(), "{found}");
    let checks = found["checks"].as_array().expect("checks");
    assert_eq!(checks.len(), 6, "{found}");
    let outliers = checks.iter().filter(|check| check["type"].as_str().is_some_and(|kind| kind.ends_with("_outlier")));
    for outlier in outliers {
        assert!(outlier["found"].is_null() && outlier["reason"].is_string(), "{outlier}");
    }
    let health = tools.answer("binance_get_microstructure_health", one).await;
    assert_eq!(health["complete"], false, "{health}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn checks_have_windows_and_missing_walls_reasons() {
    let (exchange, tools) = tools().await;
    let one = json!({"symbol": "BTCUSDT"});
    let found = tools.answer("binance_detect_market_anomalies", one.clone()).await;
    let window = |kind: &str| {
        let checks = found["checks"].as_array().expect("checks");
        let check = checks.iter().find(|check| check["type"] == kind).expect("the check");
        check["window"].as_str().expect("a window").to_owned()
    };
    let opened = found["candles"]["last_open_time"].as_str().expect("a time").to_owned();
    assert_eq!(window("volume_outlier"), format!("the 1m candle from {opened} on"));
    let vanished = window("large_level_vanished_untraded");
    assert!(vanished.starts_with("the last 300 s; the book has been watched for "), "{vanished}");
    assert_eq!(window("quote_rate"), "the last 10 s");
    assert!(found["candles"]["age_ms"].is_u64() && found["candles"]["interval"] == "1m", "{found}");

    let health = tools.answer("binance_orderbook_health", one.clone()).await;
    assert!(health["walls"]["walls"].is_array(), "{health}");
    // It was watched, and is not any more.
    exchange.faults().set(&Fault::Silence { on: true });
    exchange.faults().set(&Fault::DropConnections);
    exchange.faults().set(&Fault::RefuseConnections { on: true });
    until("the book is stale", || async {
        let answer = tools.answer("binance_orderbook_health", one.clone()).await;
        let reason = answer["walls"]["reason"].as_str().unwrap_or_default().to_owned();
        reason.contains("need a live book, and this one is stale: ")
    })
    .await;
}
