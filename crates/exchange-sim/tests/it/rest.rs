use serde_json::Value;
use tribune_exchange_sim::Limits;

use crate::support::{get, post, simulated, units};

fn keys(value: &Value) -> String {
    let object = value.as_object().unwrap_or_else(|| panic!("not an object: {value}"));
    object.keys().map(String::as_str).collect::<Vec<_>>().join(" ")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_answer_is_labelled_and_weighed() {
    let exchange = simulated(Limits::default()).await;
    let first = get(&exchange, "/api/v3/ping").await;
    assert_eq!((first.status, first.body.as_str()), (200, "{}"));
    assert_eq!(first.headers["x-mbx-used-weight-1m"], "1");
    let second = get(&exchange, "/api/v3/depth?symbol=BTCUSDT&limit=1000").await;
    // Without the first if another minute has begun.
    assert!(["51", "50"].contains(&second.headers["x-mbx-used-weight"].as_str()));
    for path in ["/", "/sim/state", "/api/v3/nothing", "/nowhere", "/api/v3/depth?symbol=NO"] {
        let reply = get(&exchange, path).await;
        assert_eq!(reply.headers.get("x-tribune-simulated").map(String::as_str), Some("simulated"), "{path}");
    }
    assert_eq!(get(&exchange, "/api/v3/nothing").await.status, 404);
    assert_eq!(get(&exchange, "/nowhere").await.status, 404);
    assert_eq!(post(&exchange, "/api/v3/depth", "").await.status, 404);
    let counts = exchange.counts();
    assert_eq!(counts.requests["/api/v3/ping"], 1);
    assert_eq!(counts.organic_429, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_have_the_exchange_shapes() {
    let exchange = simulated(Limits::default()).await;
    let json = async |path: &str| get(&exchange, &format!("/api/v3/{path}")).await.json();
    let info = json("exchangeInfo?symbol=BTCUSDT").await;
    assert_eq!(keys(&info), "timezone serverTime rateLimits exchangeFilters symbols");
    assert_eq!(info["rateLimits"][0]["limit"], 6_000);
    let filters: Vec<&Value> = info["symbols"][0]["filters"].as_array().expect("filters").iter().collect();
    assert_eq!(filters[0]["tickSize"], "0.01000000");
    assert_eq!(filters[1]["stepSize"], "0.00001000");
    assert_eq!(filters[2]["filterType"], "NOTIONAL");
    let all = json("exchangeInfo").await;
    let statuses: Vec<&str> =
        all["symbols"].as_array().expect("symbols").iter().filter_map(|s| s["status"].as_str()).collect();
    assert_eq!(statuses.len(), 14);
    assert_eq!(statuses.iter().filter(|status| **status != "TRADING").count(), 2);

    let depth = json("depth?symbol=ETHUSDT&limit=5").await;
    assert_eq!(keys(&depth), "lastUpdateId bids asks");
    assert_eq!(depth["bids"].as_array().map(Vec::len), Some(5));
    assert!(units(&depth["bids"][0][0]) < units(&depth["asks"][0][0]));
    let trade = &json("trades?symbol=ETHUSDT&limit=3").await[0];
    assert_eq!(keys(trade), "id price qty quoteQty time isBuyerMaker isBestMatch");
    let aggregate = &json("aggTrades?symbol=ETHUSDT&limit=3").await[0];
    assert_eq!(keys(aggregate), "a p q f l T m M");
    let kline = &json("klines?symbol=ETHUSDT&interval=1m&limit=3").await[0];
    assert_eq!(kline.as_array().map(Vec::len), Some(12));
    assert_eq!(keys(&json("avgPrice?symbol=ETHUSDT").await), "mins price closeTime");
    assert_eq!(keys(&json("ticker/price?symbol=ETHUSDT").await), "symbol price");
    assert_eq!(keys(&json("ticker/bookTicker?symbol=ETHUSDT").await), "symbol bidPrice bidQty askPrice askQty");
    assert_eq!(json("ticker/price").await.as_array().map(Vec::len), Some(14));
    let tickers = json("ticker/24hr?symbols=[%22ETHUSDT%22]").await;
    assert_eq!(
        keys(&tickers[0]),
        "symbol openPrice highPrice lowPrice lastPrice volume quoteVolume openTime closeTime firstId lastId count \
         priceChange priceChangePercent weightedAvgPrice prevClosePrice lastQty bidPrice bidQty askPrice askQty"
    );
    assert!(json("klines?symbol=LUNAUSDT&interval=1m").await[0].is_array());
    assert_eq!(json("ticker/24hr?symbol=LUNAUSDT").await["count"], 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_have_the_exchange_codes() {
    let exchange = simulated(Limits::default()).await;
    for (path, code) in [
        ("depth?symbol=NOSUCH", -1121),
        ("depth", -1102),
        ("depth?symbol=btcusdt", -1100),
        ("depth?symbol=BTCUSDT&limit=many", -1100),
        ("depth?symbol=BTCUSDT&limit=0", -1130),
        ("klines?symbol=BTCUSDT&interval=7m", -1120),
        ("klines?symbol=BTCUSDT&interval=1H", -1120),
        ("klines?symbol=BTCUSDT", -1102),
        ("klines?symbol=BTCUSDT&interval=1m&startTime=2&endTime=1", -1127),
        ("ticker/24hr?symbol=BTCUSDT&type=MINI", -1104),
        ("exchangeInfo?symbols=[%22BTCUSDT%22,%22NOSUCH%22]", -1121),
        ("aggTrades?symbol=BTCUSDT&fromId=1&startTime=1", -1128),
        ("time?what=now", -1104),
    ] {
        let reply = get(&exchange, &format!("/api/v3/{path}")).await;
        assert_eq!(reply.status, 400, "{path}");
        assert_eq!(reply.json()["code"], code, "{path}: {}", reply.body);
        assert_eq!(keys(&reply.json()), "code msg");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn candles_trades_and_tickers_agree() {
    let exchange = simulated(Limits::default()).await;
    let json = async |path: &str| get(&exchange, &format!("/api/v3/{path}")).await.json();
    // Closed minutes only, while the market goes on.
    let ticker = json("ticker/24hr?symbol=BTCUSDT").await;
    let (opened, closed) =
        (ticker["openTime"].as_i64().expect("a time"), ticker["closeTime"].as_i64().expect("a time"));
    let minutes = json(&format!("klines?symbol=BTCUSDT&interval=1m&startTime={opened}&limit=1000")).await;
    let minutes = minutes.as_array().expect("candles");
    assert_eq!(minutes.len(), 1_000);
    let hour = minutes.iter().position(|candle| candle[0].as_i64().expect("a time") % 3_600_000 == 0).expect("an hour");
    let sixty = &minutes[hour..hour + 60];
    let hours = json(&format!("klines?symbol=BTCUSDT&interval=1h&startTime={}&limit=1", sixty[0][0])).await;
    let sum = |column: usize| sixty.iter().map(|candle| units(&candle[column])).sum::<i128>();
    for column in [5, 7, 9, 10] {
        assert_eq!(units(&hours[0][column]), sum(column), "column {column}");
    }
    assert_eq!(hours[0][1], sixty[0][1]);
    assert_eq!(hours[0][4], sixty[59][4]);
    assert_eq!(units(&hours[0][2]), sixty.iter().map(|candle| units(&candle[2])).max().expect("candles"));
    assert!(closed - opened >= 86_400_000);

    // The minute before the last whole one was traded in the warm-up: its candle is its trades.
    let trades = json("trades?symbol=BTCUSDT&limit=1000").await;
    let trades = trades.as_array().expect("trades");
    let minute = closed - closed % 60_000 - 60_000;
    let first = trades.first().and_then(|trade| trade["time"].as_i64()).expect("trades");
    let open = minute.max(first - first % 1_000 + 1_000);
    let second = json(&format!("klines?symbol=BTCUSDT&interval=1s&startTime={open}&limit=20")).await;
    let mut compared = 0;
    for candle in second.as_array().expect("candles").iter().take(15) {
        let (from, to) = (candle[0].as_i64().expect("a time"), candle[6].as_i64().expect("a time"));
        let within: Vec<&Value> =
            trades.iter().filter(|trade| (from..=to).contains(&trade["time"].as_i64().expect("a time"))).collect();
        assert_eq!(candle[8], within.len());
        assert_eq!(units(&candle[5]), within.iter().map(|trade| units(&trade["qty"])).sum::<i128>());
        assert_eq!(units(&candle[7]), within.iter().map(|trade| units(&trade["quoteQty"])).sum::<i128>());
        compared += within.len();
    }
    assert!(compared > 10, "{compared}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_the_limit_answers_429_then_418() {
    let exchange = simulated(Limits { weight_per_minute: 100, rejections_before_ban: 2, ..Limits::default() }).await;
    let depth = "/api/v3/depth?symbol=BTCUSDT&limit=1000";
    let mut statuses = Vec::new();
    while statuses.last() != Some(&418) {
        let reply = get(&exchange, depth).await;
        if reply.headers["x-mbx-used-weight-1m"] == "50" {
            // Another minute has begun.
            statuses.clear();
        }
        if reply.status != 200 {
            assert!(reply.headers["retry-after"].parse::<u64>().is_ok_and(|seconds| (1..=120).contains(&seconds)));
            assert_eq!(reply.json()["code"], -1003);
        }
        statuses.push(reply.status);
    }
    assert_eq!(statuses, [200, 200, 429, 429, 418]);
    let counts = exchange.counts();
    assert!(counts.organic_429 >= 2);
    assert_eq!((counts.organic_418, counts.injected_rejections), (1, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_symbols_and_deep_books_are_served() {
    let settings = tribune_exchange_sim::Settings {
        mode: tribune_exchange_sim::Mode::Simulated(tribune_exchange_sim::Simulation {
            extra_symbols: 300,
            levels: 5_200,
            ..crate::support::simulation()
        }),
        ..tribune_exchange_sim::Settings::default()
    };
    let exchange = tribune_exchange_sim::start(settings).await.expect("it starts");
    let tickers = get(&exchange, "/api/v3/ticker/24hr").await.json();
    let tickers = tickers.as_array().expect("tickers");
    assert_eq!(tickers.len(), 314);
    assert!(tickers.iter().filter(|ticker| ticker["count"].as_u64() > Some(0)).count() > 280);
    let depth = get(&exchange, "/api/v3/depth?symbol=BTCUSDT&limit=9000").await.json();
    assert_eq!(depth["asks"].as_array().map(Vec::len), Some(5_000));
}
