//! Files below a folder, or one file; `choice` says which, `changes` decides when to scan the folder again, `rules` says who
//! may see what is in a folder.

#![allow(clippy::disallowed_methods, reason = "it reports how long it took")]

mod changes;
mod choice;
mod rules;

use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tribune_core::Readers;

use self::changes::Changes;
pub use self::choice::Choice;
use self::rules::{FolderReaders, Rule};
use super::{Item, Listing, Provider, ProviderError, Unreachable};
use crate::format::{Fault, Formats, Input, Reading, Sink, Stop};

#[derive(Debug, Clone)]
pub struct Limits {
    /// The limit for one Markdown or text file, or one row.
    pub max_document_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_document_bytes: 16 * 1024 * 1024 }
    }
}

/// Names of files that no format reads; more are not kept.
const MAX_UNREAD: usize = 100_000;

/// A folder or a single file, read by extension.
pub struct Folder {
    path: PathBuf,
    reading: Reading,
    limits: Limits,
    choice: Choice,
    /// Tribune's own files, if they are below the folder: changes there are ignored.
    ignored: Option<PathBuf>,
    changes: tokio::sync::Mutex<Option<Changes>>,
    /// The duration of the last scan.
    scan_ms: AtomicU64,
}

impl Folder {
    pub fn new(path: impl Into<PathBuf>, reading: Reading, limits: Limits) -> Self {
        Self {
            path: path.into(),
            reading,
            limits,
            choice: Choice::default(),
            ignored: None,
            changes: tokio::sync::Mutex::default(),
            scan_ms: AtomicU64::new(0),
        }
    }

    /// Reads only what is chosen.
    #[must_use]
    pub fn choosing(mut self, choice: Choice) -> Self {
        self.choice = choice;
        self
    }

    /// Ignores changes below this folder.
    #[must_use]
    pub fn ignoring(mut self, folder: impl Into<PathBuf>) -> Self {
        self.ignored = Some(folder.into());
        self
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn reading(&self) -> &Reading {
        &self.reading
    }

    /// Reads a file at any path as if it were at `relative` in this folder.
    pub fn read_file(&self, path: &Path, relative: &str, sink: &mut dyn Sink) -> Result<(), Stop> {
        let input =
            Input { path, relative, reading: &self.reading, max_document_bytes: self.limits.max_document_bytes };
        input.read(sink)
    }

    /// Who may see a file at `relative` by the rules of its folders.
    pub fn readers(&self, relative: &str) -> Readers {
        let folders = Path::new(relative).ancestors().skip(1);
        folders
            .fold(Readers::default(), |readers, folder| readers.narrowed(&Rule::of(&self.path.join(folder)).readers()))
    }

    fn file(&self, key: &str) -> PathBuf {
        if self.path.is_file() {
            return self.path.clone();
        }
        self.path.join(key)
    }
}

#[async_trait]
impl Provider for Folder {
    fn fingerprint(&self) -> String {
        format!("{:016x}", crate::hash::stable(&format!("{:?}", self.reading)))
    }

    fn list(&self) -> Result<Listing, ProviderError> {
        let started = Instant::now();
        if let Some(problem) = self.problem() {
            return Err(ProviderError::Missing(problem));
        }
        if self.path.is_dir()
            && let Err(error) = fs::read_dir(&self.path)
        {
            // An unreadable folder must not look like an empty one.
            return Err(ProviderError::Failed { doing: "reading the folder".to_owned(), cause: Box::new(error) });
        }
        let listing = walk(&self.path, &self.choice, &self.reading.formats);
        self.scan_ms.store(started.elapsed().as_millis() as u64, Ordering::Relaxed);
        Ok(listing)
    }

    fn read(&self, key: &str, sink: &mut dyn Sink) -> Result<(), Stop> {
        self.read_file(&self.file(key), key, sink)
    }

    fn check(&self, key: &str) -> Result<(), String> {
        match fs::File::open(self.file(key)) {
            Ok(_) => Ok(()),
            Err(error) => Err(format!("cannot be opened: {error}")),
        }
    }

    fn holds_many(&self, key: &str) -> bool {
        self.reading.formats.find(Path::new(key)).is_some_and(|format| format.holds_many())
    }

    async fn changed(&self) {
        let mut changes = self.changes.lock().await;
        let changes = changes
            .get_or_insert_with(|| Changes::new(&self.path, self.ignored.as_deref(), self.reading.formats.clone()));
        changes.next(Duration::from_millis(self.scan_ms.load(Ordering::Relaxed))).await;
    }

    fn origin(&self) -> Option<String> {
        Some(self.path.display().to_string())
    }

    fn mistakes(&self) -> Vec<Fault> {
        let mut mistakes = walk(&self.path, &self.choice, &self.reading.formats).excluded;
        mistakes.retain(|fault| Path::new(&fault.file).ends_with(rules::FILE));
        mistakes
    }

    fn problem(&self) -> Option<String> {
        if self.path.exists() {
            return None;
        }
        let path = self.path.display();
        Some(format!("{path} does not exist; correct `path` in the configuration or create the folder"))
    }
}

/// Every document file below `root`, in a fixed order. Links are reported and not followed, because they can lead
/// anywhere.
fn walk(root: &Path, choice: &Choice, formats: &Formats) -> Listing {
    let mut found = Listing::default();
    let relative_to_root = |path: &Path| -> Option<String> {
        let relative = path.strip_prefix(root).ok()?;
        if relative.as_os_str().is_empty() {
            return path.file_name()?.to_str().map(str::to_owned);
        }
        let parts: Option<Vec<&str>> = relative.iter().map(|part| part.to_str()).collect();
        Some(parts?.join("/"))
    };
    let fault = |path: &Path, problem: String| {
        Fault::skipped(relative_to_root(path).unwrap_or_else(|| path.to_string_lossy().into_owned()), problem)
    };
    let mut readers = FolderReaders::default();
    let enter = |folder: &Path, readers: &mut FolderReaders| {
        let mistake = readers.enter(folder);
        mistake.map(|problem| fault(&folder.join(rules::FILE), problem))
    };
    if root.is_file() {
        found.excluded.extend(enter(root.parent().unwrap_or(root), &mut readers));
    }
    for entry in choice.walk(root) {
        let entry = match entry {
            Ok(entry) => entry,
            Err((path, problem)) => {
                let path = path.as_deref().unwrap_or(root);
                let fault = fault(path, format!("cannot be read: {problem}"));
                found.unreachable.push(Unreachable { fault, readers: readers.of_unreachable(path) });
                continue;
            }
        };
        let path = entry.path();
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        // The root may be a link.
        if is_folder || (entry.depth() == 0 && path.is_dir()) {
            found.excluded.extend(enter(path, &mut readers));
            continue;
        }
        let is_link = entry.path_is_symlink() && entry.depth() > 0;
        let is_document = formats.find(path).is_some();
        if is_link && (is_document || path.is_dir()) {
            let problem = match path.is_dir() {
                true => "is a link to a folder; only real folders are read",
                false => "is a link; only real files are indexed",
            };
            found.excluded.push(fault(path, problem.to_owned()));
            continue;
        }
        if !is_document {
            if found.unread.len() < MAX_UNREAD && entry.file_type().is_some_and(|kind| kind.is_file()) {
                found.unread.extend(relative_to_root(path));
            }
            continue;
        }
        match (fs::metadata(path), relative_to_root(path)) {
            (Err(error), _) => {
                let fault = fault(path, format!("cannot be read: {error}"));
                found.unreachable.push(Unreachable { fault, readers: readers.of_unreachable(path) });
            }
            (Ok(metadata), _) if !metadata.is_file() => {}
            (Ok(_), None) => found.excluded.push(fault(path, "its name is not UTF-8".to_owned())),
            (Ok(metadata), Some(key)) => {
                let readers = readers.of(path);
                found.items.push(Item { key, fingerprint: fingerprint(&metadata), bytes: metadata.len(), readers });
            }
        }
    }
    found
}

/// Changes with the file, without opening it. Inode and change time detect a replacement of the same size and date.
fn fingerprint(metadata: &Metadata) -> String {
    let modified_ns = metadata
        .modified()
        .ok()
        .and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok())
        .map_or(0, |age| age.as_nanos());
    #[cfg(unix)]
    let identity = {
        use std::os::unix::fs::MetadataExt;
        format!("-{}-{}.{}", metadata.ino(), metadata.ctime(), metadata.ctime_nsec())
    };
    #[cfg(not(unix))]
    let identity = "";
    format!("{}-{modified_ns}{identity}", metadata.len())
}
