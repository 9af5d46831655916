//! Recordings that are refused. The message names the file, the line, the problem and what to record instead.

use serde_json::json;

use crate::recording::{Recording, Replay, T0, diff};

async fn refusal(texts: &[&str]) -> String {
    match Replay::start(texts, 0.0).await {
        Ok(_) => panic!("it starts"),
        Err(error) => error.to_string(),
    }
}

/// A valid recording with one more line, which is the third.
fn with(after: i64, line: &serde_json::Value) -> String {
    let mut recording = Recording::of_btc();
    recording.line(after, line);
    recording.0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unplayable_lines_are_refused() {
    let stream = |name: &str, data: serde_json::Value| with(2, &json!({"stream": name, "data": data}));
    for (text, problem, remedy) in [
        ("{\"stream\":1}\n".to_owned(), "line 1: the line does not begin with a receive time", "`<receive_ns> <json>`"),
        (
            format!("{}1750000040.5: {{}}\n", Recording::of_btc().0),
            "line 3: the line does not begin",
            "`<receive_ns> <json>`",
        ),
        (
            format!("{}{} {{\"stream\":\n", Recording::of_btc().0, T0 * 1_000_000),
            "line 3: not a valid message",
            "as the exchange sends them",
        ),
        (
            with(2, &diff("BTCUSDT", 11, 11, &[], &[])),
            "line 3: neither a message of a combined stream",
            "/stream?streams=",
        ),
        (
            stream("btcusdt@ticker", json!({"s": "BTCUSDT"})),
            "line 3: stream `btcusdt@ticker` cannot be played",
            "record `depth`",
        ),
        (
            stream("btcusdt@depth20", json!({"lastUpdateId": 1})),
            "line 3: stream `btcusdt@depth20` cannot be played",
            "record `depth`",
        ),
        (
            stream("btcusdt@trade", json!({"s": "BTCUSDT", "t": 1, "p": "1", "q": "1", "T": T0 * 1_000, "m": true})),
            "is not a time in milliseconds",
            "times in milliseconds",
        ),
        (
            with(4_000_000, &json!({"result": null, "id": 1})),
            "line 3: nothing was recorded in the 3999 s before",
            "play the parts",
        ),
    ] {
        let message = refusal(&[&text]).await;
        assert!(message.starts_with("cannot replay ") && message.contains("0.txt"), "{message}");
        assert!(message.contains(problem) && message.contains(remedy), "{problem}: {message}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn incomplete_recordings_are_refused() {
    let update = |symbol: &str| {
        let mut recording = Recording::default();
        let stream = format!("{}@depth", symbol.to_lowercase());
        recording.stream(0, &stream, &diff(symbol, 1, 1, &[(7, 1)], &[]));
        recording
    };
    let mut late = update("BTCUSDT");
    late.snapshot(11_000, 1, 7, 7);
    let mut no_depth = Recording::default();
    no_depth.snapshot(0, 1, 7, 7);
    no_depth.trade(1, 1);
    let mut only_candles = Recording::of_btc();
    only_candles.stream(2, "btcusdt@kline_1m", &json!({"s": "BTCUSDT", "k": {}}));
    let aggregate = json!({"s": "BTCUSDT", "a": 1, "p": "100", "q": "3", "f": 878, "l": 880, "T": T0, "m": true});
    let only_aggregates = with(2, &json!({"stream": "btcusdt@aggTrade", "data": aggregate}));
    let mut two_symbols = update("ETHUSDT");
    two_symbols.0.push_str(&Recording::of_btc().0);
    let mut unclear = update("BATUSD");
    unclear.snapshot(1, 1, 7, 7);
    let mut torn = Recording::of_btc();
    torn.trades((1..=9).filter(|id| !(4..=6).contains(id)));
    let mut gap = Recording::of_btc();
    gap.diff(100, 13, 13, &[(100, 0)], &[]);
    let mut early = Recording::default();
    early.diff(0, 5, 5, &[(7, 1)], &[]);
    early.snapshot(1, 1, 7, 7);
    for (text, problem, remedy) in [
        (torn.0, "line 6: trades 4 to 6 are missing before this line", "play the parts before and after it"),
        (gap.0, "line 3: depth updates 11 to 12 are missing before this line", "play the parts before and after it"),
        (
            early.0,
            "line 1: depth updates 2 to 4 of BTCUSDT are missing after its first depth snapshot",
            "right after subscribing",
        ),
        (String::new(), "the recording has no market data", "record `/stream?streams="),
        (update("BTCUSDT").0, "line 1: BTCUSDT has no depth snapshot", "GET /api/v3/depth?symbol=BTCUSDT&limit=5000"),
        (late.0, "line 1: the first depth snapshot of BTCUSDT comes 11 s after", "right after subscribing"),
        (no_depth.0, "line 2: BTCUSDT has no depth updates", "record `btcusdt@depth@100ms`"),
        (only_candles.0, "BTCUSDT has candles or aggregates but no trades", "record `btcusdt@trade`"),
        (only_aggregates, "BTCUSDT has candles or aggregates but no trades", "record `btcusdt@trade`"),
        (
            two_symbols.0,
            "line 2: the snapshot does not name its symbol, and the file has 2 symbols",
            "one file per symbol",
        ),
        (unclear.0, "line 1: base and quote asset of BATUSD are not certain", "GET /api/v3/exchangeInfo?symbol=BATUSD"),
    ] {
        let message = refusal(&[&text]).await;
        assert!(
            message.contains("0.txt") && message.contains(problem) && message.contains(remedy),
            "{problem}: {message}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn file_of_the_refusal_is_named() {
    let broken = format!("{} nonsense\n", (T0 + 5) * 1_000_000);
    let message = refusal(&[&Recording::of_btc().0, &broken]).await;
    assert!(message.contains("1.txt, line 1: "), "{message}");
    let settings = tribune_exchange_sim::Settings {
        mode: tribune_exchange_sim::Mode::Replay { files: vec!["/no/such/file.gz".into()], speed: 1.0 },
        ..tribune_exchange_sim::Settings::default()
    };
    let missing = tribune_exchange_sim::start(settings).await.expect_err("no such file");
    assert!(missing.to_string().contains("/no/such/file.gz: cannot read the file"), "{missing}");
}
