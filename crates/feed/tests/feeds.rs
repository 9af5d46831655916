//! Feeds from a real HTTP server on loopback: polled, indexed, searched, cited.

#![allow(clippy::disallowed_methods, reason = "tests use the machine's clock")]

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use axum::Router;
use axum::extract::{Path as UrlPath, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use jiff::Timestamp;
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;
use tribune_core::{CallContext, Clock, Document, Links, Principal, Query, Readers, Source, SourceStatus};
use tribune_corpus::format::{Sink, Stop};
use tribune_corpus::provider::{Listing, ProviderError};
use tribune_corpus::{Built, DocumentsSource, EmbedderChoice, Embedders, Environment, Pool, Provider, Upkeep, Workers};
use tribune_feed::{Config, Feeds, build};

#[path = "../../corpus/tests/it/provider_contract/suite.rs"]
mod suite;

const RSS: &str = r#"<?xml version="1.0"?>
<rss version="2.0"><channel><title>Harbour news</title><link>https://harbour.example</link><description>d</description>
<item><guid isPermaLink="false">7</guid><title>Ferry timetable</title><link>https://harbour.example/ferry</link>
<pubDate>Tue, 28 May 2024 09:30:00 GMT</pubDate>
<description>&lt;p&gt;The &lt;b&gt;ferry&lt;/b&gt; leaves at noon.&lt;/p&gt;</description></item></channel></rss>"#;

const ATOM: &str = r#"<?xml version="1.0"?>
<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:a</id><title>Bakery</title><updated>2024-06-01T00:00:00Z</updated>
<entry><id>urn:a:1</id><title>Rye bread</title><link href="https://bakery.example/rye"/><updated>2024-06-01T07:00:00Z</updated>
<author><name>Ann</name></author><content type="html">&lt;p&gt;Sourdough rests overnight.&lt;/p&gt;</content></entry></feed>"#;

const JSON: &str = r#"{"version": "https://jsonfeed.org/version/1.1", "title": "Allotment", "items": [
{"id": "3", "url": "https://allotment.example/3", "title": "Tomatoes", "content_html": "<p>Water the seedlings.</p>",
 "date_published": "2024-04-14T10:00:00Z", "tags": ["garden"]}]}"#;

/// The answer of one path, and how often it was requested.
#[derive(Clone, Default)]
struct Page {
    body: String,
    etag: Option<String>,
    status: Option<StatusCode>,
    full: usize,
    not_modified: usize,
}

#[derive(Clone, Default)]
struct Site(Arc<Mutex<HashMap<String, Page>>>);

impl Site {
    fn set(&self, path: &str, body: &str) {
        let mut pages = self.0.lock().expect("pages");
        let page = pages.entry(path.to_owned()).or_default();
        page.body = body.to_owned();
        page.etag = Some(format!("\"{}\"", body.len()));
        page.status = None;
    }

    fn fail(&self, path: &str, status: StatusCode) {
        let mut pages = self.0.lock().expect("pages");
        pages.entry(path.to_owned()).or_default().status = Some(status);
    }

    fn page(&self, path: &str) -> Page {
        self.0.lock().expect("pages").get(path).cloned().unwrap_or_default()
    }
}

async fn answer(State(site): State<Site>, UrlPath(path): UrlPath<String>, headers: HeaderMap) -> Response {
    let mut pages = site.0.lock().expect("pages");
    let Some(page) = pages.get_mut(&path) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    if let Some(status) = page.status {
        return status.into_response();
    }
    let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    if known.is_some() && known == page.etag.as_deref() {
        page.not_modified += 1;
        return StatusCode::NOT_MODIFIED.into_response();
    }
    page.full += 1;
    let etag = page.etag.clone().unwrap_or_default();
    ([(header::ETAG, etag)], page.body.clone()).into_response()
}

/// Serves a site until the test ends.
async fn serve(site: &Site) -> String {
    let router = Router::new()
        .route("/loop", get(|| async { (StatusCode::FOUND, [(header::LOCATION, "/loop")]) }))
        .route("/{path}", get(answer))
        .with_state(site.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}")
}

/// A clock that a test sets.
struct TestClock(Mutex<Timestamp>);

impl TestClock {
    fn forward(&self, minutes: u64) {
        let mut now = self.0.lock().expect("clock");
        *now = now.checked_add(Duration::from_secs(minutes * 60)).expect("a time");
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        *self.0.lock().expect("clock")
    }

    fn monotonic(&self) -> Instant {
        Instant::now()
    }
}

fn clock() -> Arc<TestClock> {
    Arc::new(TestClock(Mutex::new("2026-01-01T00:00:00Z".parse().expect("a time"))))
}

fn source(dir: &Path, clock: &Arc<TestClock>, urls: &[String]) -> Arc<DocumentsSource> {
    let config = Config {
        name: "news".to_owned(),
        title: None,
        description: None,
        embedder: None,
        readers: Readers::default(),
        urls: urls.to_vec(),
        every_mins: 15,
    };
    let environment = Environment {
        common: tribune_config::Environment {
            clock: clock.clone(),
            links: Links::new("http://tribune.test"),
            config_dir: dir.to_owned(),
            data_dir: dir.to_owned(),
            is_server: true,
            keeps_citations: true,
            sources: Vec::new(),
        },
        pool: Pool::start().expect("threads"),
        embedders: Arc::new(Embedders::new(EmbedderChoice::None)),
        upkeep: Upkeep::Publish,
        workers: Arc::new(Workers::here()),
    };
    let Built { corpus, .. } = build(&config, &environment).expect("a source");
    corpus.expect("a corpus")
}

/// Polls due feeds and indexes changed entries.
async fn update(source: &Arc<DocumentsSource>) {
    let source = source.clone();
    let updated = tokio::task::spawn_blocking(move || source.update(&CancellationToken::new(), &|_| {}));
    updated.await.expect("no panic").expect("indexed");
}

fn call() -> CallContext {
    CallContext::new(Principal::Local, Instant::now() + Duration::from_secs(60))
}

async fn find(source: &Arc<DocumentsSource>, text: &str) -> Vec<Document> {
    let query = Query { text: text.to_owned(), limit: 10 };
    let hits = source.search(&query, &call()).await.expect("searched");
    let mut found = Vec::new();
    for hit in hits.iter() {
        found.push(source.fetch(&hit.id, &call()).await.expect("read").expect("held"));
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn three_formats_are_searched_and_cited() {
    let (dir, site, clock) = (tempfile::tempdir().expect("a folder"), Site::default(), clock());
    let base = serve(&site).await;
    for (path, body) in [("rss", RSS), ("atom", ATOM), ("json", JSON)] {
        site.set(path, body);
    }
    let urls = ["rss", "atom", "json"].map(|path| format!("{base}/{path}"));
    let source = source(dir.path(), &clock, &urls);
    update(&source).await;
    assert_eq!(source.status(), SourceStatus::Ready);
    assert_eq!(source.facts().counted().as_deref(), Some("3 entries"));
    for (query, title, url, text, date) in [
        ("ferry", "Ferry timetable", "https://harbour.example/ferry", "The ferry leaves at noon.", "2024-05-28"),
        ("sourdough", "Rye bread", "https://bakery.example/rye", "Sourdough rests overnight.", "2024-06-01"),
        ("seedlings", "Tomatoes", "https://allotment.example/3", "Water the seedlings.", "2024-04-14"),
    ] {
        let found = find(&source, query).await;
        let [document] = found.as_slice() else {
            panic!("{query}: {found:?}");
        };
        assert_eq!((document.title.as_str(), document.text.as_str()), (title, text));
        assert_eq!(document.url.as_deref(), Some(url));
        assert_eq!(document.metadata["date"], date);
    }
    assert_eq!(find(&source, "sourdough").await[0].metadata["author"], "Ann");
}

#[tokio::test(flavor = "multi_thread")]
async fn unchanged_feed_is_not_sent_again() {
    let (dir, site, clock) = (tempfile::tempdir().expect("a folder"), Site::default(), clock());
    let base = serve(&site).await;
    site.set("rss", RSS);
    let source = source(dir.path(), &clock, &[format!("{base}/rss")]);
    update(&source).await;
    update(&source).await;
    assert_eq!(site.page("rss").full + site.page("rss").not_modified, 1, "not due yet");
    clock.forward(15);
    update(&source).await;
    assert_eq!((site.page("rss").full, site.page("rss").not_modified), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_entry_keeps_its_id() {
    let (dir, site, clock) = (tempfile::tempdir().expect("a folder"), Site::default(), clock());
    let base = serve(&site).await;
    site.set("rss", RSS);
    let source = source(dir.path(), &clock, &[format!("{base}/rss")]);
    update(&source).await;
    let before = find(&source, "ferry").await.remove(0);
    site.set("rss", &RSS.replace("at noon", "at midnight"));
    clock.forward(15);
    update(&source).await;
    let after = find(&source, "ferry").await.remove(0);
    assert_eq!(before.id, after.id);
    assert_eq!(after.text, "The ferry leaves at midnight.");
    assert_eq!(source.facts().documents, Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_feeds_leave_others_alone() {
    let (dir, site, clock) = (tempfile::tempdir().expect("a folder"), Site::default(), clock());
    let base = serve(&site).await;
    site.set("rss", RSS);
    site.set("html", "<html><body>Not a feed</body></html>");
    site.set("huge", &"x".repeat(9 * 1024 * 1024));
    let paths = ["rss", "html", "huge", "gone", "loop"];
    let source = source(dir.path(), &clock, &paths.map(|path| format!("{base}/{path}")));
    update(&source).await;
    assert_eq!(find(&source, "ferry").await.len(), 1);
    let SourceStatus::Degraded(reason) = source.status() else {
        panic!("not degraded");
    };
    assert!(reason.contains(&format!("{base}/gone: the server answered 404")), "{reason}");
    assert!(reason.contains("and 3 more feeds"), "{reason}");
    for (path, problem) in [("huge", "larger than 8 MiB"), ("html", "neither RSS"), ("loop", "redirects")] {
        let problems = problems(dir.path());
        assert!(problems.iter().any(|text| text.contains(problem)), "{path}: {problems:?}");
    }
}

/// The contents of the state files.
fn problems(dir: &Path) -> Vec<String> {
    let files = std::fs::read_dir(dir.join("feeds/news/state")).expect("a folder");
    files.map(|file| std::fs::read_to_string(file.expect("a file").path()).expect("a text")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_feed_keeps_its_entries_and_recovers() {
    let (dir, site, clock) = (tempfile::tempdir().expect("a folder"), Site::default(), clock());
    let base = serve(&site).await;
    site.set("rss", RSS);
    let source = source(dir.path(), &clock, &[format!("{base}/rss")]);
    update(&source).await;
    site.fail("rss", StatusCode::SERVICE_UNAVAILABLE);
    clock.forward(15);
    update(&source).await;
    assert!(matches!(source.status(), SourceStatus::Degraded(reason) if reason.contains("503")));
    assert_eq!(find(&source, "ferry").await.len(), 1);
    site.set("rss", RSS);
    clock.forward(15);
    update(&source).await;
    assert_eq!(source.status(), SourceStatus::Ready);
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_survive_a_restart_and_leaving_the_feed() {
    let (dir, site, clock) = (tempfile::tempdir().expect("a folder"), Site::default(), clock());
    let base = serve(&site).await;
    let urls = [format!("{base}/json")];
    site.set("json", JSON);
    update(&source(dir.path(), &clock, &urls)).await;
    site.set("json", &JSON.replace("\"3\"", "\"4\"").replace("Tomatoes", "Beans").replace("seedlings", "beans"));
    let restarted = source(dir.path(), &clock, &urls);
    update(&restarted).await;
    assert_eq!(site.page("json").full, 1, "polled a moment ago, by the process before");
    clock.forward(15);
    update(&restarted).await;
    assert_eq!(find(&restarted, "beans").await[0].title, "Beans");
    assert_eq!(find(&restarted, "seedlings").await[0].title, "Tomatoes", "no longer listed, still held");
}

/// Feeds whose configuration a test can change. A change replaces the provider, as a restart of the server does.
struct Reconfigured {
    dir: tempfile::TempDir,
    base: String,
    site: Site,
    feeds: Mutex<Arc<Feeds>>,
    names: Mutex<Vec<String>>,
}

impl Reconfigured {
    fn feeds(&self) -> Arc<Feeds> {
        self.feeds.lock().expect("feeds").clone()
    }

    fn reconfigure(&self, change: impl FnOnce(&mut Vec<String>)) {
        let mut names = self.names.lock().expect("names");
        change(&mut names);
        let urls = names.iter().map(|name| format!("{}/{name}", self.base)).collect();
        *self.feeds.lock().expect("feeds") = feeds(urls, self.dir.path());
    }
}

/// Polled on every listing.
fn feeds(urls: Vec<String>, dir: &Path) -> Arc<Feeds> {
    Arc::new(Feeds::new(urls, Duration::from_millis(10), dir.join("feeds"), clock()))
}

#[async_trait]
impl Provider for Reconfigured {
    fn fingerprint(&self) -> String {
        self.feeds().fingerprint()
    }

    fn list(&self) -> Result<Listing, ProviderError> {
        self.feeds().list()
    }

    fn read(&self, key: &str, sink: &mut dyn Sink) -> Result<(), Stop> {
        self.feeds().read(key, sink)
    }

    fn holds_many(&self, key: &str) -> bool {
        self.feeds().holds_many(key)
    }

    async fn changed(&self) {
        self.feeds().changed().await;
    }
}

struct FeedFixture(Arc<Reconfigured>);

impl suite::Fixture for FeedFixture {
    fn provider(&self) -> Arc<dyn Provider> {
        self.0.clone()
    }

    fn put(&self, name: &str, text: &str) {
        let feed = serde_json::json!({
            "version": "https://jsonfeed.org/version/1.1",
            "title": name,
            "items": [{"id": "1", "title": name, "content_text": text}],
        });
        self.0.site.set(name, &feed.to_string());
        self.0.reconfigure(|names| {
            names.retain(|other| other != name);
            names.push(name.to_owned());
        });
    }

    fn remove(&self, name: &str) {
        self.0.reconfigure(|names| names.retain(|other| other != name));
    }

    fn key(&self, name: &str) -> String {
        format!("{}.jsonl", hash(&[&format!("{}/{name}", self.0.base)]))
    }

    fn record_key(&self, name: &str) -> String {
        hash(&[&format!("{}/{name}", self.0.base), "1"])
    }
}

/// Ids are part of the contract: the first ten bytes of SHA-256 over lengths and parts.
fn hash(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize()[..10].iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn feeds_meet_the_provider_contract() {
    let (dir, site) = (tempfile::tempdir().expect("a folder"), Site::default());
    let base = serve(&site).await;
    let feeds = Mutex::new(feeds(Vec::new(), dir.path()));
    let names = Mutex::default();
    suite::check(&FeedFixture(Arc::new(Reconfigured { dir, base, site, feeds, names }))).await;
}
