//! When to look at a folder again.
//!
//! The system's watcher tells of most changes at once, and of some never: on network disks, beyond the
//! system's limits, under a flood of events. So it only ever hastens a look at the whole folder, which
//! comes anyway now and then, and what the watcher says is not relied on for what has changed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, CreateKind, RemoveKind};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tribune_corpus::read::Format;

/// A burst of changes is over after this much quiet.
const QUIET: Duration = Duration::from_millis(300);
/// Under constant change an update comes this often all the same.
const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// How often it is made sure that the watched folder is still the one at its path.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// How often the whole folder is compared, whatever the watcher says.
const RESCAN_EVERY: Duration = Duration::from_secs(60);
/// The same where there is no watcher.
const RESCAN_UNWATCHED_EVERY: Duration = Duration::from_secs(2);
/// Comparing takes at most this part of the time, however large the folder.
const RESCAN_SHARE: u32 = 20;

/// Why the folder should be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// Something was told to have changed.
    Told,
    /// It is time.
    Time,
}

/// The changes of one folder.
pub(super) struct Changes {
    path: PathBuf,
    /// Our own files, if they lie below the folder.
    ignored: PathBuf,
    signal: Arc<Signal>,
    root: Root,
    /// The first and the last change that no update has followed yet.
    pending: Option<(Instant, Instant)>,
    next_look: Instant,
    next_rescan: Instant,
    /// When to try for a watcher again, where there is none.
    next_watch: Instant,
    last_took: Duration,
    /// Another try of what could not be done now.
    again: Option<Instant>,
    /// Why there is no watcher, until it has been asked for.
    problem: Option<String>,
}

/// What is at the path.
enum Root {
    Unknown,
    Gone,
    Watched {
        identity: Identity,
        _watcher: RecommendedWatcher,
    },
    Unwatched {
        identity: Identity,
    },
}

/// Tells one folder from another that takes its place.
type Identity = (u64, u64);

/// What the watcher's thread leaves for us.
#[derive(Default)]
struct Signal {
    changed: Notify,
    /// The watcher has missed something and must be made again.
    lost: AtomicBool,
}

impl Changes {
    pub(super) fn of(path: &Path, ignored: &Path) -> Self {
        let now = Instant::now();
        Self {
            path: path.to_owned(),
            ignored: ignored.to_owned(),
            signal: Arc::default(),
            root: Root::Unknown,
            pending: None,
            next_look: now,
            next_rescan: now,
            next_watch: now,
            last_took: Duration::ZERO,
            again: None,
            problem: None,
        }
    }

    /// Waits until the folder should be looked at. May be dropped and called again at any time.
    pub(super) async fn next(&mut self) -> Why {
        loop {
            let due = self.due();
            tokio::select! {
                () = self.signal.changed.notified() => self.note(),
                () = sleep_until(due) => {
                    if let Some(why) = self.at(Instant::now()).await {
                        return why;
                    }
                }
            }
        }
    }

    /// Says that the folder was looked at, and how long that took.
    pub(super) fn looked(&mut self, took: Duration) {
        self.last_took = took;
        self.next_rescan = Instant::now() + self.rescan_every();
    }

    /// What the watcher should have told and has not: it may have lost a folder.
    pub(super) fn missed_something(&mut self) {
        self.signal.lost.store(true, Ordering::Release);
    }

    /// Looks again after `pause`, whatever happens.
    pub(super) fn again_in(&mut self, pause: Duration) {
        self.again = Some(Instant::now() + pause);
    }

    /// Why there is no watcher; told once.
    pub(super) fn problem(&mut self) -> Option<String> {
        self.problem.take()
    }

    fn note(&mut self) {
        let now = Instant::now();
        let first = self.pending.map_or(now, |(first, _)| first);
        self.pending = Some((first, now));
    }

    fn quiet_at(&self) -> Option<Instant> {
        self.pending
            .map(|(first, last)| (last + QUIET).min(first + LONGEST_WAIT))
    }

    fn due(&self) -> Instant {
        let times = [self.quiet_at(), self.again];
        times
            .into_iter()
            .flatten()
            .fold(self.next_look.min(self.next_rescan_or_never()), Instant::min)
    }

    fn next_rescan_or_never(&self) -> Instant {
        match self.root {
            // There is nothing to compare; the look notices when it is back.
            Root::Gone => self.next_look,
            _ => self.next_rescan,
        }
    }

    fn rescan_every(&self) -> Duration {
        let least = match self.root {
            Root::Unwatched { .. } => RESCAN_UNWATCHED_EVERY,
            _ => RESCAN_EVERY,
        };
        least.max(self.last_took * RESCAN_SHARE)
    }

    /// What is due now.
    async fn at(&mut self, now: Instant) -> Option<Why> {
        if self.next_look <= now {
            let other = self.look().await;
            self.next_look = Instant::now() + LOOK_EVERY;
            if other {
                self.pending = None;
                return Some(Why::Told);
            }
        }
        if self.quiet_at().is_some_and(|at| at <= now) {
            self.pending = None;
            // What was told may have been the removal of the folder itself.
            self.next_look = now;
            return Some(Why::Told);
        }
        if self.again.is_some_and(|at| at <= now) {
            self.again = None;
            return Some(Why::Told);
        }
        if self.next_rescan_or_never() <= now && !matches!(self.root, Root::Gone) {
            self.next_rescan = now + self.rescan_every();
            return Some(Why::Time);
        }
        None
    }

    /// Makes sure that what is at the path is what is watched. `true` if it is something else now.
    async fn look(&mut self) -> bool {
        let path = self.path.clone();
        // A network disk may keep even this waiting.
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
        let (path, ignored, signal) = (self.path.clone(), self.ignored.clone(), self.signal.clone());
        let watcher = tokio::task::spawn_blocking(move || watch(&path, &ignored, signal)).await;
        self.root = match watcher {
            Ok(Ok(watcher)) => Root::Watched {
                identity: found,
                _watcher: watcher,
            },
            failed => {
                if !known {
                    self.problem = Some(match failed {
                        Ok(Err(error)) => explained(&error),
                        _ => "the system's watcher failed".to_owned(),
                    });
                }
                self.next_watch = Instant::now() + RESCAN_EVERY;
                Root::Unwatched { identity: found }
            }
        };
        !known
    }
}

fn explained(error: &notify::Error) -> String {
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
            // A file is replaced all the time; what is watched is the folder it is in.
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

fn watch(path: &Path, ignored: &Path, signal: Arc<Signal>) -> notify::Result<RecommendedWatcher> {
    // Events name real paths.
    let root = path.canonicalize()?;
    let relevance = Relevance {
        ignored: ignored.canonicalize().unwrap_or_else(|_| ignored.to_owned()),
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
    // Links are not indexed, and may lead anywhere.
    let settings = notify::Config::default().with_follow_symlinks(false);
    let mut watcher = RecommendedWatcher::new(handler, settings)?;
    if root.is_file() {
        watcher.watch(parent(&root), RecursiveMode::NonRecursive)?;
    } else {
        watcher.watch(&root, RecursiveMode::Recursive)?;
    }
    Ok(watcher)
}

/// Which events can mean that documents have changed.
struct Relevance {
    root: PathBuf,
    /// Whether the root is one file.
    file: bool,
    ignored: PathBuf,
}

impl Relevance {
    fn of(&self, event: &Event) -> bool {
        let only_documents = match event.kind {
            // Our own reading is no change.
            EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
            EventKind::Access(_) => return false,
            EventKind::Create(CreateKind::File) | EventKind::Remove(RemoveKind::File) => true,
            EventKind::Modify(notify::event::ModifyKind::Data(_)) => true,
            // Folders come and go with everything in them, and a rename does not say what it renamed.
            _ => false,
        };
        event.paths.is_empty() || event.paths.iter().any(|path| self.concerns(path, only_documents))
    }

    fn concerns(&self, path: &Path, only_documents: bool) -> bool {
        if self.file {
            return path == self.root;
        }
        if path.starts_with(&self.ignored) || (only_documents && !Format::may_be_read(path)) {
            return false;
        }
        let below = path.strip_prefix(&self.root).unwrap_or(Path::new(""));
        !below.iter().any(|part| part.to_string_lossy().starts_with('.'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use notify::event::{DataChange, MetadataKind, ModifyKind, RenameMode};

    fn relevance(root: &str, file: bool) -> Relevance {
        Relevance {
            root: root.into(),
            file,
            ignored: "/docs/tribune-data/index/docs".into(),
        }
    }

    #[test]
    fn only_what_can_change_documents_wakes_us() {
        let data = EventKind::Modify(ModifyKind::Data(DataChange::Any));
        let renamed = EventKind::Modify(ModifyKind::Name(RenameMode::To));
        let opened = EventKind::Access(AccessKind::Open(AccessMode::Any));
        let closed = EventKind::Access(AccessKind::Close(AccessMode::Write));
        for (kind, path, expected) in [
            (data, "/docs/a.md", true),
            (closed, "/docs/deep/a.jsonl", true),
            (opened, "/docs/a.md", false),
            (data, "/docs/debug.log", false),
            (data, "/docs/.git/a.md", false),
            (data, "/docs/.a.md.swp", false),
            (renamed, "/docs/.a.md", false),
            (renamed, "/docs/moved in", true),
            (renamed, "/docs/v1.2", true),
            (renamed, "/docs/tribune-data/index/docs/v2/meta.json", false),
            (EventKind::Create(CreateKind::File), "/docs/4913", false),
            (EventKind::Create(CreateKind::Folder), "/docs/v1.2", true),
            (EventKind::Remove(RemoveKind::Folder), "/docs", true),
            (
                EventKind::Modify(ModifyKind::Metadata(MetadataKind::Any)),
                "/docs/a.md",
                true,
            ),
        ] {
            let event = Event::new(kind).add_path(path.into());
            assert_eq!(relevance("/docs", false).of(&event), expected, "{kind:?} {path}");
        }
        let of_file = |path: &str| relevance("/docs/one.md", true).of(&Event::new(data).add_path(path.into()));
        assert!(of_file("/docs/one.md") && !of_file("/docs/two.md"));
    }

    #[tokio::test]
    async fn a_burst_is_one_change_and_a_flood_does_not_wait_for_ever() {
        let mut changes = Changes::of(Path::new("/nowhere"), Path::new("/nowhere"));
        changes.root = Root::Unwatched { identity: (0, 0) };
        changes.next_look = Instant::now() + RESCAN_EVERY;
        changes.next_rescan = Instant::now() + RESCAN_EVERY;
        let signal = changes.signal.clone();
        let burst = tokio::spawn(async move {
            for _ in 0..5 {
                signal.changed.notify_one();
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        });
        let started = Instant::now();
        assert_eq!(changes.next().await, Why::Told);
        let took = started.elapsed();
        assert!(
            took >= QUIET + Duration::from_millis(400) && took < LONGEST_WAIT,
            "{took:?}"
        );
        drop(burst.await);

        changes.next_look = Instant::now() + RESCAN_EVERY;
        let signal = changes.signal.clone();
        let flood = tokio::spawn(async move {
            loop {
                signal.changed.notify_one();
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        let started = Instant::now();
        assert_eq!(changes.next().await, Why::Told);
        let took = started.elapsed();
        assert!(took >= LONGEST_WAIT && took < LONGEST_WAIT * 2, "{took:?}");
        flood.abort();
    }

    #[tokio::test]
    async fn a_folder_that_is_replaced_is_watched_again() {
        let dir = tempfile::tempdir().expect("a folder");
        let docs = dir.path().join("docs");
        let mut changes = Changes::of(&docs, dir.path().join("index").as_path());
        assert!(
            changes.look().await && matches!(changes.root, Root::Gone),
            "gone, and told so once"
        );
        assert!(!changes.look().await);
        std::fs::create_dir(&docs).expect("made");
        assert!(changes.look().await && matches!(changes.root, Root::Watched { .. }));
        assert!(!changes.look().await, "nothing new");
        std::fs::rename(&docs, dir.path().join("away")).expect("moved");
        std::fs::create_dir(&docs).expect("made again");
        assert!(changes.look().await, "the same name and another folder");
        changes.missed_something();
        assert!(changes.look().await, "made again after a loss");
        std::fs::write(docs.join("a.md"), "alpha").expect("written");
        let told = tokio::time::timeout(Duration::from_secs(5), changes.signal.changed.notified()).await;
        assert!(told.is_ok(), "and it tells of changes");
    }
}
