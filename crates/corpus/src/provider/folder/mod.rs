//! Files below a folder, or one file.
//!
//! - `walk`: finds the document files of a folder;
//! - `changes`: decides when to scan the folder again.

#![allow(clippy::disallowed_methods, reason = "it reports how long it took")]

mod changes;
mod walk;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;

use self::changes::Changes;
use super::{Item, Listing, Provider, ProviderError};
use crate::format::{Contents, Input, Reading, Sink, Stop};

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

/// A folder or a single file, read by extension.
pub struct Folder {
    path: PathBuf,
    reading: Reading,
    limits: Limits,
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
            ignored: None,
            changes: tokio::sync::Mutex::default(),
            scan_ms: AtomicU64::new(0),
        }
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
        let listing = walk::walk(&self.path, &self.reading.formats);
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

    fn contents(&self, key: &str) -> Contents {
        let format = self.reading.formats.find(Path::new(key));
        format.map(|format| format.contents()).unwrap_or_default()
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

    fn problem(&self) -> Option<String> {
        if self.path.exists() {
            return None;
        }
        let path = self.path.display();
        Some(format!("{path} does not exist; correct `path` in the configuration or create the folder"))
    }
}
