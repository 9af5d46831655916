//! What was measured on datasets, for people and for programs.

use std::path::PathBuf;

use serde::Serialize;
use serde_json::{Value, json};

use super::beir::Dataset;
use super::bootstrap::Difference;
use super::contender::Contender;
use super::measure::QueryResult;
use super::metrics::{Figures, Scores};
use super::prepare::Prepared;
use crate::commands::{plural, table};

/// One configuration on one dataset.
#[derive(Serialize)]
pub struct Round {
    pub dataset: String,
    split: String,
    documents: u64,
    passages: u64,
    queries: usize,
    embedder: String,
    /// The model's own name.
    model: Option<String>,
    legs: &'static str,
    #[serde(flatten)]
    figures: Figures,
    index_secs: f64,
    embed_secs: f64,
    /// Passages embedded now; the others had their vectors already.
    #[serde(skip)]
    embedded: u64,
    #[serde(skip)]
    dir: PathBuf,
    #[serde(skip)]
    pub answers: Vec<QueryResult>,
}

/// Everything about one dataset.
#[derive(Serialize)]
pub struct Outcome {
    #[serde(flatten)]
    pub first: Round,
    #[serde(rename = "against", skip_serializing_if = "Option::is_none")]
    pub second: Option<Round>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<Difference>,
    /// What is odd about the dataset.
    pub notes: Vec<String>,
}

/// Over all datasets, each counting the same.
#[derive(Serialize)]
struct Mean {
    #[serde(flatten)]
    first: Figures,
    #[serde(rename = "against", skip_serializing_if = "Option::is_none")]
    second: Option<Figures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<Difference>,
}

/// All datasets of one run.
pub struct Report {
    pub outcomes: Vec<Outcome>,
    mean: Mean,
}

impl Round {
    pub fn new(
        dataset: &Dataset,
        split: &str,
        contender: &Contender,
        prepared: Prepared,
        answers: Vec<QueryResult>,
    ) -> Self {
        let embedded = prepared.embedded.unwrap_or_default();
        let times: Vec<f64> = answers.iter().map(|answer| answer.ms).collect();
        Self {
            dataset: dataset.name.clone(),
            split: split.to_owned(),
            documents: prepared.indexed.documents,
            passages: prepared.snapshot.coverage().0,
            queries: answers.len(),
            embedder: contender.embedder_name(),
            model: (!embedded.model.is_empty()).then_some(embedded.model),
            legs: contender.legs_name(),
            figures: Figures::new(Scores::mean(answers.iter().map(|answer| answer.scores)), &times),
            index_secs: prepared.indexed.elapsed.as_secs_f64(),
            embed_secs: embedded.elapsed.as_secs_f64(),
            embedded: embedded.embedded,
            dir: prepared.dir,
            answers,
        }
    }

    fn times_line(&self) -> String {
        let mut text = format!("{} ({}): indexed in {:.2} s", self.dataset, self.embedder, self.index_secs);
        if let Some(model) = &self.model {
            let passages = plural(self.embedded, "passage");
            text.push_str(&format!(", {passages} embedded by {model} in {:.2} s", self.embed_secs));
        }
        format!("{text}; kept in {}\n", self.dir.display())
    }
}

impl Outcome {
    fn rounds(&self) -> impl Iterator<Item = &Round> {
        std::iter::once(&self.first).chain(&self.second)
    }

    /// How much better each query is answered by the first configuration.
    pub fn differences(&self) -> Option<Vec<f64>> {
        let pairs = self.first.answers.iter().zip(&self.second.as_ref()?.answers);
        let difference = |(one, two): (&QueryResult, &QueryResult)| one.scores.ndcg_10 - two.scores.ndcg_10;
        Some(pairs.map(difference).collect())
    }
}

/// The mean of the datasets' scores; the percentiles are over all queries.
fn mean<'a>(rounds: impl Iterator<Item = &'a Round> + Clone) -> Figures {
    let times = rounds.clone().flat_map(|round| &round.answers).map(|answer| answer.ms);
    let times: Vec<f64> = times.collect();
    Figures::new(Scores::mean(rounds.map(|round| round.figures.scores)), &times)
}

impl Report {
    pub fn new(outcomes: Vec<Outcome>, seed: u64) -> Self {
        let differences: Vec<Vec<f64>> = outcomes.iter().filter_map(Outcome::differences).collect();
        let seconds = outcomes.iter().filter_map(|outcome| outcome.second.as_ref());
        let is_compared = !differences.is_empty();
        let mean = Mean {
            first: mean(outcomes.iter().map(|outcome| &outcome.first)),
            second: is_compared.then(|| mean(seconds)),
            difference: is_compared.then(|| Difference::of(&differences, seed)),
        };
        Self { outcomes, mean }
    }

    /// nDCG@10 of the first configuration, over all datasets.
    pub const fn ndcg(&self) -> f64 {
        self.mean.first.scores.ndcg_10
    }

    /// One flat object for one dataset; for several, a list and the mean.
    pub fn json(&self) -> Value {
        match self.outcomes.as_slice() {
            [only] => json!(only),
            several => json!({"datasets": several, "mean": self.mean}),
        }
    }

    pub fn readable(&self) -> String {
        let mut text = table(&self.rows(), 3) + "\n";
        for round in self.outcomes.iter().flat_map(Outcome::rounds) {
            text.push_str(&round.times_line());
        }
        for outcome in &self.outcomes {
            if let Some(difference) = &outcome.difference {
                text.push_str(&format!("\n{}: {difference}", outcome.first.dataset));
            }
        }
        if let Some(difference) = self.mean.difference.filter(|_| self.outcomes.len() > 1) {
            text.push_str(&format!("\nall, each dataset counting the same: {difference}"));
        }
        for outcome in &self.outcomes {
            for note in &outcome.notes {
                text.push_str(&format!("\nnote: {}: {note}", outcome.first.dataset));
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
        for round in self.outcomes.iter().flat_map(Outcome::rounds) {
            let counts = [round.documents, round.passages, round.queries as u64];
            let counts = counts.map(|count| count.to_string());
            rows.push(row(&round.dataset, round, counts, &round.figures));
        }
        if let [first, _, ..] = self.outcomes.as_slice() {
            for (round, figures) in first.rounds().zip(std::iter::once(&self.mean.first).chain(&self.mean.second)) {
                rows.push(row("mean", round, Default::default(), figures));
            }
        }
        rows
    }
}

fn row(name: &str, round: &Round, counts: [String; 3], figures: &Figures) -> Vec<String> {
    let mut row = vec![name.to_owned(), round.embedder.clone(), round.legs.to_owned()];
    row.extend(counts);
    let Scores { ndcg_10, recall_100, mrr_10 } = figures.scores;
    row.extend([ndcg_10, recall_100, mrr_10].map(|score| format!("{score:.4}")));
    row.extend([figures.p50_ms, figures.p99_ms].map(|ms| format!("{ms:.2}")));
    row
}
