//! Several processes share the writing of reports, and any of them may be killed.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tribune_exchange_sim as simulator;

use crate::exchange::Simulator;
use crate::redis::{Connection, Redis};
use crate::support::{PATIENCE, TestServer, repetitions, text, wait_for};

const SYMBOLS: [&str; 6] = ["BTCUSDT", "ETHUSDT", "SOLUSDT", "BNBUSDT", "XRPUSDT", "DOGEUSDT"];

/// The simulated exchange without a request limit: every start fetches snapshots, and a hundred starts would exceed it.
struct Exchange {
    url: String,
    _simulated: (simulator::Exchange, tokio::runtime::Runtime),
}

impl Exchange {
    fn start(seed: u64) -> Self {
        let settings = simulator::Settings {
            mode: simulator::Mode::Simulated(simulator::Simulation { seed, ..simulator::Simulation::default() }),
            limits: simulator::Limits { weight_per_minute: 1_000_000, ..simulator::Limits::default() },
            ..simulator::Settings::default()
        };
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let simulated = runtime.block_on(simulator::start(settings)).expect("an exchange");
        Self { url: simulated.rest_url(), _simulated: (simulated, runtime) }
    }
}

fn node(exchange: &str, redis: &Redis, name: &str) -> TestServer {
    TestServer::builder()
        .tables(&format!(
            "[market]\nrest_url = \"{}\"\nsymbols = {SYMBOLS:?}\n[cache]\nurl = \"{}\"\nnode = \"{name}\"",
            exchange,
            redis.url()
        ))
        .at_once()
        .start()
}

/// A report's position in its symbol's sequence.
fn order(report: &Value) -> (u64, u64) {
    let part = |name: &str| report["writer"][name].as_u64().expect("a number");
    (part("writerToken"), part("sequence"))
}

fn written(redis: &mut Connection, symbol: &str) -> Option<Value> {
    let kept = redis.ask(&["GET", &format!("report:{symbol}")]);
    serde_json::from_str(kept.first()?).ok()
}

fn writer_of(redis: &mut Connection, symbol: &str) -> Option<String> {
    Some(text(&written(redis, symbol)?["writer"]["nodeId"]).to_owned())
}

/// Reads from a server continuously and records every report that is older than an earlier one.
fn read_on(
    url: String,
    stop: Arc<AtomicBool>,
    reads: Arc<AtomicU64>,
    faults: Arc<Mutex<Vec<String>>>,
) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let mut newest: HashMap<&str, (u64, u64)> = HashMap::new();
        let call = |symbol: &str| -> Option<Value> {
            let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": "get_report", "arguments": {"symbol": symbol}, "_meta": {
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}}});
            let answer = ureq::post(format!("{url}/mcp"))
                .header("content-type", "application/json")
                .header("accept", "application/json, text/event-stream")
                .header("mcp-protocol-version", "2026-07-28")
                .header("mcp-method", "tools/call")
                .header("mcp-name", "get_report")
                .send(body.to_string());
            let answer: Value = serde_json::from_str(&answer.ok()?.into_body().read_to_string().ok()?).ok()?;
            Some(answer["result"]["structuredContent"].clone()).filter(|report| !report.is_null())
        };
        while !stop.load(Ordering::Relaxed) {
            for symbol in SYMBOLS {
                let Some(report) = call(symbol) else { continue };
                reads.fetch_add(1, Ordering::Relaxed);
                let order = order(&report);
                let before = newest.insert(symbol, order).unwrap_or_default();
                if order < before {
                    faults.lock().expect("a lock").push(format!("{symbol}: {order:?} after {before:?}"));
                }
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    })
}

#[test]
fn killed_writers_are_replaced() {
    let kills = repetitions(10, 102);
    let exchange = Exchange::start(21);
    let redis = Redis::start();
    let mut console = redis.connect();
    let mut nodes: Vec<(String, TestServer)> =
        ["a", "b", "c"].map(|name| (name.to_owned(), node(&exchange.url, &redis, name))).into();
    wait_for("every report", || SYMBOLS.iter().all(|symbol| writer_of(&mut redis.connect(), symbol).is_some()));
    let reader =
        TestServer::builder().tables(&format!("[market]\nfeed = false\n[cache]\nurl = \"{}\"", redis.url())).start();
    let stop = Arc::new(AtomicBool::new(false));
    let (reads, faults) = (Arc::new(AtomicU64::new(0)), Arc::new(Mutex::new(Vec::new())));
    let readers: Vec<_> =
        (0..2).map(|_| read_on(reader.url.clone(), stop.clone(), reads.clone(), faults.clone())).collect();
    let mut took = Vec::new();
    let mut handed_over = 0;
    for kill in 0..kills {
        // The writer of each symbol in turn.
        let writer = writer_of(&mut console, SYMBOLS[kill % SYMBOLS.len()]).expect("a writer");
        let place = nodes.iter().position(|(name, _)| writer.starts_with(&format!("{name}-")));
        let place = place.unwrap_or_else(|| panic!("{writer} is none of ours"));
        let mut orphans: HashMap<&str, (u64, u64)> = HashMap::new();
        for symbol in SYMBOLS {
            let report = written(&mut console, symbol).expect("a report");
            if text(&report["writer"]["nodeId"]) == writer {
                orphans.insert(symbol, order(&report));
            }
        }
        let (name, victim) = nodes.swap_remove(place);
        drop(victim);
        let killed = Instant::now();
        // Its replacement starts at once, as with a service manager.
        let again = name.clone();
        let successor = std::thread::scope(|scope| {
            let started = scope.spawn(|| node(&exchange.url, &redis, &again));
            handed_over += orphans.len();
            while !orphans.is_empty() {
                orphans.retain(|symbol, before| {
                    let report = written(&mut console, symbol).expect("a report is always there");
                    let after = order(&report);
                    assert!(after >= *before, "{symbol}: {after:?} after {before:?}");
                    after.0 <= before.0
                });
                assert!(killed.elapsed() < PATIENCE, "nobody took over {orphans:?}");
                std::thread::sleep(Duration::from_millis(5));
            }
            took.push(killed.elapsed());
            started.join().expect("it starts")
        });
        nodes.push((name, successor));
        nodes.iter().for_each(|(_, node)| node.wait_ready());
        let before = reads.load(Ordering::Relaxed);
        wait_for("readers to go on", || reads.load(Ordering::Relaxed) > before);
    }
    stop.store(true, Ordering::Relaxed);
    readers.into_iter().for_each(|reader| reader.join().expect("a reader"));
    let faults = faults.lock().expect("a lock");
    assert!(faults.is_empty(), "{faults:?}");
    let reads = reads.load(Ordering::Relaxed);
    took.sort();
    eprintln!(
        "{kills} kills, {handed_over} symbols taken over, median {:?}, slowest {:?}, {reads} reads in order",
        took[took.len() / 2],
        took[took.len() - 1]
    );
}

#[test]
fn paused_writer_is_refused_after_failover() {
    let exchange = Exchange::start(22);
    let redis = Redis::start();
    let mut console = redis.connect();
    let nodes = ["a", "b"].map(|name| node(&exchange.url, &redis, name));
    nodes.iter().for_each(TestServer::wait_ready);
    wait_for("a report", || writer_of(&mut redis.connect(), "BTCUSDT").is_some());
    for _ in 0..3 {
        let before = written(&mut console, "BTCUSDT").expect("a report");
        let writer = text(&before["writer"]["nodeId"]).to_owned();
        let place = usize::from(!writer.starts_with("a-"));
        let signal = |name: &str| {
            let pid = nodes[place].pid().to_string();
            let told = std::process::Command::new("kill").args([&format!("-{name}"), &pid]).status();
            assert!(told.expect("kill").success());
        };
        signal("STOP");
        wait_for("another writer", || writer_of(&mut redis.connect(), "BTCUSDT").is_some_and(|now| now != writer));
        let taken = order(&written(&mut console, "BTCUSDT").expect("a report"));
        assert!(taken.0 > order(&before).0, "{taken:?}");
        signal("CONT");
        // Until both are at work and some more reports were written, none is older than the one before.
        let newest = Cell::new(taken);
        let seen = Cell::new(0);
        wait_for("both nodes, and more reports", || {
            let now = order(&written(&mut redis.connect(), "BTCUSDT").expect("a report"));
            assert!(now >= newest.get(), "{now:?} after {:?}", newest.get());
            seen.set(seen.get() + u32::from(now > newest.get()));
            newest.set(now);
            seen.get() >= 5 && nodes[place].get("/readyz", &[]).status == 200
        });
    }
}

#[test]
fn stopped_node_releases_its_leases() {
    let exchange = Exchange::start(23);
    let redis = Redis::start();
    let mut console = redis.connect();
    let mut nodes = ["a", "b"].map(|name| node(&exchange.url, &redis, name));
    nodes.iter().for_each(TestServer::wait_ready);
    wait_for("a report", || writer_of(&mut redis.connect(), "BTCUSDT").is_some());
    let writer = writer_of(&mut console, "BTCUSDT").expect("a writer");
    let place = usize::from(!writer.starts_with("a-"));
    assert_eq!(nodes[place].stop(), Some(0));
    // It has given up its lease, which would otherwise last for a while.
    let leased = console.ask(&["HGET", "report:writer:BTCUSDT", "node"]);
    assert_ne!(leased.first(), Some(&writer));
    wait_for("the other", || writer_of(&mut redis.connect(), "BTCUSDT").is_some_and(|now| now != writer));
}

#[test]
fn node_without_data_yields_its_symbols() {
    let exchanges = [24, 24].map(|seed: u64| Simulator::start(&["--seed", &seed.to_string()]));
    let redis = Redis::start();
    let nodes = [node(&exchanges[0].url, &redis, "a"), node(&exchanges[1].url, &redis, "b")];
    nodes.iter().for_each(TestServer::wait_ready);
    let writers = || SYMBOLS.map(|symbol| writer_of(&mut redis.connect(), symbol).unwrap_or_default());
    wait_for("all reports", || writers().iter().all(|writer| !writer.is_empty()));
    let (deaf, hears) = if writers()[0].starts_with("a-") { (0, "b-") } else { (1, "a-") };
    exchanges[deaf].signal("STOP");
    wait_for("the one that hears to write all", || writers().iter().all(|writer| writer.starts_with(hears)));
    let mut console = redis.connect();
    for symbol in SYMBOLS {
        let report = written(&mut console, symbol).expect("a report");
        assert_eq!(report["ingestion"]["status"], "ok", "{report:#}");
    }
    exchanges[deaf].signal("CONT");
    nodes.iter().for_each(TestServer::wait_ready);
}
