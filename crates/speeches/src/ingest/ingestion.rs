//! One call of an ingestion tool: finds files, copies those with new speeches, indexes them and reports on each.
//!
//! A file is read before it is copied, so only files with speeches replace others. Each copy ends with a rename: a
//! killed call leaves whole files, which the next update of the source indexes.

#![allow(clippy::disallowed_methods, reason = "another process is waited for")]

use std::fs::{self, File};
use std::io;
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
use tribune_corpus::manifest::{self, Outcome};
use tribune_corpus::{Condition, DocumentsSource, Folder, IndexError};

use super::Policy;

/// The folder of copies, below the source's folder.
const INGESTED: &str = "ingested";
const LOCK: &str = ".lock";
const MAX_FILES: usize = 10_000;
/// Files listed in an answer; the rest are counted.
const MAX_LISTED: usize = 100;
const MAX_FAULTS: usize = 20;
/// How long to wait for another indexing run.
const MAX_BUSY: Duration = Duration::from_secs(30);
const BUSY_PAUSE: Duration = Duration::from_millis(200);

#[derive(Default, Serialize, JsonSchema)]
pub(super) struct Summary {
    #[serde(flatten)]
    pub(super) counts: manifest::Summary,
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
        self.counts.count(outcome);
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
    pub from: PathBuf,
    /// The source's own folder.
    pub into: Arc<Folder>,
}

#[derive(Clone)]
pub(crate) struct Ingestion {
    pub(crate) corpus: Arc<DocumentsSource>,
    pub(crate) incoming: Incoming,
}

/// A copy below the source's folder.
struct Copied {
    target: String,
    /// Whether it may have taken the place of another file.
    replaces: bool,
}

/// Why a file was not copied.
type NotCopied = (Outcome, String);

fn failed(reason: impl Into<String>) -> NotCopied {
    (Outcome::Failed, reason.into())
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
        if path.is_dir() != directory {
            let (found, tool) = if directory { ("file", "file") } else { ("folder", "directory") };
            let problem = format!("`{shown}` is a {found}: call the tool for a {tool} instead");
            return Err(Error::invalid_argument(problem));
        }
        Ok(path)
    }

    /// `policy` is for speeches whose text or id is indexed already. Blocks; not for async threads.
    pub(super) fn run(
        &self,
        path: &Path,
        policy: Policy,
        progress: &Progress,
        cancel: &CancellationToken,
    ) -> Result<Summary> {
        let files = self.files(path)?;
        let _one_at_a_time = self.lock().map_err(|e| {
            Error::unavailable("the source's folder cannot be written, so nothing was ingested").caused_by(e)
        })?;
        let folder = self.incoming.from.canonicalize();
        let folder = folder.unwrap_or_else(|_| self.incoming.from.clone());
        let mut summary = Summary::default();
        summary.counts.total_files = files.len() as u64;
        let mut copied: Vec<(String, Copied)> = Vec::new();
        let total = files.len() as f64;
        for (done, file) in files.iter().enumerate() {
            if cancel.is_cancelled() {
                summary.note = Some("stopped because the caller went away; what was copied is indexed".to_owned());
                break;
            }
            let name = relative(&folder, file);
            progress.report(done as f64, Some(total + 1.0), Some(&name));
            match self.copy(file, &name, policy) {
                Ok(copy) => copied.push((name, copy)),
                Err((outcome, reason)) => summary.add(&name, outcome, Some(reason)),
            }
        }
        if !copied.is_empty() {
            progress.report(total, Some(total + 1.0), Some("indexing"));
            self.update()?;
            self.report(copied, &mut summary)?;
        }
        progress.report(total + 1.0, Some(total + 1.0), Some("done"));
        if files.len() > MAX_LISTED {
            summary.files.sort_by_key(|file| file.outcome == Outcome::Succeeded);
            summary.files.truncate(MAX_LISTED);
        }
        Ok(summary)
    }

    /// Waits for other ingestions into the folder, also of other processes.
    fn lock(&self) -> io::Result<File> {
        let folder = self.incoming.into.path().join(INGESTED);
        fs::create_dir_all(&folder)?;
        let lock = File::create(folder.join(LOCK))?;
        lock.lock()?;
        Ok(lock)
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

    /// Copies a file into the source's folder if it has a new speech, or if it may replace the file that has them.
    fn copy(&self, file: &Path, name: &str, policy: Policy) -> std::result::Result<Copied, NotCopied> {
        let into = &self.incoming.into;
        let mut target = format!("{INGESTED}/{name}");
        let mut found = FirstNewSpeech { ingestion: self, target: &target, held: None, faults: Vec::new() };
        let has_new_speech = into.read_file(file, &target, &mut found) == Err(Stop);
        let held = match found.held {
            None if !has_new_speech && found.faults.is_empty() => return Err(failed("holds no speech")),
            None if !has_new_speech => return Err(failed(found.faults.join("; "))),
            Some(held) if !has_new_speech => Some(held),
            _ => into.path().join(&target).exists().then(|| Existing {
                description: "a file of that name was ingested before".to_owned(),
                replaceable: Some(target.clone()),
            }),
        };
        let replaces = held.is_some();
        match (policy, held) {
            (_, None) => {}
            (Policy::Skip, Some(held)) => return Err((Outcome::Skipped, held.description)),
            (Policy::Update, Some(Existing { replaceable: Some(file), .. })) => target = file,
            (Policy::Update, Some(held)) => {
                return Err(failed(format!("{}, which is not replaced: change it there", held.description)));
            }
            (Policy::Error, Some(held)) => return Err(failed(held.description)),
        }
        place(file, &into.path().join(&target)).map_err(|e| failed(format!("could not be copied: {e}")))?;
        Ok(Copied { target, replaces })
    }

    /// The document with the same text or id as a record for `target`; `None` if nothing is indexed yet.
    fn holder(&self, record: &Record, target: &str) -> Option<Existing> {
        let published = self.corpus.seen_in_full().ok()?;
        let hash = record.fields.get("content_hash").and_then(Value::as_str);
        // As the index decides: the same text for other readers is another speech.
        let readers = self.incoming.into.readers(target).narrowed(&record.readers);
        let by_text = hash.and_then(|hash| {
            let condition = Condition::Is { field: "content_hash".to_owned(), value: hash.to_owned() };
            published.only(&readers).holder(condition).ok().flatten()
        });
        let by_id = published.file_of(&record.key).ok().flatten();
        let is_one = by_text.as_ref().zip(by_id.as_ref()).is_none_or(|((_, file), other)| file == other);
        let (description, file) = match (by_text, by_id) {
            (Some((key, file)), _) => (format!("the same text as {key} in {file}"), file),
            (None, Some(file)) => (format!("the id of {} in {file}, which has another text", record.key), file),
            (None, None) => return None,
        };
        let replaceable = (is_one && self.is_replaceable(&file, target)).then_some(file);
        Some(Existing { description, replaceable })
    }

    /// Replaces only ingested files of one speech, or of the same name: the owner's own files stay as they are.
    fn is_replaceable(&self, file: &str, target: &str) -> bool {
        let path = Path::new(file);
        let format = self.incoming.into.reading().formats.find(path);
        let holds_one = format.is_some_and(|format| !format.holds_many());
        path.starts_with(INGESTED) && (file == target || holds_one)
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

    /// Reports the result of each copy. New files of which nothing is indexed, because two of them have the same
    /// text, do not stay.
    fn report(&self, copied: Vec<(String, Copied)>, summary: &mut Summary) -> Result<()> {
        let version = self.corpus.seen_in_full()?;
        for (name, Copied { target, replaces }) in copied {
            let entry = version.manifest().files.get(&target).cloned().unwrap_or_default();
            let reasons: Vec<&str> = entry.faults.iter().map(|fault| fault.problem.as_str()).collect();
            let outcome = match entry.outcome() {
                Outcome::Succeeded if entry.documents == 0 => Outcome::Failed,
                outcome => outcome,
            };
            summary.add(&name, outcome, (!reasons.is_empty()).then(|| reasons.join("; ")));
            summary.counts.total_chunks_created += entry.passages;
            if outcome != Outcome::Succeeded
                && !replaces
                && let Err(error) = fs::remove_file(self.incoming.into.path().join(&target))
            {
                tracing::warn!(%error, file = target, "a file without new speeches could not be removed");
            }
        }
        Ok(())
    }
}

/// Copies by a rename: readers see the old file or the whole new one. The partial file is hidden, so it is not indexed.
fn place(from: &Path, to: &Path) -> io::Result<()> {
    let name = to.file_name().unwrap_or_default().to_string_lossy();
    let part = to.with_file_name(format!(".{name}.part"));
    to.parent().map_or(Ok(()), fs::create_dir_all)?;
    let mut file = File::create(&part)?;
    io::copy(&mut File::open(from)?, &mut file)?;
    file.sync_all()?;
    fs::rename(part, to)
}

fn relative(base: &Path, file: &Path) -> String {
    let relative = file.strip_prefix(base).unwrap_or(file);
    let parts: Vec<_> = relative.iter().map(|part| part.to_string_lossy()).collect();
    parts.join("/")
}

/// The document that already has a speech's text or id.
struct Existing {
    description: String,
    /// Its file, if a new one may replace it.
    replaceable: Option<String>,
}

/// Reads a file up to its first new speech.
struct FirstNewSpeech<'a> {
    ingestion: &'a Ingestion,
    target: &'a str,
    /// Of the first speech, if it is not new.
    held: Option<Existing>,
    faults: Vec<String>,
}

impl Sink for FirstNewSpeech<'_> {
    fn record(&mut self, _: Option<u64>, record: Record, _: Vec<String>) -> std::result::Result<(), Stop> {
        let held = self.ingestion.holder(&record, self.target).ok_or(Stop)?;
        self.held.get_or_insert(held);
        Ok(())
    }

    fn fault(&mut self, _: Option<u64>, _: bool, problem: String) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(problem);
        }
    }
}
