//! Connections come and go; books stay, or say that they do not.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tribune_exchange_sim::{Exchange, Limits, Simulation};
use tribune_market::feed::{BookState, Published};

use crate::oracle::{Truth, Verdict};
use crate::recording::{Listener, snapshot, streams};
use crate::support::{PATIENCE, Wire, exchange, feed, feed_at, rest_settings, simulation, until};

const SYMBOLS: [&str; 3] = ["BTCUSDT", "ETHBTC", "DOGEUSDT"];
/// Connections that take over from one another.
const CHANGES: u64 = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_book_leaves_live_because_a_connection_ends_as_announced() {
    let limits = Limits {
        // Each connection is told of its own end before it has taken over from the one before.
        connection_lifetime: Duration::from_secs(5),
        shutdown_notice: Duration::from_millis(3_500),
        ..Limits::default()
    };
    let exchange = exchange(simulation(), limits).await;
    let feed = feed(&exchange, &SYMBOLS);
    let books: Vec<Arc<Published>> = SYMBOLS.iter().filter_map(|symbol| feed.lookup(symbol)).collect();
    let live = |book: &Arc<Published>| book.status().state == BookState::Live;
    until("every book is live", || async { books.iter().all(live) }).await;
    let traded = |book: &Arc<Published>| book.tape.last().is_some();
    until("every symbol was traded", || async { books.iter().all(traded) }).await;
    let complete_from: Vec<_> = books.iter().map(|book| book.tape.since(0).complete_from).collect();

    let deadline = Instant::now() + Duration::from_secs(60);
    let accepted = exchange.counts().connections_accepted;
    while exchange.counts().connections_accepted < accepted + CHANGES {
        for book in &books {
            let status = book.status();
            assert_eq!(status.state, BookState::Live, "{}: {:?}", book.symbol, status.reason);
        }
        assert!(Instant::now() < deadline, "connections do not change");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for (book, complete_from) in books.iter().zip(complete_from) {
        assert_eq!(book.resyncs(), 0, "{}", book.symbol);
        // Nor is a trade missing.
        assert_eq!(book.tape.since(0).complete_from, complete_from, "{}", book.symbol);
    }
}

/// A quiet market and one whose streams were refused look the same; only one of them is live.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_book_whose_streams_are_refused_is_not_live() {
    let limits = Limits {
        streams_per_connection: 3,
        ..Limits::default()
    };
    let exchange = exchange(simulation(), limits).await;
    let feed = feed(&exchange, &SYMBOLS);
    let books: Vec<Arc<Published>> = SYMBOLS.iter().filter_map(|symbol| feed.lookup(symbol)).collect();
    let refused = |book: &Arc<Published>| {
        let status = book.status();
        status
            .reason
            .as_deref()
            .is_some_and(|reason| reason.contains("refused"))
    };
    until("they say why", || async { books.iter().all(refused) }).await;
    // Longer than a quiet market is waited for.
    let deadline = Instant::now() + Duration::from_secs(4);
    while Instant::now() < deadline {
        assert!(books.iter().all(|book| book.live().is_none()));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Listens to the exchange until the book is live and exactly its own.
async fn becomes_true(book: &Published, exchange: &Exchange) {
    let mut listener = Listener::open(exchange, &streams(&[&book.symbol], &["depth@100ms"])).await;
    let first: Value = serde_json::from_str(&snapshot(exchange, &book.symbol).await).expect("JSON");
    let start = first["lastUpdateId"].as_u64().expect("an id");
    let mut truth = Truth::new(&first);
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        let message = listener.next().await.expect("a message");
        let mut value: Value = serde_json::from_str(&message).expect("JSON");
        truth.diff(value["data"].take());
        // Ids of another exchange are far from these.
        let view = book
            .live()
            .filter(|view| (start..start + 100_000).contains(&view.last_update_id));
        match view.map(|view| truth.judge(&view)) {
            Some(Verdict::Exact) => return,
            Some(Verdict::Wrong(what)) => panic!("{}: {what}", book.symbol),
            Some(Verdict::Between | Verdict::Unknown) | None => {}
        }
    }
    panic!("{} is never its book: {:?}", book.symbol, book.status());
}

/// As a simulator does that is started again: its ids begin anew. There and back they are once lower than before and
/// once higher.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_exchange_that_begins_anew_is_followed() {
    let seeded = |seed| Simulation { seed, ..simulation() };
    let one = exchange(seeded(1), Limits::default()).await;
    // Seeds that differ in many bits begin with ids that are far apart.
    let other = exchange(seeded(u64::MAX / 3), Limits::default()).await;
    let wire = Wire::to(&one).await;
    let mut rest = rest_settings(&one);
    rest.base_url = wire.rest_url();
    let feed = feed_at(rest, wire.stream_url(), &SYMBOLS);
    let books: Vec<Arc<Published>> = SYMBOLS.iter().filter_map(|symbol| feed.lookup(symbol)).collect();
    for now in [&one, &other, &one] {
        wire.lead_to(now);
        for book in &books {
            becomes_true(book, now).await;
        }
    }
}
