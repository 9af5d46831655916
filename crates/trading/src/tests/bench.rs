//! An exchange of the tests' own, which checks signatures, and the tools in front of it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use ring::hmac;
use serde_json::{Value, json};
use tempfile::TempDir;
use tribune_core::{CallContext, Error, Principal, Result};
use tribune_registry::Registry;

use crate::config::tools;
use crate::*;
use tribune_binance::testing::depth;
use tribune_binance::testing::{Asked, Reply, Server, ShiftedClock, client_by, until};
use tribune_binance::{Price, Quantity, Signer};

pub(super) const KEY: &str = "the-api-key-of-the-tests";
const SECRET: &str = "the-secret-of-the-tests";
/// Longer than a busy machine holds a request up, and shorter than clocks are put wrong here.
const SKEW_MS: i64 = 15_000;

pub(super) struct Fixed(pub(super) Mutex<CurrentBook>);

#[async_trait]
impl Market for Fixed {
    async fn symbol(&self, name: &str) -> Result<Option<Symbol>> {
        let quote = match name {
            "SOLUSDT" | "ADAUSDT" => "USDT",
            "SOLBTC" => "BTC",
            _ => return Ok(None),
        };
        Ok(Some(Symbol {
            tick_size: "0.01".parse::<Price>().ok(),
            step_size: "0.001".parse::<Quantity>().ok(),
            min_notional: "5".parse::<Notional>().ok(),
            ..Symbol::named(name, name.trim_end_matches(quote), quote)
        }))
    }

    async fn book(&self, _: &str) -> Result<CurrentBook> {
        Ok(self.0.lock().expect("book").clone())
    }
}

/// An exchange so far ahead does not tell its time.
pub(super) const NO_TIME: i64 = i64::MIN;

/// An answer later than this never comes. Much longer than the three seconds that tests delay answers, so that a busy
/// machine does not turn those into timeouts.
const TIMEOUT: Duration = Duration::from_secs(12);
pub(super) const TOO_LATE_MS: u64 = 60_000;

/// What the exchange does with an order.
pub(super) type OnOrder = dyn Fn(&Asked) -> Reply + Send + Sync;

pub(super) struct Bench {
    pub(super) server: Server,
    pub(super) tools: Registry,
    pub(super) market: Arc<Fixed>,
    pub(super) journal: PathBuf,
    pub(super) clock: Arc<ShiftedClock>,
    /// What the exchange says of the key.
    pub(super) can_withdraw: Arc<AtomicBool>,
    _folder: TempDir,
}

/// Signed right, by the right key, at the right time; or the exchange's own refusal.
fn gate(asked: &Asked, ahead_ms: i64) -> std::result::Result<(), Reply> {
    if !asked.head.contains(&format!("x-mbx-apikey: {KEY}")) {
        return Err(Reply::refusal(-2015, "Invalid API-key, IP, or permissions for action."));
    }
    let sent = if asked.method == "POST" { &asked.body } else { &asked.query };
    let (signed, signature) = sent.rsplit_once("&signature=").unwrap_or_default();
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    let expected: String = hmac::sign(&key, signed.as_bytes()).as_ref().iter().map(|b| format!("{b:02x}")).collect();
    if signature != expected {
        return Err(Reply::refusal(-1022, "Signature for this request is not valid."));
    }
    let time: i64 = asked.parameter("timestamp").and_then(|time| time.parse().ok()).unwrap_or_default();
    let now = jiff::Timestamp::now().as_millisecond() + ahead_ms;
    if (time - now).abs() > SKEW_MS {
        return Err(Reply::refusal(-1021, "Timestamp for this request is outside of the recvWindow."));
    }
    Ok(())
}

pub(super) fn order_json(asked: &Asked, status: &str) -> Value {
    json!({
        "symbol": asked.parameter("symbol").unwrap_or("SOLUSDT"), "orderId": 28, "clientOrderId": asked.parameter("newClientOrderId").or(asked.parameter("origClientOrderId")).unwrap_or("mine"),
        "origClientOrderId": asked.parameter("origClientOrderId").unwrap_or("mine"),
        "transactTime": 1_507_725_176_595i64, "time": 1_507_725_176_595i64, "updateTime": 1_507_725_176_600i64,
        "price": "150.00000000", "origQty": "0.10000000", "executedQty": "0.00000000",
        "cummulativeQuoteQty": "0.00000000", "status": status, "timeInForce": "GTC", "type": "LIMIT", "side": "BUY",
    })
}

pub(super) async fn bench(on_order: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Bench {
    bench_with(Arc::new(AtomicI64::new(0)), Arc::new(on_order), |_| ()).await
}

pub(super) async fn bench_with(
    ahead_ms: Arc<AtomicI64>,
    on_order: Arc<OnOrder>,
    change: impl FnOnce(&mut Settings),
) -> Bench {
    let can_withdraw = Arc::new(AtomicBool::new(false));
    let withdraws = can_withdraw.clone();
    let server = Server::start(move |asked| {
        let ahead = ahead_ms.load(Ordering::SeqCst);
        let path = asked.path.trim_start_matches("/api/v3/").trim_start_matches("/sapi/v1/account/");
        if path == "time" && ahead == NO_TIME {
            return Reply::new(503, "");
        }
        if path == "time" {
            return Reply::json(&json!({"serverTime": jiff::Timestamp::now().as_millisecond() + ahead}));
        }
        if let Err(refusal) = gate(asked, ahead) {
            return refusal;
        }
        match (asked.method.as_str(), path) {
            ("GET", "apiRestrictions") => {
                Reply::json(&json!({"ipRestrict": false, "enableWithdrawals": withdraws.load(Ordering::SeqCst)}))
            }
            ("POST", "order/test") => Reply::json(&json!({})),
            ("POST" | "DELETE", "order") => on_order(asked),
            // Of an order of ours.
            ("GET", "order") if asked.query.contains("=tribune-") => on_order(asked),
            ("GET", "order") => Reply::json(&order_json(asked, "FILLED")),
            ("GET", "openOrders" | "allOrders") => {
                Reply::json(&Value::Array((0..150).map(|_| order_json(asked, "NEW")).collect()))
            }
            ("GET", "myTrades") => Reply::json(&json!([{
                "symbol": "SOLUSDT", "id": 7, "orderId": 28, "price": "150.1", "qty": "0.1", "quoteQty": "15.01",
                "commission": "0.00001", "commissionAsset": "BNB", "time": 1_507_725_176_595i64, "isBuyer": true, "isMaker": false,
            }])),
            ("GET", "account") => Reply::json(&json!({
                "accountType": "SPOT", "canTrade": true, "canWithdraw": false, "canDeposit": true, "updateTime": 123,
                "balances": [
                    {"asset": "SOL", "free": "1.50000000", "locked": "0.00000000"},
                    {"asset": "OLD", "free": "0.00000000", "locked": "0.00000000"},
                ],
            })),
            _ => Reply::new(404, ""),
        }
        .header("X-Tribune-Simulated", "simulated")
    })
    .await;
    let folder = tempfile::tempdir().expect("folder");
    let journal = folder.path().join("journal.jsonl");
    let mut settings = settings(journal.clone());
    change(&mut settings);
    let journal = settings.journal.clone();
    let market = Arc::new(Fixed(Mutex::new(CurrentBook {
        depth: depth(&[("150", "1000")], &[("150.02", "1000")]),
        age_ms: 12,
    })));
    let clock = Arc::new(ShiftedClock::default());
    let rest = client_by(clock.clone(), &server.url, |settings| settings.timeout = TIMEOUT);
    let mut registry = Registry::default();
    for tool in tools(settings, signer(), rest, market.clone()).expect("tools") {
        registry.add(tool).expect("a tool that every host takes");
    }
    Bench { server, tools: registry, market, journal, clock, can_withdraw, _folder: folder }
}

pub(super) fn settings(journal: PathBuf) -> Settings {
    Settings {
        limits: Limits {
            order_notional: "100".parse::<Notional>().expect("cap"),
            daily_notional: None,
            orders_per_minute: None,
        },
        waiting: None,
        quote_assets: vec!["USDT".to_owned()],
        symbols: Some(vec!["SOLUSDT".to_owned(), "SOLBTC".to_owned(), "NOPEUSDT".to_owned()]),
        stop_file: journal.with_file_name("stop-orders"),
        journal,
    }
}

pub(super) fn signer() -> Signer {
    Signer::new(KEY, SECRET).expect("a key")
}

/// Lets so much time pass at once, for every timer of the runtime.
pub(super) async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

impl Bench {
    /// As a host would: arguments checked, then the call. The answer has what its schema promises.
    pub(super) async fn call(&self, name: &str, args: Value) -> std::result::Result<Value, Error> {
        let tool = self.tools.lookup(name).expect(name);
        let args = tool.prepare(args.as_object().cloned().expect("object"))?;
        let cx = CallContext::new(Principal::Local, Instant::now() + Duration::from_secs(30));
        let output = tool.tool().call(args, &cx).await?;
        assert!(!output.json().contains(KEY) && !output.json().contains(SECRET));
        let answer: Value = serde_json::from_str(output.json()).expect("JSON");
        let schema = &tool.spec().output_schema;
        for field in schema["required"].as_array().expect("required") {
            assert!(answer.get(field.as_str().expect("name")).is_some(), "{name} lacks {field}");
        }
        for field in answer.as_object().expect("object").keys() {
            assert!(schema["properties"].get(field).is_some(), "{name} does not describe {field}");
        }
        Ok(answer)
    }

    pub(super) async fn refused(&self, name: &str, args: Value) -> Error {
        self.call(name, args).await.expect_err("refused")
    }

    pub(super) async fn preview(&self) -> Value {
        self.call("binance_place_order", order()).await.expect("a preview")
    }

    /// Previews and places.
    pub(super) async fn place(&self) -> std::result::Result<Value, Error> {
        let token = self.preview().await["preview_token"].clone();
        self.call("binance_place_order", with(order(), json!({"preview_token": token}))).await
    }

    /// Waits until an order has reached the exchange, then lets the time pass until the client gives it up.
    pub(super) async fn give_up(&self) {
        until(|| self.sent() == 1).await;
        pass(TIMEOUT).await;
    }

    /// How many orders and cancellations reached the exchange.
    pub(super) fn sent(&self) -> usize {
        let changes = |asked: &&Asked| asked.path == "/api/v3/order" && asked.method != "GET";
        self.server.asked().iter().filter(changes).count()
    }

    pub(super) fn journal(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.journal).expect("journal");
        assert!(!text.contains(KEY) && !text.contains(SECRET) && !text.contains("signature"));
        text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    }

    pub(super) fn events(&self) -> Vec<String> {
        self.journal().iter().map(|line| line["event"].as_str().expect("event").to_owned()).collect()
    }
}

pub(super) fn order() -> Value {
    json!({"symbol": "SOLUSDT", "side": "BUY", "type": "LIMIT", "price": "150", "quantity": "0.1"})
}

pub(super) fn with(mut args: Value, more: Value) -> Value {
    args.as_object_mut().expect("object").extend(more.as_object().expect("object").clone());
    args
}
