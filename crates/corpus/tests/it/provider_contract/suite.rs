//! What every provider must do. A new one implements [`Fixture`] and calls [`check`]; other crates include this file.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tribune_core::{CallContext, DocumentId, Principal, Query, Source, UserId};
use tribune_corpus::format::{Record, Sink, Stop};
use tribune_corpus::{Collection, DocumentsSource, Pool, Provider, Settings};

/// A provider whose contents a test can change.
pub trait Fixture {
    fn provider(&self) -> Arc<dyn Provider>;
    /// Puts one record with this text behind the key of `name`.
    fn put(&self, name: &str, text: &str);
    fn remove(&self, name: &str);

    /// Limits who may see all records to one reader, or opens them again; `false` if the provider cannot.
    fn restrict(&self, _reader: Option<&str>) -> bool {
        false
    }

    /// The provider's key for `name`.
    fn key(&self, name: &str) -> String {
        name.to_owned()
    }

    /// The key of the record that `put` makes for `name`.
    fn record_key(&self, name: &str) -> String {
        name.to_owned()
    }
}

pub async fn check(fixture: &dyn Fixture) {
    first_change_is_reported_at_once(fixture).await;
    keys_and_fingerprints_follow_contents(fixture);
    every_listed_key_can_be_read(fixture);
    sink_can_stop_reading(fixture);
    changes_are_reported(fixture).await;
    corpus_is_searched_and_follows(fixture).await;
    readers_are_obeyed(fixture).await;
}

fn listed(fixture: &dyn Fixture) -> BTreeMap<String, String> {
    let listing = fixture.provider().list().expect("listed");
    assert!(listing.unreachable.is_empty(), "{:?}", listing.unreachable);
    assert_eq!(fixture.provider().list().expect("listed").items, listing.items, "the order is fixed");
    let items = listing.items.into_iter();
    items.map(|item| (item.key, item.fingerprint)).collect()
}

/// The keys of `names`, sorted.
fn keys(fixture: &dyn Fixture, names: &[&str]) -> Vec<String> {
    let mut keys: Vec<String> = names.iter().map(|name| fixture.key(name)).collect();
    keys.sort();
    keys
}

#[derive(Default)]
struct Collected {
    records: Vec<Record>,
    faults: Vec<String>,
    stops: bool,
}

impl Sink for Collected {
    fn record(&mut self, _: Option<u64>, record: Record, _: Vec<String>) -> Result<(), Stop> {
        self.records.push(record);
        if self.stops { Err(Stop) } else { Ok(()) }
    }

    fn fault(&mut self, _: Option<u64>, _: bool, problem: String) {
        self.faults.push(problem);
    }
}

async fn first_change_is_reported_at_once(fixture: &dyn Fixture) {
    fixture.provider().changed().await;
}

fn keys_and_fingerprints_follow_contents(fixture: &dyn Fixture) {
    assert_eq!(listed(fixture), BTreeMap::new());
    fixture.put("a.txt", "alpha");
    fixture.put("b.txt", "beta");
    let before = listed(fixture);
    assert!(before.keys().eq(&keys(fixture, &["a.txt", "b.txt"])), "{before:?}");
    fixture.put("b.txt", "gamma and more");
    let after = listed(fixture);
    let (a, b) = (fixture.key("a.txt"), fixture.key("b.txt"));
    assert_eq!(after[&a], before[&a]);
    assert_ne!(after[&b], before[&b]);
    fixture.remove("a.txt");
    assert!(listed(fixture).keys().eq(&keys(fixture, &["b.txt"])));
    let provider = fixture.provider();
    assert_eq!(provider.fingerprint(), provider.fingerprint());
}

fn every_listed_key_can_be_read(fixture: &dyn Fixture) {
    let provider = fixture.provider();
    for key in listed(fixture).keys() {
        assert_eq!(provider.check(key), Ok(()));
        let mut collected = Collected::default();
        assert_eq!(provider.read(key, &mut collected), Ok(()));
        assert_eq!((collected.records.len(), collected.faults), (1, Vec::new()));
        assert_eq!(collected.records[0].text, "gamma and more");
        assert_eq!(collected.records[0].key, fixture.record_key("b.txt"));
        let mut again = Collected::default();
        assert_eq!(provider.read(key, &mut again), Ok(()));
        assert_eq!(again.records, collected.records, "reading changes nothing");
    }
    let mut collected = Collected::default();
    assert_eq!(provider.read("never there.txt", &mut collected), Ok(()));
    assert_eq!((collected.records.len(), collected.faults.len()), (0, 1));
}

fn sink_can_stop_reading(fixture: &dyn Fixture) {
    let mut stopping = Collected { stops: true, ..Collected::default() };
    assert_eq!(fixture.provider().read(&fixture.key("b.txt"), &mut stopping), Err(Stop));
}

async fn changes_are_reported(fixture: &dyn Fixture) {
    let provider = fixture.provider();
    // One change may be reported more than once.
    while futures::FutureExt::now_or_never(provider.changed()).is_some() {}
    fixture.put("c.txt", "delta");
    provider.changed().await;
    fixture.remove("c.txt");
    provider.changed().await;
}

fn source(fixture: &dyn Fixture, dir: &std::path::Path) -> DocumentsSource {
    let settings = Settings {
        name: "things".to_owned(),
        title: "Things".to_owned(),
        description: None,
        readers: tribune_core::Readers::default(),
        index_dir: dir.join("index"),
        provider: fixture.provider(),
        collection: Collection { noun: "things".to_owned(), ..Collection::default() },
        embedder: None,
    };
    DocumentsSource::new(settings, Pool::start().expect("pool"))
}

fn context(principal: Principal) -> CallContext {
    CallContext::new(principal, std::time::Instant::now() + std::time::Duration::from_secs(600))
}

/// The records of `b.txt` are gone, those of `d.txt` are left.
async fn readers_are_obeyed(fixture: &dyn Fixture) {
    let dir = tempfile::tempdir().expect("a folder");
    let source = source(fixture, dir.path());
    let update = || source.update(&CancellationToken::new(), &|_| {}).expect("indexed");
    let ann = context(Principal::User(UserId::new("ann").expect("a name")));
    let ben = context(Principal::User(UserId::new("ben").expect("a name")));
    let local = context(Principal::Local);
    let found = async |cx: &CallContext| {
        let hits = source.search(&Query { text: "zeta".to_owned(), limit: 10 }, cx).await.expect("searched");
        let id = DocumentId::new("things", &fixture.record_key("d.txt")).expect("an id");
        let document = source.fetch(&id, cx).await.expect("fetched");
        assert_eq!(document.is_some(), hits.len() == 1);
        hits.len()
    };
    update();
    assert_eq!([found(&ann).await, found(&ben).await, found(&local).await], [1, 1, 1]);
    let before = listed(fixture);
    if !fixture.restrict(Some("user:ann")) {
        let items = fixture.provider().list().expect("listed").items;
        assert!(items.iter().all(|item| item.readers.is_everybody()));
        return;
    }
    fixture.provider().changed().await;
    assert_eq!(listed(fixture), before, "contents are the same");
    assert_eq!(update().files_read, 1, "and are read again");
    assert_eq!([found(&ann).await, found(&ben).await, found(&local).await], [1, 0, 1]);
    assert_eq!(source.facts().documents, Some(0));
    assert_eq!(update().files_read, 0);
    fixture.restrict(None);
    fixture.provider().changed().await;
    assert_eq!(update().files_read, 1);
    assert_eq!([found(&ben).await, source.facts().documents.unwrap_or_default() as usize], [1, 1]);
}

async fn corpus_is_searched_and_follows(fixture: &dyn Fixture) {
    let dir = tempfile::tempdir().expect("a folder");
    let source = source(fixture, dir.path());
    let update = || source.update(&CancellationToken::new(), &|_| {}).expect("indexed");
    let context = context(Principal::Local);
    let found = async |text: &str| {
        let query = Query { text: text.to_owned(), limit: 10 };
        let hits = source.search(&query, &context).await.expect("searched");
        hits.iter().map(|hit| hit.id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(update().documents, 1);
    assert_eq!(source.facts().counted().as_deref(), Some("1 thing"));
    let id = |name: &str| format!("things:{}", fixture.record_key(name));
    assert_eq!(found("gamma").await, [id("b.txt")]);
    let report = update();
    assert_eq!((report.files_read, report.files_unchanged, report.committed), (0, 1, false));
    fixture.put("b.txt", "epsilon, at last");
    fixture.put("d.txt", "zeta");
    assert_eq!(update().files_read, 2);
    assert!(found("gamma").await.is_empty());
    let fetched = DocumentId::new("things", &fixture.record_key("b.txt")).expect("an id");
    let document = source.fetch(&fetched, &context).await.expect("fetched");
    assert_eq!(document.expect("held").text, "epsilon, at last");
    fixture.remove("b.txt");
    assert_eq!(update().files_removed, 1);
    assert_eq!(found("zeta").await, [id("d.txt")]);
    assert!(found("epsilon").await.is_empty());
    assert!(source.fetch(&fetched, &context).await.expect("fetched").is_none());
}
