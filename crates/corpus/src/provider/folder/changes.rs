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

/// A scan of the folder.
pub(super) struct Scan {
    pub(super) took: Duration,
    /// A hash of what it found.
    pub(super) found: u64,
}

pub(super) struct Changes {
    path: PathBuf,
    /// Tribune's own files, if they are below the folder.
    ignored: Option<PathBuf>,
    formats: Formats,
    signal: Arc<Signal>,
    root: Root,
    /// The first and the last event since the last scan.
    pending: Option<(Instant, Instant)>,
    next_look: Instant,
    next_rescan: Instant,
    /// When to try to start a watcher again.
    next_watch: Instant,
    last_scan: Option<Scan>,
    /// Whether the next scan is one at intervals, without an event.
    is_rescan: bool,
}

/// The state of the path.
enum Root {
    Unknown,
    Gone,
    Watched { identity: Identity, _watcher: RecommendedWatcher },
    Unwatched { identity: Identity },
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
            root: Root::Unknown,
            pending: None,
            next_look: now,
            next_rescan: now,
            next_watch: now,
            last_scan: None,
            is_rescan: false,
        }
    }

    /// Waits until the folder should be scanned. May be dropped and called again at any time.
    pub(super) async fn next(&mut self) {
        loop {
            let due = self.due();
            tokio::select! {
                () = self.signal.changed.notified() => self.note(Instant::now()),
                () = sleep_until(due) => {
                    if self.is_due_at(Instant::now()).await {
                        return;
                    }
                }
            }
        }
    }

    /// Records that the folder was scanned.
    pub(super) fn scanned(&mut self, scan: Scan) {
        let before = self.last_scan.replace(scan);
        let has_changed = before.zip(self.last_scan.as_ref()).is_some_and(|(before, now)| before.found != now.found);
        if std::mem::take(&mut self.is_rescan) && has_changed {
            // The watcher has not reported it.
            self.signal.lost.store(true, Ordering::Release);
        }
        self.next_rescan = Instant::now() + self.rescan_every();
    }

    fn note(&mut self, now: Instant) {
        let first = self.pending.map_or(now, |(first, _)| first);
        self.pending = Some((first, now));
    }

    fn quiet_at(&self) -> Option<Instant> {
        self.pending.map(|(first, last)| (last + BURST_PAUSE).min(first + MAX_DELAY))
    }

    fn due(&self) -> Instant {
        let timed = self.next_rescan().map_or(self.next_look, |rescan| rescan.min(self.next_look));
        self.quiet_at().map_or(timed, |quiet| quiet.min(timed))
    }

    /// `None` if there is nothing to scan; `look` notices when the folder is back.
    fn next_rescan(&self) -> Option<Instant> {
        (!matches!(self.root, Root::Gone)).then_some(self.next_rescan)
    }

    fn rescan_every(&self) -> Duration {
        let least = match self.root {
            Root::Unwatched { .. } => UNWATCHED_RESCAN_INTERVAL,
            _ => RESCAN_INTERVAL,
        };
        least.max(self.last_scan.as_ref().map_or(Duration::ZERO, |scan| scan.took) * RESCAN_SHARE)
    }

    /// Whether a scan is due.
    async fn is_due_at(&mut self, now: Instant) -> bool {
        self.is_rescan = false;
        if self.next_look <= now {
            let other = self.look().await;
            self.next_look = Instant::now() + CHECK_INTERVAL;
            if other {
                self.pending = None;
                return true;
            }
        }
        if self.quiet_at().is_some_and(|at| at <= now) {
            self.pending = None;
            // The event may have been the removal of the folder itself.
            self.next_look = now;
            return true;
        }
        self.is_rescan = self.next_rescan().is_some_and(|at| at <= now);
        if self.is_rescan {
            self.next_rescan = now + self.rescan_every();
        }
        self.is_rescan
    }

    /// Checks that the watched folder is still at the path. `true` if it has changed.
    async fn look(&mut self) -> bool {
        let path = self.path.clone();
        // Even this may block on a network disk.
        let found = tokio::task::spawn_blocking(move || identity(&path)).await;
        let Some(found) = found.ok().flatten() else {
            let was_there = !matches!(self.root, Root::Gone);
            self.root = Root::Gone;
            return was_there;
        };
        let lost = self.signal.lost.swap(false, Ordering::AcqRel);
        match &self.root {
            Root::Watched { identity, .. } if *identity == found && !lost => return false,
            Root::Unwatched { identity } if *identity == found && Instant::now() < self.next_watch => return false,
            _ => {}
        }
        let known = matches!(&self.root, Root::Unwatched { identity } if *identity == found);
        let (path, ignored, formats) = (self.path.clone(), self.ignored.clone(), self.formats.clone());
        let signal = self.signal.clone();
        let watcher = tokio::task::spawn_blocking(move || watch(&path, ignored, formats, signal)).await;
        self.root = match watcher {
            Ok(Ok(watcher)) => Root::Watched { identity: found, _watcher: watcher },
            failed => {
                if !known {
                    let problem = match failed {
                        Ok(Err(error)) => explain(&error),
                        _ => "the system's watcher failed".to_owned(),
                    };
                    let folder = self.path.display();
                    tracing::warn!(%folder, "cannot watch the folder, scanning it every few seconds: {problem}");
                }
                self.next_watch = Instant::now() + RESCAN_INTERVAL;
                Root::Unwatched { identity: found }
            }
        };
        !known
    }
}

fn explain(error: &notify::Error) -> String {
    const TOO_MANY_OPEN_FILES: i32 = 24;
    match &error.kind {
        notify::ErrorKind::Io(error) if error.raw_os_error() == Some(TOO_MANY_OPEN_FILES) => {
            "the system allows no more watchers; raise fs.inotify.max_user_instances".to_owned()
        }
        notify::ErrorKind::MaxFilesWatch => {
            "the system allows no more watches; raise fs.inotify.max_user_watches".to_owned()
        }
        _ => error.to_string(),
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
        if self.file {
            return path == self.root;
        }
        let is_ignored = self.ignored.as_ref().is_some_and(|ignored| path.starts_with(ignored));
        if is_ignored || (only_documents && self.formats.find(path).is_none()) {
            return false;
        }
        let below = path.strip_prefix(&self.root).unwrap_or(Path::new(""));
        !below.iter().any(|part| part.to_string_lossy().starts_with('.'))
    }
}

#[cfg(test)]
mod tests;
