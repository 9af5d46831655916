//! What was sent in the account's name: a file of JSON lines that only grows. Each intention is on disk
//! before anything is sent, so that a crash leaves a question and never a surprise.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use tribune_core::{Error, Result};

#[derive(Debug, Serialize)]
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
}

/// One line. Nothing secret is ever part of it.
#[derive(Debug, Serialize)]
pub(super) struct Entry {
    pub(super) time: jiff::Timestamp,
    pub(super) event: Event,
    pub(super) action: &'static str,
    pub(super) caller: String,
    pub(super) correlation_id: Arc<str>,
    pub(super) client_order_id: String,
    /// What was asked for.
    pub(super) request: serde_json::Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    pub(super) simulated: Option<bool>,
}

#[derive(Clone)]
pub(super) struct Journal {
    file: Arc<Mutex<File>>,
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
            end_last_line(&mut file)?;
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
        })
    }

    /// Returns when the line is on disk.
    pub(super) async fn record(&self, entry: &Entry) -> Result<()> {
        let failed = "the journal of orders could not be written";
        let mut line = serde_json::to_vec(entry).map_err(|error| Error::internal(failed).caused_by(error))?;
        line.push(b'\n');
        let file = Arc::clone(&self.file);
        let written = tokio::task::spawn_blocking(move || {
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            file.write_all(&line)?;
            file.sync_data()
        });
        let written = written
            .await
            .map_err(|error| Error::internal(failed).caused_by(error))?;
        written.map_err(|error| Error::internal(failed).caused_by(error))
    }
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
            client_order_id: "tribune-1".to_owned(),
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

    #[test]
    fn a_journal_that_cannot_be_written_is_an_error() {
        let folder = tempfile::tempdir().expect("folder");
        assert!(Journal::open(folder.path()).is_err());
    }
}
