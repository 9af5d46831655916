//! Faults that last until they are cleared.

use tribune_exchange_sim::{Fault, Limits};

use crate::support::{Socket, get, post, simulated};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn simulator_answers_while_connections_are_refused() {
    let exchange = simulated(Limits::default()).await;
    exchange.faults().set(&Fault::RefuseConnections { on: true });
    assert_eq!(get(&exchange, "/api/v3/ping").await.status, 0);
    assert_eq!(get(&exchange, "/sim/state").await.status, 200);
    let cleared = post(&exchange, "/sim/faults", r#"{"fault":"clear"}"#).await;
    assert_eq!(cleared.status, 200);
    assert_eq!(get(&exchange, "/api/v3/ping").await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn skewed_clock_shifts_trades_and_tickers() {
    let exchange = simulated(Limits::default()).await;
    let last_of = async |path: &str, field: &str| {
        let answer = get(&exchange, path).await.json();
        let row = answer.as_array().and_then(|rows| rows.last()).unwrap_or(&answer);
        row[field].as_i64().expect("a time")
    };
    let skew = 3_600_000;
    exchange.faults().set(&Fault::ClockSkew { millis: skew });
    let now = last_of("/api/v3/time", "serverTime").await;
    for (path, field) in [
        ("/api/v3/trades?symbol=BTCUSDT", "time"),
        ("/api/v3/aggTrades?symbol=BTCUSDT", "T"),
        ("/api/v3/ticker/24hr?symbol=BTCUSDT", "closeTime"),
        ("/api/v3/avgPrice?symbol=BTCUSDT", "closeTime"),
    ] {
        let time = last_of(path, field).await;
        assert!((time - now).abs() < skew / 2, "{path}: {time} at {now}");
    }
    let recent = last_of(&format!("/api/v3/aggTrades?symbol=BTCUSDT&startTime={}", now - 60_000), "T").await;
    assert!(recent > now - 60_000);
    let mut socket = Socket::open(&exchange, "/ws/btcusdt@trade").await;
    let traded = socket.json().await["T"].as_i64().expect("a time");
    assert!((traded - now).abs() < skew / 2);
}
