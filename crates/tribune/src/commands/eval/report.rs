//! What was measured, for people and for programs.

use serde_json::{Map, Value, json};

use super::bootstrap::{Difference, RESAMPLES};
use super::contender::Contender;
use super::measure::Measured;
use super::metrics::{Scores, percentile};
use super::prepare::Prepared;
use crate::commands::plural;

/// One configuration on one dataset.
pub struct Round {
    pub contender: Contender,
    pub prepared: Prepared,
    pub measured: Measured,
}

/// Everything about one dataset.
pub struct Outcome {
    pub dataset: String,
    pub split: String,
    pub first: Round,
    pub second: Option<Round>,
    pub difference: Option<Difference>,
    /// What is odd about the dataset.
    pub notes: Vec<String>,
}

/// All datasets of one run.
pub struct Report {
    pub outcomes: Vec<Outcome>,
    /// Over all datasets, each counting the same.
    pub difference: Option<Difference>,
    pub seed: u64,
}

/// What is printed of one configuration, on one dataset or on all.
struct Figures {
    scores: Scores,
    p50_ms: f64,
    p99_ms: f64,
}

impl Figures {
    fn of(round: &Round) -> Self {
        Self {
            scores: round.measured.mean(),
            p50_ms: round.measured.percentile(50.0),
            p99_ms: round.measured.percentile(99.0),
        }
    }

    /// The mean of the datasets' scores; the percentiles are over all queries.
    fn of_all(rounds: &[&Round]) -> Self {
        let times: Vec<f64> = rounds.iter().flat_map(|round| round.measured.times()).collect();
        Self {
            scores: Scores::mean(rounds.iter().map(|round| round.measured.mean())),
            p50_ms: percentile(&times, 50.0),
            p99_ms: percentile(&times, 99.0),
        }
    }

    fn json(&self) -> Map<String, Value> {
        scores_json(&self.scores)
            .into_iter()
            .chain(members(
                json!({"p50_ms": rounded(self.p50_ms, 3), "p99_ms": rounded(self.p99_ms, 3)}),
            ))
            .collect()
    }

    fn cells(&self) -> [String; 5] {
        [
            format!("{:.4}", self.scores.ndcg_10),
            format!("{:.4}", self.scores.recall_100),
            format!("{:.4}", self.scores.mrr_10),
            format!("{:.2}", self.p50_ms),
            format!("{:.2}", self.p99_ms),
        ]
    }
}

pub fn scores_json(scores: &Scores) -> Map<String, Value> {
    members(json!({
        "ndcg@10": rounded(scores.ndcg_10, 6),
        "recall@100": rounded(scores.recall_100, 6),
        "mrr@10": rounded(scores.mrr_10, 6),
    }))
}

/// The members of a literal object.
pub fn members(object: Value) -> Map<String, Value> {
    match object {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

pub fn rounded(value: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits);
    (value * scale).round() / scale
}

impl Report {
    /// nDCG@10 of the first configuration, over all datasets.
    pub fn ndcg(&self) -> f64 {
        Figures::of_all(&self.firsts()).scores.ndcg_10
    }

    fn firsts(&self) -> Vec<&Round> {
        self.outcomes.iter().map(|outcome| &outcome.first).collect()
    }

    fn seconds(&self) -> Vec<&Round> {
        self.outcomes
            .iter()
            .filter_map(|outcome| outcome.second.as_ref())
            .collect()
    }

    /// One flat object for one dataset; for several, a list and the mean.
    pub fn json(&self) -> Value {
        if let [only] = self.outcomes.as_slice() {
            return Value::Object(self.outcome_json(only));
        }
        let datasets: Vec<_> = self.outcomes.iter().map(|outcome| self.outcome_json(outcome)).collect();
        let mut mean = Figures::of_all(&self.firsts()).json();
        if let Some(difference) = &self.difference {
            mean.insert("against".to_owned(), Figures::of_all(&self.seconds()).json().into());
            mean.insert("difference".to_owned(), self.difference_json(difference));
        }
        json!({"datasets": datasets, "mean": mean})
    }

    fn outcome_json(&self, outcome: &Outcome) -> Map<String, Value> {
        let mut object = round_json(outcome, &outcome.first);
        if let Some(second) = &outcome.second {
            object.insert("against".to_owned(), round_json(outcome, second).into());
        }
        if let Some(difference) = &outcome.difference {
            object.insert("difference".to_owned(), self.difference_json(difference));
        }
        object.insert("notes".to_owned(), json!(outcome.notes));
        object
    }

    fn difference_json(&self, difference: &Difference) -> Value {
        json!({
            "ndcg@10": rounded(difference.mean, 6),
            "low": rounded(difference.low, 6),
            "high": rounded(difference.high, 6),
            "p": rounded(difference.p, 6),
            "wins": difference.wins,
            "ties": difference.ties,
            "losses": difference.losses,
            "resamples": RESAMPLES,
            "seed": self.seed,
        })
    }

    pub fn readable(&self) -> String {
        let mut text = table(&self.rows());
        text.push('\n');
        for outcome in &self.outcomes {
            for round in [Some(&outcome.first), outcome.second.as_ref()].into_iter().flatten() {
                text.push_str(&times_line(outcome, round));
            }
        }
        for outcome in &self.outcomes {
            if let Some(difference) = &outcome.difference {
                text.push_str(&format!("\n{}: ", outcome.dataset));
                text.push_str(&self.difference_lines(difference));
            }
        }
        if let Some(difference) = self.difference.as_ref().filter(|_| self.outcomes.len() > 1) {
            text.push_str("\nall, each dataset counting the same: ");
            text.push_str(&self.difference_lines(difference));
        }
        for outcome in &self.outcomes {
            for note in &outcome.notes {
                text.push_str(&format!("\nnote: {}: {note}", outcome.dataset));
            }
        }
        text
    }

    fn rows(&self) -> Vec<Vec<String>> {
        let header = [
            "dataset",
            "model",
            "ranked by",
            "documents",
            "passages",
            "queries",
            "nDCG@10",
            "Recall@100",
            "MRR@10",
            "p50 ms",
            "p99 ms",
        ];
        let mut rows: Vec<Vec<String>> = vec![header.map(str::to_owned).to_vec()];
        for outcome in &self.outcomes {
            for round in [Some(&outcome.first), outcome.second.as_ref()].into_iter().flatten() {
                let mut row = names(&outcome.dataset, round);
                row.push(round.prepared.documents.to_string());
                row.push(round.prepared.passages.to_string());
                row.push(round.measured.answers.len().to_string());
                row.extend(Figures::of(round).cells());
                rows.push(row);
            }
        }
        if self.outcomes.len() > 1 {
            for rounds in [self.firsts(), self.seconds()] {
                let Some(round) = rounds.first() else { continue };
                let mut row = names("mean", round);
                row.extend([const { String::new() }; 3]);
                row.extend(Figures::of_all(&rounds).cells());
                rows.push(row);
            }
        }
        rows
    }

    fn difference_lines(&self, difference: &Difference) -> String {
        format!(
            "nDCG@10 differs by {:+.4}, between {:+.4} and {:+.4} in 95 of 100 resamples, p = {:.4}\n  \
             better on {} queries, the same on {}, worse on {} ({RESAMPLES} resamples, seed {})\n",
            difference.mean,
            difference.low,
            difference.high,
            difference.p,
            difference.wins,
            difference.ties,
            difference.losses,
            self.seed
        )
    }
}

fn names(first: &str, round: &Round) -> Vec<String> {
    vec![
        first.to_owned(),
        round.contender.embedder_name(),
        round.contender.legs_name().to_owned(),
    ]
}

fn round_json(outcome: &Outcome, round: &Round) -> Map<String, Value> {
    let prepared = &round.prepared;
    let about = members(json!({
        "dataset": outcome.dataset,
        "split": outcome.split,
        "documents": prepared.documents,
        "passages": prepared.passages,
        "queries": round.measured.answers.len(),
        "embedder": round.contender.embedder_name(),
        "model": prepared.model,
        "legs": round.contender.legs_name(),
    }));
    let times = members(json!({
        "index_secs": rounded(prepared.index_time.as_secs_f64(), 3),
        "embed_secs": rounded(prepared.embed_time.as_secs_f64(), 3),
    }));
    about
        .into_iter()
        .chain(Figures::of(round).json())
        .chain(times)
        .collect()
}

fn times_line(outcome: &Outcome, round: &Round) -> String {
    let prepared = &round.prepared;
    let mut text = format!(
        "{} ({}): indexed in {:.2} s",
        outcome.dataset,
        round.contender.embedder_name(),
        prepared.index_time.as_secs_f64()
    );
    if let Some(model) = &prepared.model {
        text.push_str(&format!(
            ", {} embedded by {model} in {:.2} s",
            plural(prepared.embedded, "passage"),
            prepared.embed_time.as_secs_f64()
        ));
    }
    text.push_str(&format!("; kept in {}\n", prepared.dir.display()));
    text
}

/// Columns aligned: names to the left, figures to the right.
fn table(rows: &[Vec<String>]) -> String {
    const NAMES: usize = 3;
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if column < NAMES {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            }
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_aligned() {
        let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        let text = table(&[row(["name", "a", "b", "n"]), row(["é", "long", "", "1.25"])]);
        assert_eq!(text, "name  a     b     n\né     long     1.25\n");
    }
}
