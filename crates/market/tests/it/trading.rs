//! Orders, by the books that the feed keeps.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Value, json};
use tribune_core::{Clock, Links, Registry, Source as _};
use tribune_exchange_sim::{ApiKey, Exchange, Mode, Settings, Simulation};
use tribune_market::number::Notional;
use tribune_market::records::Records;
use tribune_market::{MarketSource, feed, market, trading};

use crate::support::{call, id, rest_settings, simulation, until};

/// The time as it is, and what a test adds to it.
#[derive(Default)]
struct Ahead(AtomicU64);

impl Ahead {
    fn by(&self) -> Duration {
        Duration::from_secs(self.0.load(Ordering::SeqCst))
    }
}

impl Clock for Ahead {
    fn now(&self) -> Timestamp {
        Timestamp::now() + self.by()
    }

    fn monotonic(&self) -> Instant {
        Instant::now() + self.by()
    }
}

/// Nothing happens in it.
async fn quiet_exchange() -> Exchange {
    let settings = Settings {
        mode: Mode::Simulated(Simulation {
            events_per_second: 0.000_1,
            ..simulation()
        }),
        api_keys: vec![ApiKey {
            key: "a-key".to_owned(),
            secret: "a-secret".to_owned(),
            balances: vec![("USDT".to_owned(), "1000".to_owned())],
        }],
        ..Settings::default()
    };
    tribune_exchange_sim::start(settings).await.expect("it starts")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_market_that_is_quiet_can_be_traded() {
    let exchange = quiet_exchange().await;
    let folder = tempfile::tempdir().expect("a folder");
    let clock = Arc::new(Ahead::default());
    let settings = trading::Settings {
        trading: true,
        credentials: Some(trading::Credentials {
            api_key: "a-key".to_owned(),
            secret: "a-secret".to_owned(),
        }),
        max_order_notional: Notional::parse("100").expect("a cap"),
        quote_assets: vec!["USDT".to_owned()],
        symbols: None,
        journal: folder.path().join("orders.jsonl"),
    };
    let records = Records::new(None, Duration::from_secs(60), Links::new("http://tribune.test"));
    let orders = Some((settings, rest_settings(&exchange)));
    let source = Arc::new(MarketSource::new(records, orders, clock.clone()).expect("settings"));
    let started = market::Settings {
        rest: rest_settings(&exchange),
        feed: feed::Settings::new(exchange.stream_url()),
        symbols: vec!["BTCUSDT".to_owned()],
        track_top: 0,
    };
    source.begin(started).expect("it begins");
    until("the book is live", || async {
        let book = source.fetch(&id("orderbook_l1:BTCUSDT"), &call()).await;
        book.is_ok_and(|book| book.is_some_and(|book| book.metadata["book_state"] == "live"))
    })
    .await;

    // Longer than prices may be old; in all that time the book did not change.
    clock.0.store(11, Ordering::SeqCst);
    let mut tools = Registry::default();
    for tool in source.admin_tools() {
        tools.add(tool).expect("a tool");
    }
    let tool = tools.lookup("binance_place_order").expect("the tool");
    let order = json!({"symbol": "BTCUSDT", "side": "BUY", "type": "MARKET", "quote_quantity": "50"});
    let arguments = tool
        .prepare(order.as_object().cloned().expect("an object"))
        .expect("arguments");
    let preview = tool.tool().call(arguments, &call()).await.expect("a preview");
    let preview: Value = serde_json::from_str(preview.json()).expect("JSON");
    assert_eq!(preview["status"], "preview");
    assert!(preview["estimate"]["price"].is_string(), "{preview}");
}
