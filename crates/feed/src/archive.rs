//! The entries of feeds on disk. They survive restarts, and stay when a feed no longer lists them.
//!
//! Each feed has a JSONL file in `entries/` and a state file in `state/`. A rename replaces a file, so that readers never
//! see a partial one.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use indexmap::IndexMap;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tribune_core::Readers;
use tribune_corpus::provider::Item;

use crate::entry::{Entry, short_hash};
use crate::fetch::Validators;

/// Entries kept per feed; the oldest are dropped.
pub const MAX_ENTRIES: usize = 5_000;

/// The state of a feed besides its entries.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    pub validators: Validators,
    pub checked: Option<Timestamp>,
    /// Why the last poll failed.
    pub problem: Option<String>,
}

#[derive(Debug, Clone)]
pub struct Archive {
    dir: PathBuf,
}

impl Archive {
    pub fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    fn entries_file(&self, url: &str) -> PathBuf {
        self.dir.join("entries").join(format!("{}.jsonl", short_hash(&[url])))
    }

    fn state_file(&self, url: &str) -> PathBuf {
        self.dir.join("state").join(format!("{}.json", short_hash(&[url])))
    }

    /// Creates the folders, and removes the files of feeds that are no longer configured.
    pub fn open(&self, urls: &[String]) -> io::Result<()> {
        let configured: HashSet<PathBuf> =
            urls.iter().flat_map(|url| [self.entries_file(url), self.state_file(url)]).collect();
        for folder in ["entries", "state"].map(|name| self.dir.join(name)) {
            std::fs::create_dir_all(&folder)?;
            for file in std::fs::read_dir(folder)? {
                let path = file?.path();
                if !configured.contains(&path) {
                    std::fs::remove_file(path)?;
                }
            }
        }
        Ok(())
    }

    /// Without validators if the entries are missing, so that the next request gets all of them.
    pub fn state(&self, url: &str) -> State {
        let text = std::fs::read_to_string(self.state_file(url)).unwrap_or_default();
        let state: State = serde_json::from_str(&text).unwrap_or_default();
        match self.entries_file(url).exists() {
            true => state,
            false => State { validators: Validators::default(), ..state },
        }
    }

    pub fn write_state(&self, url: &str, state: &State) -> io::Result<()> {
        self.replace(&self.state_file(url), &serde_json::to_vec(state)?)
    }

    /// Adds new entries and replaces changed ones. Entries that the feed no longer lists stay.
    pub fn merge(&self, url: &str, listed: Vec<Entry>) -> io::Result<()> {
        let path = self.entries_file(url);
        let before = match read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            entries => entries?,
        };
        let by_id = before.iter().cloned().chain(listed).map(|entry| (entry.id.clone(), entry));
        // A changed entry stays in its place.
        let mut entries: Vec<Entry> = by_id.collect::<IndexMap<_, _>>().into_values().collect();
        if entries.len() > MAX_ENTRIES {
            let published = |entry: &Entry| entry.fields.get("published").map(ToString::to_string);
            entries.sort_by_cached_key(|entry| Reverse(published(entry)));
            entries.truncate(MAX_ENTRIES);
        }
        if entries == before && path.exists() {
            return Ok(());
        }
        let mut rows = Vec::new();
        for entry in &entries {
            serde_json::to_writer(&mut rows, entry)?;
            rows.push(b'\n');
        }
        self.replace(&path, &rows)
    }

    /// One item per feed, in a fixed order.
    pub fn items(&self) -> io::Result<Vec<Item>> {
        let mut items = Vec::new();
        for file in std::fs::read_dir(self.dir.join("entries"))? {
            let file = file?;
            let metadata = file.metadata()?;
            let modified = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
            items.push(Item {
                key: file.file_name().to_string_lossy().into_owned(),
                fingerprint: format!("{}-{}", modified.as_nanos(), metadata.len()),
                bytes: metadata.len(),
                readers: Readers::default(),
            });
        }
        items.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(items)
    }

    pub fn read(&self, key: &str) -> io::Result<Vec<Entry>> {
        read(&self.dir.join("entries").join(key))
    }

    /// Writes outside of the two folders first, so that no listing has the unfinished file.
    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let temporary = self.dir.join(format!("{name}.{}.tmp", std::process::id()));
        std::fs::write(&temporary, bytes)?;
        std::fs::rename(&temporary, path)
    }
}

/// Skips damaged rows; the feed may list those entries again.
fn read(path: &Path) -> io::Result<Vec<Entry>> {
    let text = std::fs::read_to_string(path)?;
    Ok(text.lines().filter_map(|row| serde_json::from_str(row).ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "https://example.org/feed";

    fn entry(id: &str, text: &str, published: &str) -> Entry {
        Entry {
            id: id.to_owned(),
            title: id.to_owned(),
            text: text.to_owned(),
            url: None,
            fields: [("published".to_owned(), published.into())].into_iter().collect(),
        }
    }

    fn archive(dir: &Path) -> Archive {
        let archive = Archive::new(dir.join("news"));
        archive.open(&[URL.to_owned()]).expect("opened");
        archive
    }

    #[test]
    fn merge_keeps_unlisted_and_replaces_changed_entries() {
        let dir = tempfile::tempdir().expect("a folder");
        let archive = archive(dir.path());
        let (a, b) = (entry("a", "one", "1"), entry("b", "two", "2"));
        archive.merge(URL, vec![a.clone(), b.clone()]).expect("merged");
        let items = archive.items().expect("listed");
        archive.merge(URL, vec![b]).expect("merged");
        assert_eq!(archive.items().expect("listed"), items, "nothing is written for nothing new");
        let changed = entry("b", "three", "2");
        archive.merge(URL, vec![changed.clone()]).expect("merged");
        assert_ne!(archive.items().expect("listed"), items);
        assert_eq!(archive.read(&items[0].key).expect("read"), [a, changed]);
    }

    #[test]
    fn oldest_entries_are_dropped() {
        let dir = tempfile::tempdir().expect("a folder");
        let archive = archive(dir.path());
        let entries = (0..MAX_ENTRIES + 10).map(|n| entry(&format!("e{n}"), "x", &format!("{n:06}")));
        archive.merge(URL, entries.collect()).expect("merged");
        let kept = read(&archive.entries_file(URL)).expect("read");
        assert_eq!(kept.len(), MAX_ENTRIES);
        assert!(kept.iter().all(|entry| entry.id != "e0") && kept[0].id == format!("e{}", MAX_ENTRIES + 9));
    }

    #[test]
    fn removed_feed_loses_its_entries() {
        let dir = tempfile::tempdir().expect("a folder");
        let archive = archive(dir.path());
        let validators = Validators { etag: Some("\"1\"".to_owned()), last_modified: None };
        let state = State { validators, ..State::default() };
        archive.merge(URL, vec![entry("a", "x", "1")]).expect("merged");
        archive.write_state(URL, &state).expect("written");
        assert_eq!(archive.state(URL), state);
        archive.open(&["https://example.org/other".to_owned()]).expect("opened");
        assert!(archive.items().expect("listed").is_empty());
        assert_eq!(archive.state(URL), State::default());
    }
}
