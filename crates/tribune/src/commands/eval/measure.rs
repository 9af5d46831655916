//! Asking every query of a dataset, one after another, and scoring what comes.

#![allow(clippy::disallowed_methods, reason = "it measures")]

use std::time::Instant;

use tribune_corpus::snapshot::Snapshot;
use tribune_corpus::{Filter, Legs, SearchRequest};

use super::beir::{Dataset, Query};
use super::metrics::{LONG, Scores, percentile};
use super::progress;

/// Results that a caller gets who does not say how many.
const SERVED: usize = 10;

/// What became of one query.
pub struct Answered {
    pub query: String,
    pub scores: Scores,
    pub ms: f64,
    /// The ids found, best first.
    pub found: Vec<String>,
}

/// All queries of a dataset, answered in one configuration.
pub struct Measured {
    pub answers: Vec<Answered>,
}

impl Measured {
    pub fn mean(&self) -> Scores {
        Scores::mean(self.answers.iter().map(|answer| answer.scores))
    }

    pub fn times(&self) -> impl Iterator<Item = f64> {
        self.answers.iter().map(|answer| answer.ms)
    }

    pub fn percentile(&self, percent: f64) -> f64 {
        percentile(&self.times().collect::<Vec<_>>(), percent)
    }

    /// How much better each query is answered here than there.
    pub fn differences(&self, other: &Self) -> Vec<f64> {
        let pairs = self.answers.iter().zip(&other.answers);
        pairs
            .map(|(one, two)| one.scores.ndcg_10 - two.scores.ndcg_10)
            .collect()
    }
}

pub fn measure(snapshot: &Snapshot, dataset: &Dataset, legs: Legs) -> anyhow::Result<Measured> {
    let bar = progress::bar(&dataset.name, dataset.queries.len() as u64, "queries");
    if let Some(first) = dataset.queries.first() {
        // Opens files and loads the model, which only the first query after a start waits for.
        find(snapshot, &first.text, legs, LONG)?;
    }
    let mut answers = Vec::with_capacity(dataset.queries.len());
    for query in &dataset.queries {
        answers.push(answer(snapshot, query, legs)?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(Measured { answers })
}

fn answer(snapshot: &Snapshot, query: &Query, legs: Legs) -> anyhow::Result<Answered> {
    let is_itself_held = is_document(snapshot, query)?;
    let limit = LONG + usize::from(is_itself_held);
    // What a caller waits for is an ordinary answer; the long one is for the figures.
    let started = Instant::now();
    find(snapshot, &query.text, legs, SERVED)?;
    let ms = started.elapsed().as_secs_f64() * 1000.0;
    let mut found = find(snapshot, &query.text, legs, limit)?;
    if is_itself_held {
        found.retain(|id| *id != query.id);
        found.truncate(LONG);
    }
    Ok(Answered {
        query: query.id.clone(),
        scores: Scores::of(&found, &query.judged),
        ms,
        found,
    })
}

fn find(snapshot: &Snapshot, text: &str, legs: Legs, limit: usize) -> anyhow::Result<Vec<String>> {
    let ask = SearchRequest {
        text,
        limit,
        filter: &Filter::default(),
        legs,
    };
    let hits = snapshot.find(&ask)?;
    Ok(hits.into_iter().map(|hit| hit.id.key().to_owned()).collect())
}

/// Whether the query is a document of the corpus itself (ArguAna, Quora). It would always be found
/// first and never is the answer, so it does not count. The same id alone says nothing: many datasets
/// number both queries and documents from 1.
fn is_document(snapshot: &Snapshot, query: &Query) -> anyhow::Result<bool> {
    if !snapshot.holds(&query.id)? || query.judged.get(&query.id).is_some_and(|relevance| *relevance > 0) {
        return Ok(false);
    }
    let Some(document) = snapshot.fetch(&query.id)? else {
        return Ok(false);
    };
    let text = document.text.split_whitespace();
    let title = document.title.split_whitespace();
    let asked = || query.text.split_whitespace();
    Ok(asked().eq(text.clone()) || asked().eq(title.chain(text)))
}
