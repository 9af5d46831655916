//! What is written for other tools: each query, and the run as a whole.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, bail};
use serde::Serialize;

use super::measure::QueryResult;
use super::report::Outcome;

/// The result of one query, in both configurations.
#[derive(Serialize)]
pub struct Line<'a> {
    dataset: &'a str,
    #[serde(flatten)]
    first: &'a QueryResult,
    #[serde(skip_serializing_if = "Option::is_none")]
    against: Option<&'a QueryResult>,
}

pub fn per_query(outcomes: &[Outcome]) -> impl Iterator<Item = Line<'_>> {
    outcomes.iter().flat_map(|outcome| {
        let against = outcome.second.iter().flat_map(|round| &round.answers);
        let against = against.map(Some).chain(std::iter::repeat(None));
        let pairs = outcome.first.answers.iter().zip(against);
        pairs.map(|(first, against)| Line { dataset: &outcome.first.dataset, first, against })
    })
}

/// One JSON object a line.
pub fn write_lines<T: Serialize>(path: &Path, lines: impl Iterator<Item = T>) -> anyhow::Result<()> {
    write(path, |out| {
        for line in lines {
            writeln!(out, "{}", serde_json::to_string(&line)?)?;
        }
        Ok(())
    })
}

/// `query Q0 document rank score tag`. Tools sort by the score, so it is made of the rank: equal
/// scores would be put in another order than was measured.
pub fn trec_run(path: &Path, answers: &[QueryResult]) -> anyhow::Result<()> {
    let ids = answers.iter().flat_map(|answer| answer.found.iter().chain([&answer.query]));
    if let Some(id) = ids.into_iter().find(|id| id.contains(char::is_whitespace)) {
        bail!("a TREC run cannot contain the id `{id}`, which has white space; use --per-query instead");
    }
    write(path, |out| {
        for answer in answers {
            let count = answer.found.len();
            for (at, document) in answer.found.iter().enumerate() {
                writeln!(out, "{} Q0 {document} {} {} tribune", answer.query, at + 1, count - at)?;
            }
        }
        Ok(())
    })
}

fn write(path: &Path, fill: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> anyhow::Result<()> {
    let written = || -> std::io::Result<()> {
        let mut out = BufWriter::new(File::create(path)?);
        fill(&mut out)?;
        out.flush()
    };
    written().with_context(|| format!("cannot write {}", path.display()))
}
