//! Every figure of reports, at many moments of recordings, against a computation of its own.

mod book_figures;
mod health_figures;
mod long;
mod profile_figures;
mod truth;

use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Value, json};
use tribune_analytics::Watch;
use tribune_binance::feed::Alone;
use tribune_binance::feed::event::{Event, decode};
use tribune_binance::{Day, Level, Moment, Price, Quantity, Snapshot, Symbol};
use tribune_exchange_sim::Limits;
use tribune_reports::cache::NodeId;
use tribune_reports::compute::{Inputs, report, slow};

use crate::oracle::units;
use crate::recording::{Listener, Recording, snapshot, streams};
use crate::support::{PATIENCE, exchange, simulation};
use truth::Truth;

/// With the smallest step of its price.
const SYMBOLS: [(&str, &str); 2] = [("BTCUSDT", "0.01"), ("PEPEUSDT", "0.00000001")];
/// Diffs of each symbol that are recorded: some twelve seconds.
const DIFFS: usize = 120;

/// One symbol of a recording: the feed's own code reads it, and the truth does.
struct Play<'a> {
    symbol: Symbol,
    alone: Alone<Watch>,
    truth: Truth,
    day: Option<Day>,
    start: (Instant, i64),
    exchange_now: i64,
    looked: i64,
    lines: std::slice::Iter<'a, (i64, String)>,
}

impl<'a> Play<'a> {
    fn new(name: &str, tick: &str, recording: &'a Recording) -> Self {
        let is_snapshot = |(_, text): &(i64, String)| text.starts_with("{\"lastUpdateId\"");
        let first = recording.lines.iter().position(is_snapshot).expect("a snapshot");
        let (nanos, text) = &recording.lines[first];
        let start = (Instant::now(), *nanos);
        let result: Value = serde_json::from_str(text).expect("JSON");
        let levels = |side: &str| {
            let level = |level: &Value| Level {
                price: Price::from_units(units(&level[0]).try_into().expect("a price")),
                quantity: Quantity::from_units(units(&level[1])),
            };
            result[side].as_array().expect("levels").iter().map(level).collect()
        };
        let taken = Snapshot {
            last_update_id: result["lastUpdateId"].as_u64().expect("an id"),
            bids: levels("bids"),
            asks: levels("asks"),
            limit: 5_000,
        };
        let now = moment(start, *nanos);
        Self {
            symbol: symbol(name, tick),
            alone: Alone::new(name, taken, 6_000, now),
            truth: Truth::new(&result, now.wall.as_millisecond(), units(&json!(tick))),
            day: None,
            start,
            exchange_now: 0,
            looked: 0,
            lines: recording.lines[first + 1..].iter(),
        }
    }

    /// Takes the next line; `None` at the end.
    fn step(&mut self) -> Option<Moment> {
        let (nanos, text) = self.lines.next()?;
        let now = moment(self.start, *nanos);
        let line: Value = serde_json::from_str(text).expect("JSON");
        self.exchange_now = self.exchange_now.max(now.wall.as_millisecond());
        for time in ["E", "T"].iter().filter_map(|name| line["data"][name].as_i64()) {
            self.exchange_now = self.exchange_now.max(time);
        }
        self.alone.message(text, now);
        self.truth.heard(&line["data"], &self.symbol.name);
        if let Ok(Event::MiniTickers { tickers, .. }) = decode(text) {
            for ticker in tickers.iter().filter(|ticker| ticker.symbol == *self.symbol.name) {
                self.day = Some(Day {
                    last: ticker.close,
                    open: ticker.open,
                    high: ticker.high,
                    low: ticker.low,
                    volume: ticker.volume,
                    quote_volume: ticker.quote_volume,
                    exchange_time: Some(ticker.time),
                    received: now,
                });
            }
        }
        if self.exchange_now - self.looked >= 1_000 {
            self.looked = self.exchange_now;
            self.alone.look(now, self.exchange_now);
            self.truth.look(self.exchange_now);
        }
        Some(now)
    }

    fn report(&self, now: Moment) -> Value {
        let inputs = Inputs {
            symbol: &self.symbol,
            published: self.alone.published(),
            day: self.day,
            now,
            exchange_now: self.exchange_now,
            simulated: None,
            old_for: Duration::ZERO,
        };
        let slow = slow(&inputs);
        let report = report(&inputs, &slow, (&NodeId::from("n"), 1, 1));
        serde_json::to_value(report).expect("JSON")
    }

    /// Plays it to its end and judges a report after every so many lines; gives the reports.
    fn judged(mut self, every: usize) -> (Vec<Value>, Truth) {
        let mut reports = Vec::new();
        let mut lines = 0;
        while let Some(now) = self.step() {
            lines += 1;
            if lines % every == 0 {
                let report = self.report(now);
                let wrong = self.truth.differences(&report);
                assert!(wrong.is_empty(), "after {lines} lines: {wrong:#?}\n{report:#}");
                reports.push(report);
            }
        }
        (reports, self.truth)
    }
}

fn moment((start, first): (Instant, i64), nanos: i64) -> Moment {
    Moment {
        wall: Timestamp::from_nanosecond(nanos.into()).expect("a time"),
        monotonic: start + Duration::from_nanos((nanos - first).try_into().expect("in order")),
    }
}

fn symbol(name: &str, tick: &str) -> Symbol {
    Symbol {
        tick_size: Some(tick.parse::<Price>().expect("a price")),
        ..Symbol::named(name, name.trim_end_matches("USDT"), "USDT")
    }
}

/// What the simulated exchange says of one symbol, and the tickers of all.
async fn record(name: &str) -> Recording {
    let mut simulation = simulation();
    simulation.events_per_second = 80.0;
    let exchange = exchange(simulation, Limits::default()).await;
    let mut wanted = streams(&[name], &["depth@100ms", "bookTicker", "trade"]);
    wanted.push("!miniTicker@arr".to_owned());
    let mut listener = Listener::open(&exchange, &wanted).await;
    let mut recording = Recording::default();
    let mut diffs = 0;
    let deadline = Instant::now() + 2 * PATIENCE;
    while diffs < DIFFS {
        assert!(Instant::now() < deadline, "the exchange says too little");
        let message = listener.next().await.expect("a message");
        let is_diff = message.contains("\"depthUpdate\"");
        recording.note(message);
        diffs += usize::from(is_diff);
        if is_diff && diffs == 2 {
            recording.note(snapshot(&exchange, name).await);
        }
    }
    recording
}

fn count(reports: &[Value], pointer: &str) -> usize {
    let is_told = |report: &&Value| report.pointer(pointer).is_some_and(|value| !value.is_null());
    reports.iter().filter(is_told).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn figures_match_the_recorded_lines() {
    let recordings = futures::future::join_all(SYMBOLS.map(|(name, _)| record(name))).await;
    for ((name, tick), recording) in SYMBOLS.into_iter().zip(&recordings) {
        let (reports, _) = Play::new(name, tick, recording).judged(7);
        assert!(reports.len() > 50, "{name}: {} reports", reports.len());
        for figure in ["/micro_price", "/depth/imbalance", "/change_24h_pct", "/flow", "/flow/orders_per_sec"] {
            assert!(count(&reports, figure) > 0, "{name} never has {figure}");
        }
        assert!(count(&reports, "/liquidity/volume_profile") > 0, "{name} has no profile");
    }
}

/// Twenty minutes: windows fill and are left again, a wall comes and goes, prices jump.
#[test]
fn figures_match_a_long_recording() {
    let recording = long::recording();
    let (reports, _) = Play::new("AAAUSDT", "0.01", &recording).judged(97);
    assert!(reports.len() > 100, "{}", reports.len());
    let has = |found: &dyn Fn(&Value) -> bool, what: &str| {
        assert!(reports.iter().any(found), "never {what}");
    };
    has(&|report| report["flow"]["complete"] == true, "a whole window of flow");
    has(&|report| report["liquidity"]["volume_profile"]["coverage"] == 1.0, "a whole profile");
    has(&|report| !report["liquidity"]["vacuums"][0].is_null(), "a vacuum");
    has(&|report| !report["liquidity"]["walls"][0].is_null(), "a wall");
    has(&|report| report["liquidity"]["walls"] == json!([]), "no wall");
    has(&|report| !report["anomalies"][0].is_null(), "an anomaly");
    has(&|report| report["health"]["weights_used"] == 1.0, "all of the health score");
}

/// The judge is not blind: a figure that is off by a little more than allowed is seen, wherever it is.
#[test]
fn wrong_figure_is_noticed() {
    let recording = long::recording();
    let mut play = Play::new("AAAUSDT", "0.01", &recording);
    let mut good = None;
    while let Some(now) = play.step() {
        let report = play.report(now);
        let is_full = |report: &Value| {
            report["liquidity"]["walls"][0].is_object()
                && report["liquidity"]["vacuums"][0].is_object()
                && report["health"]["weights_used"] == 1.0
        };
        if is_full(&report) {
            good = Some(report);
            break;
        }
        // A minute further.
        for _ in 0..800 {
            play.step();
        }
    }
    let good = good.expect("a report with everything");
    assert_eq!(play.truth.differences(&good), Vec::<String>::new());
    let mut changed = 0;
    for pointer in truth::FIGURES {
        let mut bad = good.clone();
        let figure = bad.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer} is there"));
        *figure = match &*figure {
            Value::String(text) => json!(truth::text(truth::parts(text) + 200)),
            Value::Number(number) if number.is_f64() => json!(number.as_f64().expect("a number") + 0.11),
            Value::Number(number) => json!(number.as_u64().expect("a number") + 1),
            other => panic!("{pointer}: {other}"),
        };
        assert!(!play.truth.differences(&bad).is_empty(), "{pointer} may be wrong");
        changed += 1;
    }
    assert!(changed > 35);
    for pointer in ["/spread_bps", "/change_24h_pct", "/depth/imbalance", "/flow/orders_per_sec"] {
        let mut bad = good.clone();
        let figure = bad.pointer_mut(pointer).expect("a figure");
        *figure = json!(figure.as_f64().expect("a number") + 2e-8);
        assert!(!play.truth.differences(&bad).is_empty(), "{pointer} may be wrong by a little");
    }
}
