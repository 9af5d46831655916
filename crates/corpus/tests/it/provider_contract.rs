//! The provider contract: folders and memory pass it, and what a corpus does with the answers of a provider.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tribune_core::Readers;
use tribune_corpus::format::{Fault, Record, Sink, Stop};
use tribune_corpus::provider::{Item, Listing, ProviderError, Unreachable};
use tribune_corpus::{Collection, DocumentsSource, Folder, IndexReport, Limits, Pool, Provider, Reading, Settings};

mod suite;

use suite::{Fixture, check};

struct FolderFixture {
    dir: tempfile::TempDir,
    provider: Arc<Folder>,
}

impl Fixture for FolderFixture {
    fn provider(&self) -> Arc<dyn Provider> {
        self.provider.clone()
    }

    fn put(&self, key: &str, text: &str) {
        fs::write(self.dir.path().join(key), text).expect("written");
    }

    fn remove(&self, key: &str) {
        fs::remove_file(self.dir.path().join(key)).expect("removed");
    }

    fn restrict(&self, reader: Option<&str>) -> bool {
        let rules = self.dir.path().join(".tribune.toml");
        match reader {
            Some(reader) => fs::write(rules, format!("readers = [\"{reader}\"]")).expect("written"),
            None => fs::remove_file(rules).expect("removed"),
        }
        true
    }
}

#[tokio::test]
async fn folder_meets_the_contract() {
    let dir = tempfile::tempdir().expect("a folder");
    let provider = Arc::new(Folder::new(dir.path(), Reading::default(), Limits::default()));
    check(&FolderFixture { dir, provider }).await;
}

#[test]
fn missing_folder_is_an_error_and_not_empty() {
    let folder = Folder::new(Path::new("/nowhere/at/all"), Reading::default(), Limits::default());
    let error = folder.list().expect_err("missing");
    assert!(matches!(error, ProviderError::Missing(_)), "{error}");
}

/// A second implementation, so that the suite is not tied to folders.
struct Memory {
    items: Mutex<BTreeMap<String, (u64, String)>>,
    changes: Mutex<u64>,
    readers: Mutex<Readers>,
    changed: Notify,
}

impl Memory {
    fn change(&self, change: impl FnOnce(&mut BTreeMap<String, (u64, String)>, u64)) {
        let mut changes = self.changes.lock().expect("a lock");
        *changes += 1;
        change(&mut self.items.lock().expect("a lock"), *changes);
        self.changed.notify_one();
    }
}

#[async_trait]
impl Provider for Memory {
    fn fingerprint(&self) -> String {
        "memory".to_owned()
    }

    fn list(&self) -> Result<Listing, ProviderError> {
        let items = self.items.lock().expect("a lock");
        let items = items.iter().map(|(key, (change, text))| Item {
            key: key.clone(),
            fingerprint: change.to_string(),
            bytes: text.len() as u64,
            readers: self.readers.lock().expect("a lock").clone(),
        });
        Ok(Listing { items: items.collect(), ..Listing::default() })
    }

    fn read(&self, key: &str, sink: &mut dyn Sink) -> Result<(), Stop> {
        let text = self.items.lock().expect("a lock").get(key).map(|(_, text)| text.clone());
        let Some(text) = text else {
            sink.fault(None, true, "is gone".to_owned());
            return Ok(());
        };
        let record = Record { key: key.to_owned(), title: key.to_owned(), text, ..Record::default() };
        sink.record(None, record, Vec::new())
    }

    async fn changed(&self) {
        self.changed.notified().await;
    }
}

impl Fixture for Arc<Memory> {
    fn provider(&self) -> Arc<dyn Provider> {
        self.clone()
    }

    fn put(&self, key: &str, text: &str) {
        self.change(|items, change| drop(items.insert(key.to_owned(), (change, text.to_owned()))));
    }

    fn remove(&self, key: &str) {
        self.change(|items, _| drop(items.remove(key)));
    }

    fn restrict(&self, reader: Option<&str>) -> bool {
        *self.readers.lock().expect("a lock") = Readers::read(reader.unwrap_or("everybody"));
        self.changed.notify_one();
        true
    }
}

fn memory() -> Arc<Memory> {
    let memory = Memory {
        items: Mutex::default(),
        changes: Mutex::default(),
        readers: Mutex::default(),
        changed: Notify::new(),
    };
    memory.changed.notify_one();
    Arc::new(memory)
}

#[tokio::test]
async fn memory_meets_the_contract() {
    check(&memory()).await;
}

/// Memory that cannot reach its one key, or whose records are made in another way.
struct Altered {
    memory: Arc<Memory>,
    fingerprint: &'static str,
    unreachable: bool,
    unreachable_readers: Readers,
}

#[async_trait]
impl Provider for Altered {
    fn fingerprint(&self) -> String {
        self.fingerprint.to_owned()
    }

    fn list(&self) -> Result<Listing, ProviderError> {
        if !self.unreachable {
            return self.memory.list();
        }
        let fault = Fault::skipped("a.txt", "does not answer");
        let unreachable = Unreachable { fault, readers: self.unreachable_readers.clone() };
        Ok(Listing { unreachable: vec![unreachable], ..Listing::default() })
    }

    fn read(&self, key: &str, sink: &mut dyn Sink) -> Result<(), Stop> {
        self.memory.read(key, sink)
    }

    async fn changed(&self) {
        self.memory.changed().await;
    }
}

fn update(dir: &Path, provider: Arc<dyn Provider>) -> IndexReport {
    let settings = Settings {
        name: "things".to_owned(),
        title: "Things".to_owned(),
        description: None,
        readers: Readers::default(),
        index_dir: dir.join("index"),
        provider,
        collection: Collection::default(),
        embedder: None,
    };
    let source = DocumentsSource::new(settings, Pool::start().expect("pool"));
    source.update(&CancellationToken::new(), &|_| {}).expect("indexed")
}

#[test]
fn unreachable_keys_stay_indexed() {
    let dir = tempfile::tempdir().expect("a folder");
    let memory = memory();
    memory.put("a.txt", "alpha");
    let first = update(dir.path(), memory.clone());
    let altered = |readers: &str| Altered {
        fingerprint: "memory",
        unreachable: true,
        unreachable_readers: Readers::read(readers),
        memory: memory.clone(),
    };
    let second = update(dir.path(), Arc::new(altered("everybody")));
    assert_eq!((first.documents, second.documents, second.files_removed), (1, 1, 0));
    assert!(second.faults[0].problem.contains("still served"), "{:?}", second.faults);
    // Who may see them has changed, and the records cannot be read again.
    let third = update(dir.path(), Arc::new(altered("group:board")));
    assert_eq!((third.documents, third.files_removed), (0, 1));
}

#[test]
fn new_fingerprint_reads_everything_again() {
    let dir = tempfile::tempdir().expect("a folder");
    let memory = memory();
    memory.put("a.txt", "alpha");
    memory.put("b.txt", "beta");
    let altered = |fingerprint| {
        Arc::new(Altered {
            memory: memory.clone(),
            fingerprint,
            unreachable: false,
            unreachable_readers: Readers::default(),
        })
    };
    assert_eq!(update(dir.path(), altered("first")).files_read, 2);
    assert_eq!(update(dir.path(), altered("first")).files_read, 0);
    assert_eq!(update(dir.path(), altered("second")).files_read, 2);
}
