//! Copies files into the source's folder. Replaced files stay on disk until the index has accepted the new ones, so
//! that they can be restored after a refusal or a crash.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The folder of copies, below the source's folder.
pub(super) const INGESTED: &str = "ingested";
/// The folder of replaced files, below [`INGESTED`]; hidden, so that it is neither indexed nor watched.
const PREVIOUS: &str = ".previous";
const LOCK: &str = ".lock";
/// Limits disk space; rows and transcripts are streamed.
const MAX_FILE_BYTES: u64 = 2 << 30;

/// The files of one ingestion; holds the folder's lock. If it is dropped without [`Staging::finish`], the next
/// ingestion restores what it replaced.
pub(super) struct Staging {
    root: PathBuf,
    /// Targets that did not exist before.
    created: HashSet<String>,
    _lock: File,
}

impl Staging {
    /// Waits for other ingestions into the folder, and undoes one that was killed.
    pub(super) fn begin(root: &Path) -> io::Result<Self> {
        let folder = root.join(INGESTED);
        fs::create_dir_all(&folder)?;
        let lock = File::create(folder.join(LOCK))?;
        lock.lock()?;
        restore_previous(root)?;
        Ok(Self { root: root.to_owned(), created: HashSet::new(), _lock: lock })
    }

    /// Undoes an ingestion that was killed, unless one is running.
    pub(super) fn recover(root: &Path) -> io::Result<()> {
        let folder = root.join(INGESTED);
        if !folder.join(PREVIOUS).exists() {
            return Ok(());
        }
        let lock = File::create(folder.join(LOCK))?;
        match lock.try_lock() {
            Ok(()) => restore_previous(root),
            Err(fs::TryLockError::WouldBlock) => Ok(()),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }

    /// Copies `from` to `target`, a path below [`INGESTED`], by a rename: readers see the old file or the whole new
    /// one.
    pub(super) fn place(&mut self, from: &Path, target: &str) -> io::Result<()> {
        let to = self.root.join(target);
        let part = part_of(&to);
        create_parent(&to)?;
        if let Err(error) = copy(from, &part) {
            drop(fs::remove_file(&part));
            return Err(error);
        }
        if !to.exists() {
            self.created.insert(target.to_owned());
        } else if !self.created.contains(target) {
            self.set_aside(&to, &self.previous(target))?;
        }
        fs::rename(part, to)
    }

    /// Copies the file, so that `to` is never missing. Only the first replaced file of an ingestion is kept.
    fn set_aside(&self, to: &Path, previous: &Path) -> io::Result<()> {
        if previous.exists() {
            return Ok(());
        }
        create_parent(previous)?;
        let part = part_of(previous);
        copy(to, &part)?;
        fs::rename(part, previous)
    }

    /// Restores what was at `target` before; `true` if there was a file.
    pub(super) fn undo(&self, target: &str) -> io::Result<bool> {
        let to = self.root.join(target);
        if unless_missing(fs::rename(self.previous(target), &to))?.is_some() {
            return Ok(true);
        }
        if self.created.contains(target) {
            unless_missing(fs::remove_file(to))?;
        }
        Ok(false)
    }

    /// Discards replaced files that were not restored.
    pub(super) fn finish(self) {
        let previous = self.root.join(INGESTED).join(PREVIOUS);
        if let Err(error) = unless_missing(fs::remove_dir_all(&previous)) {
            tracing::warn!(%error, folder = %previous.display(), "could not remove replaced files");
        }
    }

    fn previous(&self, target: &str) -> PathBuf {
        let below = Path::new(target).strip_prefix(INGESTED).unwrap_or(Path::new(target));
        self.root.join(INGESTED).join(PREVIOUS).join(below)
    }
}

fn restore_previous(root: &Path) -> io::Result<()> {
    let folder = root.join(INGESTED);
    let previous = folder.join(PREVIOUS);
    for entry in walkdir::WalkDir::new(&previous).into_iter().flatten() {
        let is_part = entry.path().extension().is_some_and(|ending| ending == "part");
        let Ok(below) = entry.path().strip_prefix(&previous) else {
            continue;
        };
        if entry.file_type().is_file() && !is_part {
            tracing::warn!(file = %below.display(), "an ingestion was interrupted; restoring the file it replaced");
            let to = folder.join(below);
            create_parent(&to)?;
            fs::rename(entry.path(), to)?;
        }
    }
    unless_missing(fs::remove_dir_all(previous)).map(drop)
}

/// `None` if there is no such file.
fn unless_missing<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

fn create_parent(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)
}

/// A hidden name beside `path`, so that a partial file is not indexed.
fn part_of(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.part"))
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    copy_at_most(MAX_FILE_BYTES, from, to)
}

fn copy_at_most(max_bytes: u64, from: &Path, to: &Path) -> io::Result<()> {
    let mut file = File::create(to)?;
    // One more byte than allowed distinguishes "at the limit" from "too long".
    let copied = io::copy(&mut File::open(from)?.take(max_bytes + 1), &mut file)?;
    if copied > max_bytes {
        let problem = format!("is larger than {} MiB; split it", max_bytes >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem));
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(tempfile::TempDir);

    impl Folder {
        fn new() -> Self {
            let folder = Self(tempfile::tempdir().expect("a folder"));
            fs::create_dir(folder.root().join(INGESTED)).expect("made");
            fs::write(folder.root().join("new"), "new").expect("written");
            fs::write(folder.root().join("newer"), "newer").expect("written");
            folder
        }

        fn root(&self) -> &Path {
            self.0.path()
        }

        fn write(&self, name: &str, text: &str) {
            fs::write(self.root().join(INGESTED).join(name), text).expect("written");
        }

        fn read(&self, name: &str) -> Option<String> {
            fs::read_to_string(self.root().join(INGESTED).join(name)).ok()
        }
    }

    #[test]
    fn undo_restores_the_first_file_replaced() {
        let folder = Folder::new();
        folder.write("a.md", "old");
        let mut staging = Staging::begin(folder.root()).expect("begun");
        for source in ["new", "newer"] {
            staging.place(&folder.root().join(source), "ingested/a.md").expect("placed");
            staging.place(&folder.root().join(source), "ingested/b.md").expect("placed");
        }
        assert_eq!(folder.read("a.md").as_deref(), Some("newer"));
        assert!(staging.undo("ingested/a.md").expect("undone"));
        assert!(!staging.undo("ingested/a.md").expect("nothing more to undo"));
        assert!(!staging.undo("ingested/b.md").expect("undone"));
        assert_eq!((folder.read("a.md").as_deref(), folder.read("b.md")), (Some("old"), None));
    }

    #[test]
    fn finished_ingestion_keeps_new_files() {
        let folder = Folder::new();
        folder.write("a.md", "old");
        let mut staging = Staging::begin(folder.root()).expect("begun");
        staging.place(&folder.root().join("new"), "ingested/a.md").expect("placed");
        staging.finish();
        drop(Staging::begin(folder.root()).expect("begun"));
        assert_eq!(folder.read("a.md").as_deref(), Some("new"));
        assert!(!folder.root().join(INGESTED).join(PREVIOUS).exists());
    }

    #[test]
    fn killed_ingestion_is_undone_by_the_next_start() {
        let folder = Folder::new();
        folder.write("a.md", "old");
        let mut staging = Staging::begin(folder.root()).expect("begun");
        staging.place(&folder.root().join("new"), "ingested/a.md").expect("placed");
        // Another process must not undo a running ingestion.
        Staging::recover(folder.root()).expect("nothing to do");
        assert_eq!(folder.read("a.md").as_deref(), Some("new"));
        drop(staging);
        Staging::recover(folder.root()).expect("recovered");
        assert_eq!(folder.read("a.md").as_deref(), Some("old"));
    }

    #[test]
    fn oversized_file_is_not_copied() {
        let folder = Folder::new();
        let (from, to) = (folder.root().join("new"), folder.root().join("copy"));
        assert!(copy_at_most(3, &from, &to).is_ok());
        let error = copy_at_most(2, &from, &to).expect_err("too large");
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }
}
