//! `search(query, limit?)` → `{"results": [{"id", "title", "text", "url"}]}`.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use serde::Serialize;
use serde_json::Value;
use tribune_core::wire::MAX_WIRE_BYTES;
use tribune_core::{
    CallContext, CallDisplay, Clock, Error, ErrorKind, Hints, Hit, JsonObject, Links, Query, Result, Source,
    SourceFacts, Tool, ToolOutput, ToolSpec,
};

use super::describe;
use super::results::{Item, fitting, schemas};

const DEFAULT_LIMIT: usize = 10;
const MAX_LIMIT: usize = 50;

/// A magnifying glass.
const ICON: &str = "data:image/svg+xml,%3Csvg%20xmlns='http://www.w3.org/2000/svg'%20viewBox='0%200%2024%2024'%20fill='none'%20stroke='%23456'%20stroke-width='2'%3E%3Ccircle%20cx='10'%20cy='10'%20r='6'/%3E%3Cpath%20d='m15%2015%206%206'/%3E%3C/svg%3E";

pub struct SearchTool {
    spec: ToolSpec,
    sources: Vec<Arc<dyn Source>>,
    /// For each source, whether it is live.
    live: Vec<bool>,
    links: Links,
    source_timeout: Duration,
    clock: Arc<dyn Clock>,
}

/// Whether a source is live, and its hits, best first.
type Ranked<'a> = (bool, &'a [Hit]);

#[derive(Serialize)]
struct Answer<'a> {
    results: Vec<Item<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing: Vec<Missing<'a>>,
}

/// A source that did not answer, so that a missing result is not taken for "nothing found".
#[derive(Serialize)]
struct Missing<'a> {
    source: &'a str,
    reason: String,
}

impl SearchTool {
    pub fn new(
        sources: Vec<Arc<dyn Source>>,
        facts: &[SourceFacts],
        links: Links,
        source_timeout: Duration,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            spec: spec(facts),
            live: facts.iter().map(|facts| facts.live).collect(),
            sources,
            links,
            source_timeout,
            clock,
        }
    }

    /// Queries all sources concurrently, each with the same timeout.
    async fn ask(&self, query: &Query, cx: &CallContext) -> Vec<Result<Arc<[Hit]>>> {
        let now = self.clock.monotonic();
        let cx = cx.until(now + self.source_timeout);
        let (left, scopes) = (cx.time_left(now), cx.scopes);
        join_all(self.sources.iter().map(|source| {
            let search = tokio::time::timeout(left, source.search(query, &cx));
            async move {
                let answer = search.await.unwrap_or_else(|_| {
                    let message = format!("timed out after {:.1} seconds", left.as_secs_f64());
                    Err(Error::new(ErrorKind::DeadlineExceeded, message))
                });
                answer.map_err(|error| error.told_to(scopes))
            }
        }))
        .await
    }
}

#[async_trait]
impl Tool for SearchTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, args: JsonObject, cx: &CallContext) -> Result<ToolOutput> {
        let text = args.get("query").and_then(Value::as_str).unwrap_or_default();
        if text.trim().is_empty() {
            return Err(Error::invalid_argument("`query` is blank. Call search again with the words to look for."));
        }
        let limit = args.get("limit").and_then(Value::as_f64);
        let query = Query {
            text: text.to_owned(),
            limit: limit.map_or(DEFAULT_LIMIT, |limit| limit as usize).clamp(1, MAX_LIMIT),
        };
        let answers = self.ask(&query, cx).await;

        let mut missing = Vec::new();
        let mut ranked: Vec<Ranked<'_>> = Vec::with_capacity(answers.len());
        for ((source, live), answer) in self.sources.iter().zip(&self.live).zip(&answers) {
            match answer {
                Ok(hits) => ranked.push((*live, hits)),
                Err(error) => missing.push(Missing { source: source.name(), reason: error.message().to_owned() }),
            }
        }
        if ranked.is_empty() && !missing.is_empty() {
            return Err(nothing_answered(&missing));
        }
        let hits = merge(&ranked, query.limit).into_iter();
        let results = fitting(hits.map(|hit| Item::found(hit, &self.links)), MAX_WIRE_BYTES);
        let count = results.len();
        ToolOutput::structured(&Answer { results, missing }, count)
    }
}

/// Keeps the order of each source and picks the next hit by coverage of the query: scores of different sources are not
/// comparable, coverage is. Live documents win a tie, because they are found only by name.
fn merge<'a>(ranked: &[Ranked<'a>], limit: usize) -> Vec<&'a Hit> {
    let mut taken = vec![0; ranked.len()];
    let mut merged: Vec<&Hit> = Vec::with_capacity(limit);
    while merged.len() < limit {
        let heads = (0..ranked.len()).filter_map(|source| Some((source, ranked[source].1.get(taken[source])?)));
        // Then the better rank, then the order of the configuration.
        let best = heads.reduce(|best, head| {
            let fuller = head.1.coverage.total_cmp(&best.1.coverage);
            let live = ranked[head.0].0.cmp(&ranked[best.0].0);
            let wins = fuller.then(live).then(taken[best.0].cmp(&taken[head.0])).is_gt();
            if wins { head } else { best }
        });
        let Some((source, hit)) = best else { break };
        merged.push(hit);
        taken[source] += 1;
    }
    merged
}

fn nothing_answered(missing: &[Missing<'_>]) -> Error {
    let reasons: Vec<String> = missing.iter().map(|m| format!("{}: {}", m.source, m.reason)).collect();
    Error::unavailable(format!(
        "No source answered ({}). There may be results; try again in a moment.",
        reasons.join("; ")
    ))
}

fn spec(facts: &[SourceFacts]) -> ToolSpec {
    let [input_schema, output_schema] = schemas(include_str!("search.json"));
    ToolSpec {
        name: "search".to_owned(),
        title: "Search".to_owned(),
        description: describe::describe(describe::SEARCH, facts),
        input_schema,
        output_schema,
        // Not idempotent: results change when documents are added.
        hints: Hints { idempotent: false, ..Hints::READ },
        icon: Some(ICON.to_owned()),
        display: CallDisplay { progress: Some(("Searching", "Searched")), ..CallDisplay::default() },
        aliases: vec![("q", "query"), ("top_k", "limit"), ("max_results", "limit")],
    }
}

#[cfg(test)]
mod tests {
    use tribune_core::DocumentId;

    use super::*;

    #[test]
    fn schema_has_the_limits() {
        let limit = &spec(&[]).input_schema["properties"]["limit"];
        assert_eq!(limit["maximum"], MAX_LIMIT);
        assert_eq!(limit["default"], DEFAULT_LIMIT);
    }

    #[test]
    fn sources_are_merged_by_coverage() {
        let hit = |id: &str, score, coverage| Hit {
            id: DocumentId::parse(id).expect("id"),
            title: String::new(),
            snippet: String::new(),
            url: None,
            passage: None,
            score,
            coverage,
            metadata: None,
        };
        let ids = |ranked: &[Ranked<'_>], limit| -> Vec<String> {
            merge(ranked, limit).into_iter().map(|hit| hit.id.to_string()).collect()
        };
        let a = [hit("a:1", 0.1, 0.5), hit("a:2", 0.05, 0.5), hit("a:3", 0.01, 0.5)];
        let b = [hit("b:1", 99.0, 0.5)];
        assert_eq!(ids(&[(false, &a), (false, &b)], 3), ["a:1", "b:1", "a:2"]);
        let c = [hit("c:1", 0.0, 1.0)];
        assert_eq!(ids(&[(false, &a), (false, &c)], 2), ["c:1", "a:1"], "the fuller match first");
        let d = [hit("d:1", 0.0, 0.9), hit("d:2", 0.0, 0.8), hit("d:3", 0.0, 0.1)];
        assert_eq!(
            ids(&[(false, &a), (false, &d)], 4),
            ["d:1", "d:2", "a:1", "a:2"],
            "a source that does not answer stays behind"
        );
        let e = [hit("e:1", 0.0, 0.5), hit("e:2", 0.0, 0.5), hit("e:3", 0.0, 0.4)];
        assert_eq!(ids(&[(false, &a), (true, &e)], 4), ["e:1", "e:2", "a:1", "a:2"], "what is live wins a tie");
    }
}
