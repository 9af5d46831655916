//! Decides when to scan a folder again.
//!
//! The system's watcher misses changes: on network disks, beyond the system's limits, under many events. So an event
//! only brings the next scan forward; scans also run at intervals, and only a scan decides what has changed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, CreateKind, RemoveKind};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::rules;
use crate::format::Formats;

/// A burst of events ends after this pause.
const BURST_PAUSE: Duration = Duration::from_millis(300);
/// The longest delay under constant change.
const MAX_DELAY: Duration = Duration::from_secs(2);
/// How often to check that the folder at the path is the watched one.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// How often the whole folder is scanned, whatever the watcher reports.
const RESCAN_INTERVAL: Duration = Duration::from_secs(60);
/// How often without a watcher.
const UNWATCHED_RESCAN_INTERVAL: Duration = Duration::from_secs(2);
/// Scans take at most one part in this many of the time.
const RESCAN_SHARE: u32 = 20;

pub(super) struct Changes {
    path: PathBuf,
    /// Tribune's own files, if they are below the folder.
    ignored: Option<PathBuf>,
    formats: Formats,
    signal: Arc<Signal>,
    /// What was at the path when it was last checked; the outer `None` before the first check.
    found: Option<Option<Identity>>,
    /// `None` if the system's watcher cannot be used.
    watcher: Option<RecommendedWatcher>,
    /// When to try to start a watcher again.
    next_watch: Instant,
    next_check: Instant,
    /// The first and the last event since the last scan.
    pending: Option<(Instant, Instant)>,
    last_scan: Instant,
}

/// Device and inode, to notice a replaced folder.
type Identity = (u64, u64);

/// Set by the watcher's thread.
#[derive(Default)]
struct Signal {
    changed: Notify,
    /// The watcher has missed something and must be restarted.
    lost: AtomicBool,
}

impl Changes {
    pub(super) fn new(path: &Path, ignored: Option<&Path>, formats: Formats) -> Self {
        let now = Instant::now();
        Self {
            path: path.to_owned(),
            ignored: ignored.map(Path::to_owned),
            formats,
            signal: Arc::default(),
            found: None,
            watcher: None,
            next_watch: now,
            next_check: now,
            pending: None,
            last_scan: now,
        }
    }

    /// Waits until the folder should be scanned; the last scan took `scan_took`. May be dropped and called again at
    /// any time.
    pub(super) async fn next(&mut self, scan_took: Duration) {
        loop {
            // Without a folder there is nothing to scan; the check notices when it is back.
            let next_rescan = match self.found {
                Some(None) => None,
                _ => Some(self.last_scan + self.rescan_interval().max(scan_took * RESCAN_SHARE)),
            };
            let next_scan = self.quiet_at().into_iter().chain(next_rescan).min();
            tokio::select! {
                () = self.signal.changed.notified() => self.note(Instant::now()),
                () = sleep_until(next_scan.map_or(self.next_check, |scan| scan.min(self.next_check))) => {
                    let is_due = next_scan.is_some_and(|scan| scan <= Instant::now());
                    // An event may have been the removal of the folder itself.
                    if self.check().await || is_due {
                        self.pending = None;
                        self.last_scan = Instant::now();
                        return;
                    }
                }
            }
        }
    }

    fn note(&mut self, now: Instant) {
        let first = self.pending.map_or(now, |(first, _)| first);
        self.pending = Some((first, now));
    }

    fn quiet_at(&self) -> Option<Instant> {
        self.pending.map(|(first, last)| (last + BURST_PAUSE).min(first + MAX_DELAY))
    }

    fn rescan_interval(&self) -> Duration {
        if self.watcher.is_some() { RESCAN_INTERVAL } else { UNWATCHED_RESCAN_INTERVAL }
    }

    /// Checks that the watched folder is still at the path. `true` if it is another one, or events were lost.
    async fn check(&mut self) -> bool {
        let path = self.path.clone();
        // Even this may block on a network disk.
        let found = tokio::task::spawn_blocking(move || identity(&path)).await.ok().flatten();
        let is_other = self.found != Some(found);
        let has_lost = self.signal.lost.load(Ordering::Acquire);
        if found.is_none() {
            self.watcher = None;
        } else if is_other || has_lost || (self.watcher.is_none() && self.next_watch <= Instant::now()) {
            self.watch(is_other).await;
            self.next_watch = Instant::now() + RESCAN_INTERVAL;
        }
        // Only now: if this is dropped while it waits, the next call does it again.
        self.found = Some(found);
        self.signal.lost.fetch_and(!has_lost, Ordering::AcqRel);
        self.next_check = Instant::now() + CHECK_INTERVAL;
        is_other || has_lost
    }

    async fn watch(&mut self, is_other: bool) {
        let (path, ignored, formats) = (self.path.clone(), self.ignored.clone(), self.formats.clone());
        let signal = self.signal.clone();
        let watcher = tokio::task::spawn_blocking(move || watch(&path, ignored, formats, signal)).await;
        let problem = match watcher {
            Ok(Ok(watcher)) => {
                self.watcher = Some(watcher);
                return;
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "the system's watcher failed".to_owned(),
        };
        self.watcher = None;
        if is_other {
            let folder = self.path.display();
            tracing::warn!(
                %folder,
                "cannot watch the folder, scanning it every few seconds: {problem}. On Linux, fs.inotify.max_user_watches and max_user_instances limit what can be watched"
            );
        }
    }
}

fn identity(path: &Path) -> Option<Identity> {
    let metadata = std::fs::metadata(path).ok()?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        if metadata.is_file() {
            // Editors replace files, so the parent folder is watched.
            let parent = std::fs::metadata(parent(&path.canonicalize().ok()?)).ok()?;
            return Some((parent.dev(), parent.ino()));
        }
        Some((metadata.dev(), metadata.ino()))
    }
    #[cfg(not(unix))]
    Some((u64::from(metadata.is_dir()), 0))
}

fn parent(file: &Path) -> &Path {
    file.parent().unwrap_or(file)
}

fn watch(
    path: &Path,
    ignored: Option<PathBuf>,
    formats: Formats,
    signal: Arc<Signal>,
) -> notify::Result<RecommendedWatcher> {
    // Events have canonical paths.
    let root = path.canonicalize()?;
    let relevance = Relevance {
        ignored: ignored.map(|ignored| ignored.canonicalize().unwrap_or(ignored)),
        formats,
        file: root.is_file(),
        root: root.clone(),
    };
    let handler = move |event: notify::Result<Event>| match event {
        Ok(event) => {
            if event.need_rescan() {
                signal.lost.store(true, Ordering::Release);
            }
            if event.need_rescan() || relevance.of(&event) {
                signal.changed.notify_one();
            }
        }
        Err(_) => {
            signal.lost.store(true, Ordering::Release);
            signal.changed.notify_one();
        }
    };
    // Links are not indexed.
    let settings = notify::Config::default().with_follow_symlinks(false);
    let mut watcher = RecommendedWatcher::new(handler, settings)?;
    if root.is_file() {
        watcher.watch(parent(&root), RecursiveMode::NonRecursive)?;
    } else {
        watcher.watch(&root, RecursiveMode::Recursive)?;
    }
    Ok(watcher)
}

/// Decides which events may change documents.
struct Relevance {
    root: PathBuf,
    /// Whether the source is a single file.
    file: bool,
    ignored: Option<PathBuf>,
    formats: Formats,
}

impl Relevance {
    fn of(&self, event: &Event) -> bool {
        let only_documents = match event.kind {
            // Reading does not change anything.
            EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
            EventKind::Access(_) => return false,
            EventKind::Create(CreateKind::File) | EventKind::Remove(RemoveKind::File) => true,
            EventKind::Modify(notify::event::ModifyKind::Data(_)) => true,
            // A folder may contain documents, and a rename does not tell what was renamed.
            _ => false,
        };
        event.paths.is_empty() || event.paths.iter().any(|path| self.concerns(path, only_documents))
    }

    fn concerns(&self, path: &Path, only_documents: bool) -> bool {
        let are_rules = path.file_name().is_some_and(|name| name == rules::FILE);
        if self.file {
            return path == self.root || are_rules;
        }
        let is_ignored = self.ignored.as_ref().is_some_and(|ignored| path.starts_with(ignored));
        if is_ignored || (only_documents && !are_rules && self.formats.find(path).is_none()) {
            return false;
        }
        let path = if are_rules { parent(path) } else { path };
        let below = path.strip_prefix(&self.root).unwrap_or(Path::new(""));
        !below.iter().any(|part| part.to_string_lossy().starts_with('.'))
    }
}

#[cfg(test)]
mod tests;
