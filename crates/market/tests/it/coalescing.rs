//! Many callers, one request.

use std::sync::Arc;
use std::time::Duration;

use tribune_core::Source as _;
use tribune_exchange_sim::{Exchange, Fault, Limits};

use crate::support::{Market, MarketSettings, asked, call, exchange, id, simulation, until};

/// Longer than all bursts of callers of a test take on any machine.
const WINDOW: Duration = Duration::from_secs(300);

async fn market(exchange: &Exchange, window: Duration) -> Market {
    let mut settings = MarketSettings::of(exchange);
    settings.rest.window = window;
    settings.rest.timeout = Duration::from_secs(60);
    // Nothing is tracked: books are asked for.
    settings.feed.max_books = 0;
    settings.start().ready().await
}

/// So many callers at once.
async fn burst(market: &Market, document: &str, callers: usize) {
    let ask = |_| {
        let (source, id) = (market.source.clone(), id(document));
        tokio::spawn(async move { source.fetch(&id, &call()).await })
    };
    let tasks: Vec<_> = (0..callers).map(ask).collect();
    let mut texts = std::collections::HashSet::new();
    for task in tasks {
        let document = task.await.expect("no panic").expect("an answer").expect("ours");
        texts.insert(document.metadata["received_time"].to_string());
    }
    assert_eq!(texts.len(), 1, "all were given the same answer");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_share_one_request_per_window() {
    let exchange = exchange(simulation(), Limits::default()).await;
    let market = market(&exchange, WINDOW).await;
    for (document, endpoint) in [("ticker:BTCUSDT", "ticker/24hr"), ("orderbook:ETHUSDT", "depth")] {
        let before = asked(&exchange, endpoint);
        burst(&market, document, 50).await;
        assert_eq!(asked(&exchange, endpoint), before + 1, "{document}");
        // Again within the window: nothing is asked.
        burst(&market, document, 500).await;
        assert_eq!(asked(&exchange, endpoint), before + 1, "{document}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn next_window_costs_one_more_request() {
    let exchange = exchange(simulation(), Limits::default()).await;
    let window = Duration::from_millis(500);
    let market = market(&exchange, window).await;
    for _ in 0..3 {
        let before = asked(&exchange, "ticker/24hr");
        market.fetch("ticker:BTCUSDT").await.expect("an answer");
        assert_eq!(asked(&exchange, "ticker/24hr"), before + 1);
        tokio::time::sleep(window).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_caller_keeps_shared_fetch() {
    let exchange = exchange(simulation(), Limits::default()).await;
    let market = Arc::new(market(&exchange, WINDOW).await);
    exchange.faults().set(&Fault::Delay { millis: 3_000 });
    let before = asked(&exchange, "ticker/24hr");
    let first = {
        let market = market.clone();
        tokio::spawn(async move { market.fetch("ticker:SOLUSDT").await })
    };
    until("the first has asked", || async { asked(&exchange, "ticker/24hr") > before }).await;
    // Polled once, the second waits for the same answer.
    let mut second = std::pin::pin!(market.fetch("ticker:SOLUSDT"));
    assert!(futures::poll!(second.as_mut()).is_pending());
    first.abort();
    let document = second.await.expect("an answer");
    assert!(document.text.contains("SOLUSDT"));
    assert_eq!(asked(&exchange, "ticker/24hr"), before + 1);
}
