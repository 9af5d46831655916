//! The journal of orders: JSON lines, append-only. The intent is on disk before anything is sent, so that after a crash
//! every order that may exist is known.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use tribune_core::{Error, Result};

use super::entry::Entry;
use super::history::History;

pub(super) struct Journal {
    file: Arc<Mutex<File>>,
    pub(super) history: History,
}

impl Journal {
    pub(super) fn open(path: &Path, now: Instant) -> Result<Self> {
        let open = || -> io::Result<File> {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            std::fs::create_dir_all(folder)?;
            // Orders are private.
            let file = OpenOptions::new().create(true).append(true).read(true).mode(0o600).open(path)?;
            // A new file is durable only once its folder is synced.
            File::open(folder)?.sync_all()?;
            Ok(file)
        };
        let file = open().map_err(|error| {
            Error::internal(format!(
                "the journal of orders cannot be written at {}; without it there is no trading",
                path.display()
            ))
            .caused_by(error)
        })?;
        let mut history = History::default();
        let read = read_back(path, |line| history.note(&line, now, true));
        history.gap =
            read.unwrap_or_else(|error| Some(format!("the journal of orders could not be read back ({error})")));
        if let Some(gap) = &history.gap {
            tracing::warn!("{gap}; earlier orders may be missing in previews");
        }
        Ok(Self { file: Arc::new(Mutex::new(file)), history })
    }

    /// Returns when the line is on disk.
    pub(super) async fn record(&self, entry: &Entry) -> Result<()> {
        let written = self.write(entry).await;
        written.map_err(|error| Error::internal("the journal of orders could not be written").caused_by(error))
    }

    async fn write(&self, entry: &Entry) -> io::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        let file = Arc::clone(&self.file);
        tokio::task::spawn_blocking(move || append(&mut file.lock(), &line)).await?
    }
}

/// Reads a journal back, line by line. Returns a message about lines that cannot be read.
fn read_back(path: &Path, mut each: impl FnMut(Entry)) -> io::Result<Option<String>> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut unreadable: Vec<u64> = Vec::new();
    for (number, line) in (1..).zip(BufReader::new(file.take(length)).split(b'\n')) {
        let line = line?;
        match serde_json::from_slice(line.trim_ascii()) {
            Ok(entry) => each(entry),
            Err(_) if line.trim_ascii().is_empty() => {}
            Err(_) => unreadable.push(number),
        }
    }
    let count = unreadable.len();
    let gap = |first| {
        format!("the journal of orders is incomplete: lines that cannot be read: {count}, the first is line {first}")
    };
    Ok(unreadable.first().map(gap))
}

/// Appends the whole line or nothing.
fn append(file: &mut File, line: &[u8]) -> io::Result<()> {
    end_last_line(file)?;
    let whole = file.seek(SeekFrom::End(0))?;
    let written = file.write_all(line).and_then(|()| file.sync_data());
    if written.is_err() {
        // If that fails too, `end_last_line` separates the next line from the rest.
        let _ = file.set_len(whole);
    }
    written
}

/// A crash may have left half a line; the next one starts on its own.
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
    use crate::entry::{Action, Event};
    use crate::order::OrderName;

    fn entry(event: Event) -> Entry {
        Entry {
            time: jiff::Timestamp::UNIX_EPOCH,
            event,
            action: Action::Place,
            caller: "local".to_owned(),
            correlation_id: "-".to_owned(),
            order: OrderName::Client("tribune-1".to_owned()),
            request: serde_json::json!({"symbol": "BTCUSDT"}),
            notional: None,
            result: serde_json::Value::Null,
            error: None,
            simulated: None,
        }
    }

    #[tokio::test]
    async fn lines_are_appended_after_a_partial_line() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("deeper/journal.jsonl");
        Journal::open(&path, Instant::now()).expect("journal").record(&entry(Event::Intent)).await.expect("line");
        let mut file = OpenOptions::new().append(true).open(&path).expect("file");
        file.write_all(b"{\"time\":").expect("half a line");
        Journal::open(&path, Instant::now()).expect("journal").record(&entry(Event::Unknown)).await.expect("line");
        let text = std::fs::read_to_string(&path).expect("text");
        let events: Vec<_> = text
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).ok().map(|line| line["event"].clone()))
            .collect();
        assert_eq!(events, [Some("intent".into()), None, Some("unknown".into())]);
    }

    /// A file that takes no more than so many bytes stands for a disk that is full.
    #[test]
    #[cfg(target_os = "linux")]
    fn failed_write_leaves_no_partial_line() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("journal.jsonl");
        let script = "trap '' XFSZ; ulimit -f 1; exec \"$0\" --exact journal::tests::on_a_full_disk --ignored";
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
        let journal = Journal::open(Path::new(&path), Instant::now()).expect("journal");
        let long = |length: usize| Entry { caller: "x".repeat(length), ..entry(Event::Intent) };
        journal.record(&long(400)).await.expect("it fits");
        assert!(journal.record(&long(2_000)).await.is_err());
        assert!(journal.record(&long(2_000)).await.is_err());
    }

    #[test]
    fn journal_is_private() {
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("journal.jsonl");
        drop(Journal::open(&path, Instant::now()).expect("journal"));
        assert_eq!(std::fs::metadata(&path).expect("file").permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn unwritable_journal_is_an_error() {
        let folder = tempfile::tempdir().expect("folder");
        assert!(Journal::open(folder.path(), Instant::now()).is_err());
    }
}
