//! Many callers, one request.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tribune_core::Source as _;
use tribune_exchange_sim::{Exchange, Fault, Limits};

use crate::support::{Market, MarketSettings, asked, call, exchange, id, simulation};

/// Longer than a burst of callers takes on any machine.
const WINDOW: Duration = Duration::from_secs(8);

async fn market(exchange: &Exchange) -> Market {
    let mut settings = MarketSettings::of(exchange);
    settings.rest.window = WINDOW;
    settings.rest.timeout = Duration::from_secs(20);
    // Nothing is tracked: books are asked for.
    settings.feed.max_books = 0;
    settings.start().ready().await
}

/// So many callers at once; when the first answer was received.
async fn burst(market: &Market, document: &str, callers: usize) -> Instant {
    let began = Instant::now();
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
    assert!(began.elapsed() < WINDOW, "the machine is too slow for this test");
    began
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_and_five_hundred_callers_cost_one_request_a_window() {
    let exchange = exchange(simulation(), Limits::default()).await;
    let market = market(&exchange).await;
    for (document, endpoint) in [("ticker:BTCUSDT", "ticker/24hr"), ("orderbook:ETHUSDT", "depth")] {
        let before = asked(&exchange, endpoint);
        let began = burst(&market, document, 50).await;
        assert_eq!(asked(&exchange, endpoint), before + 1, "{document}");
        // Again within the window: nothing is asked.
        burst(&market, document, 500).await;
        if began.elapsed() < WINDOW {
            assert_eq!(asked(&exchange, endpoint), before + 1, "{document}");
        }
    }
    tokio::time::sleep(WINDOW).await;
    let before = asked(&exchange, "ticker/24hr");
    burst(&market, "ticker:BTCUSDT", 500).await;
    assert_eq!(asked(&exchange, "ticker/24hr"), before + 1, "one for the next window");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_who_goes_away_takes_nothing_from_the_others() {
    let exchange = exchange(simulation(), Limits::default()).await;
    let market = Arc::new(market(&exchange).await);
    exchange.faults().set(&Fault::Delay { millis: 1_000 });
    let before = asked(&exchange, "ticker/24hr");
    let first = {
        let market = market.clone();
        tokio::spawn(async move { market.fetch("ticker:SOLUSDT").await })
    };
    let second = {
        let market = market.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(200)).await;
            market.fetch("ticker:SOLUSDT").await
        })
    };
    tokio::time::sleep(Duration::from_millis(400)).await;
    first.abort();
    let document = second.await.expect("no panic").expect("an answer");
    assert!(document.text.contains("SOLUSDT"));
    assert_eq!(asked(&exchange, "ticker/24hr"), before + 1);
}
