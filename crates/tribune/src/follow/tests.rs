//! Following with a model: what is embedded, and when.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;

use tribune_corpus::{Limits, Pool, Settings};
use tribune_embed::{EmbedError, Embedder, Role};

use super::*;

const SOON: Duration = Duration::from_secs(20);

/// Takes its time, and counts.
struct Slow {
    pause: Duration,
    embedded: AtomicU64,
}

impl Embedder for Slow {
    fn name(&self) -> &str {
        "slow"
    }

    fn fingerprint(&self) -> &str {
        "0"
    }

    fn dimensions(&self) -> usize {
        2
    }

    fn embed(&self, _: Role, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        std::thread::sleep(self.pause);
        self.embedded.fetch_add(texts.len() as u64, Ordering::SeqCst);
        Ok(vec![vec![1.0, 0.0]; texts.len()])
    }
}

fn corpus(dir: &Path, pause: Duration) -> (Arc<DocumentsSource>, Arc<Slow>) {
    let model = Arc::new(Slow {
        pause,
        embedded: AtomicU64::new(0),
    });
    let settings = Settings {
        name: "docs".to_owned(),
        title: "Docs".to_owned(),
        description: None,
        path: dir.join("docs"),
        index_dir: dir.join("index"),
        limits: Limits::default(),
        reading: tribune_corpus::Reading::default(),
        embedder: Some(model.clone()),
    };
    (
        Arc::new(DocumentsSource::new(settings, Pool::start().expect("pool"))),
        model,
    )
}

fn rows(count: usize) -> String {
    (0..count)
        .map(|n| format!("{{\"id\":\"r{n}\",\"text\":\"row {n}\"}}\n"))
        .collect()
}

/// The news that count here, as lines.
fn listen() -> (Tell, mpsc::Receiver<String>) {
    let (lines, news) = mpsc::channel();
    let tell = move |_: &str, news: News<'_>| {
        let line = match news {
            News::Indexed(report, _) => format!("indexed {}", report.documents),
            News::Embedding(state) if state.done == 0 => format!("embedding {}", state.total),
            News::Embedded(report) => format!("embedded {}", report.embedded),
            News::Failed(problem) | News::EmbeddingFailed(problem) | News::Unwatched(problem) => problem.to_owned(),
            _ => return,
        };
        drop(lines.send(line));
    };
    (Arc::new(tell), news)
}

#[tokio::test(flavor = "multi_thread")]
async fn vectors_come_behind_each_update_and_only_for_what_is_new() {
    let dir = tempfile::tempdir().expect("a folder");
    fs::create_dir(dir.path().join("docs")).expect("made");
    fs::write(dir.path().join("docs/a.jsonl"), rows(20)).expect("written");
    let (source, model) = corpus(dir.path(), Duration::ZERO);
    let (tell, news) = listen();
    let cancel = CancellationToken::new();
    let following = tokio::spawn(follow(source.clone(), true, cancel.clone(), tell));
    let line = || news.recv_timeout(SOON).expect("news");
    assert_eq!([line(), line(), line()], ["indexed 20", "embedding 20", "embedded 20"]);
    fs::write(dir.path().join("docs/b.md"), "one more").expect("written");
    assert_eq!([line(), line(), line()], ["indexed 21", "embedding 1", "embedded 1"]);
    fs::rename(dir.path().join("docs/a.jsonl"), dir.path().join("docs/c.jsonl")).expect("renamed");
    assert_eq!([line(), line(), line()], ["indexed 21", "embedding 0", "embedded 0"]);
    cancel.cancel();
    following.await.expect("ended in good order");
    assert_eq!(model.embedded.load(Ordering::SeqCst), 21);
    assert_eq!(source.published().expect("published").coverage(), (21, 21));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_while_vectors_are_made_is_served_at_once_and_nothing_is_made_twice() {
    let dir = tempfile::tempdir().expect("a folder");
    fs::create_dir(dir.path().join("docs")).expect("made");
    fs::write(dir.path().join("docs/a.jsonl"), rows(400)).expect("written");
    let (source, model) = corpus(dir.path(), Duration::from_millis(100));
    let (tell, news) = listen();
    let cancel = CancellationToken::new();
    let following = tokio::spawn(follow(source.clone(), true, cancel.clone(), tell));
    let line = || news.recv_timeout(SOON).expect("news");
    assert_eq!([line(), line()], ["indexed 400", "embedding 400"]);
    fs::write(dir.path().join("docs/b.md"), "one more").expect("written");
    assert_eq!(line(), "indexed 401", "it does not wait for the vectors");
    let left: u64 = line()
        .strip_prefix("embedding ")
        .and_then(|n| n.parse().ok())
        .expect("a number");
    assert!(left > 1 && left < 400, "{left}: goes on where it was");
    assert_eq!(line(), format!("embedded {left}"));
    assert_eq!(model.embedded.load(Ordering::SeqCst), 401, "nothing twice");

    // A stop does not wait for all of them either.
    fs::write(
        dir.path().join("docs/more.jsonl"),
        rows(4000).replace("row", "other").replace("\"r", "\"o"),
    )
    .expect("written");
    assert_eq!([line(), line()], ["indexed 4401", "embedding 4000"]);
    let stopping = Instant::now();
    cancel.cancel();
    following.await.expect("ended in good order");
    assert!(stopping.elapsed() < Duration::from_secs(5), "{:?}", stopping.elapsed());
}
