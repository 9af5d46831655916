//! `tribune eval`: how well searches find what they should.
//!
//! - [`beir`]: a public dataset; [`prepare`]: its documents as a corpus; [`measure`]: its queries asked;
//! - [`questions`]: a user's own questions, asked of what is served;
//! - [`metrics`], [`bootstrap`]: the figures, and how sure a difference is;
//! - [`report`], [`files`]: what is printed and written of datasets.

mod beir;
mod bootstrap;
mod contender;
mod files;
mod lines;
mod measure;
mod metrics;
mod prepare;
mod questions;
mod report;

use std::process::ExitCode;

use anyhow::{Context, bail};

use self::beir::Dataset;
use self::bootstrap::Difference;
use self::contender::{Contender, legs_named, model_named};
use self::measure::measure;
use self::prepare::{DatasetIndexes, Prepared};
use self::report::{Outcome, Report, Round};
use super::ask::quiet;
use super::{named, plural, print_either};
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
        bail!("--run takes one dataset; name a single --beir");
    }
    // A dataset brings its own documents, so the demo is not needed.
    let config = Config::load(named(common))?.map_or_else(Config::defaults, Ok)?;
    let model = args.embedder.as_deref().map(model_named).transpose()?;
    let first = Contender::new(model.unwrap_or_else(|| config.embedder.clone()), legs_named(&args.legs)?)?;
    let second = args.against.as_deref().map(Contender::parse).transpose();
    let second = second.context("--against")?;
    if second.as_ref() == Some(&first) {
        bail!("--against is the same configuration; name another model or other legs");
    }
    // All of them before the first hour of work.
    let datasets = args.beir.iter().map(|dir| Dataset::open(dir, &args.split, args.limit()));
    let datasets = datasets.collect::<anyhow::Result<Vec<_>>>()?;
    let mut indexes = DatasetIndexes::new(&config.data_dir, args.fresh)?;
    let outcomes = datasets
        .iter()
        .map(|dataset| outcome(&mut indexes, dataset, args, &first, second.as_ref()))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let report = Report::new(outcomes, args.seed);
    if let Some(path) = &args.per_query {
        files::write_lines(path, files::per_query(&report.outcomes))?;
    }
    if let (Some(path), [only]) = (&args.run, report.outcomes.as_slice()) {
        files::trec_run(path, &only.first.answers)?;
    }
    print_either(args.json, &report.json(), || report.readable())?;
    Ok(above_floor(args, report.ndcg()))
}

fn outcome(
    indexes: &mut DatasetIndexes,
    dataset: &Dataset,
    args: &Eval,
    first: &Contender,
    second: Option<&Contender>,
) -> anyhow::Result<Outcome> {
    // Opened anew for each, though it may be the same corpus: what one has read would be quick for the other.
    let mut round = |contender: &Contender| -> anyhow::Result<(Round, Vec<String>)> {
        let prepared = indexes.prepare(dataset, &contender.embedder)?;
        let answers = measure(&prepared.snapshot, dataset, contender.legs)?;
        let notes = dataset_notes(dataset, &prepared)?;
        Ok((Round::new(dataset, &args.split, contender, prepared, answers), notes))
    };
    let (first, notes) = round(first)?;
    let second = second.map(round).transpose()?;
    let mut outcome = Outcome { first, second: second.map(|(second, _)| second), difference: None, notes };
    let differences = outcome.differences();
    outcome.difference = differences.map(|differences| Difference::of(&[differences], args.seed));
    Ok(outcome)
}

/// What makes figures lower than they could be, or not those of the dataset.
fn dataset_notes(dataset: &Dataset, prepared: &Prepared) -> anyhow::Result<Vec<String>> {
    let mut notes = Vec::new();
    if let Some(first) = prepared.indexed.faults.first() {
        let count = plural(prepared.indexed.faults_in_all, "problem");
        notes.push(format!("{count} with the documents, such as: {first}"));
    }
    let judged = dataset.queries.iter().flat_map(|query| &query.judged);
    let relevant: Vec<&String> = judged.filter(|(_, relevance)| **relevance > 0).map(|(id, _)| id).collect();
    let mut unknown: Vec<&str> = Vec::new();
    for document in &relevant {
        if !prepared.snapshot.holds(document)? {
            unknown.push(document);
        }
    }
    if let Some(first) = unknown.iter().min() {
        let (count, judged) = (unknown.len(), relevant.len());
        notes.push(format!(
            "{count} of {judged} relevant documents are not in the corpus (such as `{first}`) and count as not found"
        ));
    }
    if dataset.unknown_queries > 0 {
        let count = dataset.unknown_queries;
        notes.push(format!("{count} judged queries are not in queries.jsonl and were skipped"));
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
