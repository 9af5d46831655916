//! Recordings, played fast and followed by the real feed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::support::Feed;
use serde_json::Value;
use tempfile::TempDir;
use tribune_exchange_sim::{Exchange, Limits};

use crate::by_hand::{laid_out, tricky};
use crate::oracle::{Book, units};
use crate::recording::{Listener, Recording, finished, play, snapshot, streams};
use crate::support::{PATIENCE, Wire, exchange, feed_at, rest_settings, simulation, until};

const SYMBOLS: [&str; 3] = ["BTCUSDT", "ETHUSDT", "PEPEUSDT"];
const KINDS: [&str; 3] = ["depth@100ms", "bookTicker", "trade"];
/// Diffs of each symbol that are recorded: some twenty seconds.
const DIFFS: usize = 200;

/// A recording for each symbol.
type Recordings = BTreeMap<String, Recording>;

async fn record() -> Recordings {
    let mut simulation = simulation();
    simulation.events_per_second = 60.0;
    let exchange = exchange(simulation, Limits::default()).await;
    let mut listener = Listener::open(&exchange, &streams(&SYMBOLS, &KINDS)).await;
    let mut recordings = Recordings::new();
    let mut diffs: HashMap<String, usize> = HashMap::new();
    let deadline = Instant::now() + 2 * PATIENCE;
    while diffs.len() < SYMBOLS.len() || diffs.values().any(|count| *count < DIFFS) {
        assert!(Instant::now() < deadline, "the exchange says too little");
        let message = listener.next().await.expect("a message");
        let value: Value = serde_json::from_str(&message).expect("JSON");
        let symbol = value["data"]["s"].as_str().expect("a symbol").to_owned();
        let recording = recordings.entry(symbol.clone()).or_default();
        recording.note(message);
        if value["data"]["e"] == "depthUpdate" {
            let count = diffs.entry(symbol.clone()).or_default();
            *count += 1;
            if *count == 2 {
                recording.note(snapshot(&exchange, &symbol).await);
            }
        }
    }
    recordings
}

/// The book of one symbol after each of its diffs, and how often a best quote was of the same id.
struct Expected {
    states: BTreeMap<u64, Book>,
    shared: usize,
}

impl Expected {
    /// Panics where the recording contradicts itself.
    fn of(recording: &Recording) -> Self {
        let values: Vec<Value> = recording.values().collect();
        let first = values.iter().find(|value| value["lastUpdateId"].is_u64());
        let mut book = Book::of(first.expect("a snapshot"));
        let mut states = BTreeMap::from([(book.id, book.clone())]);
        for value in values.iter().filter(|value| value["data"]["e"] == "depthUpdate") {
            book.apply(&value["data"]);
            states.insert(book.id, book.clone());
        }
        let mut shared = 0;
        for value in &values {
            let data = &value["data"];
            let is_quote = data["e"].is_null() && data["B"].is_string();
            if let Some(state) = data["u"].as_u64().filter(|_| is_quote).and_then(|id| states.get(&id)) {
                let level = |price: &str, quantity: &str| (units(&data[price]), units(&data[quantity]));
                assert_eq!([level("b", "B"), level("a", "A")], state.top(), "at {}", state.id);
                shared += 1;
            }
        }
        Self { states, shared }
    }

    fn last(&self) -> &Book {
        self.states.last_key_value().expect("states").1
    }
}

fn written(recordings: &Recordings, folder: &TempDir) -> Vec<PathBuf> {
    let path = |(symbol, recording): (&String, &Recording)| {
        // Both forms that recordings come in.
        let gz = symbol.starts_with('E');
        let path = folder.path().join(format!("{symbol}{}", if gz { ".gz" } else { ".txt" }));
        if gz {
            recording.write_gz(&path);
        } else {
            recording.write(&path);
        }
        path
    };
    recordings.iter().map(path).collect()
}

/// A feed that has asked for everything before the recording begins.
async fn listening(exchange: &Exchange, symbols: &[&str]) -> Arc<Feed> {
    let (wire, listener) = Wire::held(exchange).await;
    let feed = feed_at(rest_settings(exchange), wire.stream_url(), symbols);
    wire.open(listener);
    feed
}

/// Looks at every book that is live, as often as it can; how many were compared.
fn compare(feed: &Feed, expected: &BTreeMap<String, Expected>) -> usize {
    let mut compared = 0;
    for book in feed.books() {
        let Some(view) = book.live() else { continue };
        let states = &expected[&*book.symbol].states;
        let Some(state) = states.get(&view.last_update_id) else {
            panic!("{} is live at {}, where no diff ends", book.symbol, view.last_update_id);
        };
        if let Some(wrong) = state.difference(&view.depth, &BTreeSet::new()) {
            panic!("{} is live and wrong at {}: {wrong}", book.symbol, state.id);
        }
        compared += 1;
    }
    compared
}

/// Follows a replay to its end, looking at the books all the time.
async fn follow(exchange: &Exchange, feed: &Feed, expected: &BTreeMap<String, Expected>) {
    let deadline = Instant::now() + PATIENCE;
    let mut looks = 0u32;
    loop {
        compare(feed, expected);
        looks += 1;
        if looks.is_multiple_of(100) && finished(exchange).await {
            return;
        }
        assert!(Instant::now() < deadline, "the recording does not end");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn is_whole(feed: &Feed, symbol: &str, expected: &Expected) -> bool {
    let book = feed.lookup(symbol).expect("tracked");
    book.live().is_some_and(|view| view.last_update_id == expected.last().id)
}

/// All symbols in one file, in which snapshots name their symbol.
fn written_together(recordings: &Recordings, folder: &TempDir) -> Vec<PathBuf> {
    let mut together = Recording::default();
    for (symbol, recording) in recordings {
        let named = format!("{{\"symbol\":\"{symbol}\",\"lastUpdateId\"");
        let lines = recording.lines.iter().cloned();
        let name = |(nanos, text): (i64, String)| match text.strip_prefix("{\"lastUpdateId\"") {
            Some(rest) => (nanos, format!("{named}{rest}")),
            None => (nanos, text),
        };
        together.lines.extend(lines.map(name));
    }
    together.lines.sort_by_key(|(nanos, _)| *nanos);
    let path = folder.path().join("all.gz");
    together.write_gz(&path);
    vec![path]
}

/// Updates as a recorder has them who listened to the slower stream: what the client listens to is made from them.
fn written_slowly(recordings: &Recordings, folder: &TempDir) -> Vec<PathBuf> {
    let mut slow = recordings.clone();
    for (_, text) in slow.values_mut().flat_map(|recording| &mut recording.lines) {
        *text = text.replace("@depth@100ms", "@depth");
    }
    written(&slow, folder)
}

type Layout = fn(&Recordings, &TempDir) -> Vec<PathBuf>;

async fn replay_agrees(recordings: &Recordings, expected: &BTreeMap<String, Expected>, speed: f64, layout: Layout) {
    let folder = tempfile::tempdir().expect("a folder");
    let exchange = play(layout(recordings, &folder), speed).await;
    let symbols: Vec<&str> = recordings.keys().map(String::as_str).collect();
    let feed = listening(&exchange, &symbols).await;
    follow(&exchange, &feed, expected).await;
    for (symbol, expected) in expected {
        let book = feed.lookup(symbol).expect("tracked");
        // At a pace of its own the recording does not wait: a late client has no book, and says so.
        until(&format!("{symbol} is live at its last update"), || async {
            is_whole(&feed, symbol, expected).await || (speed.is_finite() && book.live().is_none())
        })
        .await;
        if speed.is_finite() {
            continue;
        }
        assert_eq!(book.resyncs(), 0, "{symbol}: {:?}", book.status());
    }
    let compared = compare(&feed, expected);
    assert!(speed.is_finite() || compared == symbols.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recordings_are_followed_exactly() {
    let recordings = record().await;
    let expected: BTreeMap<String, Expected> =
        recordings.iter().map(|(symbol, recording)| (symbol.clone(), Expected::of(recording))).collect();
    for symbol in recordings.keys() {
        assert!(expected[symbol].shared > 10, "{symbol} has best quotes to compare");
    }
    replay_agrees(&recordings, &expected, f64::INFINITY, written).await;
    replay_agrees(&recordings, &expected, f64::INFINITY, written_together).await;
    replay_agrees(&recordings, &expected, 6.0, written).await;
    replay_agrees(&recordings, &expected, 6.0, written_slowly).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tricky_recording_is_followed_exactly() {
    let recordings: Recordings = ["AAAUSDT", "EEEUSDT", "1000SATSUSDT"]
        .into_iter()
        .map(|symbol| (symbol.to_owned(), laid_out(tricky(symbol))))
        .collect();
    let expected: BTreeMap<String, Expected> =
        recordings.iter().map(|(symbol, recording)| (symbol.clone(), Expected::of(recording))).collect();
    let last = expected["AAAUSDT"].last();
    assert_eq!(last.top(), [(995_000_000, 50_000_000), (1_010_000_000, 400_000_000)]);
    assert_eq!((last.id, last.bids.len(), last.asks.len()), (115, 2, 2));
    replay_agrees(&recordings, &expected, 2.0, written).await;
    replay_agrees(&recordings, &expected, f64::INFINITY, written).await;
}
