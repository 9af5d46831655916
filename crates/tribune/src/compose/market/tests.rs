//! Orders, by the books that the feed keeps.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tribune_binance::Notional;
use tribune_config::Environment;
use tribune_core::{CallContext, Clock, DocumentId, Links, Principal, Source as _};
use tribune_exchange_sim::{ApiKey, Exchange, Mode, Settings, Simulation};
use tribune_registry::Registry;

use super::market_source;
use crate::config::MarketConfig;

/// Longer than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

fn call() -> CallContext {
    CallContext::new(Principal::Local, Instant::now() + PATIENCE)
}

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
            seed: 7,
            levels: 200,
            history_minutes: 120,
            warm_up: Duration::from_secs(20),
            ..Simulation::default()
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
    for (name, secret) in [("key", "a-key"), ("secret", "a-secret")] {
        std::fs::write(folder.path().join(name), secret).expect("a file");
    }
    let config = MarketConfig {
        rest_url: Some(exchange.rest_url()),
        symbols: vec!["BTCUSDT".to_owned()],
        trading: tribune_trading::Config {
            enabled: true,
            api_key: Some("file:key".to_owned()),
            api_secret: Some("file:secret".to_owned()),
            max_order_notional: "100".parse::<Notional>().ok(),
            ..tribune_trading::Config::default()
        },
        ..MarketConfig::default()
    };
    let environment = Environment {
        clock: clock.clone(),
        links: Links::new("http://tribune.test"),
        config_dir: folder.path().to_owned(),
        data_dir: folder.path().to_owned(),
        is_server: true,
        keeps_citations: false,
        sources: Vec::new(),
    };
    let source = market_source(&config, &environment).expect("a source");
    tokio::spawn(source.clone().run(CancellationToken::new()));
    let id = DocumentId::parse("orderbook_l1:BTCUSDT").expect("an id");
    let is_live = async || {
        let book = source.fetch(&id, &call()).await;
        book.is_ok_and(|book| book.is_some_and(|book| book.metadata["book_state"] == "live"))
    };
    let deadline = Instant::now() + PATIENCE;
    while !is_live().await {
        assert!(Instant::now() < deadline, "the book never was live");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    // Longer than prices may be old; in all that time the book did not change.
    clock.0.store(11, Ordering::SeqCst);
    let mut tools = Registry::default();
    for tool in source.admin_tools() {
        tools.add(tool).expect("a tool");
    }
    let tool = tools.lookup("binance_place_order").expect("the tool");
    let order = json!({"symbol": "BTCUSDT", "side": "BUY", "type": "MARKET", "quote_quantity": "50"});
    let arguments = tool.prepare(order.as_object().cloned().expect("an object")).expect("arguments");
    let preview = tool.tool().call(arguments, &call()).await.expect("a preview");
    let preview: Value = serde_json::from_str(preview.json()).expect("JSON");
    assert_eq!(preview["status"], "preview");
    assert!(preview["estimate"]["price"].is_string(), "{preview}");
}
