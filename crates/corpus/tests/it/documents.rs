//! The corpus as its users see it: a folder in, answers out.

#![allow(clippy::disallowed_methods, reason = "tests use the machine's clock")]

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use tokio_util::sync::CancellationToken;
use tribune_core::{CallContext, DocumentId, Principal, Query, Source, SourceStatus};
use tribune_corpus::{Collection, DocumentsSource, Folder, IndexReport, Limits, Pool, Reading, Settings};
use tribune_page::{Neighbour, Reading as Shown, TextFormat, View};

struct Corpus {
    dir: tempfile::TempDir,
    source: DocumentsSource,
}

impl Corpus {
    fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().expect("dir");
        for (name, content) in files {
            write(dir.path(), name, content);
        }
        let source = source(dir.path());
        Self { dir, source }
    }

    fn write(&self, name: &str, content: &str) {
        write(self.dir.path(), name, content);
    }

    fn update(&self) -> IndexReport {
        self.source.update(&CancellationToken::new(), &|_| {}).expect("indexed")
    }

    async fn search(&self, text: &str) -> std::sync::Arc<[tribune_core::Hit]> {
        let query = Query { text: text.to_owned(), limit: 10 };
        self.source.search(&query, &context()).await.expect("searched")
    }

    async fn ids(&self, text: &str) -> Vec<String> {
        self.search(text).await.iter().map(|hit| hit.id.to_string()).collect()
    }

    async fn fetch(&self, id: &str) -> Option<tribune_core::Document> {
        let id = DocumentId::parse(id).expect("an id");
        self.source.fetch(&id, &context()).await.expect("fetched")
    }
}

fn write(root: &Path, name: &str, content: &str) {
    let path = root.join("docs").join(name);
    fs::create_dir_all(path.parent().expect("parent")).expect("folder");
    fs::write(path, content).expect("write");
}

fn source(root: &Path) -> DocumentsSource {
    let settings = Settings {
        name: "docs".to_owned(),
        title: "Docs".to_owned(),
        description: None,
        readers: tribune_core::Readers::default(),
        provider: Arc::new(Folder::new(root.join("docs"), Reading::default(), Limits::default())),
        collection: Collection::default(),
        index_dir: root.join("index"),
        embedder: None,
    };
    DocumentsSource::new(settings, Pool::start().expect("pool"))
}

fn context() -> CallContext {
    CallContext::new(Principal::Local, Instant::now() + Duration::from_secs(30))
}

#[tokio::test]
async fn every_format_is_searched_and_fetched() {
    let corpus = Corpus::new(&[
        ("a.md", "---\ntitle: Runner beans\ndate: 2024-05-28\nplot: 7\n---\nSow them in May.\n"),
        ("deep/b.txt", "Compost heaps\n\nTurn them weekly."),
        (
            "rows.jsonl",
            "{\"id\":\"x-coredata://A/ICNote/p12\",\"title\":\"Slugs\",\"text\":\"Beer traps catch slugs.\",\"url\":\"https://example.org/slugs\"}\n",
        ),
        ("more.csv", "id,title,text,season\nc 1%,Pruning,Prune apple trees in winter.,winter\n"),
        ("ignored.png", "not a document"),
    ]);
    let report = corpus.update();
    assert_eq!((report.files, report.documents, report.faults_in_all), (4, 4, 0));

    assert_eq!(corpus.ids("sowing beans").await, ["docs:a.md"]);
    assert_eq!(corpus.ids("compost").await, ["docs:deep/b.txt"]);
    assert_eq!(corpus.ids("slug").await, ["docs:x-coredata://A/ICNote/p12"]);
    assert_eq!(corpus.ids("season:winter").await, ["docs:c 1%"]);
    assert_eq!(corpus.ids("plot:7").await, ["docs:a.md"]);
    assert_eq!(corpus.ids("title:\"runner beans\"").await, ["docs:a.md"]);
    assert_eq!(corpus.ids("\"catch slugs\"").await, ["docs:x-coredata://A/ICNote/p12"]);
    assert!(corpus.ids("\"slugs catch\"").await.is_empty());
    assert!(corpus.ids("zeppelin").await.is_empty());

    let document = corpus.fetch("docs:a.md").await.expect("held");
    assert_eq!((document.title.as_str(), document.text.as_str()), ("Runner beans", "Sow them in May.\n"));
    assert_eq!(document.metadata["plot"], 7);
    assert_eq!(document.as_of.expect("dated").to_string(), "2024-05-28T00:00:00Z");
    let row = corpus.fetch("docs:x-coredata://A/ICNote/p12").await.expect("held");
    assert_eq!(row.url.as_deref(), Some("https://example.org/slugs"));
    assert!(corpus.fetch("other:a.md").await.is_none(), "not mine");
    assert!(corpus.fetch("docs:nothing").await.is_none());

    let facts = corpus.source.facts();
    assert_eq!(facts.documents, Some(4));
    assert_eq!(facts.dates.expect("dates").0.to_string(), "2024-05-28");
}

#[tokio::test]
async fn long_document_is_found_once_and_fetched_whole() {
    let filler = "The committee considered the matter at length and adjourned. ".repeat(60);
    let text = format!("{filler}A walrus entered the chamber. {filler}Another walrus followed. {filler}");
    let corpus = Corpus::new(&[("long.txt", &text), ("short.txt", "Seals only.")]);
    corpus.update();
    let hits = corpus.search("walrus").await;
    assert_eq!(hits.len(), 1, "one document, one hit");
    assert!(hits[0].snippet.contains("walrus"), "{}", hits[0].snippet);
    let document = corpus.fetch("docs:long.txt").await.expect("held");
    assert_eq!(document.text, text);
    let passage = document.passages[hits[0].passage.expect("split")].clone();
    assert!(document.text[passage].contains("walrus"));
}

#[tokio::test]
async fn update_reads_only_changes() {
    let corpus = Corpus::new(&[("a.md", "alpha"), ("b.md", "bravo"), ("c.md", "charlie")]);
    assert_eq!(corpus.update().files_read, 3);
    let again = corpus.update();
    assert_eq!((again.files_read, again.files_unchanged), (0, 3));
    let revision = corpus.source.revision();

    corpus.write("b.md", "bravissimo");
    corpus.write("d.md", "delta");
    fs::remove_file(corpus.dir.path().join("docs/a.md")).expect("removed");
    fs::rename(corpus.dir.path().join("docs/c.md"), corpus.dir.path().join("docs/e.md")).expect("renamed");
    let report = corpus.update();
    assert_eq!((report.files_read, report.files_unchanged, report.files_removed), (3, 0, 2));
    assert!(corpus.source.revision() > revision);
    assert!(corpus.ids("alpha").await.is_empty());
    assert!(corpus.ids("bravo").await.is_empty());
    assert_eq!(corpus.ids("bravissimo").await, ["docs:b.md"]);
    assert_eq!(corpus.ids("charlie").await, ["docs:e.md"]);
    assert_eq!(corpus.source.facts().documents, Some(3));
}

#[tokio::test]
async fn index_of_another_process_is_picked_up() {
    let corpus = Corpus::new(&[("a.md", "alpha")]);
    let writer = source(corpus.dir.path());
    assert!(matches!(corpus.source.status(), SourceStatus::Unready(_)));
    writer.update(&CancellationToken::new(), &|_| {}).expect("indexed");
    assert!(corpus.source.refresh().expect("refreshed"));
    assert_eq!(corpus.source.status(), SourceStatus::Ready);
    assert_eq!(corpus.ids("alpha").await, ["docs:a.md"]);

    corpus.write("a.md", "omega");
    writer.update(&CancellationToken::new(), &|_| {}).expect("indexed");
    assert_eq!(corpus.ids("alpha").await, ["docs:a.md"], "the old index serves until the switch");
    assert!(corpus.source.refresh().expect("refreshed"));
    assert_eq!(corpus.ids("omega").await, ["docs:a.md"]);
}

#[tokio::test]
async fn id_used_twice_is_reported_until_freed() {
    let corpus = Corpus::new(&[
        ("1.jsonl", "{\"id\":\"x\",\"text\":\"first\"}\n"),
        ("2.jsonl", "{\"id\":\"x\",\"text\":\"second\"}\n"),
    ]);
    let report = corpus.update();
    assert_eq!(report.documents, 1);
    assert!(report.faults[0].to_string().contains("2.jsonl:1: the id `x` is already another document's"));
    assert_eq!(corpus.update().documents, 1, "still taken when only the second is read again");
    fs::remove_file(corpus.dir.path().join("docs/1.jsonl")).expect("removed");
    let report = corpus.update();
    assert_eq!((report.documents, report.faults_in_all), (1, 0));
    assert_eq!(corpus.fetch("docs:x").await.expect("held").text, "second");
}

#[tokio::test]
async fn bad_files_are_reported_and_others_served() {
    let corpus = Corpus::new(&[("good.md", "good"), ("empty.md", " \n")]);
    let docs = corpus.dir.path().join("docs");
    fs::write(docs.join("latin.txt"), b"caf\xe9").expect("write");
    fs::write(docs.join("huge.txt"), "x ".repeat(9 * 1024 * 1024)).expect("write");
    fs::write(docs.join("bad.jsonl"), b"{\"text\":\"fine row\"}\n{\"text\":\xff}\n").expect("write");
    #[cfg(unix)]
    std::os::unix::fs::symlink("/etc/hostname", docs.join("link.txt")).expect("link");
    let report = corpus.update();
    let faults: Vec<String> = report.faults.iter().map(ToString::to_string).collect();
    let reported = |file: &str, problem: &str| faults.iter().any(|f| f.starts_with(file) && f.contains(problem));
    assert!(reported("latin.txt", "not UTF-8 (first bad byte at offset 3)"), "{faults:?}");
    assert!(reported("huge.txt", "larger than one document may be (16 MiB)"), "{faults:?}");
    assert!(reported("bad.jsonl:2", "not valid JSON"), "{faults:?}");
    assert!(reported("empty.md", "no text"), "{faults:?}");
    assert!(reported("link.txt", "is a link"), "{faults:?}");
    assert_eq!(report.documents, 2);
    assert_eq!(corpus.ids("good").await, ["docs:good.md"]);
    assert_eq!(corpus.ids("fine").await, ["docs:bad.jsonl#1"]);
}

#[tokio::test]
async fn a_broken_index_is_made_again() {
    let corpus = Corpus::new(&[("a.md", "alpha")]);
    corpus.update();
    fs::write(corpus.dir.path().join("index/v3/meta.json"), "garbage").expect("write");
    assert_eq!(corpus.update().documents, 1);
    assert_eq!(corpus.ids("alpha").await, ["docs:a.md"]);
}

#[tokio::test]
async fn odd_queries_never_fail() {
    let corpus = Corpus::new(&[("a.md", "alpha beta")]);
    corpus.update();
    for query in [
        "",
        " ",
        "*",
        "\"",
        "a:b:c",
        "title:",
        "(((",
        "AND OR NOT",
        "-",
        "alpha AND",
        "[a TO b]",
        "\0",
        "~5",
        "field\\:x",
        "/regex/",
        "+",
        "alpha^2",
    ] {
        corpus.search(query).await;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn ids_of_any_shape_survive_search_and_fetch(keys in proptest::collection::hash_set("\\PC{1,40}|[\\x01-\\x7f]{1,30}", 1..8)) {
        let rows: String = keys.iter().enumerate().map(|(n, key)| {
            format!("{}\n", serde_json::json!({"id": key, "text": format!("common word number{n}")}))
        }).collect();
        let corpus = Corpus::new(&[("rows.jsonl", &rows)]);
        corpus.update();
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("runtime");
        runtime.block_on(async {
            for (n, key) in keys.iter().enumerate() {
                let hits = corpus.search(&format!("number{n}")).await;
                assert_eq!(hits[0].id.key(), key);
                let document = corpus.source.fetch(&hits[0].id, &context()).await.expect("fetched").expect("held");
                assert_eq!(&document.id, &hits[0].id);
                assert_eq!(document.text, format!("common word number{n}"));
            }
        });
    }

    #[test]
    fn any_query_is_answered(query in "\\PC{0,80}") {
        let corpus = Corpus::new(&[("a.md", "---\ntags: x\n---\nalpha beta")]);
        corpus.update();
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("runtime");
        runtime.block_on(corpus.search(&query));
    }
}

async fn reading(corpus: &Corpus, id: &str) -> Shown {
    let document = corpus.fetch(id).await.expect("held");
    let view = corpus.source.view(&document, None, &context()).await.expect("viewed");
    match view {
        Some(View::Reading(reading)) => *reading,
        other => panic!("{id}: {other:?}"),
    }
}

fn beside(reading: &Shown) -> (Option<String>, Option<String>) {
    let id = |neighbour: &Option<Neighbour>| neighbour.as_ref().map(|neighbour| neighbour.id.to_string());
    (id(&reading.previous), id(&reading.next))
}

#[tokio::test]
async fn page_shows_author_file_and_neighbours() {
    let note = |title: &str, date: &str| {
        format!("---\ntitle: {title}\ndate: {date}\nauthor: Ivo Trench\nplot_no: 7\n---\nText of {title}.\n")
    };
    let corpus = Corpus::new(&[
        ("minutes/2025-02.md", &note("February", "2025-02-03")),
        ("minutes/2025-03.md", &note("March", "2025-03-03")),
        ("minutes/2025-06.md", &note("June", "2025-06-03")),
        ("minutes/old/2024-12.md", &note("December", "2024-12-03")),
        ("letter.txt", "A letter\n\nDear Sir."),
        ("rows.csv", "id,title,text\na-2,Two,second\na-1,One,first\na-3,Three,third\n"),
        ("bare.jsonl", "{\"title\":\"T1\",\"text\":\"one\"}\n{\"title\":\"T2\",\"text\":\"two\"}\n"),
    ]);
    corpus.update();

    let march = reading(&corpus, "docs:minutes/2025-03.md").await;
    assert_eq!(march.format, TextFormat::Markdown);
    assert_eq!(march.byline.as_deref(), Some("Ivo Trench"));
    assert_eq!(march.date, Some(jiff::civil::date(2025, 3, 3)));
    assert_eq!(march.reference.as_deref(), Some("minutes/2025-03.md"));
    assert_eq!(march.cite_as, "Ivo Trench, ‘March’, Docs, 3 March 2025.");
    assert_eq!(march.facts, [("Plot no".to_owned(), "7".to_owned())]);
    let some = |id: &str| Some(id.to_owned());
    assert_eq!(beside(&march), (some("docs:minutes/2025-02.md"), some("docs:minutes/2025-06.md")));
    let (title, others) = &march.groups[0];
    assert_eq!(title, "More by Ivo Trench");
    let others: Vec<(&str, Option<&str>)> =
        others.iter().map(|other| (other.title.as_str(), other.note.as_deref())).collect();
    assert_eq!(
        others,
        [("June", Some("3 June 2025")), ("February", Some("3 February 2025")), ("December", Some("3 December 2024"))]
    );

    let first = reading(&corpus, "docs:minutes/2025-02.md").await;
    assert_eq!(beside(&first), (None, some("docs:minutes/2025-03.md")), "folders do not mix");
    let letter = reading(&corpus, "docs:letter.txt").await;
    assert_eq!((letter.format, letter.byline.clone()), (TextFormat::Plain, None));
    assert_eq!(letter.cite_as, "‘A letter’, Docs.");
    assert_eq!(beside(&letter), (None, None), "rows of another file are no neighbours");
    let row = reading(&corpus, "docs:a-2").await;
    assert_eq!(beside(&row), (some("docs:a-1"), some("docs:a-3")));
    let row = reading(&corpus, "docs:bare.jsonl#1").await;
    assert_eq!(beside(&row), (None, some("docs:bare.jsonl#2")));

    // What is gone is no neighbour.
    fs::remove_file(corpus.dir.path().join("docs/minutes/2025-06.md")).expect("removed");
    corpus.update();
    assert_eq!(beside(&reading(&corpus, "docs:minutes/2025-03.md").await).1, None);
}
