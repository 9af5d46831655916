use serde_json::json;
use tribune_exchange_sim::{Exchange, Fault, Limits};

use crate::support::{Book, Socket, get, post, simulated, until};

/// The ids `(U, u)` of the next diffs.
async fn ids(socket: &mut Socket, count: usize) -> Vec<(u64, u64)> {
    let mut ids = Vec::new();
    for _ in 0..count {
        let diff = socket.json().await;
        ids.push((diff["U"].as_u64().expect("U"), diff["u"].as_u64().expect("u")));
    }
    ids
}

fn gaps(ids: &[(u64, u64)]) -> usize {
    ids.windows(2).filter(|pair| pair[1].0 != pair[0].1 + 1).count()
}

async fn diffs(exchange: &Exchange) -> Socket {
    Socket::open(exchange, "/ws/btcusdt@depth@100ms").await
}

fn btc() -> Option<String> {
    Some("BTCUSDT".to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn diffs_can_be_dropped_duplicated_and_swapped() {
    let exchange = simulated(Limits::default()).await;
    let mut socket = diffs(&exchange).await;
    let faults = exchange.faults();
    let mut seen = ids(&mut socket, 4).await;
    assert_eq!(gaps(&seen), 0);
    faults.set(&Fault::DropDiffs { symbol: btc(), count: 1 });
    // Diffs from before the fault may still be on their way.
    while gaps(&seen) == 0 {
        seen.extend(ids(&mut socket, 1).await);
    }
    seen = ids(&mut socket, 4).await;
    assert_eq!(gaps(&seen), 0, "one was dropped");
    faults.set(&Fault::DuplicateDiffs { symbol: btc(), count: 1 });
    let duplicates = |seen: &[(u64, u64)]| seen.windows(2).filter(|pair| pair[0] == pair[1]).count();
    while duplicates(&seen) == 0 {
        seen.extend(ids(&mut socket, 1).await);
    }
    seen = ids(&mut socket, 4).await;
    assert_eq!(duplicates(&seen), 0, "one was sent twice");
    faults.set(&Fault::SwapDiffs { symbol: btc(), count: 1 });
    while gaps(&seen) == 0 {
        seen.extend(ids(&mut socket, 1).await);
    }
    seen.extend(ids(&mut socket, 1).await);
    seen.sort_unstable();
    assert_eq!(gaps(&seen), 0, "nothing is lost");
    faults.set(&Fault::DropDiffs { symbol: Some("ETHUSDT".to_owned()), count: 9 });
    assert_eq!(gaps(&ids(&mut socket, 4).await), 0, "another symbol's fault");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stale_snapshot_is_older_than_the_stream() {
    let exchange = simulated(Limits::default()).await;
    let mut socket = diffs(&exchange).await;
    let (first, _) = ids(&mut socket, 1).await[0];
    exchange.faults().set(&Fault::StaleSnapshots { count: 1 });
    let depth = "/api/v3/depth?symbol=BTCUSDT";
    assert!(Book::of(&get(&exchange, depth).await.json()).id < first);
    assert!(Book::of(&get(&exchange, depth).await.json()).id >= first);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_can_be_rejected_delayed_or_broken() {
    let exchange = simulated(Limits::default()).await;
    let faults = exchange.faults();
    faults.set(&Fault::Reject { status: 429, retry_after_secs: Some(7), count: Some(1) });
    let reply = get(&exchange, "/api/v3/time").await;
    assert_eq!((reply.status, reply.headers["retry-after"].as_str()), (429, "7"));
    assert_eq!(get(&exchange, "/api/v3/time").await.status, 200);
    let counts = exchange.counts();
    assert_eq!((counts.organic_429, counts.injected_rejections), (0, 1));

    let time = async || get(&exchange, "/api/v3/time").await.json()["serverTime"].as_i64().expect("a time");
    let before = time().await;
    faults.set(&Fault::Delay { millis: 150 });
    assert!(time().await >= before + 150, "by the exchange's clock");
    faults.clear();

    faults.set(&Fault::HalfAnswers { count: 1 });
    let torn = get(&exchange, "/api/v3/exchangeInfo").await;
    assert!(!torn.complete && torn.body.starts_with("{\"timezone\""));
    faults.set(&Fault::GarbageAnswers { count: 1 });
    let garbage = get(&exchange, "/api/v3/time").await;
    assert!(serde_json::from_str::<serde_json::Value>(&garbage.body).is_err());
    assert!(get(&exchange, "/api/v3/time").await.json()["serverTime"].is_i64());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clock_can_be_skewed() {
    let exchange = simulated(Limits::default()).await;
    let time = async || get(&exchange, "/api/v3/time").await.json()["serverTime"].as_i64().expect("a time");
    let before = time().await;
    exchange.faults().set(&Fault::ClockSkew { millis: -3_600_000 });
    assert!(time().await < before);
    let mut socket = diffs(&exchange).await;
    let event_time = socket.json().await["E"].as_i64().expect("E");
    assert!(event_time < before, "{event_time} {before}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_can_be_cut_silenced_and_refused() {
    let exchange = simulated(Limits::default()).await;
    let mut socket = diffs(&exchange).await;
    ids(&mut socket, 1).await;
    let set = post(&exchange, "/sim/faults", r#"[{"fault":"garbage_messages","count":1}]"#).await;
    assert_eq!(set.json(), json!({"set": 1}));
    let is_json = |text: Option<String>| serde_json::from_str::<serde_json::Value>(&text.expect("a text")).is_ok();
    while is_json(socket.text().await) {}
    let mut seen = ids(&mut socket, 1).await;
    exchange.faults().set(&Fault::Silence { on: true });
    let sent = exchange.counts().messages_sent;
    until("diffs are withheld", async || exchange.counts().messages_sent > sent + 10).await;
    exchange.faults().clear();
    while gaps(&seen) == 0 {
        seen.extend(ids(&mut socket, 1).await);
    }

    exchange.faults().set(&Fault::DropConnections);
    while socket.text().await.is_some() {}
    exchange.faults().set(&Fault::RefuseConnections { on: true });
    assert!(tokio_tungstenite::connect_async(format!("{}/ws", exchange.stream_url())).await.is_err());
    exchange.faults().clear();
    ids(&mut diffs(&exchange).await, 1).await;
    assert_eq!(post(&exchange, "/sim/faults", r#"{"fault":"earthquake"}"#).await.status, 400);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_symbol_or_endpoint_can_fail() {
    let exchange = simulated(Limits::default()).await;
    let faults = exchange.faults();
    let mut socket = diffs(&exchange).await;
    ids(&mut socket, 1).await;
    faults.set(&Fault::UnreadableDiffs { symbol: btc(), count: 1 });
    let odd = loop {
        let diff = socket.json().await;
        if diff["U"].as_u64().is_none() {
            break diff;
        }
    };
    assert_eq!(odd["e"], "depthUpdate");
    let mute = |on| Fault::Mute { symbol: "BTCUSDT".to_owned(), on };
    let mut other = Socket::open(&exchange, "/ws/ethusdt@depth@100ms").await;
    let mut seen = ids(&mut socket, 1).await;
    faults.set(&mute(true));
    ids(&mut other, 5).await;
    faults.set(&mute(false));
    while gaps(&seen) == 0 {
        seen.extend(ids(&mut socket, 1).await);
    }
    let mut seen = ids(&mut socket, 1).await;
    faults.set(&Fault::LoseStreams { symbol: "btcusdt".to_owned() });
    ids(&mut other, 5).await;
    socket.send(r#"{"method":"SUBSCRIBE","params":["btcusdt@depth@100ms"],"id":1}"#).await;
    while gaps(&seen) == 0 {
        let message = socket.json().await;
        if let (Some(first), Some(last)) = (message["U"].as_u64(), message["u"].as_u64()) {
            seen.push((first, last));
        }
    }
    faults.set(&Fault::FailEndpoint { endpoint: "time".to_owned(), count: 1 });
    assert_eq!(get(&exchange, "/api/v3/ping").await.status, 200);
    assert_eq!(get(&exchange, "/api/v3/time").await.status, 503);
    assert_eq!(get(&exchange, "/api/v3/time").await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscriptions_can_be_refused_and_ignored() {
    let exchange = simulated(Limits::default()).await;
    let mut socket = Socket::open(&exchange, "/stream").await;
    exchange.faults().set(&Fault::RefuseSubscriptions { count: 1 });
    exchange.faults().set(&Fault::IgnoreSubscriptions { count: 1 });
    for id in 1..=3 {
        let request = json!({"method": "SUBSCRIBE", "params": ["nosuch@depth"], "id": id});
        socket.send(&request.to_string()).await;
    }
    let answers = [socket.json().await, socket.json().await];
    assert_eq!((&answers[0]["id"], answers[0]["error"]["code"].as_i64()), (&json!(1), Some(2)));
    assert_eq!((&answers[1]["id"], answers[1].get("error")), (&json!(3), None));
}
