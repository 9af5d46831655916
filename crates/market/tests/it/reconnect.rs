//! Connections have a lifetime; books do not notice.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tribune_exchange_sim::Limits;
use tribune_market::feed::{BookState, Published};

use crate::support::{exchange, feed, simulation, until};

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
    while exchange.counts().connections_accepted < accepted + CHANGES || exchange.counts().connections > 1 {
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
