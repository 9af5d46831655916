//! Whatever goes wrong: a clear sentence, the right kind of error, nothing invented.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::client::Feed;
use tokio::net::TcpSocket;
use tribune_binance::{Rest, feed};
use tribune_core::{Cited, ErrorKind, Links, Source as _, SourceStatus};
use tribune_exchange_sim::{Fault, Limits, Simulation};

use crate::support::{MarketSettings, PATIENCE, Wire, asked, exchange, id, rest_settings, simulation, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_arguments_are_explained() {
    let exchange = exchange(simulation(), Limits::default()).await;
    let market = MarketSettings::of(&exchange).start().ready().await;
    let cases = [
        ("ticker:NOSUCHUSDT", ErrorKind::NotFound, "no symbol NOSUCHUSDT"),
        ("ticker:BTCUSTD", ErrorKind::NotFound, "BTCUSDT"),
        ("orderbook:NOSUCHUSDT", ErrorKind::NotFound, "no symbol"),
        ("analytics:health:NOSUCHUSDT", ErrorKind::NotFound, "no symbol"),
        ("klines:NOSUCHUSDT:1h", ErrorKind::NotFound, "no symbol"),
        ("trades:NOSUCHUSDT", ErrorKind::NotFound, "no symbol"),
        ("exchange_info:NOSUCHUSDT", ErrorKind::NotFound, "no symbol"),
        ("ticker:LUNAUSDT", ErrorKind::NotFound, "BREAK"),
        ("orderbook:LUNAUSDT", ErrorKind::NotFound, "not traded"),
        ("analytics:order_flow:XMRUSDT", ErrorKind::NotFound, "not traded"),
        ("klines:BTCUSDT:7m", ErrorKind::InvalidArgument, "15m"),
        ("klines:BTCUSDT", ErrorKind::InvalidArgument, "no interval"),
        ("klines:1h:BTCUSDT", ErrorKind::InvalidArgument, "klines:BTCUSDT:1h"),
        ("analytics:BTCUSDT:order_flow", ErrorKind::InvalidArgument, "analytics:order_flow:BTCUSDT"),
        ("analytics:astrology:BTCUSDT", ErrorKind::InvalidArgument, "order_flow"),
        ("ticker:BTCUSDT:1h", ErrorKind::InvalidArgument, "after the symbol"),
    ];
    let before = exchange.counts();
    for (document, kind, part) in cases {
        let error = market.fetch(document).await.expect_err(document);
        assert_eq!(error.kind(), kind, "{document}: {error}");
        assert!(error.message().contains(part), "{document}: {error}");
    }
    let asked_for = |path: &str| exchange.counts().requests.get(path).copied() == before.requests.get(path).copied();
    assert!(asked_for("/api/v3/ticker/24hr") && asked_for("/api/v3/depth"), "nothing was asked for it");
    // What is known of a market that is no more can be had.
    assert!(market.fetch("exchange_info:LUNAUSDT").await.expect("known").text.contains("BREAK"));
    // Of a delisted market the past can be had; it is not said to be the present.
    assert!(market.fetch("klines:LUNAUSDT:1h").await.is_ok());
    assert!(market.source.fetch(&id("notes:a.md"), &crate::support::call()).await.expect("no error").is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unreachable_exchange_is_reported() {
    // Bound but not listening.
    let closed = TcpSocket::new_v4().expect("a socket");
    closed.bind(([127, 0, 0, 1], 0).into()).expect("a port");
    let address = closed.local_addr().expect("an address");
    let market = MarketSettings::at(format!("http://{address}"), format!("ws://{address}")).start();
    for document in ["ticker:BTCUSDT", "orderbook:BTCUSDT", "analytics:health:BTCUSDT"] {
        let error = market.fetch(document).await.expect_err(document);
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.message().contains("refused"), "{error}");
        assert!(error.message().contains("again"), "it says what to do: {error}");
    }
    let query = tribune_core::Query { text: "bitcoin".to_owned(), limit: 5 };
    let error = market.source.search(&query, &crate::support::call()).await.expect_err("no symbols");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(matches!(market.source.status(), SourceStatus::Degraded(why) if why.contains("refused")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn book_of_lost_exchange_is_stale() {
    let exchange = exchange(simulation(), Limits::default()).await;
    let wire = Wire::to(&exchange).await;
    let mut settings = MarketSettings::at(wire.rest_url(), wire.stream_url());
    settings.rest.window = Duration::ZERO;
    let market = settings.start().ready().await;
    let live = market.live("orderbook:BTCUSDT").await;
    wire.cut();
    let deadline = Instant::now() + PATIENCE;
    let stale = loop {
        let document = market.fetch("orderbook:BTCUSDT").await.expect("the last book that was live");
        if document.metadata["book_state"] == "stale" {
            break document;
        }
        assert!(Instant::now() < deadline, "never stale: {:?}", document.metadata);
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let reason = stale.metadata["book_state_reason"].as_str().expect("a reason");
    assert!(reason.contains("connection") && reason.contains("fetching a fresh one failed"), "{reason}");
    assert!(stale.text.contains("stale"), "{}", stale.text);
    // It ages: later it is older, and the same book.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let later = market.fetch("orderbook:BTCUSDT").await.expect("still there");
    let age = |document: &tribune_core::Document| document.metadata["age_ms"].as_u64().expect("an age");
    assert!(age(&later) >= age(&stale) + 300, "{} {}", age(&stale), age(&later));
    let update = |document: &tribune_core::Document| {
        let line = document.text.lines().find(|line| line.starts_with("last_update_id: "));
        line.expect("the update it is at").to_owned()
    };
    assert_eq!(update(&later), update(&stale));
    // Reckoned back from the age each time, by two clocks that are read one after the other.
    let received = |document: &tribune_core::Document| {
        let text = document.metadata["received_time"].as_str().expect("a time");
        text.parse::<jiff::Timestamp>().expect("a time").as_millisecond()
    };
    assert!(received(&later).abs_diff(received(&stale)) < 30_000, "{later:?} {stale:?}");
    assert_ne!(live.url, later.url);
    // What has no last state is not made up.
    let error = market.fetch("ticker:BTCUSDT").await.expect_err("no ticker");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    until("the source says that it is degraded", || async {
        matches!(market.source.status(), SourceStatus::Degraded(_))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clock_skew_is_reported_and_harmless() {
    for (millis, side) in [(30_000, "behind"), (-30_000, "ahead of")] {
        let exchange = exchange(simulation(), Limits::default()).await;
        exchange.faults().set(&Fault::ClockSkew { millis });
        let market = MarketSettings::of(&exchange).start().ready().await;
        let document = market.live("orderbook_l1:BTCUSDT").await;
        let note = document.metadata["clock_note"].as_str().expect("a note");
        assert!(note.contains(side), "{note}");
        // 30 s, give or take how long the machine took to ask.
        let seconds = note.split(' ').find_map(|word| word.parse::<f64>().ok());
        assert!(seconds.is_some_and(|seconds| (20.0..40.0).contains(&seconds)), "{note}");
        let age = document.metadata["age_ms"].as_u64().expect("an age");
        assert!(age < 20_000, "ages do not come from the difference: {age}");
        assert!(market.fetch("analytics:order_flow:BTCUSDT").await.is_ok());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pause_is_kept_and_reported() {
    let exchange = exchange(simulation(), Limits::default()).await;
    let mut settings = MarketSettings::of(&exchange);
    settings.rest.window = Duration::ZERO;
    settings.feed.max_books = 0;
    let market = settings.start().ready().await;
    exchange.faults().set(&Fault::Reject { status: 429, retry_after_secs: Some(900), count: None });
    let error = market.fetch("klines:ETHUSDT:1h").await.expect_err("rejected");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    // Work in the background may have met the pause first.
    let mut words = error.message().split(' ').filter_map(|word| word.parse::<u64>().ok());
    assert!(words.any(|seconds| (600..=900).contains(&seconds)), "{error}");
    let before = exchange.counts().injected_rejections;
    for document in ["orderbook:BTCUSDT", "klines:BTCUSDT:1h", "trades:BTCUSDT"] {
        let error = market.fetch(document).await.expect_err(document);
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(error.message().contains(" s"), "{error}");
    }
    assert_eq!(exchange.counts().injected_rejections, before, "nothing was sent in the pause");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_answers_are_refused() {
    let exchange = exchange(simulation(), Limits::default()).await;
    let mut settings = MarketSettings::of(&exchange);
    settings.rest.window = Duration::ZERO;
    settings.feed.max_books = 0;
    let market = settings.start().ready().await;
    for document in ["ticker:BTCUSDT", "orderbook:BTCUSDT", "klines:BTCUSDT:1h", "trades:BTCUSDT"] {
        // Enough for work in the background too, which asks at times of its own.
        exchange.faults().set(&Fault::GarbageAnswers { count: 1_000 });
        let error = market.fetch(document).await.expect_err(document);
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{document}: {error}");
        assert!(error.message().contains("not as documented"), "{document}: {error}");
        exchange.faults().clear();
        exchange.faults().set(&Fault::HalfAnswers { count: 1_000 });
        let error = market.fetch(document).await.expect_err(document);
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{document}: {error}");
        exchange.faults().clear();
        until("it is answered again", || async { market.fetch(document).await.is_ok() }).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn market_without_trades_has_no_price() {
    let simulation = Simulation { extra_symbols: 1, extra_events_per_second: 0.0, history_minutes: 0, ..simulation() };
    let exchange = exchange(simulation, Limits::default()).await;
    let market = MarketSettings::of(&exchange).start().ready().await;
    let ticker = market.fetch("ticker:AAAQXUSDT").await.expect("an answer");
    assert!(ticker.text.contains("last price unknown"), "{}", ticker.text);
    assert!(!ticker.text.contains("last price 0"), "{}", ticker.text);
    let value =
        |name: &str| ticker.text.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")).map(str::to_owned));
    for name in ["last_price", "price_change_pct", "high_price", "weighted_average_price"] {
        assert!(value(name).is_some_and(|value| !value.starts_with('0')), "{name}: {:?}", value(name));
    }
    let query = tribune_core::Query { text: "AAAQXUSDT".to_owned(), limit: 3 };
    let hits = market.source.search(&query, &crate::support::call()).await.expect("hits");
    assert!(hits[0].snippet.contains("no price is known"), "{}", hits[0].snippet);
    // Its book is quiet, whole and live.
    market.live("orderbook_l1:AAAQXUSDT").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn first_fetch_requests_and_later_ones_read_live_book() {
    let exchange = exchange(simulation(), Limits::default()).await;
    let market = MarketSettings::of(&exchange).start().ready().await;
    let first = market.fetch("orderbook:SOLUSDT").await.expect("an answer");
    assert_eq!(first.metadata["data_source"], "rest");
    assert!(first.text.contains("SIMULATED"));
    market.live("orderbook:SOLUSDT").await;
    let before = asked(&exchange, "depth");
    for _ in 0..50 {
        let document = market.fetch("orderbook:SOLUSDT").await.expect("an answer");
        assert_eq!(document.metadata["data_source"], "stream");
    }
    assert_eq!(asked(&exchange, "depth"), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn book_limit_holds_and_idle_books_are_dropped() {
    let exchange = exchange(simulation(), Limits::default()).await;
    let clock = Arc::new(tribune_core::SystemClock);
    let rest = Rest::new(rest_settings(&exchange), clock.clone()).expect("settings");
    let settings = feed::Settings {
        max_books: 2,
        idle_after: Duration::from_secs(1),
        ..feed::Settings::new(exchange.stream_url())
    };
    let feed = Feed::start(settings, rest.with_priority(tribune_binance::Priority::Background), clock);
    let track = |symbol: &str, pinned| feed.track(&Arc::from(symbol), pinned, 0);
    assert!(track("BTCUSDT", true).is_some() && track("ETHUSDT", false).is_some());
    assert!(track("SOLUSDT", false).is_none(), "two are kept");
    until("the idle one is dropped", || async {
        let books = feed.books();
        books.len() == 1 && &*books[0].symbol == "BTCUSDT"
    })
    .await;
    let next = track("SOLUSDT", false).expect("there is room again");
    until("it becomes live", || async {
        feed.lookup("SOLUSDT");
        next.live().is_some()
    })
    .await;

    // Through the source: what is not kept is asked for, and said not to be kept.
    let mut settings = MarketSettings::of(&exchange);
    settings.feed.max_books = 1;
    let market = settings.start().ready().await;
    market.live("orderbook_l1:BTCUSDT").await;
    let other = market.fetch("orderbook_l1:ETHUSDT").await.expect("an answer");
    assert_eq!(other.metadata["data_source"], "rest");
    let reason = other.metadata["book_state_reason"].as_str().expect("a reason");
    assert!(reason.contains("live-book limit"), "{reason}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn citation_is_frozen_until_it_expires() {
    let exchange = exchange(simulation(), Limits::default()).await;
    let mut settings = MarketSettings::of(&exchange);
    settings.max_citations = 3;
    settings.rest.window = Duration::ZERO;
    let market = settings.start().ready().await;
    let ticker = id("ticker:BTCUSDT");
    let cited = market.fetch("ticker:BTCUSDT").await.expect("an answer");
    let url = cited.url.clone().expect("a citation");
    let record = Links::cited_record(&url).expect("a record").to_owned();
    // The market moves on; the record does not.
    let price = |document: &tribune_core::Document| {
        let mut lines = document.text.lines();
        lines.find_map(|line| line.strip_prefix("last_price: ").map(str::to_owned))
    };
    assert!(price(&cited).is_some(), "{}", cited.text);
    // Asked of another, so that no newer record takes its place yet.
    let mut settings = MarketSettings::of(&exchange);
    settings.rest.window = Duration::ZERO;
    let other = settings.start().ready().await;
    until("the market moves", || async {
        price(&other.fetch("ticker:BTCUSDT").await.expect("an answer")) != price(&cited)
    })
    .await;
    let look = async |record: &str| market.source.cited(&ticker, record).await.expect("no error").expect("records");
    match look(&record).await {
        Cited::Kept { document, .. } => {
            assert_eq!((&document.text, &document.title), (&cited.text, &cited.title));
            assert_eq!(document.url.as_deref(), Some(url.as_str()));
        }
        other => panic!("{other:?}"),
    }
    // Of another document, or never given out, it is unknown.
    let other = market.source.cited(&id("ticker:ETHUSDT"), &record).await.expect("no error");
    assert!(matches!(other, Some(Cited::Unknown) | None), "{other:?}");
    // Newer ones take its place.
    let deadline = Instant::now() + PATIENCE;
    let gone = loop {
        for symbol in ["ETHUSDT", "SOLUSDT", "BNBUSDT", "XRPUSDT"] {
            market.fetch(&format!("ticker:{symbol}")).await.expect("an answer");
        }
        match look(&record).await {
            Cited::Kept { .. } => assert!(Instant::now() < deadline, "it never expires"),
            gone => break gone,
        }
    };
    assert!(matches!(&gone, Cited::Expired(why) if why.contains("gone")), "{gone:?}");
}

/// Without tickers nobody knows what is traded most; they are asked for again, not only with the next list of symbols.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn most_traded_are_tracked_after_failed_tickers() {
    let exchange = exchange(simulation(), Limits::default()).await;
    exchange.faults().set(&Fault::FailEndpoint { endpoint: "ticker/24hr".to_owned(), count: 2 });
    let mut settings = MarketSettings::of(&exchange);
    settings.track_top = 1;
    let market = settings.start().ready().await;
    // One that is always kept is live without being asked for; the money of ETHBTC is not more because it is BTC.
    until("the most traded one is kept", || async { asked(&exchange, "depth") > 0 }).await;
    let document = market.live("orderbook_l1:BTCUSDT").await;
    assert_eq!(document.metadata["book_state"], "live");
}
