//! One call of an ingestion tool: finds files, copies new ones, indexes them and reports on each.

#![allow(clippy::disallowed_methods, reason = "another process is waited for")]

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tribune_core::wire::clip;
use tribune_core::{Error, Progress, Result};
use tribune_corpus::format::{Record, Sink, Stop};
use tribune_corpus::manifest::Outcome;
use tribune_corpus::{Condition, DocumentsSource, Duplicates, Folder, IndexError};

use super::staging::{INGESTED, Staging};

const MAX_FILES: usize = 10_000;
/// Files listed in an answer; the rest are counted.
const MAX_LISTED: usize = 100;
/// How long to wait for another indexing run.
const MAX_BUSY: Duration = Duration::from_secs(30);
const BUSY_PAUSE: Duration = Duration::from_millis(200);

#[derive(Default, Serialize, JsonSchema)]
pub(super) struct Summary {
    total_files: usize,
    pub(super) succeeded: usize,
    skipped: usize,
    failed: usize,
    /// Passages that can now be found.
    total_chunks_created: u64,
    files: Vec<FileOutcome>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct FileOutcome {
    file: String,
    #[schemars(with = "String", extend("enum" = ["succeeded", "skipped", "failed"]))]
    outcome: Outcome,
    /// Why, or what was found odd.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl Summary {
    fn add(&mut self, file: &str, outcome: Outcome, reason: Option<String>) {
        match outcome {
            Outcome::Succeeded => self.succeeded += 1,
            Outcome::Skipped => self.skipped += 1,
            Outcome::Failed => self.failed += 1,
        }
        self.files.push(FileOutcome {
            file: clip(file, 200).into_owned(),
            outcome,
            reason: reason.map(|reason| clip(&reason, 300).into_owned()),
        });
    }
}

/// Where administrators put new speeches, and where those go.
#[derive(Clone)]
pub struct Incoming {
    /// The only folder that is read.
    from: PathBuf,
    /// The source's own folder.
    into: Arc<Folder>,
}

impl Incoming {
    /// Undoes an ingestion that was killed.
    pub fn new(from: PathBuf, into: Folder) -> Self {
        if let Err(error) = Staging::recover(into.path()) {
            tracing::warn!(%error, "could not restore the files that an interrupted ingestion replaced");
        }
        Self { from, into: Arc::new(into) }
    }
}

#[derive(Clone)]
pub(crate) struct Ingestion {
    pub(crate) corpus: Arc<DocumentsSource>,
    pub(crate) incoming: Incoming,
}

/// Why a file was not copied.
struct NotCopied(Outcome, String);

fn failed(reason: impl Into<String>) -> NotCopied {
    NotCopied(Outcome::Failed, reason.into())
}

impl Ingestion {
    /// The canonical path of what the caller names, which must be in the folder.
    pub(super) fn resolve(&self, given: &str, directory: bool) -> Result<PathBuf> {
        let shown = clip(given, 200);
        let outside = || {
            Error::invalid_argument(format!(
                "`path` leads out of the ingestion folder: {shown}. Give a path below that folder, such as \"2024/may.md\"."
            ))
        };
        let folder = self.incoming.from.canonicalize().map_err(|e| {
            Error::unavailable("the ingestion folder cannot be read; correct ingest_dir in the configuration")
                .caused_by(e)
        })?;
        // Refused before any disk access, so that an answer reveals nothing about files outside.
        let relative = Path::new(given);
        let is_within = |part| matches!(part, Component::Normal(_) | Component::CurDir);
        if !relative.components().all(is_within) || given.contains('\0') {
            return Err(outside());
        }
        let path = folder
            .join(relative)
            .canonicalize()
            .map_err(|_| Error::not_found(format!("there is no `{shown}` in the ingestion folder")))?;
        if !path.starts_with(&folder) {
            return Err(outside());
        }
        match (path.is_dir(), directory) {
            (true, false) => {
                Err(Error::invalid_argument(format!("`{shown}` is a folder: call the tool for a directory instead")))
            }
            (false, true) => {
                Err(Error::invalid_argument(format!("`{shown}` is a file: call the tool for a file instead")))
            }
            _ => Ok(path),
        }
    }

    /// `policy` is for speeches whose text or id is indexed already. Blocks; not for async threads.
    pub(super) fn run(
        &self,
        path: &Path,
        policy: Duplicates,
        progress: &Progress,
        cancel: &CancellationToken,
    ) -> Result<Summary> {
        let files = self.files(path)?;
        let mut staging = Staging::begin(self.incoming.into.path()).map_err(|e| {
            Error::unavailable("the source's folder cannot be written, so nothing was ingested").caused_by(e)
        })?;
        let folder = self.incoming.from.canonicalize();
        let folder = folder.unwrap_or_else(|_| self.incoming.from.clone());
        let mut summary = Summary { total_files: files.len(), ..Summary::default() };
        // The path below the ingestion folder, and that below the source's folder.
        let mut copied: Vec<(String, String)> = Vec::new();
        let total = files.len() as f64;
        for (done, file) in files.iter().enumerate() {
            if cancel.is_cancelled() {
                summary.note = Some("stopped because the caller went away; what was copied is indexed".to_owned());
                break;
            }
            let name = relative(&folder, file);
            progress.report(done as f64, Some(total + 1.0), Some(&name));
            match self.copy(file, &name, policy, &mut staging) {
                Ok(target) => copied.push((name, target)),
                Err(NotCopied(outcome, reason)) => summary.add(&name, outcome, Some(reason)),
            }
        }
        if !copied.is_empty() {
            progress.report(total, Some(total + 1.0), Some("indexing"));
            if let Err(error) = self.update() {
                // The copies stay, and the next update of the source indexes them.
                staging.finish();
                return Err(error);
            }
        }
        self.settle(&copied, staging, &mut summary)?;
        progress.report(total + 1.0, Some(total + 1.0), Some("done"));
        if summary.total_files > MAX_LISTED {
            summary.files.sort_by_key(|file| file.outcome == Outcome::Succeeded);
            summary.files.truncate(MAX_LISTED);
        }
        Ok(summary)
    }

    /// Every file of speeches at or below `path`. Links are not followed.
    fn files(&self, path: &Path) -> Result<Vec<PathBuf>> {
        let formats = &self.incoming.into.reading().formats;
        let entries = walkdir::WalkDir::new(path).sort_by_file_name().into_iter().flatten();
        let speeches = entries.filter(|entry| entry.file_type().is_file() && formats.find(entry.path()).is_some());
        let files: Vec<PathBuf> = speeches.take(MAX_FILES + 1).map(walkdir::DirEntry::into_path).collect();
        match files.len() {
            0 => {
                Err(Error::not_found("nothing to ingest there: speeches come as .md, .txt, .xml, .jsonl or .csv files"))
            }
            1..=MAX_FILES => Ok(files),
            _ => Err(Error::invalid_argument(format!(
                "the folder holds more than {MAX_FILES} files; ingest its subfolders one after another"
            ))),
        }
    }

    /// Copies a file into the source's folder if it has anything new, and returns the target.
    fn copy(
        &self,
        file: &Path,
        name: &str,
        policy: Duplicates,
        staging: &mut Staging,
    ) -> std::result::Result<String, NotCopied> {
        let into = &self.incoming.into;
        let mut target = format!("{INGESTED}/{name}");
        let holder = if self.holds_one_speech(file) {
            let mut found = Found::default();
            // `Found` never stops the reading.
            let _ = into.read_file(file, &target, &mut found);
            let record = found.record.ok_or_else(|| failed(found.faults.join("; ")))?;
            self.holder(&record)
        } else {
            into.path().join(&target).exists().then(|| Holder {
                description: "a file of that name was ingested before".to_owned(),
                file: target.clone(),
            })
        };
        if let Some(Holder { description, file }) = holder {
            match policy {
                Duplicates::Skip | Duplicates::Keep => return Err(NotCopied(Outcome::Skipped, description)),
                Duplicates::Error => return Err(failed(description)),
                Duplicates::Update if !self.is_replaceable(&file, &target) => {
                    return Err(failed(format!(
                        "{description}, in {file}, which was not ingested and is not replaced: change it there"
                    )));
                }
                Duplicates::Update => target = file,
            }
        }
        staging.place(file, &target).map_err(|e| failed(format!("could not be copied: {e}")))?;
        Ok(target)
    }

    fn holds_one_speech(&self, file: &Path) -> bool {
        let format = self.incoming.into.reading().formats.find(file);
        format.is_some_and(|format| !format.contents().many)
    }

    /// The document with the same text or id; `None` if nothing is indexed yet.
    fn holder(&self, record: &Record) -> Option<Holder> {
        let published = self.corpus.published().ok()?;
        let hash = record.fields.get("content_hash").and_then(Value::as_str);
        let by_text = hash.and_then(|hash| {
            let condition = Condition::Is { field: "content_hash".to_owned(), value: hash.to_owned() };
            published.holder(condition).ok().flatten()
        });
        if let Some((key, file)) = by_text {
            return Some(Holder { description: format!("the same text as {key}"), file });
        }
        let file = published.file_of(&record.key).ok().flatten()?;
        Some(Holder { description: format!("the id of {}, which has another text", record.key), file })
    }

    /// Replaces only ingested files: the owner's own files stay as they are.
    fn is_replaceable(&self, file: &str, target: &str) -> bool {
        let path = Path::new(file);
        path.starts_with(INGESTED) && (file == target || self.holds_one_speech(path))
    }

    fn update(&self) -> Result<()> {
        let until = Instant::now() + MAX_BUSY;
        loop {
            match self.corpus.update(&CancellationToken::new(), &|_| {}) {
                Ok(_) => return Ok(()),
                Err(IndexError::Busy(_)) if Instant::now() < until => std::thread::sleep(BUSY_PAUSE),
                Err(error) => {
                    return Err(Error::unavailable(
                        "the files were copied but not indexed yet; the next update of this source reads them",
                    )
                    .caused_by(error));
                }
            }
        }
    }

    /// Reports the result of each copy, and undoes refused copies.
    fn settle(&self, copied: &[(String, String)], staging: Staging, summary: &mut Summary) -> Result<()> {
        let version = self.corpus.published()?;
        let mut restored = false;
        for (name, target) in copied {
            let entry = version.manifest().files.get(target).cloned().unwrap_or_default();
            let reasons: Vec<&str> = entry.faults.iter().map(|fault| fault.problem.as_str()).collect();
            let reason = (!reasons.is_empty()).then(|| reasons.join("; "));
            let (outcome, reason) = match entry.outcome() {
                Outcome::Succeeded if entry.documents == 0 => {
                    (Outcome::Failed, reason.or(Some("holds no speech".to_owned())))
                }
                outcome => (outcome, reason),
            };
            summary.add(name, outcome, reason);
            if outcome == Outcome::Succeeded {
                summary.total_chunks_created += entry.passages;
                continue;
            }
            match staging.undo(target) {
                Ok(previous) => restored |= previous,
                Err(error) => tracing::warn!(%error, file = target, "a refused file could not be removed"),
            }
        }
        staging.finish();
        if restored {
            self.update()?;
        }
        Ok(())
    }
}

/// The document that already has a speech's text or id.
struct Holder {
    description: String,
    file: String,
}

fn relative(base: &Path, file: &Path) -> String {
    let relative = file.strip_prefix(base).unwrap_or(file);
    let parts: Vec<_> = relative.iter().map(|part| part.to_string_lossy()).collect();
    parts.join("/")
}

#[derive(Default)]
struct Found {
    record: Option<Record>,
    faults: Vec<String>,
}

impl Sink for Found {
    fn record(&mut self, _: Option<u64>, record: Record, _: Vec<String>) -> std::result::Result<(), Stop> {
        self.record = Some(record);
        Ok(())
    }

    fn fault(&mut self, _: Option<u64>, _: bool, problem: String) {
        self.faults.push(problem);
    }
}
