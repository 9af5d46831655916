//! Following with a model: what is embedded, and when.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, mpsc};

use tribune_embed::{EmbedError, Embedder, Role};

use super::*;
use crate::{Collection, Folder, Limits, Pool, Reading, Settings};

const TEST_TIMEOUT: Duration = Duration::from_secs(120);

/// Embeds as many batches as it is allowed, and counts the texts.
struct Gated {
    allowed: Mutex<usize>,
    changed: Condvar,
    embedded: AtomicU64,
}

impl Gated {
    fn allow(&self, batches: usize) {
        *self.allowed.lock().expect("the lock") = batches;
        self.changed.notify_all();
    }

    fn embedded(&self) -> u64 {
        self.embedded.load(Ordering::SeqCst)
    }
}

impl Embedder for Gated {
    fn name(&self) -> &str {
        "gated"
    }

    fn fingerprint(&self) -> &str {
        "0"
    }

    fn dimensions(&self) -> usize {
        2
    }

    fn embed(&self, _: Role, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let allowed = self.allowed.lock().expect("the lock");
        let mut allowed = self.changed.wait_while(allowed, |batches| *batches == 0).expect("the lock");
        *allowed -= 1;
        self.embedded.fetch_add(texts.len() as u64, Ordering::SeqCst);
        Ok(vec![vec![1.0, 0.0]; texts.len()])
    }
}

fn corpus(dir: &Path, batches: usize) -> (Arc<DocumentsSource>, Arc<Gated>) {
    let model = Arc::new(Gated { allowed: Mutex::new(batches), changed: Condvar::new(), embedded: AtomicU64::new(0) });
    let settings = Settings {
        name: "docs".to_owned(),
        title: "Docs".to_owned(),
        description: None,
        readers: tribune_core::Readers::default(),
        provider: Arc::new(Folder::new(dir.join("docs"), Reading::default(), Limits::default())),
        collection: Collection::default(),
        index_dir: dir.join("index"),
        embedder: Some(model.clone()),
    };
    (Arc::new(DocumentsSource::new(settings, Pool::start().expect("pool"))), model)
}

fn rows(count: usize) -> String {
    (0..count).map(|n| format!("{{\"id\":\"r{n}\",\"text\":\"row {n}\"}}\n")).collect()
}

/// The relevant events, as lines.
fn listen() -> (Listener, mpsc::Receiver<String>) {
    let (lines, events) = mpsc::channel();
    let listener = move |_: &str, event: Event<'_>| {
        let line = match event {
            Event::Indexed(report, _) => format!("indexed {}", report.documents),
            Event::Embedding(state) if state.done == 0 => format!("embedding {}", state.total),
            Event::Embedded(report) => format!("embedded {}", report.embedded),
            Event::Failed(problem) => problem.to_owned(),
            _ => return,
        };
        drop(lines.send(line));
    };
    (Arc::new(listener), events)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_update_embeds_only_what_is_new() {
    let dir = tempfile::tempdir().expect("a folder");
    fs::create_dir(dir.path().join("docs")).expect("made");
    fs::write(dir.path().join("docs/a.jsonl"), rows(20)).expect("written");
    let (source, model) = corpus(dir.path(), usize::MAX);
    let (listener, events) = listen();
    let cancel = CancellationToken::new();
    let following = tokio::spawn(follow(source.clone(), true, cancel.clone(), listener));
    let line = || events.recv_timeout(TEST_TIMEOUT).expect("an event");
    assert_eq!([line(), line(), line()], ["indexed 20", "embedding 20", "embedded 20"]);
    fs::write(dir.path().join("docs/b.md"), "one more").expect("written");
    assert_eq!([line(), line(), line()], ["indexed 21", "embedding 1", "embedded 1"]);
    fs::rename(dir.path().join("docs/a.jsonl"), dir.path().join("docs/c.jsonl")).expect("renamed");
    assert_eq!([line(), line(), line()], ["indexed 21", "embedding 0", "embedded 0"]);
    cancel.cancel();
    following.await.expect("ended in good order");
    assert_eq!(model.embedded.load(Ordering::SeqCst), 21);
    assert_eq!(source.seen_in_full().expect("published").coverage(), (21, 21));
}

#[tokio::test(flavor = "multi_thread")]
async fn change_during_embedding_embeds_nothing_twice() {
    let dir = tempfile::tempdir().expect("a folder");
    fs::create_dir(dir.path().join("docs")).expect("made");
    fs::write(dir.path().join("docs/a.jsonl"), rows(400)).expect("written");
    let (source, model) = corpus(dir.path(), 1);
    let (listener, events) = listen();
    let cancel = CancellationToken::new();
    let following = tokio::spawn(follow(source.clone(), true, cancel.clone(), listener));
    let line = || events.recv_timeout(TEST_TIMEOUT).expect("an event");
    assert_eq!([line(), line()], ["indexed 400", "embedding 400"]);
    while model.embedded() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    fs::write(dir.path().join("docs/b.md"), "one more").expect("written");
    assert_eq!(line(), "indexed 401", "it does not wait for the vectors");
    model.allow(usize::MAX);
    let begun = std::iter::repeat_with(line).find(|line| line.starts_with("embedding "));
    let begun = begun.expect("embedding goes on");
    let left: u64 = begun["embedding ".len()..].parse().expect("a number");
    assert!(left < 400, "{left}: it begins again instead of going on");
    assert_eq!(line(), format!("embedded {left}"));
    assert_eq!(model.embedded(), 401, "nothing twice");

    // A stop does not wait for all of them either.
    model.allow(0);
    fs::write(dir.path().join("docs/more.jsonl"), rows(4000).replace("row", "other").replace("\"r", "\"o"))
        .expect("written");
    assert_eq!([line(), line()], ["indexed 4401", "embedding 4000"]);
    cancel.cancel();
    model.allow(usize::MAX);
    following.await.expect("ended in good order");
    assert!(model.embedded() < 4401, "it made all vectors first");
}
