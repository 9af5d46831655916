//! Everything that can go wrong, one after the other. A second exchange with the same seed and start, which nothing happens to,
//! moves in the same way and has the true book of every update id.

use std::collections::HashMap;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{Feed, Published};
use serde_json::Value;
use tribune_binance::{BookState, BookView, Rest, feed};
use tribune_exchange_sim::{Exchange, Fault, FaultHandle, Limits, Simulation};

use crate::oracle::{Truth, Verdict};
use crate::recording::{Listener, snapshot, streams};
use crate::support::{exchange, repetitions, rest_settings, simulation, until};

const SYMBOLS: [&str; 6] = ["BTCUSDT", "ETHUSDT", "SOLUSDT", "ETHBTC", "PEPEUSDT", "LINKUSDT"];
/// What the process may grow by once it is warm: tapes and histories of a minute.
const GROWTH_BYTES: u64 = 24 << 20;
/// So many exact views prove something; the process is warm by then.
const ENOUGH: u64 = 200;

/// Set in the process that runs the soak, which is one of its own so that its memory is its own.
const OWN_PROCESS: &str = "TRIBUNE_SOAK_PROCESS";
const NAME: &str = "soak::faults_never_make_a_wrong_book_live";

#[test]
fn faults_never_make_a_wrong_book_live() {
    if std::env::var_os(OWN_PROCESS).is_some() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        return runtime.expect("a runtime").block_on(soak());
    }
    let program = std::env::current_exe().expect("this program");
    let child =
        Command::new(program).args(["--exact", NAME, "--nocapture"]).env(OWN_PROCESS, "1").output().expect("it runs");
    let said = [child.stdout, child.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(child.status.success(), "{}\n{}", said[0], said[1]);
    assert!(said[0].contains("1 passed"), "the soak is not called {NAME}: {}", said[0]);
    eprintln!("{}", said[1]);
}

type Truths = Arc<Mutex<HashMap<String, Truth>>>;

/// Listens to the exchange that is well.
async fn witness(twin: &Exchange) -> Truths {
    let mut listener = Listener::open(twin, &streams(&SYMBOLS, &["depth@100ms", "bookTicker"])).await;
    let mut truths = HashMap::new();
    for symbol in SYMBOLS {
        let first: Value = serde_json::from_str(&snapshot(twin, symbol).await).expect("JSON");
        truths.insert(symbol.to_owned(), Truth::new(&first));
    }
    let truths = Arc::new(Mutex::new(truths));
    let shared = truths.clone();
    tokio::spawn(async move {
        while let Some(message) = listener.next().await {
            let mut value: Value = serde_json::from_str(&message).expect("JSON");
            let data = value["data"].take();
            let mut truths = shared.lock().expect("no panic");
            let truth = truths.get_mut(data["s"].as_str().expect("a symbol")).expect("one of ours");
            if data["e"] == "depthUpdate" {
                truth.diff(data);
            } else {
                truth.book_ticker(&data);
            }
        }
    });
    truths
}

/// A thing that goes wrong for a while.
struct Trouble {
    faults: Vec<Fault>,
    lasts: Lasts,
}

#[derive(Clone, Copy)]
enum Lasts {
    /// It is over by itself, or never ends.
    Once,
    Millis(u64),
    /// Until the books of these symbols are no longer called live.
    Noticed(&'static [&'static str]),
}

fn trouble(faults: impl Into<Vec<Fault>>, lasts: Lasts) -> Trouble {
    Trouble { faults: faults.into(), lasts }
}

/// A diff of a symbol is missing, and with it may come what concerns the snapshot that is then wanted.
fn missing(symbol: &'static str, with: impl Into<Vec<Fault>>) -> Trouble {
    let mut faults = vec![Fault::DropDiffs { symbol: Some(symbol.to_owned()), count: 1 }];
    faults.extend(with.into());
    trouble(faults, Lasts::Once)
}

/// Everything that can go wrong.
fn troubles() -> Vec<Trouble> {
    use Lasts::{Millis, Noticed, Once};
    let [btc, eth, sol, eth_btc, pepe, link] = SYMBOLS;
    let owned = |symbol: &str| Some(symbol.to_owned());
    let reject = |status, retry_after_secs| Fault::Reject { status, retry_after_secs, count: Some(1) };
    let lasting = |trouble: Trouble, millis| Trouble { lasts: Millis(millis), ..trouble };
    let swap = Fault::SwapDiffs { symbol: owned(btc), count: 1 };
    let duplicate = Fault::DuplicateDiffs { symbol: owned(btc), count: 3 };
    let unreadable = Fault::UnreadableDiffs { symbol: owned(pepe), count: 1 };
    let rates = Fault::DiffRates { drop: 0.01, duplicate: 0.05, swap: 0.01 };
    vec![
        missing(eth, []),
        trouble([Fault::DropConnections], Once),
        missing(sol, [Fault::StaleSnapshots { count: 1 }]),
        trouble([swap], Once),
        lasting(missing(eth_btc, [reject(429, Some(2))]), 2_000),
        trouble([Fault::GarbageMessages { count: 4 }], Once),
        missing(pepe, [Fault::HalfAnswers { count: 1 }]),
        missing(link, [Fault::GarbageAnswers { count: 1 }]),
        trouble([duplicate], Once),
        trouble([Fault::ClockSkew { millis: 7_000 }], Millis(3_000)),
        trouble([Fault::Silence { on: true }], Noticed(&SYMBOLS)),
        lasting(missing(btc, [reject(418, Some(3))]), 3_000),
        lasting(missing(eth, [Fault::Delay { millis: 700 }]), 2_000),
        trouble([Fault::RefuseConnections { on: true }, Fault::DropConnections], Millis(600)),
        missing(sol, [reject(503, None)]),
        missing(eth_btc, [Fault::ClockSkew { millis: -7_000 }]),
        trouble([unreadable], Once),
        trouble([Fault::LoseStreams { symbol: eth.to_owned() }], Noticed(&SYMBOLS[1..2])),
        trouble([rates], Millis(6_000)),
        trouble([Fault::DropConnections, Fault::StaleSnapshots { count: 2 }], Once),
        // What was refused together is asked for one by one.
        trouble([Fault::RefuseSubscriptions { count: 1 }, Fault::DropConnections], Millis(4_000)),
        missing(btc, []),
    ]
}

async fn make_trouble(faults: FaultHandle, feed: Arc<Feed>, between: Duration) {
    let is_live = |symbol: &str| feed.lookup(symbol).is_some_and(|book| book.live().is_some());
    for trouble in troubles() {
        trouble.faults.iter().for_each(|fault| faults.set(fault));
        match trouble.lasts {
            Lasts::Once => {}
            Lasts::Millis(millis) => {
                tokio::time::sleep(Duration::from_millis(millis)).await;
                faults.clear();
            }
            Lasts::Noticed(symbols) => {
                until("it is noticed", || async { !symbols.iter().any(|symbol| is_live(symbol)) }).await;
                faults.clear();
            }
        }
        tokio::time::sleep(between).await;
        until("every book is back", || async { SYMBOLS.iter().all(|symbol| is_live(symbol)) }).await;
    }
    faults.clear();
}

/// What is seen of one book over time.
struct Watched {
    book: Arc<Published>,
    /// Kept, so that no other view can be at its address.
    judged: Option<Arc<BookView>>,
}

#[derive(Default, Debug)]
struct Findings {
    exact: u64,
    between: u64,
    unknown: u64,
    wrong: Vec<String>,
}

struct Checker {
    truths: Truths,
    watched: Vec<Watched>,
    found: Findings,
}

impl Checker {
    fn look(&mut self) {
        let mut truths = self.truths.lock().expect("no panic");
        for watched in &mut self.watched {
            let status = watched.book.status();
            let symbol = &*watched.book.symbol;
            let Some(view) = status.view.clone().filter(|_| status.state == BookState::Live) else {
                continue;
            };
            let truth = truths.get_mut(symbol).expect("one of ours");
            let is_judged = watched.judged.as_ref().is_some_and(|judged| Arc::ptr_eq(judged, &view));
            if !is_judged {
                let verdict = truth.judge(&view);
                watched.judged = Some(view);
                match verdict {
                    Verdict::Exact => self.found.exact += 1,
                    Verdict::Between => self.found.between += 1,
                    Verdict::Unknown => self.found.unknown += 1,
                    Verdict::Wrong(what) => self.found.wrong.push(format!("{symbol}: {what}")),
                }
            }
        }
    }
}

/// Memory of this process that is in use; `None` where the system does not say.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = status.split(' ').nth(1)?.parse().ok()?;
    Some(pages * 4_096)
}

fn tracked(exchange: &Exchange) -> Arc<Feed> {
    let clock = Arc::new(tribune_clock::SystemClock);
    let rest = Rest::new(rest_settings(exchange), clock.clone()).expect("settings");
    let feed = Feed::start(
        feed::Settings::new(exchange.stream_url()),
        rest.with_priority(tribune_binance::Priority::Background),
        clock,
    );
    // Only the first is among those whose snapshots have all levels: these would use up the budget.
    for (rank, symbol) in SYMBOLS.iter().enumerate() {
        feed.track(&Arc::from(*symbol), true, 10 * rank).expect("room for it");
    }
    feed
}

async fn soak() {
    let simulation = Simulation { start: Some(jiff::Timestamp::now().as_millisecond()), levels: 400, ..simulation() };
    let twin = exchange(simulation.clone(), Limits::default()).await;
    let limits = Limits {
        connection_lifetime: Duration::from_secs(11),
        shutdown_notice: Duration::from_secs(4),
        ..Limits::default()
    };
    let exchange = exchange(simulation, limits).await;
    let truths = witness(&twin).await;
    let feed = tracked(&exchange);
    until("every book is live", || async { feed.books().iter().all(|book| book.live().is_some()) }).await;

    let mut checker = Checker {
        truths: truths.clone(),
        watched: Vec::from_iter(feed.books().into_iter().map(|book| Watched { book, judged: None })),
        found: Findings::default(),
    };
    let between = Duration::from_millis(repetitions(700, 2_500));
    let making = tokio::spawn(make_trouble(exchange.faults(), feed.clone(), between));
    let mut before = None;
    while !making.is_finished() {
        checker.look();
        if checker.found.exact > ENOUGH {
            before = before.or_else(resident_bytes);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    making.await.expect("no panic");
    report(&checker, &feed, &exchange, before);
}

fn report(checker: &Checker, feed: &Feed, exchange: &Exchange, before: Option<u64>) {
    let found = &checker.found;
    let counts = exchange.counts();
    let resyncs: u64 = feed.books().iter().map(|book| book.resyncs()).sum();
    eprintln!(
        "soak: {} views exact, {} between diffs, {} not comparable; {resyncs} resyncs; \
         weight {}; connections {}; memory {before:?} then {:?}",
        found.exact,
        found.between,
        found.unknown,
        counts.weight,
        counts.connections_accepted,
        resident_bytes(),
    );
    assert!(found.wrong.is_empty(), "live and wrong: {:#?}", found.wrong);
    assert!(found.exact > ENOUGH, "{found:?}");
    assert!(found.unknown < found.exact, "{found:?}");
    assert!(resyncs >= 10, "{resyncs}");
    assert_eq!((counts.organic_429, counts.organic_418), (0, 0));
    assert!(counts.injected_rejections > 0);
    if let (Some(before), Some(after)) = (before, resident_bytes()) {
        assert!(after < before + GROWTH_BYTES, "memory grew from {before} to {after}");
    }
}
