//! Vectors beside keyword search: made once, never lost, and never in the way.

#![allow(clippy::disallowed_methods, reason = "tests use the machine's clock")]

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use tribune_core::{CallContext, Principal, Query, Source, SourceStatus};
use tribune_corpus::embedding::EmbedProgress;
use tribune_corpus::{Collection, DocumentsSource, EmbedReport, Folder, IndexError, Limits, Pool, Reading, Settings};
use tribune_embed::{EmbedError, Embedder, Role};

const DIMENSIONS: usize = 1024;
const BATCH: usize = 4;

/// Counts words, and knows which of them mean the same.
struct Toy {
    fingerprint: String,
    calls: AtomicUsize,
    passages: Mutex<HashMap<String, usize>>,
    /// Stops the run after so many calls.
    stop: Mutex<Option<(usize, CancellationToken)>>,
}

impl Toy {
    fn new(fingerprint: &str) -> Arc<Self> {
        Arc::new(Self {
            fingerprint: fingerprint.to_owned(),
            calls: AtomicUsize::new(0),
            passages: Mutex::default(),
            stop: Mutex::default(),
        })
    }

    /// How many passages were embedded, those embedded again counted again.
    fn embedded(&self) -> usize {
        self.passages.lock().expect("lock").values().sum()
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    fn vector(text: &str) -> Vec<f32> {
        let mut vector = vec![0.0f32; DIMENSIONS];
        for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
            let word = word.to_lowercase();
            let meaning = match word.as_str() {
                "automobile" | "car" | "vehicle" => "car",
                "repaired" | "mended" | "fixed" => "mend",
                other => other,
            };
            let hash = meaning
                .bytes()
                .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
            vector[(hash >> 16) as usize % DIMENSIONS] += 1.0;
        }
        let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        if length > 0.0 {
            vector.iter_mut().for_each(|x| *x /= length);
        }
        vector
    }
}

impl Embedder for Toy {
    fn name(&self) -> &str {
        "toy"
    }

    fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    fn dimensions(&self) -> usize {
        DIMENSIONS
    }

    fn batch(&self) -> usize {
        BATCH
    }

    fn embed(&self, role: Role, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        if matches!(role, Role::Passage) {
            assert!(texts.len() <= BATCH, "{} texts in one batch", texts.len());
            let calls = 1 + self.calls.fetch_add(1, Ordering::SeqCst);
            assert!(!texts.iter().any(|text| text.contains("panic now")), "on purpose");
            let mut passages = self.passages.lock().expect("lock");
            for text in texts {
                *passages.entry((*text).to_owned()).or_default() += 1;
            }
            if let Some((after, cancel)) = &*self.stop.lock().expect("lock")
                && calls >= *after
            {
                cancel.cancel();
            }
        }
        Ok(texts.iter().map(|text| Self::vector(text)).collect())
    }
}

struct Corpus {
    dir: tempfile::TempDir,
}

impl Corpus {
    fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().expect("dir");
        let corpus = Self { dir };
        for (name, content) in files {
            corpus.write(name, content);
        }
        corpus
    }

    /// As many documents as `count`, each of one passage.
    fn of_rows(count: usize) -> Self {
        Self::new(&[("rows.jsonl", &rows(count, "plain"))])
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("docs").join(name)
    }

    fn write(&self, name: &str, content: &str) {
        fs::create_dir_all(self.path("")).expect("folder");
        fs::write(self.path(name), content).expect("write");
    }

    fn source(&self, model: &Arc<Toy>) -> DocumentsSource {
        let settings = Settings {
            name: "docs".to_owned(),
            title: "Docs".to_owned(),
            description: None,
            readers: tribune_core::Readers::default(),
            provider: Arc::new(Folder::new(self.path(""), Reading::default(), Limits::default())),
            collection: Collection::default(),
            index_dir: self.dir.path().join("index"),
            embedder: Some(model.clone()),
        };
        DocumentsSource::new(settings, Pool::start().expect("pool"))
    }

    fn store(&self, model: &Toy) -> PathBuf {
        self.dir.path().join("index").join(format!("vectors-{}", model.fingerprint))
    }
}

fn rows(count: usize, word: &str) -> String {
    (0..count).map(|n| format!("{{\"id\":\"r{n}\",\"text\":\"{word} row number{n}\"}}\n")).collect()
}

fn update(source: &DocumentsSource) {
    source.update(&CancellationToken::new(), &|_| {}).expect("indexed");
}

fn embed(source: &DocumentsSource) -> EmbedReport {
    let report = source.embed(&CancellationToken::new(), &|_| {}).expect("embedded");
    report.expect("a model and an index")
}

async fn ids(source: &DocumentsSource, text: &str) -> Vec<String> {
    let query = Query { text: text.to_owned(), limit: 10 };
    let context = CallContext::new(Principal::Local, Instant::now() + Duration::from_secs(30));
    let hits = source.search(&query, &context).await.expect("searched");
    hits.iter().map(|hit| hit.id.to_string()).collect()
}

#[tokio::test]
async fn keywords_serve_until_vectors_find_a_paraphrase() {
    let model = Toy::new("a");
    let corpus = Corpus::of_rows(20);
    corpus.write("ada.md", "The automobile was mended by Ada.");
    let source = corpus.source(&model);
    assert!(source.embed(&CancellationToken::new(), &|_| {}).expect("no index").is_none());
    update(&source);
    assert_eq!(source.status(), SourceStatus::Ready);
    assert_eq!(ids(&source, "automobile").await, ["docs:ada.md"], "full text serves at once");
    assert!(ids(&source, "who repaired a car").await.is_empty(), "and knows words alone");

    let generation = source.generation();
    let seen = Mutex::new(Vec::new());
    let progress = |state: EmbedProgress| seen.lock().expect("lock").push(state);
    let report = source.embed(&CancellationToken::new(), &progress).expect("embedded").expect("a model");
    assert_eq!((report.embedded, report.passages, report.model.as_str()), (21, 21, "toy"));
    assert_eq!((model.embedded(), model.calls()), (21, 21usize.div_ceil(BATCH)));
    let seen = seen.into_inner().expect("lock");
    assert_eq!((seen[0].done, seen[0].total), (0, 21), "the start is reported");
    assert!(seen.windows(2).all(|pair| pair[0].done < pair[1].done) && seen.last().expect("some").done == 21);
    assert!(source.embedding().is_none(), "nothing is under way any more");
    assert_eq!(ids(&source, "who repaired a car").await[0], "docs:ada.md");
    assert_eq!(source.generation(), generation, "vectors are no other state of the index");
    assert_eq!(source.seen_in_full().expect("published").coverage(), (21, 21));

    let other = corpus.source(&model);
    assert!(other.refresh().expect("opened"));
    assert_eq!(ids(&other, "who repaired a car").await[0], "docs:ada.md", "for every process");
    assert_eq!(embed(&other).embedded, 0);
}

#[tokio::test]
async fn a_stopped_run_goes_on_where_it_was() {
    let model = Toy::new("a");
    let corpus = Corpus::of_rows(200);
    let source = corpus.source(&model);
    update(&source);
    let cancel = CancellationToken::new();
    *model.stop.lock().expect("lock") = Some((10, cancel.clone()));
    let stopped = source.embed(&cancel, &|_| {});
    assert!(matches!(stopped, Err(IndexError::Cancelled(_))), "{stopped:?}");
    let before = model.embedded();
    assert!((10 * BATCH..200).contains(&before), "{before}");
    assert_eq!(source.status(), SourceStatus::Ready, "stopping is no failure");
    *model.stop.lock().expect("lock") = None;

    let again = corpus.source(&model);
    again.refresh().expect("opened");
    let report = embed(&again);
    assert_eq!(report.embedded as usize, 200 - before);
    assert_eq!(model.embedded(), 200, "nothing twice");
}

#[tokio::test]
async fn only_one_process_embeds_at_a_time() {
    let model = Toy::new("a");
    let corpus = Corpus::of_rows(8);
    let (one, other) = (corpus.source(&model), corpus.source(&model));
    update(&one);
    other.refresh().expect("opened");
    let busy = Mutex::new(None);
    one.embed(&CancellationToken::new(), &|state| {
        if state.done == 0 {
            *busy.lock().expect("lock") = Some(other.embed(&CancellationToken::new(), &|_| {}));
        }
    })
    .expect("embedded");
    let busy = busy.into_inner().expect("lock").expect("tried");
    assert!(matches!(busy, Err(IndexError::Busy(_))), "{busy:?}");
    assert_eq!((model.embedded(), other.status()), (8, SourceStatus::Ready));
}

#[tokio::test]
async fn rows_after_the_last_commit_do_not_count() {
    let model = Toy::new("a");
    let corpus = Corpus::of_rows(30);
    let source = corpus.source(&model);
    update(&source);
    embed(&source);
    let store = corpus.store(&model);
    for (file, left) in [("1.keys", vec![7; 21]), ("1.rows", vec![9; 1000])] {
        use std::io::Write;
        let mut file = fs::OpenOptions::new().append(true).open(store.join(file)).expect("a file");
        file.write_all(&left).expect("written");
    }
    fs::write(store.join("commit.json.new"), "{\"half\":").expect("written");
    corpus.write("more.md", "one more");
    let source = corpus.source(&model);
    update(&source);
    assert_eq!(embed(&source).embedded, 1);
    assert_eq!(source.seen_in_full().expect("published").coverage(), (31, 31));
    assert_eq!(ids(&source, "one more").await[0], "docs:more.md");
}

/// Servers that still use the old one are not hurt.
#[tokio::test]
async fn a_damaged_store_is_made_again() {
    type Damage = (&'static str, fn(&Path));
    let damages: [Damage; 4] = [
        ("no commit", |store| {
            fs::write(store.join("commit.json"), "garbage").expect("written");
        }),
        ("short rows", |store| {
            let rows = newest(store, "rows");
            fs::copy(&rows, store.join("copy")).expect("copied");
            fs::remove_file(&rows).expect("removed");
            fs::write(rows, [1; 10]).expect("written");
        }),
        ("no keys", |store| {
            fs::remove_file(newest(store, "keys")).expect("removed");
        }),
        ("no commit, again", |store| {
            fs::write(store.join("commit.json"), "{}").expect("written");
        }),
    ];
    let model = Toy::new("a");
    let corpus = Corpus::of_rows(500);
    corpus.write("ada.md", "The automobile was mended by Ada.");
    let serving = corpus.source(&model);
    update(&serving);
    embed(&serving);
    for (damage, break_it) in damages {
        break_it(&corpus.store(&model));
        let source = corpus.source(&model);
        source.refresh().expect("opened");
        let words_alone = ids(&source, "automobile").await;
        assert_eq!(words_alone[0], "docs:ada.md", "{damage}: full text serves");
        // While the store is being made again, another process serves from the files of the old one.
        let old = serving.seen_in_full().expect("published");
        let ask_old = |state: EmbedProgress| {
            if !state.done.is_multiple_of(100) {
                return;
            }
            let hits = old.search(&format!("fixed vehicle {}", state.done), 5).expect("searched");
            assert_eq!(hits[0].id.key(), "ada.md", "{damage}: the old state");
        };
        let report = source.embed(&CancellationToken::new(), &ask_old).expect("embedded").expect("a model");
        assert_eq!(report.embedded, 501, "{damage}");
        assert_eq!(ids(&source, "who repaired a car").await[0], "docs:ada.md", "{damage}");
        serving.refresh().expect("switched");
        assert_eq!(ids(&serving, "a fixed vehicle").await[0], "docs:ada.md", "{damage}: the new state");
    }
}

fn newest(store: &Path, ending: &str) -> PathBuf {
    let entries = fs::read_dir(store).expect("a store").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|e| e == ending)).collect();
    files.sort();
    files.pop().expect("a file")
}

#[tokio::test]
async fn vectors_of_two_models_are_not_mixed() {
    let (old, new) = (Toy::new("old"), Toy::new("new"));
    let corpus = Corpus::of_rows(12);
    corpus.write("ada.md", "The automobile was mended by Ada.");
    let source = corpus.source(&old);
    update(&source);
    embed(&source);
    let source = corpus.source(&new);
    source.refresh().expect("opened");
    assert!(ids(&source, "who repaired a car").await.is_empty(), "nothing of the old model's");
    assert_eq!(embed(&source).embedded, 13, "its own, all of them");
    assert_eq!(ids(&source, "who repaired a car").await[0], "docs:ada.md");
    assert!(corpus.store(&old).exists(), "the old ones stay: a server may still use them");

    // A store under the right name by the wrong model.
    let commit = corpus.store(&new).join("commit.json");
    let forged = fs::read_to_string(&commit).expect("read").replace("\"new\"", "\"other\"");
    fs::write(commit, forged).expect("written");
    let source = corpus.source(&new);
    source.refresh().expect("opened");
    assert!(ids(&source, "who repaired a car").await.is_empty());
    assert_eq!(embed(&source).embedded, 13);
}

#[tokio::test]
async fn only_changes_are_embedded() {
    let model = Toy::new("a");
    let paragraphs: Vec<String> = (0..12)
        .map(|n| format!("Paragraph {n} says this. {}", format!("Filler of part {n} goes on. ").repeat(60)))
        .collect();
    let corpus = Corpus::new(&[("long.txt", &paragraphs.join("\n\n")), ("other.md", "another file")]);
    let source = corpus.source(&model);
    update(&source);
    let all = embed(&source).embedded;
    assert!(all > 10, "{all} passages");

    let last = format!("{}\n\nA new last sentence.", paragraphs.join("\n\n"));
    corpus.write("long.txt", &last);
    update(&source);
    let changed = embed(&source).embedded;
    assert!((1..=2).contains(&changed), "{changed} of {all}");

    fs::create_dir(corpus.path("moved")).expect("folder");
    // A text file's title is its first line or its name; rows carry their own.
    corpus.write("rows.jsonl", &rows(40, "plain"));
    update(&source);
    assert_eq!(embed(&source).embedded, 40);
    fs::rename(corpus.path("rows.jsonl"), corpus.path("moved/renamed.jsonl")).expect("renamed");
    fs::rename(corpus.path("long.txt"), corpus.path("moved/long.txt")).expect("renamed");
    update(&source);
    let before = model.calls();
    assert_eq!((embed(&source).embedded, model.calls()), (0, before), "a rename embeds nothing");
    let (passages, covered) = source.seen_in_full().expect("published").coverage();
    assert_eq!(passages, covered);

    corpus.write("rows.jsonl", &rows(41, "plain"));
    fs::remove_file(corpus.path("moved/renamed.jsonl")).expect("removed");
    update(&source);
    assert_eq!(embed(&source).embedded, 1, "one row more");
}

#[tokio::test]
async fn failing_model_costs_only_the_vectors() {
    let model = Toy::new("a");
    let corpus = Corpus::of_rows(10);
    corpus.write("bad.md", "panic now, please");
    let source = corpus.source(&model);
    update(&source);
    let failed = source.embed(&CancellationToken::new(), &|_| {});
    assert!(matches!(failed, Err(IndexError::Failed { .. })), "{failed:?}");
    assert!(matches!(source.status(), SourceStatus::Degraded(_)));
    assert_eq!(ids(&source, "number7").await, ["docs:r7"]);
    fs::remove_file(corpus.path("bad.md")).expect("removed");
    update(&source);
    embed(&source);
    assert_eq!(source.status(), SourceStatus::Ready, "recovered");
}

/// An endpoint that does not answer queries until it is released.
struct Hanging {
    asked: tokio::sync::mpsc::UnboundedSender<()>,
    release: Mutex<std::sync::mpsc::Receiver<()>>,
}

impl Embedder for Hanging {
    fn name(&self) -> &str {
        "hanging"
    }

    fn fingerprint(&self) -> &str {
        "0"
    }

    fn dimensions(&self) -> usize {
        2
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn embed(&self, role: Role, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        if role == Role::Query {
            self.asked.send(()).expect("the test listens");
            let _ = self.release.lock().expect("lock").recv();
        }
        Ok(vec![vec![1.0, 0.0]; texts.len()])
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hanging_endpoint_does_not_delay_other_searches() {
    let corpus = Corpus::of_rows(3);
    let (asked, mut asking) = tokio::sync::mpsc::unbounded_channel();
    let (release, released) = std::sync::mpsc::channel();
    let model = Hanging { asked, release: Mutex::new(released) };
    let pool = Pool::start().expect("pool");
    let source = |name: &str, embedder: Option<Arc<dyn Embedder>>| {
        let settings = Settings {
            name: name.to_owned(),
            title: name.to_owned(),
            description: None,
            readers: tribune_core::Readers::default(),
            provider: Arc::new(Folder::new(corpus.path(""), Reading::default(), Limits::default())),
            collection: Collection::default(),
            index_dir: corpus.dir.path().join(name),
            embedder,
        };
        let source = Arc::new(DocumentsSource::new(settings, pool.clone()));
        update(&source);
        source
    };
    let remote = source("remote", Some(Arc::new(model)));
    embed(&remote);
    let local = source("local", None);
    let searches = 2 + std::thread::available_parallelism().map_or(2, usize::from);
    let waiting: Vec<_> = (0..searches)
        .map(|n| {
            let remote = remote.clone();
            tokio::spawn(async move { ids(&remote, &format!("row number{n}")).await })
        })
        .collect();
    for _ in 0..searches {
        let all_asked = tokio::time::timeout(Duration::from_secs(60), asking.recv()).await;
        assert!(all_asked.is_ok(), "the pool's threads wait for the endpoint");
    }
    // Fetching goes through the pool.
    let context = CallContext::new(Principal::Local, Instant::now() + Duration::from_secs(600));
    let id = tribune_core::DocumentId::new("local", "r1").expect("an id");
    assert!(local.fetch(&id, &context).await.expect("fetched").is_some());
    drop(release);
    for search in waiting {
        assert!(!search.await.expect("ended").is_empty());
    }
}
