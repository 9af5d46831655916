//! `ingest_hansard_file` and `ingest_hansard_directory`: speeches are copied from one folder, the
//! only one these tools ever read, into the source's own, and indexed.

use std::convert::Infallible;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use serde::Serialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tribune_core::wire::{clip, object};
use tribune_core::{
    CallContext, Error, ErrorKind, Hints, JsonObject, Principal, Progress, Result, Tool, ToolOutput, ToolSpec,
};

use crate::filter::Condition;
use crate::indexer::IndexError;
use crate::read::{Format, Input, Reading, Record, Sink};
use crate::snapshot::Snapshot;
use crate::source::DocumentsSource;

/// Copies go here, below the source's folder.
const INGESTED: &str = "ingested";
const MAX_FILES: usize = 10_000;
/// Files that an answer names; the rest are counted.
const MAX_LISTED: usize = 100;
/// How long another run of the indexer is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is ingested from and by which rules.
#[derive(Clone)]
pub(super) struct Desk {
    pub(super) corpus: Arc<DocumentsSource>,
    /// The only folder that is read.
    pub(super) base: PathBuf,
    /// One at a time: two calls about the same files would get into each other's way.
    pub(super) turn: Arc<Mutex<()>>,
}

pub(super) struct IngestTool {
    spec: ToolSpec,
    desk: Desk,
    directory: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Policy {
    Skip,
    Update,
    Error,
}

#[derive(Default, Serialize)]
struct Summary {
    total_files: usize,
    succeeded: usize,
    skipped: usize,
    failed: usize,
    total_chunks_created: u64,
    files: Vec<Outcome>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

#[derive(Serialize)]
struct Outcome {
    file: String,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl IngestTool {
    pub(super) fn file(desk: Desk, name: &str) -> Self {
        Self::new(desk, name, false)
    }

    pub(super) fn directory(desk: Desk, name: &str) -> Self {
        Self::new(desk, name, true)
    }

    fn new(desk: Desk, name: &str, directory: bool) -> Self {
        Self {
            spec: spec(name, directory),
            desk,
            directory,
        }
    }
}

#[async_trait]
impl Tool for IngestTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, args: JsonObject, cx: &CallContext) -> Result<ToolOutput> {
        if cx.principal == Principal::Anonymous {
            return Err(Error::new(
                ErrorKind::Forbidden,
                "speeches are ingested only for callers who have shown the administrator's token".to_owned(),
            ));
        }
        let given = args.get("path").and_then(Value::as_str).unwrap_or(".").to_owned();
        let policy = match args.get("duplicates").and_then(Value::as_str) {
            Some("update") => Policy::Update,
            Some("error") => Policy::Error,
            _ => Policy::Skip,
        };
        let path = self.desk.resolve(&given, self.directory)?;
        let (desk, progress, cancel) = (self.desk.clone(), cx.progress.clone(), cx.cancel.clone());
        let work = move || desk.ingest(&path, policy, &progress, &cancel);
        let summary = tokio::task::spawn_blocking(work)
            .await
            .map_err(|e| Error::internal("ingesting failed unexpectedly; the log has the details").caused_by(e))??;
        let count = summary.succeeded;
        ToolOutput::structured(&summary, count)
    }
}

impl Desk {
    /// The real path of what is named, which must lie in the folder.
    fn resolve(&self, given: &str, directory: bool) -> Result<PathBuf> {
        let outside = || {
            Error::invalid_argument(format!(
                "`path` leads out of the folder that speeches are ingested from: {}. Give a path below that folder, such as \"2024/may.md\".",
                clip(given, 200)
            ))
        };
        let base = self.base.canonicalize().map_err(|e| {
            Error::unavailable(
                "the folder that speeches are ingested from cannot be read; correct ingest_dir in the configuration",
            )
            .caused_by(e)
        })?;
        // Refused before the disk is asked, so that an answer tells nothing about what lies outside.
        let relative = Path::new(given);
        let within = relative
            .components()
            .all(|part| matches!(part, std::path::Component::Normal(_) | std::path::Component::CurDir));
        if !within || given.contains('\0') {
            return Err(outside());
        }
        let path = base.join(relative).canonicalize().map_err(|_| {
            Error::not_found(format!(
                "there is no `{}` in the folder that speeches are ingested from",
                clip(given, 200)
            ))
        })?;
        if !path.starts_with(&base) {
            return Err(outside());
        }
        if path.is_dir() != directory {
            let (is, other) = if directory {
                ("a file", "file")
            } else {
                ("a folder", "directory")
            };
            return Err(Error::invalid_argument(format!(
                "`{}` is {is}: call the tool for a {other} instead",
                clip(given, 200)
            )));
        }
        Ok(path)
    }

    fn ingest(&self, path: &Path, policy: Policy, progress: &Progress, cancel: &CancellationToken) -> Result<Summary> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let base = self.base.canonicalize().unwrap_or_else(|_| self.base.clone());
        let files = self.files(path)?;
        let mut summary = Summary {
            total_files: files.len(),
            ..Summary::default()
        };
        let snapshot = self.corpus.published().ok();
        let mut copied: Vec<Copied> = Vec::new();
        let total = files.len() as f64;
        for (done, file) in files.iter().enumerate() {
            if cancel.is_cancelled() {
                summary.note = Some("stopped because the caller went away; what was copied is indexed".to_owned());
                break;
            }
            let name = relative(&base, file);
            progress.report(done as f64, Some(total + 1.0), Some(&name));
            match self.take(file, &name, policy, snapshot.as_deref()) {
                Ok(one) => copied.push(one),
                Err((outcome, reason)) => summary.add(name, outcome, Some(reason)),
            }
        }
        if !copied.is_empty() {
            progress.report(total, Some(total + 1.0), Some("indexing"));
            self.update()?;
        }
        self.account(copied, &mut summary)?;
        progress.report(total + 1.0, Some(total + 1.0), Some("done"));
        if summary.total_files > MAX_LISTED {
            summary.files.sort_by_key(|file| file.outcome == "succeeded");
            summary.files.truncate(MAX_LISTED);
        }
        Ok(summary)
    }

    /// Every file that holds speeches, at or below `path`. Links are not followed.
    fn files(&self, path: &Path) -> Result<Vec<PathBuf>> {
        let reading = self.corpus.reading();
        let mut files = Vec::new();
        for entry in walkdir::WalkDir::new(path).sort_by_file_name().into_iter().flatten() {
            if entry.file_type().is_file() && Format::of(entry.path(), reading).is_some() {
                files.push(entry.into_path());
            }
            if files.len() > MAX_FILES {
                return Err(Error::invalid_argument(format!(
                    "the folder holds more than {MAX_FILES} files; ingest its subfolders one after another"
                )));
            }
        }
        if files.is_empty() {
            return Err(Error::not_found(
                "nothing to ingest there: speeches come as .md, .txt, .xml, .jsonl or .csv files",
            ));
        }
        Ok(files)
    }

    /// Copies one file into the source's folder, if it holds anything that is not there yet. Gives
    /// what was done, or what became of the file instead, and why.
    fn take(
        &self,
        file: &Path,
        name: &str,
        policy: Policy,
        snapshot: Option<&Snapshot>,
    ) -> std::result::Result<Copied, (&'static str, String)> {
        let failed = |reason: String| ("failed", reason);
        let reading = self.corpus.reading();
        let format = Format::of(file, reading).ok_or(failed("is not a file of speeches".to_owned()))?;
        let bytes = fs::read(file).map_err(|e| failed(format!("cannot be read: {e}")))?;
        let mut target = format!("{INGESTED}/{name}");
        let held = if format.is_rows() {
            let before = fs::read(self.corpus.path().join(&target)).ok();
            before.map(|before| Held {
                told: if before == bytes {
                    "it was ingested before".to_owned()
                } else {
                    "another file of that name was ingested before".to_owned()
                },
                file: target.clone(),
            })
        } else {
            let record = self.only_record(file, &target, format, reading).map_err(failed)?;
            snapshot.and_then(|snapshot| holder(snapshot, &record))
        };
        if let Some(held) = held {
            match policy {
                Policy::Skip => return Err(("skipped", held.told)),
                Policy::Error => return Err(failed(held.told)),
                Policy::Update if !held.is_replaceable(&target, reading) => {
                    let told = format!(
                        "{}, in {}, which is not ours to replace: change it there",
                        held.told, held.file
                    );
                    return Err(failed(told));
                }
                Policy::Update => target = held.file,
            }
        }
        let before = fs::read(self.corpus.path().join(&target)).ok();
        write(&bytes, &self.corpus.path().join(&target)).map_err(|e| failed(format!("could not be copied: {e}")))?;
        Ok(Copied {
            name: name.to_owned(),
            target,
            before,
        })
    }

    fn only_record(
        &self,
        file: &Path,
        relative: &str,
        format: Format,
        reading: &Reading,
    ) -> std::result::Result<Record, String> {
        let mut found = Found::default();
        let input = Input {
            path: file,
            relative,
            format,
            reading,
            max_document_bytes: self.corpus.limits().max_document_bytes,
        };
        let Ok(()) = input.read(&mut found);
        found.record.ok_or_else(|| found.faults.join("; "))
    }

    fn update(&self) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.corpus.update(&CancellationToken::new(), &|_| {}) {
                Ok(_) => return Ok(()),
                Err(IndexError::Busy(_)) if Instant::now() < until => std::thread::sleep(Duration::from_millis(200)),
                Err(error) => {
                    return Err(Error::unavailable(
                        "the files were copied but could not be indexed yet; that is tried again when the folder is next looked at",
                    )
                    .caused_by(error));
                }
            }
        }
    }

    /// What the index says of the files that were copied. Where it refused one, what was there before
    /// is put back.
    fn account(&self, copied: Vec<Copied>, summary: &mut Summary) -> Result<()> {
        let snapshot = self.corpus.published()?;
        let mut put_back = false;
        for Copied { name, target, before } in copied {
            let entry = snapshot.manifest().files.get(&target);
            let reasons: Vec<&str> = entry
                .iter()
                .flat_map(|entry| &entry.faults)
                .map(|fault| fault.problem.as_str())
                .collect();
            let reason = (!reasons.is_empty()).then(|| reasons.join("; "));
            match entry {
                Some(entry) if entry.documents > 0 => {
                    summary.total_chunks_created += entry.passages;
                    summary.add(name, "succeeded", reason);
                    continue;
                }
                // Every text of a file of rows may be held elsewhere.
                Some(entry) if entry.duplicates > 0 && entry.duplicates == entry.faults_in_all => {
                    summary.add(name, "skipped", reason);
                }
                _ => {
                    let reason = reason.unwrap_or_else(|| "holds no speech".to_owned());
                    summary.add(name, "failed", Some(reason));
                }
            }
            let path = self.corpus.path().join(&target);
            put_back |= before.is_some();
            let undone = match before {
                Some(before) => write(&before, &path),
                None => fs::remove_file(&path),
            };
            if let Err(error) = undone {
                tracing::warn!(%error, file = target, "a file that was refused could not be taken away again");
            }
        }
        if put_back {
            self.update()?;
        }
        Ok(())
    }
}

/// A file that was copied into the source's folder, and what it took the place of.
struct Copied {
    /// Below the folder it came from.
    name: String,
    /// Below the source's folder.
    target: String,
    before: Option<Vec<u8>>,
}

impl Summary {
    fn add(&mut self, file: String, outcome: &'static str, reason: Option<String>) {
        match outcome {
            "succeeded" => self.succeeded += 1,
            "skipped" => self.skipped += 1,
            _ => self.failed += 1,
        }
        let reason = reason.map(|reason| clip(&reason, 300).into_owned());
        let file = clip(&file, 200).into_owned();
        self.files.push(Outcome { file, outcome, reason });
    }
}

/// What has this speech's text or id already.
struct Held {
    told: String,
    file: String,
}

impl Held {
    /// Only what was ingested is replaced: the owner's own files stay as they are.
    fn is_replaceable(&self, target: &str, reading: &Reading) -> bool {
        let path = Path::new(&self.file);
        let is_one_speech = Format::of(path, reading).is_some_and(|format| !format.is_rows());
        path.starts_with(INGESTED) && (is_one_speech || self.file == target)
    }
}

fn holder(snapshot: &Snapshot, record: &Record) -> Option<Held> {
    let hash = record.fields.get("content_hash").and_then(Value::as_str);
    let by_text = hash.and_then(|hash| {
        let condition = Condition::Is {
            field: "content_hash".to_owned(),
            value: hash.to_owned(),
        };
        snapshot.holder(condition).ok().flatten()
    });
    if let Some((key, file)) = by_text {
        return Some(Held {
            told: format!("the same text as {key}"),
            file,
        });
    }
    let file = snapshot.file_of(&record.key).ok().flatten()?;
    Some(Held {
        told: format!("the id of {}, which has another text", record.key),
        file,
    })
}

/// Whole or not at all: a follower of the folder must never see half a file.
fn write(bytes: &[u8], to: &Path) -> std::io::Result<()> {
    let folder = to.parent().ok_or_else(|| std::io::Error::other("has no folder"))?;
    fs::create_dir_all(folder)?;
    let name = to.file_name().unwrap_or_default().to_string_lossy();
    // Hidden, so that it is not taken for a document.
    let temporary = folder.join(format!(".{name}.part"));
    let mut file = fs::File::create(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(temporary, to)
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
    type Error = Infallible;

    fn record(&mut self, _: Option<u64>, record: Record, _: Vec<String>) -> std::result::Result<(), Infallible> {
        self.record = Some(record);
        Ok(())
    }

    fn fault(&mut self, _: Option<u64>, _: bool, problem: String) {
        self.faults.push(problem);
    }
}

fn spec(name: &str, directory: bool) -> ToolSpec {
    let (what, title) = if directory {
        (
            "every speech file of a folder, and of the folders in it,",
            "Ingest a folder of speeches",
        )
    } else {
        ("the speeches of one file", "Ingest a file of speeches")
    };
    let example = if directory { "2024" } else { "2024/may.md" };
    let mut properties = json!({
        "path": {
            "type": "string",
            "minLength": 1,
            "maxLength": 1000,
            "description": format!("Below the folder that the configuration names for ingesting, for example \"{example}\"."),
        },
        "duplicates": {
            "type": "string",
            "enum": ["skip", "update", "error"],
            "default": "skip",
            "description": "A speech whose text or id is held already: leave it out, let the new file take the old one's place, or count it as failed.",
        },
    });
    if directory {
        properties["path"]["default"] = json!(".");
    }
    ToolSpec {
        name: name.to_owned(),
        title: title.to_owned(),
        description: format!(
            "Take {what} into this collection: they are copied, checked and indexed.\n\
             Use this when: an administrator asks to add speeches that lie in the folder for ingesting.\n\
             Do not use: to search or to read speeches.\n\
             Limitations: reads nothing outside that folder; Markdown with front matter, Hansard XML, JSONL and CSV. One bad file never stops the rest.\n\
             Answers with total_files, succeeded, skipped, failed and total_chunks_created, and names what was skipped or failed and why."
        ),
        input_schema: object(json!({
            "type": "object",
            "properties": properties,
            "required": if directory { json!([]) } else { json!(["path"]) },
        })),
        output_schema: object(json!({
            "type": "object",
            "properties": {
                "total_files": {"type": "integer"},
                "succeeded": {"type": "integer"},
                "skipped": {"type": "integer"},
                "failed": {"type": "integer"},
                "total_chunks_created": {"type": "integer", "description": "Passages that can now be found."},
                "files": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "file": {"type": "string"},
                            "outcome": {"type": "string", "enum": ["succeeded", "skipped", "failed"]},
                            "reason": {"type": "string", "description": "Why, or what was found odd."},
                        },
                        "required": ["file", "outcome"],
                    },
                },
                "note": {"type": "string"},
            },
            "required": ["total_files", "succeeded", "skipped", "failed", "total_chunks_created", "files"],
        })),
        // With `update` a file may take another's place.
        hints: Hints {
            read_only: false,
            destructive: true,
            idempotent: true,
            open_world: false,
        },
        icon: None,
        aliases: vec![
            ("file_path", "path"),
            ("directory_path", "path"),
            ("duplicate_policy", "duplicates"),
        ],
    }
}
