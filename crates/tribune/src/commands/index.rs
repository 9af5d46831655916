//! `tribune index`, once or with `--watch` for as long as it runs.

#![allow(clippy::disallowed_methods, reason = "another process is waited for")]

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::bail;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tribune_core::Source;
use tribune_corpus::follow::{Event, Listener, follow};
use tribune_corpus::format::Fault;
use tribune_corpus::{DocumentsSource, EmbedReport, IndexError, IndexReport};

use super::progress::{Progress, Step};
use super::{chain, config, plural, runtime, stop_signal};
use crate::cli::{Common, Index};
use crate::compose::Corpora;
use crate::logging;

/// Faults shown for one source; the rest are counted.
const MAX_FAULTS_SHOWN: usize = 20;
/// How long another process that indexes the same source is waited for: it does the same work.
pub const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(100);

pub fn run(common: &Common, args: &Index) -> anyhow::Result<ExitCode> {
    let _logs = logging::start(common)?;
    let config = config(common)?;
    let corpora = Corpora::for_indexing(&config)?;
    let chosen = choose(&corpora, &args.sources)?;
    if args.watch {
        runtime()?.block_on(watch(chosen, args.json));
        return Ok(ExitCode::SUCCESS);
    }
    // Keyword search works without a model, but the user must learn that no vectors were built.
    let lacking = chosen.iter().any(|corpus| corpora.embedders.lacks_model(corpus.name()));
    let done = once(&chosen, args.json)?;
    Ok(if lacking { ExitCode::FAILURE } else { done })
}

fn choose(corpora: &Corpora, names: &[String]) -> anyhow::Result<Vec<Arc<DocumentsSource>>> {
    let all: Vec<_> = corpora.built.iter().filter_map(|built| built.corpus.clone()).collect();
    if names.is_empty() {
        return Ok(all);
    }
    let mut chosen = Vec::new();
    for name in names {
        match all.iter().find(|corpus| corpus.name() == name) {
            Some(corpus) => chosen.push(corpus.clone()),
            None => {
                let known: Vec<&str> = all.iter().map(|corpus| corpus.name()).collect();
                bail!("there is no source `{name}`; there are: {}", known.join(", "));
            }
        }
    }
    Ok(chosen)
}

fn once(chosen: &[Arc<DocumentsSource>], json: bool) -> anyhow::Result<ExitCode> {
    let progress = Progress::start();
    let mut failed = false;
    let mut reports = Vec::new();
    for corpus in chosen {
        let name = corpus.name();
        let report = match update_with_progress(corpus, &progress, PATIENCE) {
            Ok(report) => report,
            Err(error) => {
                failed = true;
                let problem = chain(&error);
                if !json {
                    progress.complain(&problem);
                }
                reports.push(json!({"source": name, "error": problem}));
                continue;
            }
        };
        let faults: Vec<&Fault> = report.faults.iter().collect();
        if !json {
            progress.print(&summary(name, &report, &faults))?;
        }
        // Full text serves already; vectors come behind it.
        let (line, vectors) = match embed_with_progress(corpus, &progress) {
            Ok(None) => (None, Value::Null),
            Ok(Some(made)) => (Some(embedded(&made)), embedded_json(&made)),
            Err(IndexError::Busy(_)) => {
                (Some("another process is building the vectors".to_owned()), json!({"elsewhere": true}))
            }
            Err(error) => {
                failed = true;
                let problem = chain(&error.into());
                (Some(problem.clone()), json!({"error": problem}))
            }
        };
        if let Some(line) = line.filter(|_| !json) {
            progress.print(&format!("  {line}"))?;
        }
        let mut entry = as_json(name, &report, &faults);
        entry["vectors"] = vectors;
        reports.push(entry);
    }
    if json {
        progress.print(&serde_json::to_string_pretty(&reports)?)?;
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// One update. Another process at the same work is waited for, at most for `patience`.
pub fn update_with_progress(
    corpus: &DocumentsSource,
    progress: &Progress,
    patience: Duration,
) -> anyhow::Result<IndexReport> {
    let name = corpus.name();
    let until = Instant::now() + patience;
    let mut waiting = false;
    loop {
        let report = corpus.update(&CancellationToken::new(), &|state| {
            progress.show(name, Step::Files, state.files_done, state.files_total);
        });
        progress.done(name, Step::Files);
        match report {
            Err(IndexError::Busy(_)) if Instant::now() < until => {
                if !waiting {
                    waiting = true;
                    let secs = patience.as_secs();
                    progress.complain(&format!(
                        "source `{name}` is being indexed by another process; waiting for it, {secs} s at most"
                    ));
                }
                std::thread::sleep(LOOK_AGAIN_AFTER);
            }
            other => return Ok(other?),
        }
    }
}

/// Builds the vectors that a corpus lacks; `None` without a model.
pub fn embed_with_progress(corpus: &DocumentsSource, progress: &Progress) -> Result<Option<EmbedReport>, IndexError> {
    let name = corpus.name();
    let report = corpus.embed(&CancellationToken::new(), &|state| {
        progress.show(name, Step::Passages, state.done, state.total);
    });
    progress.done(name, Step::Passages);
    report
}

/// Follows the folders until it is told to stop.
async fn watch(chosen: Vec<Arc<DocumentsSource>>, json: bool) {
    let cancel = CancellationToken::new();
    let listener: Listener = lines(json);
    let mut following = JoinSet::new();
    for corpus in chosen {
        following.spawn(follow(corpus, true, cancel.clone(), listener.clone()));
    }
    stop_signal().await;
    cancel.cancel();
    tokio::select! {
        _ = following.join_all() => {}
        // A second signal exits at once; an interrupted run changes nothing.
        () = stop_signal() => std::process::exit(130),
    }
}

/// Prints events as lines, with progress bars.
fn lines(json: bool) -> Listener {
    let progress = Progress::start();
    Arc::new(move |source, event| {
        let line = match &event {
            Event::Indexing(state) => return progress.show(source, Step::Files, state.files_done, state.files_total),
            Event::Updated => return progress.done(source, Step::Files),
            Event::Embedding(state) => return progress.show(source, Step::Passages, state.done, state.total),
            Event::Indexed(report, faults) if json => as_json(source, report, faults).to_string(),
            Event::Indexed(report, faults) => summary(source, report, faults),
            Event::Embedded(report) if report.embedded == 0 => return progress.done(source, Step::Passages),
            Event::Embedded(report) if json => json!({"source": source, "vectors": embedded_json(report)}).to_string(),
            Event::Embedded(report) => format!("{source}: {}", embedded(report)),
            Event::Failed(problem) if json => json!({"source": source, "error": problem}).to_string(),
            Event::Failed(problem) => {
                progress.done(source, Step::Files);
                progress.done(source, Step::Passages);
                return progress.complain(problem);
            }
        };
        progress.done(source, Step::Files);
        if matches!(event, Event::Embedded(_)) {
            progress.done(source, Step::Passages);
        }
        // A reader that is gone is no reason to stop indexing.
        drop(progress.print(&line));
    })
}

fn summary(name: &str, report: &IndexReport, faults: &[&Fault]) -> String {
    let mut text = format!(
        "{name}: {} in the index ({} read, {} unchanged, {} removed; {:.2} s)",
        plural(report.documents, "document"),
        plural(report.files_read, "file"),
        report.files_unchanged,
        report.files_removed,
        report.elapsed.as_secs_f64()
    );
    let skipped = report.summary.skipped;
    if skipped > 0 {
        text.push_str(&format!("\n  {} skipped, because their text is indexed already", plural(skipped, "file")));
    }
    if !report.skipped.is_empty() {
        text.push_str(&format!("\n  not indexed: {}", report.skipped.join(", ")));
    }
    // Skipped files matter more than warnings.
    let left_out = faults.iter().filter(|fault| fault.skipped);
    let taken = faults.iter().filter(|fault| !fault.skipped);
    for fault in left_out.chain(taken).take(MAX_FAULTS_SHOWN) {
        text.push_str(&format!("\n  {fault}"));
    }
    // Where only new faults are shown, those shown before are not "more".
    let known = report.faults.len() - faults.len();
    let more = report.faults_in_all.saturating_sub((known + faults.len().min(MAX_FAULTS_SHOWN)) as u64);
    if more > 0 && !faults.is_empty() {
        text.push_str(&format!("\n  and {} more", plural(more, "problem")));
    }
    text
}

fn embedded(report: &EmbedReport) -> String {
    format!(
        "{} embedded by {} ({} in the index; {:.2} s)",
        plural(report.embedded, "passage"),
        report.model,
        report.passages,
        report.elapsed.as_secs_f64()
    )
}

fn embedded_json(report: &EmbedReport) -> Value {
    json!({
        "model": report.model,
        "made": report.embedded,
        "passages": report.passages,
        "elapsed_ms": report.elapsed.as_millis() as u64,
    })
}

fn as_json(name: &str, report: &IndexReport, faults: &[&Fault]) -> Value {
    json!({
        "source": name,
        "documents": report.documents,
        "documents_read": report.documents_read,
        "files": report.files,
        "files_read": report.files_read,
        "files_unchanged": report.files_unchanged,
        "files_removed": report.files_removed,
        "passages": report.passages,
        "summary": report.summary,
        "faults_in_all": report.faults_in_all,
        "not_indexed": report.skipped,
        "faults": faults,
        "elapsed_ms": report.elapsed.as_millis() as u64,
    })
}
