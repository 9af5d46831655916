//! A minute and a half of everything that can go wrong. A second exchange with the same seed and start, which nothing happens to,
//! moves in the same way and has the true book of every update id.

use std::collections::HashMap;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;
use tribune_exchange_sim::{Exchange, Fault, FaultHandle, Limits, Simulation};
use tribune_market::feed::{self, BookState, BookView, Feed, Published};
use tribune_market::rest::Rest;

use crate::oracle::{Truth, Verdict};
use crate::recording::{Listener, snapshot, streams};
use crate::support::{exchange, rest_settings, simulation, until};

const SYMBOLS: [&str; 6] = ["BTCUSDT", "ETHUSDT", "SOLUSDT", "ETHBTC", "PEPEUSDT", "LINKUSDT"];
const RESYNC: Duration = Duration::from_secs(2);
/// Longer than that, so that who is late is late before the next trouble excuses it.
const BETWEEN: Duration = Duration::from_millis(2_500);
/// Silence on a connection that is open is noticed after this long at the latest.
const NOTICED: Duration = Duration::from_secs(8);
/// What the process may grow by between the first third and the end: tapes and histories of a minute.
const GROWTH_BYTES: u64 = 24 << 20;

/// Set in the process that runs the soak, which is one of its own so that its memory is its own.
const OWN_PROCESS: &str = "TRIBUNE_SOAK_PROCESS";
const NAME: &str = "soak::faults_never_make_a_wrong_book_live";

#[test]
fn faults_never_make_a_wrong_book_live() {
    if std::env::var_os(OWN_PROCESS).is_some() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build();
        return runtime.expect("a runtime").block_on(soak());
    }
    let program = std::env::current_exe().expect("this program");
    let child = Command::new(program)
        .args(["--exact", NAME, "--nocapture"])
        .env(OWN_PROCESS, "1")
        .output()
        .expect("it runs");
    let said = [child.stdout, child.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(child.status.success(), "{}\n{}", said[0], said[1]);
    assert!(
        said[0].contains("1 passed"),
        "the soak is not called {NAME}: {}",
        said[0]
    );
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
            let truth = truths
                .get_mut(data["s"].as_str().expect("a symbol"))
                .expect("one of ours");
            if data["e"] == "depthUpdate" {
                truth.diff(data);
            } else {
                truth.book_ticker(&data);
            }
        }
    });
    truths
}

/// A thing that goes wrong for a while, and whose books it may take away.
struct Trouble {
    faults: Vec<Fault>,
    lasts: Duration,
    concerns: Concerns,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Concerns {
    Nobody,
    One(&'static str),
    All,
}

fn trouble(concerns: Concerns, faults: impl Into<Vec<Fault>>, lasts_millis: u64) -> Trouble {
    Trouble {
        faults: faults.into(),
        lasts: Duration::from_millis(lasts_millis),
        concerns,
    }
}

/// A diff of a symbol is missing, and with it may come what concerns the snapshot that is then wanted.
fn missing(symbol: &'static str, with: impl Into<Vec<Fault>>) -> Trouble {
    let mut faults = vec![Fault::DropDiffs {
        symbol: Some(symbol.to_owned()),
        count: 1,
    }];
    faults.extend(with.into());
    trouble(Concerns::One(symbol), faults, 0)
}

/// Everything that can go wrong.
fn troubles() -> Vec<Trouble> {
    use Concerns::{All, Nobody, One};
    let [btc, eth, sol, eth_btc, pepe, link] = SYMBOLS;
    let owned = |symbol: &str| Some(symbol.to_owned());
    let reject = |status, retry_after_secs| Fault::Reject {
        status,
        retry_after_secs,
        count: Some(1),
    };
    let lasting = |trouble: Trouble, millis| Trouble {
        // Without an exchange that answers nobody can come back.
        concerns: All,
        lasts: Duration::from_millis(millis),
        ..trouble
    };
    vec![
        missing(eth, []),
        trouble(All, [Fault::DropConnections], 0),
        missing(sol, [Fault::StaleSnapshots { count: 1 }]),
        trouble(
            One(btc),
            [Fault::SwapDiffs {
                symbol: owned(btc),
                count: 1,
            }],
            0,
        ),
        lasting(missing(eth_btc, [reject(429, Some(2))]), 2_000),
        trouble(All, [Fault::GarbageMessages { count: 4 }], 0),
        missing(pepe, [Fault::HalfAnswers { count: 1 }]),
        missing(link, [Fault::GarbageAnswers { count: 1 }]),
        trouble(
            Nobody,
            [Fault::DuplicateDiffs {
                symbol: owned(btc),
                count: 3,
            }],
            0,
        ),
        trouble(Nobody, [Fault::ClockSkew { millis: 7_000 }], 3_000),
        // Longer than it may take to be noticed.
        trouble(All, [Fault::Silence { on: true }], 12_000),
        lasting(missing(btc, [reject(418, Some(3))]), 3_000),
        lasting(missing(eth, [Fault::Delay { millis: 700 }]), 2_000),
        trouble(
            All,
            [Fault::RefuseConnections { on: true }, Fault::DropConnections],
            600,
        ),
        missing(sol, [reject(503, None)]),
        missing(eth_btc, [Fault::ClockSkew { millis: -7_000 }]),
        trouble(
            One(pepe),
            [Fault::UnreadableDiffs {
                symbol: owned(pepe),
                count: 1,
            }],
            0,
        ),
        trouble(
            One(eth),
            [Fault::LoseStreams { symbol: eth.to_owned() }],
            // To be noticed, doubted and subscribed to again.
            9_000,
        ),
        trouble(
            All,
            [Fault::DiffRates {
                drop: 0.01,
                duplicate: 0.05,
                swap: 0.01,
            }],
            6_000,
        ),
        trouble(All, [Fault::DropConnections, Fault::StaleSnapshots { count: 2 }], 0),
        // What was refused together is asked for one by one.
        trouble(
            All,
            [Fault::RefuseSubscriptions { count: 1 }, Fault::DropConnections],
            4_000,
        ),
        missing(btc, []),
    ]
}

/// The time that a fault lasts is not ours to answer for, and from its end on we answer for those that it concerns.
#[derive(Default)]
struct Excuses(Mutex<HashMap<&'static str, Instant>>);

impl Excuses {
    fn until(&self, concerns: Concerns, until: Instant) {
        let mut last = self.0.lock().expect("no panic");
        for symbol in SYMBOLS {
            if matches!(concerns, Concerns::All) || concerns == Concerns::One(symbol) {
                let of_symbol = last.entry(symbol).or_insert(until);
                *of_symbol = until.max(*of_symbol);
            }
        }
    }

    /// How long a book was away that nothing excuses.
    fn away(&self, symbol: &str, since: Instant) -> Duration {
        let last = self.0.lock().expect("no panic").get(symbol).copied();
        let from = last.map_or(since, |last| last.max(since));
        Instant::now().saturating_duration_since(from)
    }
}

async fn make_trouble(faults: FaultHandle, excuses: Arc<Excuses>) {
    for trouble in troubles() {
        excuses.until(trouble.concerns, Instant::now() + trouble.lasts);
        trouble.faults.iter().for_each(|fault| faults.set(fault));
        tokio::time::sleep(trouble.lasts).await;
        if !trouble.lasts.is_zero() {
            faults.clear();
            excuses.until(trouble.concerns, Instant::now());
        }
        tokio::time::sleep(BETWEEN).await;
    }
    faults.clear();
}

/// What is seen of one book over time.
struct Watched {
    book: Arc<Published>,
    away_since: Option<Instant>,
    /// What it last said of itself while it was away.
    reason: Option<String>,
    is_late: bool,
    /// Kept, so that no other view can be at its address.
    judged: Option<Arc<BookView>>,
}

#[derive(Default, Debug)]
struct Findings {
    exact: u64,
    between: u64,
    unknown: u64,
    wrong: Vec<String>,
    /// How long books were away, and why.
    returns: Vec<(Duration, String)>,
    late: Vec<String>,
    /// The worst that a timer of the machine itself was late.
    slack: Duration,
}

struct Checker {
    truths: Truths,
    watched: Vec<Watched>,
    excuses: Arc<Excuses>,
    /// How far the truth is ahead of what is checked.
    lead: Duration,
    found: Findings,
}

impl Checker {
    fn look(&mut self) {
        let mut truths = self.truths.lock().expect("no panic");
        for watched in &mut self.watched {
            let (status, view) = watched.book.read();
            let symbol = &*watched.book.symbol;
            let Some(view) = view.filter(|_| status.state == BookState::Live) else {
                let since = *watched.away_since.get_or_insert_with(Instant::now);
                watched.reason.clone_from(&status.reason);
                let away = self.excuses.away(symbol, since);
                if away > RESYNC + 3 * self.found.slack && !watched.is_late {
                    watched.is_late = true;
                    let why = status.reason.as_deref().unwrap_or_default();
                    self.found.late.push(format!("{symbol} is away for {away:?}: {why}"));
                }
                continue;
            };
            watched.is_late = false;
            if let Some(since) = watched.away_since.take() {
                let what = format!("{symbol}: {}", watched.reason.take().unwrap_or_default());
                self.found.returns.push((self.excuses.away(symbol, since), what));
            }
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
            let old = truth
                .behind()
                .filter(|behind| *behind > self.lead + NOTICED + 3 * self.found.slack);
            if let Some(behind) = old {
                self.found
                    .wrong
                    .push(format!("{symbol} is live and lacks what came {behind:?} ago"));
            }
        }
    }

    async fn pause(&mut self) {
        let pause = Duration::from_millis(10);
        let began = Instant::now();
        tokio::time::sleep(pause).await;
        let late = began.elapsed().saturating_sub(pause);
        self.found.slack = self.found.slack.max(late);
    }

    fn all_live(&self) -> bool {
        self.watched.iter().all(|watched| watched.book.live().is_some())
    }
}

/// Memory of this process that is in use; `None` where the system does not say.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = status.split(' ').nth(1)?.parse().ok()?;
    Some(pages * 4_096)
}

fn tracked(exchange: &Exchange) -> Arc<Feed> {
    let clock = Arc::new(tribune_core::SystemClock);
    let rest = Rest::new(rest_settings(exchange), clock.clone()).expect("settings");
    let settings = feed::Settings {
        deep_ranks: 1,
        ..feed::Settings::new(exchange.stream_url())
    };
    let feed = Feed::start(settings, rest.in_background(), clock);
    for (rank, symbol) in SYMBOLS.iter().enumerate() {
        feed.track(&Arc::from(*symbol), true, rank).expect("room for it");
    }
    feed
}

async fn soak() {
    let simulation = Simulation {
        start: Some(jiff::Timestamp::now().as_millisecond()),
        levels: 400,
        ..simulation()
    };
    let twin = exchange(simulation.clone(), Limits::default()).await;
    let opened = Instant::now();
    let limits = Limits {
        connection_lifetime: Duration::from_secs(11),
        shutdown_notice: Duration::from_secs(4),
        ..Limits::default()
    };
    let exchange = exchange(simulation, limits).await;
    let lead = opened.elapsed();
    let truths = witness(&twin).await;
    let feed = tracked(&exchange);
    until("every book is live", || async {
        feed.books().iter().all(|book| book.live().is_some())
    })
    .await;

    let excuses = Arc::<Excuses>::default();
    let mut checker = Checker {
        truths: truths.clone(),
        watched: Vec::from_iter(feed.books().into_iter().map(|book| Watched {
            book,
            away_since: None,
            reason: None,
            is_late: false,
            judged: None,
        })),
        excuses: excuses.clone(),
        lead,
        found: Findings::default(),
    };
    let expected: Duration = troubles().iter().map(|t| t.lasts + BETWEEN).sum();
    let began = Instant::now();
    let mut at_a_third = None;
    let making = tokio::spawn(make_trouble(exchange.faults(), excuses));
    while !making.is_finished() || (!checker.all_live() && began.elapsed() < 3 * expected) {
        checker.look();
        checker.pause().await;
        if at_a_third.is_none() && began.elapsed() > expected / 3 {
            at_a_third = resident_bytes();
        }
    }
    making.await.expect("no panic");
    assert!(checker.all_live(), "in the end every book is live");
    report(&checker, &feed, &exchange, at_a_third);
}

fn report(checker: &Checker, feed: &Feed, exchange: &Exchange, at_a_third: Option<u64>) {
    let found = &checker.found;
    let counts = exchange.counts();
    let mut longest = found.returns.clone();
    longest.sort_unstable_by(|one, other| other.cmp(one));
    longest.truncate(6);
    let resyncs: u64 = feed.books().iter().map(|book| book.resyncs()).sum();
    let agreed: u64 = feed.books().iter().map(|book| book.agreed()).sum();
    eprintln!(
        "soak: {} views exact, {} between diffs, {} not comparable; {resyncs} resyncs, {} returns, the longest {longest:#?}; \
         timers late by {:?}; best quotes agreed {agreed}; weight {}; connections {}; memory {at_a_third:?} then {:?}",
        found.exact,
        found.between,
        found.unknown,
        found.returns.len(),
        found.slack,
        counts.weight,
        counts.connections_accepted,
        resident_bytes(),
    );
    assert!(found.wrong.is_empty(), "live and wrong: {:#?}", found.wrong);
    assert!(found.late.is_empty(), "{:#?}", found.late);
    assert!(found.exact > 1_000, "{found:?}");
    assert!(found.unknown * 20 < found.exact, "{found:?}");
    assert!(resyncs >= 15 && agreed > 0, "{resyncs} {agreed}");
    assert_eq!((counts.organic_429, counts.organic_418), (0, 0));
    assert!(counts.injected_rejections > 0);
    if let (Some(before), Some(after)) = (at_a_third, resident_bytes()) {
        assert!(after < before + GROWTH_BYTES, "memory grew from {before} to {after}");
    }
}
