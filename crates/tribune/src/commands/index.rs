//! `tribune index`

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::bail;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tribune_core::Source;
use tribune_corpus::{DocumentsSource, IndexReport, Pool};

use super::{chain, config, plural, print};
use crate::cli::{Common, Index};
use crate::compose::corpora;
use crate::config::Config;
use crate::logging;

/// Faults shown for one source; the rest are counted.
const MAX_FAULTS_SHOWN: usize = 20;

pub fn run(common: &Common, args: &Index) -> anyhow::Result<ExitCode> {
    let _logs = logging::start(common)?;
    let (config, _demo) = config(common)?;
    let chosen = choose(&config, &args.sources)?;
    let mut failed = false;
    let mut reports = Vec::new();
    for corpus in chosen {
        let name = corpus.name().to_owned();
        match update_with_progress(&corpus) {
            Ok(report) => {
                if args.json {
                    reports.push(as_json(&name, &report));
                } else {
                    print(&summary(&name, &report))?;
                }
            }
            Err(error) => {
                failed = true;
                let told = chain(&error);
                if args.json {
                    reports.push(json!({"source": name, "error": told}));
                } else {
                    eprintln!("tribune: {told}");
                }
            }
        }
    }
    if args.json {
        print(&serde_json::to_string_pretty(&reports)?)?;
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn choose(config: &Config, names: &[String]) -> anyhow::Result<Vec<Arc<DocumentsSource>>> {
    let all = corpora(config, &Pool::for_background()?)?;
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

/// One update, with a progress bar where somebody is watching.
pub fn update_with_progress(corpus: &DocumentsSource) -> anyhow::Result<IndexReport> {
    let bar = if std::io::stderr().is_terminal() {
        ProgressBar::new(0)
    } else {
        ProgressBar::hidden()
    };
    if let Ok(style) = ProgressStyle::with_template("{prefix} [{bar:30}] {pos}/{len} files, {msg} documents, {elapsed}")
    {
        bar.set_style(style);
    }
    bar.set_prefix(corpus.name().to_owned());
    let report = corpus.update(&CancellationToken::new(), &|state| {
        bar.set_length(state.files_total);
        bar.set_position(state.files_done);
        bar.set_message(state.documents.to_string());
    });
    bar.finish_and_clear();
    Ok(report?)
}

fn summary(name: &str, report: &IndexReport) -> String {
    let mut text = format!(
        "{name}: {} in the index ({} read, {} unchanged, {} removed; {:.2} s)",
        plural(report.documents, "document"),
        plural(report.files_read, "file"),
        report.files_unchanged,
        report.files_removed,
        report.elapsed.as_secs_f64()
    );
    for fault in report.faults.iter().take(MAX_FAULTS_SHOWN) {
        text.push_str(&format!("\n  {fault}"));
    }
    let more = report
        .faults_in_all
        .saturating_sub(report.faults.len().min(MAX_FAULTS_SHOWN) as u64);
    if more > 0 {
        text.push_str(&format!("\n  and {} more", plural(more, "problem")));
    }
    text
}

fn as_json(name: &str, report: &IndexReport) -> serde_json::Value {
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
        "faults": report.faults,
        "elapsed_ms": report.elapsed.as_millis() as u64,
    })
}
