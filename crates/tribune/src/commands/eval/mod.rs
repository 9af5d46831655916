//! `tribune eval`: how well searches find what they should.
//!
//! - [`beir`]: a public dataset; [`prepare`]: its documents as a corpus; [`measure`]: its queries asked;
//! - [`questions`]: a user's own questions, asked of what is served;
//! - [`metrics`], [`bootstrap`]: the figures, and how sure a difference is;
//! - [`report`], [`files`]: what is printed and written.

mod beir;
mod bootstrap;
mod contender;
mod files;
mod lines;
mod measure;
mod metrics;
mod prepare;
mod progress;
mod questions;
mod report;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};

use self::beir::Dataset;
use self::bootstrap::Difference;
use self::contender::{Contender, model_named};
use self::measure::measure;
use self::prepare::{Prepared, Workshop};
use self::report::{Outcome, Report, Round};
use super::ask::quiet;
use super::{plural, print};
use crate::cli::{Common, Eval};
use crate::config::Config;
use crate::logging;

pub fn run(common: &Common, args: &Eval) -> anyhow::Result<ExitCode> {
    let _logs = logging::start(&quiet(common))?;
    match &args.queries {
        Some(file) => questions::run(common, args, file),
        None => datasets(common, args),
    }
}

fn datasets(common: &Common, args: &Eval) -> anyhow::Result<ExitCode> {
    if args.run.is_some() && args.beir.len() > 1 {
        bail!("--run writes the run of one dataset; give one --beir at a time");
    }
    let config = configuration(common)?;
    let model = args.embedder.as_deref().map(model_named).transpose()?;
    let contender = Contender::new(model.unwrap_or_else(|| config.embedder.clone()), args.legs)?;
    let rival = args.against.as_deref().map(Contender::parse).transpose();
    let rival = rival.context("--against")?;
    if rival.as_ref() == Some(&contender) {
        bail!("--against names what is measured anyway; name another model or other legs");
    }
    // All of them before the first hour of work.
    let datasets = args
        .beir
        .iter()
        .map(|dir| opened(dir, args))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let mut workshop = Workshop::new(&config.data_dir, args.fresh)?;
    let mut outcomes = Vec::with_capacity(datasets.len());
    for dataset in &datasets {
        outcomes.push(outcome(&mut workshop, dataset, args, &contender, rival.as_ref())?);
    }
    let differences: Vec<Vec<f64>> = outcomes.iter().filter_map(differences).collect();
    let report = Report {
        difference: (!differences.is_empty()).then(|| Difference::of(&differences, args.seed)),
        outcomes,
        seed: args.seed,
    };
    if let Some(path) = &args.per_query {
        files::write_lines(path, files::per_query(&report.outcomes))?;
    }
    if let (Some(path), [only]) = (&args.run, report.outcomes.as_slice()) {
        files::trec_run(path, &only.first.measured.answers)?;
    }
    if args.json {
        print(&serde_json::to_string_pretty(&report.json())?)?;
    } else {
        print(&report.readable())?;
    }
    Ok(above_floor(args, report.ndcg()))
}

/// A dataset brings its own documents, so the demo is not needed: without a configuration, indexes
/// are kept where a configuration here would keep them.
fn configuration(common: &Common) -> anyhow::Result<Config> {
    let named = common.config.as_deref().filter(|path| !path.as_os_str().is_empty());
    match Config::load(named)? {
        Some(config) => Ok(config),
        None => Config::defaults(),
    }
}

fn opened(dir: &Path, args: &Eval) -> anyhow::Result<Dataset> {
    let mut dataset = Dataset::open(dir, &args.split)?;
    if let Some(limit) = args.limit_queries {
        dataset.queries.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    }
    Ok(dataset)
}

fn outcome(
    workshop: &mut Workshop,
    dataset: &Dataset,
    args: &Eval,
    contender: &Contender,
    rival: Option<&Contender>,
) -> anyhow::Result<Outcome> {
    // Opened anew for each, though it may be the same corpus: what one has read would be quick for the other.
    let mut round = |contender: &Contender| -> anyhow::Result<Round> {
        let prepared = workshop.prepare(dataset, &contender.embedder)?;
        Ok(Round {
            contender: contender.clone(),
            measured: measure(&prepared.snapshot, dataset, contender.legs)?,
            prepared,
        })
    };
    let first = round(contender)?;
    let second = rival.map(round).transpose()?;
    let notes = notes(dataset, &first.prepared)?;
    let mut outcome = Outcome {
        dataset: dataset.name.clone(),
        split: args.split.clone(),
        first,
        second,
        difference: None,
        notes,
    };
    outcome.difference = differences(&outcome).map(|differences| Difference::of(&[differences], args.seed));
    Ok(outcome)
}

fn differences(outcome: &Outcome) -> Option<Vec<f64>> {
    let second = outcome.second.as_ref()?;
    Some(outcome.first.measured.differences(&second.measured))
}

/// What makes figures lower than they could be, or not those of the dataset.
fn notes(dataset: &Dataset, prepared: &Prepared) -> anyhow::Result<Vec<String>> {
    let mut notes = Vec::new();
    if prepared.faults_in_all > 0 {
        let first = prepared.faults.join("; ");
        let count = plural(prepared.faults_in_all, "problem");
        notes.push(format!("{count} with the documents, such as: {first}"));
    }
    let mut unknown: Vec<&str> = Vec::new();
    let mut judged = 0;
    for query in &dataset.queries {
        for (document, relevance) in &query.judged {
            if *relevance > 0 {
                judged += 1;
                if !prepared.snapshot.holds(document)? {
                    unknown.push(document);
                }
            }
        }
    }
    if let Some(first) = unknown.iter().min() {
        let count = unknown.len();
        notes.push(format!(
            "{count} of {judged} relevant documents are not in the corpus (such as `{first}`) and count as not found"
        ));
    }
    if dataset.unknown_queries > 0 {
        let count = dataset.unknown_queries;
        notes.push(format!(
            "{count} judged queries are not in queries.jsonl and are left out"
        ));
    }
    Ok(notes)
}

fn above_floor(args: &Eval, ndcg: f64) -> ExitCode {
    match args.floor {
        Some(floor) if ndcg < floor => {
            eprintln!("tribune: nDCG@10 is {ndcg:.4}, below the floor of {floor}");
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}
