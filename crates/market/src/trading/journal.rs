//! What was sent in the account's name: a file of JSON lines that only grows. Each intention is on disk
//! before anything is sent, so that a crash leaves a question and never a surprise.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use tribune_core::{Error, Result};

use super::past::Past;
use super::questions::OrderName;

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Event {
    /// About to be sent.
    Intent,
    /// The exchange took it.
    Done,
    /// The exchange refused it, or it was never sent.
    Refused,
    /// It may or may not have been done.
    Unknown,
    /// Looked up after that: this is what became of it.
    Found,
    /// Looked up after that: the exchange has no such order.
    Absent,
}

/// One line. Nothing secret is ever part of it.
#[derive(Debug, Serialize)]
pub(super) struct Entry {
    pub(super) time: jiff::Timestamp,
    pub(super) event: Event,
    pub(super) action: &'static str,
    pub(super) caller: String,
    pub(super) correlation_id: Arc<str>,
    #[serde(flatten)]
    pub(super) order: OrderName,
    /// What was asked for.
    pub(super) request: serde_json::Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    pub(super) simulated: Option<bool>,
}

pub(super) struct Journal {
    file: Arc<Mutex<File>>,
    /// What it says, read back.
    pub(super) past: Past,
}

impl Journal {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let open = || -> io::Result<File> {
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder)?;
            }
            let mut options = OpenOptions::new();
            options.create(true).append(true).read(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            let mut file = options.open(path)?;
            keep_private(&file);
            end_last_line(&mut file)?;
            sync_folder(path)?;
            Ok(file)
        };
        let file = open().map_err(|error| {
            Error::internal(format!(
                "the journal of orders cannot be written at {}; without it there is no trading",
                path.display()
            ))
            .caused_by(error)
        })?;
        Ok(Self {
            file: Arc::new(Mutex::new(file)),
            past: Past::of(path),
        })
    }

    /// Returns when the line is on disk.
    pub(super) async fn record(&self, entry: &Entry) -> Result<()> {
        let written = self.write(entry).await;
        // Without an intention on disk nothing is sent; whatever else came to pass, came to pass.
        if written.is_ok() || !matches!(entry.event, Event::Intent) {
            self.past.record(entry);
        }
        written
    }

    async fn write(&self, entry: &Entry) -> Result<()> {
        let failed = "the journal of orders could not be written";
        let mut line = serde_json::to_vec(entry).map_err(|error| Error::internal(failed).caused_by(error))?;
        line.push(b'\n');
        let file = Arc::clone(&self.file);
        let written = tokio::task::spawn_blocking(move || {
            append(&mut file.lock().unwrap_or_else(PoisonError::into_inner), &line)
        });
        let written = written
            .await
            .map_err(|error| Error::internal(failed).caused_by(error))?;
        written.map_err(|error| Error::internal(failed).caused_by(error))
    }
}

/// All of it or nothing: what failed is taken back, so that nothing stands there that was not done.
fn append(file: &mut File, line: &[u8]) -> io::Result<()> {
    end_last_line(file)?;
    let whole = file.seek(SeekFrom::End(0))?;
    let written = file.write_all(line).and_then(|()| file.sync_data());
    if written.is_err() {
        // If that fails too, the next line is not glued to what stays.
        let _ = file.set_len(whole);
    }
    written
}

/// What somebody trades is nobody else's business. A file of before may have been copied with other permissions.
#[cfg(unix)]
fn keep_private(file: &File) {
    use std::os::unix::fs::PermissionsExt;

    let Ok(metadata) = file.metadata() else {
        return;
    };
    let mode = metadata.permissions().mode() & 0o777;
    if !metadata.is_file() || mode & 0o077 == 0 {
        return;
    }
    match file.set_permissions(std::fs::Permissions::from_mode(0o600)) {
        Ok(()) => tracing::warn!("the journal of orders could be read by others (mode {mode:o}); it is 600 now"),
        Err(error) => {
            tracing::warn!(%error, "the journal of orders can be read by others (mode {mode:o}); set it to 600");
        }
    }
}

#[cfg(not(unix))]
fn keep_private(_: &File) {}

/// A new file is on disk once its folder is.
#[cfg(unix)]
fn sync_folder(path: &Path) -> io::Result<()> {
    match path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) => File::open(folder)?.sync_all(),
        None => File::open(".")?.sync_all(),
    }
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

/// A crash may have left half a line; the next must not be glued to it.
fn end_last_line(file: &mut File) -> io::Result<()> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(());
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    if last != *b"\n" {
        file.write_all(b"\n")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(event: Event) -> Entry {
        Entry {
            time: jiff::Timestamp::UNIX_EPOCH,
            event,
            action: "place_order",
            caller: "local".to_owned(),
            correlation_id: Arc::from("-"),
            order: OrderName::Client("tribune-1".to_owned()),
            request: serde_json::json!({"symbol": "BTCUSDT"}),
            result: None,
            error: None,
            simulated: None,
        }
    }

    #[tokio::test]
    async fn lines_are_added_and_half_a_line_is_ended() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("deeper/journal.jsonl");
        Journal::open(&path)
            .expect("journal")
            .record(&entry(Event::Intent))
            .await
            .expect("line");
        let mut file = OpenOptions::new().append(true).open(&path).expect("file");
        file.write_all(b"{\"time\":").expect("half a line");
        Journal::open(&path)
            .expect("journal")
            .record(&entry(Event::Unknown))
            .await
            .expect("line");
        let text = std::fs::read_to_string(&path).expect("text");
        let events: Vec<_> = text
            .lines()
            .map(|line| {
                serde_json::from_str::<serde_json::Value>(line)
                    .ok()
                    .map(|line| line["event"].clone())
            })
            .collect();
        assert_eq!(events, [Some("intent".into()), None, Some("unknown".into())]);
    }

    /// A file that takes no more than so many bytes stands for a disk that is full.
    #[test]
    #[cfg(target_os = "linux")]
    fn a_line_that_was_not_written_leaves_nothing() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("journal.jsonl");
        let script = "trap '' XFSZ; ulimit -f 1; exec \"$0\" --exact trading::journal::tests::on_a_full_disk --ignored";
        let itself = std::env::current_exe().expect("the tests");
        let mut shell = std::process::Command::new("bash");
        let ran = shell.args(["-c", script]).arg(itself).env("JOURNAL", &path).output();
        let ran = ran.expect("bash");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stdout));
        let text = std::fs::read_to_string(&path).expect("text");
        assert_eq!((text.lines().count(), text.ends_with("}\n")), (1, true), "{text}");
    }

    #[tokio::test]
    #[ignore = "run by the test above, with a limit"]
    async fn on_a_full_disk() {
        let Some(path) = std::env::var_os("JOURNAL") else {
            return;
        };
        let journal = Journal::open(Path::new(&path)).expect("journal");
        let long = |length: usize| Entry {
            caller: "x".repeat(length),
            ..entry(Event::Intent)
        };
        journal.record(&long(400)).await.expect("it fits");
        assert!(journal.record(&long(2_000)).await.is_err());
        assert!(journal.record(&long(2_000)).await.is_err());
    }

    #[test]
    #[cfg(unix)]
    fn a_journal_that_others_could_read_is_closed_to_them() {
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("journal.jsonl");
        let mode = || std::fs::metadata(&path).expect("file").permissions().mode() & 0o777;
        std::fs::write(&path, "").expect("file");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o664)).expect("mode");
        drop(Journal::open(&path).expect("journal"));
        assert_eq!(mode(), 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o400)).expect("mode");
        drop(Journal::open(&path));
        assert_eq!(mode(), 0o400, "narrower is left alone");
    }

    #[test]
    fn a_journal_that_cannot_be_written_is_an_error() {
        let folder = tempfile::tempdir().expect("folder");
        assert!(Journal::open(folder.path()).is_err());
    }
}
