//! Asks every query of a dataset, one after another, and scores the results.

#![allow(clippy::disallowed_methods, reason = "it measures")]

use std::time::Instant;

use serde::{Serialize, Serializer};
use tribune_corpus::snapshot::Snapshot;
use tribune_corpus::{Filter, Legs, SearchRequest};

use super::beir::{Dataset, Query};
use super::metrics::{LONG, SHORT, Scores};
use crate::commands::progress::{Progress, Step};

/// Results that a caller gets who does not say how many.
const SERVED: usize = 10;

/// The result of one query.
#[derive(Serialize)]
pub struct QueryResult {
    pub query: String,
    #[serde(flatten)]
    pub scores: Scores,
    pub ms: f64,
    /// The ids found, best first.
    #[serde(serialize_with = "first_ten")]
    pub found: Vec<String>,
}

fn first_ten<S: Serializer>(found: &[String], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(found.iter().take(SHORT))
}

pub fn measure(snapshot: &Snapshot, dataset: &Dataset, legs: Legs) -> anyhow::Result<Vec<QueryResult>> {
    if let Some(first) = dataset.queries.first() {
        // Opens files and loads the model, which only the first query after a start waits for.
        find(snapshot, &first.text, legs, LONG)?;
    }
    let progress = Progress::start();
    let total = dataset.queries.len() as u64;
    let mut answers = Vec::with_capacity(dataset.queries.len());
    for (done, query) in (1..).zip(&dataset.queries) {
        answers.push(answer(snapshot, query, legs)?);
        progress.show(&dataset.name, Step::Queries, done, total);
    }
    progress.done(&dataset.name, Step::Queries);
    Ok(answers)
}

fn answer(snapshot: &Snapshot, query: &Query, legs: Legs) -> anyhow::Result<QueryResult> {
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
    Ok(QueryResult { query: query.id.clone(), scores: Scores::of(&found, &query.judged), ms, found })
}

fn find(snapshot: &Snapshot, text: &str, legs: Legs, limit: usize) -> anyhow::Result<Vec<String>> {
    let ask = SearchRequest { text, limit, filter: &Filter::default(), legs };
    let hits = snapshot.find(&ask)?;
    Ok(hits.into_iter().map(|hit| hit.id.key().to_owned()).collect())
}

/// Whether the query is a document of the corpus itself (ArguAna, Quora). It would always be found
/// first and never is the answer, so it does not count. The same id alone says nothing: many datasets
/// number both queries and documents from 1.
fn is_document(snapshot: &Snapshot, query: &Query) -> anyhow::Result<bool> {
    if query.judged.get(&query.id).is_some_and(|relevance| *relevance > 0) {
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
