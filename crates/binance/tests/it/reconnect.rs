//! Connections come and go; books stay, or say that they do not.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::support::{Feed, Published};
use serde_json::Value;
use tribune_binance::{BookState, Rest, feed};
use tribune_exchange_sim::{Exchange, Fault, Limits, Simulation};

use crate::oracle::{Truth, Verdict};
use crate::recording::{Listener, snapshot, streams};
use crate::support::{PATIENCE, Wire, exchange, feed, feed_at, rest_settings, simulation, until};

const SYMBOLS: [&str; 3] = ["BTCUSDT", "ETHBTC", "DOGEUSDT"];
/// Connections that take over from one another.
const CHANGES: u64 = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn announced_end_keeps_books_live() {
    let limits = Limits {
        // Each connection's end is announced before it has taken over from the one before.
        connection_lifetime: Duration::from_secs(14),
        shutdown_notice: Duration::from_secs(12),
        ..Limits::default()
    };
    let exchange = exchange(simulation(), limits).await;
    let feed = feed(&exchange, &SYMBOLS);
    let books: Vec<Arc<Published>> = SYMBOLS.iter().filter_map(|symbol| feed.lookup(symbol)).collect();
    let live = |book: &Arc<Published>| book.status().state == BookState::Live;
    until("every book is live", || async { books.iter().all(live) }).await;
    let traded = |book: &Arc<Published>| book.tape.last().is_some();
    until("every symbol was traded", || async { books.iter().all(traded) }).await;
    let complete_from: Vec<_> = books.iter().map(|book| book.tape.recent(0).complete_from).collect();

    let deadline = Instant::now() + PATIENCE;
    let accepted = exchange.counts().connections_accepted;
    while exchange.counts().connections_accepted < accepted + CHANGES {
        undisturbed(&books);
        assert!(Instant::now() < deadline, "connections do not change");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for (book, complete_from) in books.iter().zip(complete_from) {
        assert_eq!(book.resyncs(), 0, "{}", book.symbol);
        // Nor is a trade missing.
        assert_eq!(book.tape.recent(0).complete_from, complete_from, "{}", book.symbol);
    }
}

/// No book has lost its updates, whatever happens to connections. One may be stale for a moment if this machine stands
/// still for so long that updates seem to be missing.
fn undisturbed(books: &[Arc<Published>]) {
    for book in books {
        let status = book.status();
        let reason = status.reason.as_deref().unwrap_or_default();
        let is_stale =
            status.state == BookState::Stale && !reason.contains("connection") && !reason.contains("refused");
        let is_kept = status.state == BookState::Live || is_stale;
        assert!(is_kept, "{}: {:?} {reason}", book.symbol, status.state);
    }
}

/// A quiet market and one whose streams were refused look the same; only one of them is live.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_streams_leave_the_book_not_live() {
    let limits = Limits { streams_per_connection: 3, ..Limits::default() };
    let exchange = exchange(simulation(), limits).await;
    let feed = feed(&exchange, &SYMBOLS);
    let books: Vec<Arc<Published>> = SYMBOLS.iter().filter_map(|symbol| feed.lookup(symbol)).collect();
    let refused = |book: &Arc<Published>| {
        let status = book.status();
        status.reason.as_deref().is_some_and(|reason| reason.contains("refused"))
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
        let view = book.live().filter(|view| (start..start + 100_000).contains(&view.last_update_id));
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
async fn restarted_exchange_is_followed() {
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

/// The exchange is busy once, and takes what it is asked again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_subscription_is_retried() {
    let exchange = exchange(simulation(), Limits::default()).await;
    exchange.faults().set(&Fault::RefuseSubscriptions { count: 2 });
    let (feed, books) = all_live(&exchange).await;
    // One that is asked for later is refused alone: the others stay.
    exchange.faults().set(&Fault::RefuseSubscriptions { count: 1 });
    let later = feed.track(&Arc::from("ETHUSDT"), true, 3).expect("room for it");
    until("it says why", || async {
        let status = later.status();
        status.reason.as_deref().is_some_and(|reason| reason.contains("refused"))
    })
    .await;
    undisturbed(&books);
    until("it is live", || async { later.live().is_some() }).await;
    assert_eq!(exchange.counts().connections_accepted, 1, "all on one connection");
}

/// A feed of all symbols, once every book is live.
async fn all_live(exchange: &Exchange) -> (Arc<Feed>, Vec<Arc<Published>>) {
    let feed = feed(exchange, &SYMBOLS);
    let books: Vec<Arc<Published>> = SYMBOLS.iter().filter_map(|symbol| feed.lookup(symbol)).collect();
    until("every book is live", || async { books.iter().all(|book| book.live().is_some()) }).await;
    (feed, books)
}

/// One symbol is silent; nothing happens to the others, and it is back when its streams are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_symbol_is_resubscribed_alone() {
    let exchange = exchange(simulation(), Limits::default()).await;
    let (_feed, books) = all_live(&exchange).await;
    let (silent, others) = books.split_first().expect("some");
    exchange.faults().set(&Fault::LoseStreams { symbol: silent.symbol.to_string() });
    for state in [BookState::Stale, BookState::Live] {
        until("it is noticed, and mended", || async {
            undisturbed(others);
            silent.status().state == state
        })
        .await;
    }
    assert!(others.iter().all(|book| book.resyncs() == 0));
    assert_eq!(exchange.counts().connections_accepted, 1);
    becomes_true(silent, &exchange).await;
}

/// What cannot be read was an update: the book begins again, and only that one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unreadable_update_resyncs_its_book() {
    let exchange = exchange(simulation(), Limits::default()).await;
    let (_feed, books) = all_live(&exchange).await;
    let (odd, others) = books.split_first().expect("some");
    exchange.faults().set(&Fault::UnreadableDiffs { symbol: Some(odd.symbol.to_string()), count: 1 });
    until("it begins again", || async { odd.resyncs() > 0 }).await;
    becomes_true(odd, &exchange).await;
    assert!(others.iter().all(|book| book.resyncs() == 0));
}

/// A connection is replaced by its age, long before the exchange would end it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replaced_connection_keeps_books_live() {
    let exchange = exchange(simulation(), Limits::default()).await;
    let clock = Arc::new(tribune_clock::SystemClock);
    let rest = Rest::new(rest_settings(&exchange), clock.clone()).expect("settings");
    let settings =
        feed::Settings { rotate_after: Duration::from_secs(3), ..feed::Settings::new(exchange.stream_url()) };
    let feed = Feed::start(settings, rest.with_priority(tribune_binance::Priority::Background), clock);
    let track = |symbol: &&str| feed.track(&Arc::from(*symbol), true, 0).expect("room for it");
    let books: Vec<Arc<Published>> = SYMBOLS.iter().map(track).collect();
    until("every book is live", || async { books.iter().all(|book| book.live().is_some()) }).await;
    // A successor that does not get all that it asks for at once takes over too, when it has it.
    exchange.faults().set(&Fault::RefuseSubscriptions { count: 1 });
    until("two connections took over", || async {
        undisturbed(&books);
        exchange.counts().connections_accepted >= 4
    })
    .await;
    for book in &books {
        assert_eq!(book.resyncs(), 0, "{}", book.symbol);
        becomes_true(book, &exchange).await;
    }
}
