//! What is written for other tools: each query, and the run as a whole.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, bail};
use serde_json::{Map, Value, json};

use super::measure::Answered;
use super::metrics::SHORT;
use super::report::{Outcome, members, rounded, scores_json};

/// One JSON object a line.
pub fn write_lines(path: &Path, lines: impl Iterator<Item = Map<String, Value>>) -> anyhow::Result<()> {
    write(path, |out| {
        for line in lines {
            writeln!(out, "{}", Value::Object(line))?;
        }
        Ok(())
    })
}

/// What became of each query, in both configurations.
pub fn per_query(outcomes: &[Outcome]) -> impl Iterator<Item = Map<String, Value>> {
    outcomes.iter().flat_map(|outcome| {
        let second = outcome.second.as_ref();
        outcome
            .first
            .measured
            .answers
            .iter()
            .enumerate()
            .map(move |(at, answer)| {
                let mut line = members(json!({"dataset": outcome.dataset, "query": answer.query}));
                line.extend(answer_json(answer));
                if let Some(answer) = second.and_then(|round| round.measured.answers.get(at)) {
                    line.insert("against".to_owned(), answer_json(answer).into());
                }
                line
            })
    })
}

fn answer_json(answer: &Answered) -> Map<String, Value> {
    let found: Vec<&String> = answer.found.iter().take(SHORT).collect();
    let mut object = scores_json(&answer.scores);
    object.extend(members(json!({"ms": rounded(answer.ms, 3), "found": found})));
    object
}

/// `query Q0 document rank score tag`. Tools sort by the score, so it is made of the rank: equal
/// scores would be put in another order than was measured.
pub fn trec_run(path: &Path, answers: &[Answered]) -> anyhow::Result<()> {
    for id in answers
        .iter()
        .flat_map(|answer| answer.found.iter().chain([&answer.query]))
    {
        if id.contains(char::is_whitespace) {
            bail!("the id `{id}` has white space in it, which a TREC run cannot hold; use --per-query instead");
        }
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
    written().with_context(|| format!("{} cannot be written", path.display()))
}
