use std::fs;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use serde_json::json;
use tempfile::TempDir;
use tribune_core::Document;

use super::record::{MAX_RECORD_BYTES, record};
use super::*;

/// A clock that tests move.
struct Stopped(AtomicI64, Instant);

impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        Timestamp::from_millisecond(self.0.load(Ordering::Relaxed)).expect("a moment")
    }

    fn monotonic(&self) -> Instant {
        let passed = self.0.load(Ordering::Relaxed) - START;
        self.1 + Duration::from_millis(u64::try_from(passed).unwrap_or(0))
    }
}

const START: i64 = 1_800_000_000_000;
const HOUR: Duration = Duration::from_secs(3_600);

struct Scene {
    dir: TempDir,
    clock: Arc<Stopped>,
}

impl Scene {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().expect("a folder"),
            clock: Arc::new(Stopped(AtomicI64::new(START), Instant::now())),
        }
    }

    fn open(&self, most: usize) -> Citations {
        let clock = Arc::clone(&self.clock);
        Citations::open(self.folder(), Limits { keep: HOUR, most }, clock).expect("opened")
    }

    fn folder(&self) -> PathBuf {
        self.dir.path().join("citations")
    }

    fn wait(&self, time: Duration) {
        let millis = i64::try_from(time.as_millis()).expect("short");
        self.clock.0.fetch_add(millis, Ordering::Relaxed);
    }

    /// Sets the clock back.
    fn step_back(&self, time: Duration) {
        let millis = i64::try_from(time.as_millis()).expect("short");
        self.clock.0.fetch_sub(millis, Ordering::Relaxed);
    }
}

impl Citations {
    fn len(&self) -> i64 {
        self.lock().query_row("SELECT count(*) FROM records", [], |row| row.get(0)).expect("a number")
    }

    fn freeze(&self, document: &Document) -> Result<Token> {
        Ok(self.freeze_all(std::slice::from_ref(document))?[0])
    }

    fn freeze_all(&self, documents: &[Document]) -> Result<Vec<Token>> {
        let records: Vec<String> =
            documents.iter().map(|document| record(document, None::<()>)).collect::<Result<_>>()?;
        self.store(&records, Pool::Users)
    }
}

fn document(id: &str, price: &str) -> Document {
    Document {
        id: DocumentId::parse(id).expect("an id"),
        title: format!("Ticker \"{id}\""),
        text: format!("last {price}\nline two \u{2028} ünïcode ☃"),
        url: None,
        as_of: Some(Timestamp::from_millisecond(START - 250).expect("a moment")),
        metadata: json!({"last": price, "nested": {"z": 1, "a": [null, 0.1]}}).as_object().cloned().expect("an object"),
        passages: vec![0..4],
    }
}

fn found(citations: &Citations, document: &Document, token: Token) -> bool {
    let looked = citations.lookup(&document.id, &token.to_string()).expect("readable");
    match looked {
        Cited::Kept { document: frozen, at } => *frozen == *document && at == token.frozen_at(),
        _ => false,
    }
}

fn looked(citations: &Citations, id: &str, token: &str) -> Cited {
    let id = DocumentId::parse(id).expect("an id");
    citations.lookup(&id, token).expect("readable")
}

fn expired() -> Cited {
    let sentence =
        "What is cited of the market is kept for 0 days, and as many as there is room for; this record is gone.";
    Cited::Expired(sentence.to_owned())
}

#[test]
fn record_is_exact_also_after_a_restart() {
    let place = Scene::new();
    let citations = place.open(100);
    let first = document("ticker:BTCUSDT", "97123.45");
    let token = citations.freeze(&first).expect("frozen");
    place.wait(Duration::from_secs(5));
    let second = document("ticker:BTCUSDT", "97000.00");
    let later = citations.freeze(&second).expect("frozen");
    assert!(token < later && token.to_string() < later.to_string());
    assert!(found(&citations, &first, token) && found(&citations, &second, later));
    drop(citations);

    let citations = place.open(100);
    assert_eq!(citations.len(), 2);
    assert!(found(&citations, &first, token) && found(&citations, &second, later));
    let third = citations.freeze(&second).expect("frozen");
    assert!(found(&citations, &second, third) && found(&citations, &first, token));
}

#[test]
fn each_document_of_a_batch_gets_a_record() {
    let place = Scene::new();
    let citations = place.open(100);
    let known = document("ticker:ETHUSDT", "3");
    let before = citations.freeze(&known).expect("frozen");
    let mut all: Vec<Document> = (0..20).map(|at| document(&format!("ticker:A{at}USDT"), &at.to_string())).collect();
    all.push(known);
    let tokens = citations.freeze_all(&all).expect("frozen");
    assert_eq!((tokens.len(), citations.len()), (21, 22));
    assert!(citations.freeze_all(&[]).expect("nothing").is_empty());
    assert!(found(&citations, &all[20], before));
    for citations in [&citations, &place.open(100)] {
        for (document, token) in all.iter().zip(&tokens) {
            assert!(found(citations, document, *token));
        }
    }
}

#[test]
fn numbers_keep_every_digit() {
    let place = Scene::new();
    let citations = place.open(10);
    let mut random = fastrand::Rng::with_seed(7);
    let numbers: Vec<f64> = (0..2_000).map(|_| (random.f64() - 0.5) * 10f64.powi(random.i32(-9..9))).collect();
    let mut ticker = document("ticker:BTCUSDT", "1");
    ticker.metadata.insert("numbers".to_owned(), json!(numbers));
    let token = citations.freeze(&ticker).expect("frozen");
    assert!(found(&citations, &ticker, token));
}

#[test]
fn record_is_kept_after_clock_was_set_back() {
    // By an hour, and by a clock that had been wrong by days.
    for step in [HOUR, 72 * HOUR] {
        let place = Scene::new();
        let citations = place.open(8);
        for at in 0..10 {
            place.wait(Duration::from_secs(1));
            let before = document("ticker:BTCUSDT", &at.to_string());
            citations.freeze(&before).expect("frozen");
        }
        place.step_back(step);
        let mut after = Vec::new();
        for at in 0..8 {
            let document = document("ticker:ETHUSDT", &at.to_string());
            after.push((citations.freeze(&document).expect("frozen"), document));
            place.wait(Duration::from_secs(1));
        }
        assert_eq!(citations.len(), 8);
        for (token, document) in &after {
            assert!(found(&citations, document, *token), "{step:?}");
        }
    }
}

#[tokio::test]
async fn same_content_within_a_second_is_one_record() {
    let place = Scene::new();
    let citations = Arc::new(place.open(100));
    let links = tribune_core::Links::new("http://tribune.test");
    let records = records::Records::new(Some(citations.clone()), links);
    let cite = async |price: &str| {
        let ticker = document("ticker:BTCUSDT", price);
        let fingerprint = records::Fingerprint::new(&ticker.id, &ticker.text);
        records.cite(Pool::Users, fingerprint, || record(&ticker, None::<()>)).await
    };
    let url = cite("1").await;
    assert_eq!(cite("1").await, url);
    assert_ne!(cite("2").await, url);
    assert_ne!(cite("1").await, url, "another came between");
    let again = cite("1").await;
    place.wait(records::SAME_MOMENT);
    assert_ne!(cite("1").await, again);
    assert_eq!(citations.len(), 4);
}

#[test]
fn records_expire_and_say_so() {
    let place = Scene::new();
    let citations = place.open(100);
    let ticker = document("ticker:BTCUSDT", "1");
    let token = citations.freeze(&ticker).expect("frozen");
    place.wait(HOUR);
    assert!(found(&citations, &ticker, token));
    place.wait(Duration::from_millis(1));
    assert_eq!(looked(&citations, "ticker:BTCUSDT", &token.to_string()), expired());
    citations.freeze(&document("ticker:BTCUSDT", "2")).expect("frozen");
    assert_eq!(citations.len(), 1, "the old one is deleted");
    drop(citations);
    let citations = place.open(100);
    assert_eq!(looked(&citations, "ticker:BTCUSDT", &token.to_string()), expired());
}

#[test]
fn oldest_records_are_dropped() {
    let place = Scene::new();
    let citations = place.open(16);
    let mut given = Vec::new();
    for price in 0..100 {
        place.wait(Duration::from_millis(3));
        let ticker = document("ticker:BTCUSDT", &price.to_string());
        let token = citations.freeze(&ticker).expect("frozen");
        given.push((ticker, token));
    }
    let check = |citations: &Citations| {
        assert_eq!(citations.len(), 16);
        for (at, (ticker, token)) in given.iter().enumerate() {
            if at >= 84 {
                assert!(found(citations, ticker, *token), "{at}");
            } else {
                assert_eq!(looked(citations, "ticker:BTCUSDT", &token.to_string()), expired(), "{at}");
            }
        }
    };
    check(&citations);
    drop(citations);
    check(&place.open(16));
}

#[test]
fn hostile_tokens_find_nothing() {
    let place = Scene::new();
    let citations = place.open(100);
    let ticker = document("ticker:BTCUSDT", "1");
    let token = citations.freeze(&ticker).expect("frozen").to_string();
    assert_eq!(looked(&citations, "ticker:ETHUSDT", &token), Cited::Unknown);
    assert_eq!(looked(&citations, "ticker:btcusdt", &token), Cited::Unknown);
    let upper = token.to_uppercase();
    let path = format!("../{token}");
    let future = Token::new(Timestamp::from_millisecond(START * 2).expect("a moment"), 7).to_string();
    for hostile in ["", "..", "/", "../../etc/passwd", "\0", "zzzzzzzzzzzzz", &upper, &path, &future] {
        assert_eq!(looked(&citations, "ticker:BTCUSDT", hostile), Cited::Unknown, "{hostile:?}");
    }
    let long = "0".repeat(1_000_000);
    assert_eq!(looked(&citations, "ticker:BTCUSDT", &long), Cited::Unknown);
    // Older than anything kept: it may have been.
    assert_eq!(looked(&citations, "ticker:BTCUSDT", "0000000000000"), expired());
}

#[test]
fn foreign_files_are_left_alone() {
    let place = Scene::new();
    fs::create_dir_all(place.folder()).expect("made");
    for name in ["notes.txt", "0000000000000.txt", "zzzz.jsonl"] {
        fs::write(place.folder().join(name), "mine").expect("written");
    }
    let citations = place.open(1);
    for price in 0..20 {
        place.wait(HOUR);
        citations.freeze(&document("ticker:BTCUSDT", &price.to_string())).expect("frozen");
    }
    for name in ["notes.txt", "0000000000000.txt", "zzzz.jsonl"] {
        assert!(place.folder().join(name).exists(), "{name}");
    }
}

#[test]
fn threads_store_and_look_up_at_once() {
    let place = Scene::new();
    let citations = place.open(10_000);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let citations = &citations;
            scope.spawn(move || {
                for price in 0..100 {
                    let ticker = document(&format!("ticker:T{thread}"), &price.to_string());
                    let token = citations.freeze(&ticker).expect("frozen");
                    assert!(found(citations, &ticker, token));
                }
            });
        }
    });
    assert_eq!(citations.len(), 800);
    drop(citations);
    assert_eq!(place.open(10_000).len(), 800);
}

#[test]
fn unusable_database_is_an_error() {
    let place = Scene::new();
    // A file where the folder should be fails for every user, also for root.
    fs::write(place.folder(), "in the way").expect("written");
    let clock: Arc<dyn Clock> = Arc::clone(&place.clock) as _;
    let limits = Limits { keep: HOUR, most: 10 };
    assert!(Citations::open(place.folder(), limits, Arc::clone(&clock)).is_err());
    fs::remove_file(place.folder()).expect("removed");

    let citations = place.open(10);
    citations.lock().execute_batch("ALTER TABLE records RENAME TO elsewhere").expect("renamed");
    let ticker = document("ticker:BTCUSDT", "1");
    let error = citations.freeze(&ticker).expect_err("no table");
    assert_eq!(error.kind(), tribune_core::ErrorKind::Unavailable);
    assert!(error.message().contains("cannot be stored"), "{error}");
    citations.lock().execute_batch("ALTER TABLE elsewhere RENAME TO records").expect("renamed");
    let token = citations.freeze(&ticker).expect("mended");
    assert!(found(&citations, &ticker, token));
}

#[test]
fn damaged_record_is_an_error() {
    let place = Scene::new();
    let citations = place.open(10);
    let ticker = document("ticker:BTCUSDT", "1");
    let token = citations.freeze(&ticker).expect("frozen").to_string();
    citations.lock().execute_batch("UPDATE records SET record = substr(record, 1, 30)").expect("damaged");
    assert!(citations.lookup(&ticker.id, &token).is_err());
}

#[test]
fn lines_of_the_first_version_are_imported() {
    let place = Scene::new();
    fs::create_dir_all(place.folder()).expect("made");
    let ticker = document("ticker:BTCUSDT", "1");
    let token = Token::new(Timestamp::from_millisecond(START - 5).expect("a moment"), 7);
    let line = format!("{{\"token\":\"{token}\",{}\n", &record(&ticker, None::<()>).expect("JSON")[1..]);
    let file = place.folder().join(format!("{token}.jsonl"));
    fs::write(&file, [line.as_bytes(), b"\xff torn\n", &line.as_bytes()[..40]].concat()).expect("written");
    let citations = place.open(10);
    assert!(found(&citations, &ticker, token) && !file.exists());
    assert_eq!(citations.len(), 1);
}

#[test]
fn too_long_document_is_refused() {
    let place = Scene::new();
    let citations = place.open(10);
    let mut ticker = document("ticker:BTCUSDT", "1");
    ticker.text = "x".repeat(MAX_RECORD_BYTES);
    let error = citations.freeze(&ticker).expect_err("too long");
    assert_eq!(error.kind(), tribune_core::ErrorKind::InvalidArgument);
    ticker.passages = vec![0..4];
    ticker.text = "☃".repeat(1_000);
    let token = citations.freeze(&ticker).expect("frozen");
    // A passage that is no piece of the text is not given back.
    let looked = looked(&citations, "ticker:BTCUSDT", &token.to_string());
    assert!(matches!(looked, Cited::Kept { document, .. } if document.passages.is_empty()));
}

#[test]
fn records_of_another_process_are_found() {
    let place = Scene::new();
    let server = place.open(100);
    let own = document("ticker:BTCUSDT", "1");
    let token = server.freeze(&own).expect("frozen");
    let shell = place.open(100);
    for price in ["2", "3"] {
        place.wait(Duration::from_secs(2));
        let cited = document("ticker:ETHUSDT", price);
        let by_shell = shell.freeze(&cited).expect("frozen");
        assert!(found(&server, &cited, by_shell), "{price}");
    }
    assert!(found(&server, &own, token));
}

#[tokio::test]
#[expect(clippy::await_holding_lock, reason = "the held lock stands for a disk that does not answer")]
async fn slow_disk_blocks_no_async_thread() {
    let place = Scene::new();
    let citations = Arc::new(place.open(100));
    let links = tribune_core::Links::new("http://tribune.test");
    let records = records::Records::new(Some(citations.clone()), links);
    let ticker = document("ticker:BTCUSDT", "1");
    let disk = citations.lock();
    let fingerprint = records::Fingerprint::new(&ticker.id, &ticker.text);
    let mut citing = Box::pin(records.cite(Pool::Users, fingerprint, || record(&ticker, None::<()>)));
    tokio::select! {
        biased;
        url = &mut citing => panic!("{url} was given out before it was written"),
        () = tokio::task::yield_now() => {}
    }
    drop(disk);
    let url = citing.await;
    let token = tribune_core::Links::cited_record(&url).expect("a record").to_owned();
    let disk = citations.lock();
    let mut looking = Box::pin(records.cited(&ticker.id, &token));
    tokio::select! {
        biased;
        looked = &mut looking => panic!("{looked:?} without the disk"),
        () = tokio::task::yield_now() => {}
    }
    drop(disk);
    let looked = looking.await.expect("readable");
    assert!(matches!(looked, Some(tribune_core::Cited::Kept { .. })), "{looked:?}");
}
