//! Who may see a document: rules of folders, front matter, rows, and what they do to duplicates and dates.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use tokio_util::sync::CancellationToken;
use tribune_core::{CallContext, DocumentId, Principal, Query, Source, UserId};
use tribune_corpus::{
    Collection, DocumentsSource, Duplicates, FieldMap, Folder, IndexReport, Limits, Pool, Provider, Reading, Settings,
    Timeline,
};
use tribune_page::View;

struct Corpus {
    dir: tempfile::TempDir,
    source: DocumentsSource,
}

fn corpus(files: &[(&str, &str)]) -> Corpus {
    corpus_as(files, "docs", Collection::default(), Reading::default())
}

fn corpus_as(files: &[(&str, &str)], path: &str, collection: Collection, reading: Reading) -> Corpus {
    let dir = tempfile::tempdir().expect("a folder");
    for (name, content) in files {
        write(dir.path(), name, content);
    }
    let settings = Settings {
        name: "docs".to_owned(),
        title: "Docs".to_owned(),
        description: None,
        readers: tribune_core::Readers::default(),
        provider: Arc::new(Folder::new(dir.path().join(path), reading, Limits::default())),
        collection,
        index_dir: dir.path().join("index"),
        embedder: None,
    };
    Corpus { dir, source: DocumentsSource::new(settings, Pool::start().expect("pool")) }
}

fn write(root: &Path, name: &str, content: &str) {
    let path = root.join("docs").join(name);
    fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
    fs::write(path, content).expect("written");
}

/// A user in the group `board`, or a stranger without a name.
fn caller(name: &str) -> CallContext {
    let principal = match name {
        "" => Principal::Anonymous,
        "local" => Principal::Local,
        name => Principal::User(UserId::new(name).expect("a name")),
    };
    let groups: Vec<String> = if name == "bea" { vec!["board".to_owned()] } else { Vec::new() };
    let deadline = Instant::now() + std::time::Duration::from_secs(600);
    CallContext { groups: groups.into(), ..CallContext::new(principal, deadline) }
}

impl Corpus {
    fn update(&self) -> IndexReport {
        self.source.update(&CancellationToken::new(), &|_| {}).expect("indexed")
    }

    /// The keys of what a caller finds and can fetch.
    async fn seen(&self, name: &str) -> Vec<String> {
        let cx = caller(name);
        let query = Query { text: "turnip".to_owned(), limit: 50 };
        let hits = self.source.search(&query, &cx).await.expect("searched");
        let mut keys: Vec<String> = hits.iter().map(|hit| hit.id.key().to_owned()).collect();
        for key in &keys {
            let id = DocumentId::new("docs", key).expect("an id");
            assert!(self.source.fetch(&id, &cx).await.expect("fetched").is_some(), "{key}");
        }
        keys.sort();
        keys
    }
}

#[test]
fn hidden_changes_leave_the_shown_time() {
    let corpus = corpus(&[
        ("open.md", "turnip"),
        ("board/.tribune.toml", "readers = [\"group:board\"]"),
        ("board/plan.md", "turnip"),
        (
            "rows.jsonl",
            "{\"id\":\"1\",\"text\":\"turnip\",\"readers\":\"user:ann\"}\n{\"id\":\"2\",\"text\":\"row\"}\n",
        ),
    ]);
    corpus.update();
    let first = corpus.source.updated().expect("a time");
    for (name, content) in [
        ("board/plan.md", "turnip and zanzibar"),
        ("board/new.md", "turnip"),
        (
            "rows.jsonl",
            "{\"id\":\"1\",\"text\":\"zanzibar\",\"readers\":\"user:ann\"}\n{\"id\":\"2\",\"text\":\"row\"}\n",
        ),
    ] {
        write(corpus.dir.path(), name, content);
        assert!(corpus.update().committed, "{name}");
        assert_eq!(corpus.source.updated(), Some(first), "{name}");
    }
    write(corpus.dir.path(), "open.md", "turnips");
    corpus.update();
    assert!(corpus.source.updated().expect("a time") > first);
}

#[tokio::test]
async fn each_place_narrows() {
    let corpus = corpus(&[
        ("a.md", "turnip"),
        ("board/.tribune.toml", "readers = \"group:board, user:ann\""),
        ("board/b.md", "turnip"),
        ("board/own.md", "---\nreaders: [\"user:bea\", \"user:cid\"]\n---\nturnip"),
        ("board/deep/.tribune.toml", "readers = [\"user:ann\", \"user:cid\"]"),
        ("board/deep/c.md", "turnip"),
        ("board/deep/deeper/d.md", "turnip"),
    ]);
    assert_eq!(corpus.update().faults_in_all, 0);
    let deep = ["board/deep/c.md", "board/deep/deeper/d.md"];
    assert_eq!(corpus.seen("").await, ["a.md"]);
    assert_eq!(corpus.seen("cid").await, ["a.md"], "cid is not on the board");
    assert_eq!(corpus.seen("bea").await, ["a.md", "board/b.md", "board/own.md"]);
    assert_eq!(corpus.seen("ann").await, ["a.md", "board/b.md", deep[0], deep[1]]);
    assert_eq!(corpus.seen("local").await.len(), 5);
    let id = DocumentId::new("docs", "board/own.md").expect("an id");
    let document = corpus.source.fetch(&id, &caller("bea")).await.expect("fetched").expect("held");
    assert!(!document.metadata.contains_key("readers"), "{:?}", document.metadata);

    write(corpus.dir.path(), "board/.tribune.toml", "readers = [\"user:cid\"]");
    assert_eq!(corpus.update().files_read, 4, "only what is below the changed rules");
    assert_eq!(corpus.seen("cid").await, ["a.md", "board/b.md", deep[0], deep[1], "board/own.md"]);
    assert_eq!(corpus.seen("ann").await, ["a.md"]);
}

#[tokio::test]
async fn unreadable_lists_close_and_are_reported() {
    let corpus = corpus(&[
        ("a.md", "---\nreaders: []\n---\nturnip"),
        ("b.md", "---\nreaders:\n---\nturnip"),
        ("c.md", "---\nreaders: 7\n---\nturnip"),
        ("d.md", "---\nReaders: [ann]\n---\nturnip"),
        ("e.md", "---\ntitle: \"unclosed\nreaders: [\"user:bea\"]\n---\nturnip"),
        ("f.md", "---\nreaders: [\"user:bea\"]\n\nturnip without an end"),
        ("g.md", "---\ntitle: \"a typo\nother: x\n---\nturnip for all readers"),
        ("h.csv", "text,readers\nturnip,\nturnip,user:bea\nturnip\n\"turnip\",\"user:cid, user:bea\"\nturnip,bea\n"),
        ("i.jsonl", "{\"text\":\"turnip\",\"readers\":null}\n{\"text\":\"turnip\",\"readers\":[\"user:bea\"]}\n"),
        ("j/.tribune.toml", "reader = [\"user:bea\"]"),
        ("j/k.md", "turnip"),
        ("l/.tribune.toml", "readers = [\"bea\"]"),
        ("l/deep/m.md", "turnip"),
        ("n/.tribune.toml/x", "a folder"),
        ("n/o.md", "turnip"),
    ]);
    let report = corpus.update();
    let faults: Vec<String> = report.faults.iter().map(ToString::to_string).collect();
    for file in [
        "b.md",
        "c.md",
        "d.md",
        "e.md",
        "f.md",
        "h.csv:4",
        "h.csv:6",
        "i.jsonl:1",
        "j/.tribune.toml",
        "l/.tribune.toml",
        "n/.tribune.toml",
    ] {
        assert!(
            faults.iter().any(|fault| fault.starts_with(file) && fault.contains("operator")),
            "{file}: {faults:#?}"
        );
    }
    assert_eq!(corpus.seen("").await, ["g.md", "h.csv#2"]);
    assert_eq!(corpus.seen("bea").await, ["g.md", "h.csv#2", "h.csv#3", "h.csv#5", "i.jsonl#2"]);
    assert_eq!(corpus.seen("local").await.len(), 17);
    let folder = Folder::new(corpus.dir.path().join("docs"), Reading::default(), Limits::default());
    assert_eq!(folder.mistakes().len(), 3);
}

#[tokio::test]
async fn single_file_obeys_rules_beside_it() {
    let files = [(".tribune.toml", "readers = [\"user:bea\"]"), ("one.md", "turnip")];
    let corpus = corpus_as(&files, "docs/one.md", Collection::default(), Reading::default());
    corpus.update();
    assert_eq!((corpus.seen("").await.len(), corpus.seen("bea").await.len()), (0, 1));
}

#[tokio::test]
async fn mapped_field_names_readers() {
    let map: FieldMap = [("readers".to_owned(), "acl".to_owned())].into_iter().collect();
    let reading = Reading { fields: map, ..Reading::default() };
    let files =
        [("a.csv", "text,acl\nturnip,user:bea\nturnip\n"), ("b.md", "---\nx: \"y\nacl: [user:bea]\n---\nturnip")];
    let corpus = corpus_as(&files, "docs", Collection::default(), reading);
    corpus.update();
    assert_eq!(corpus.seen("").await, Vec::<String>::new());
    assert_eq!(corpus.seen("bea").await, ["a.csv#2"]);
}

#[tokio::test]
async fn duplicate_for_other_readers_is_indexed() {
    let files = [
        ("a.md", "---\nreaders: [\"user:bea\"]\n---\nturnip"),
        ("b.md", "turnip"),
        ("c.md", "turnip"),
        ("d.md", "---\nreaders: \"user:bea\"\n---\nturnip"),
    ];
    let collection = Collection { duplicates: Duplicates::Skip, ..Collection::default() };
    let corpus = corpus_as(&files, "docs", collection, Reading::default());
    assert_eq!(corpus.update().documents, 2);
    assert_eq!(corpus.seen("").await, ["b.md"]);
    assert_eq!(corpus.seen("bea").await, ["a.md", "b.md"]);
    write(corpus.dir.path(), "e.md", "turnip");
    assert_eq!(corpus.update().documents, 2, "also against the last version");
}

#[tokio::test]
async fn pages_pass_over_unseen_documents() {
    let dated = |day: u32, readers: &str| {
        format!("{{\"id\":\"d{day}\",\"text\":\"turnip {day}\",\"date\":\"2024-05-0{day}\"{readers}}}\n")
    };
    let hidden = ",\"readers\":\"user:bea\"";
    let rows = [dated(1, ""), dated(2, hidden), dated(3, hidden), dated(4, ""), dated(5, hidden)].concat();
    let files = [("rows.jsonl", rows.as_str())];
    for timeline in [None, Some(Timeline::default())] {
        let corpus = corpus_as(&files, "docs", Collection { timeline, ..Collection::default() }, Reading::default());
        corpus.update();
        for (name, beside) in [("", ("d1", None)), ("bea", ("d3", Some("d5")))] {
            let id = DocumentId::new("docs", "d4").expect("an id");
            let document = corpus.source.fetch(&id, &caller(name)).await.expect("fetched").expect("held");
            let view = corpus.source.view(&document, None, &caller(name)).await.expect("viewed");
            let Some(View::Reading(reading)) = view else { panic!("a reading") };
            let key = |other: Option<tribune_page::Neighbour>| other.map(|other| other.id.replace("docs:", ""));
            assert_eq!(key(reading.previous).as_deref(), Some(beside.0), "{name} {timeline:?}");
            assert_eq!(key(reading.next).as_deref(), beside.1, "{name} {timeline:?}");
        }
        let facts = corpus.source.facts();
        let dates = facts.dates.map(|(first, last)| (first.to_string(), last.to_string()));
        assert_eq!((facts.documents, dates), (Some(2), Some(("2024-05-01".to_owned(), "2024-05-04".to_owned()))));
    }
}
