//! `search(query, limit?)` → `{"results": [{"id", "title", "text", "url"}]}`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::future::join_all;
use serde::Serialize;
use serde_json::json;
use tribune_core::{
    CallContext, CallDisplay, Clock, DocumentId, Error, ErrorKind, Hints, Hit, JsonObject, Links, Query, Result,
    Source, SourceFacts, Tool, ToolOutput, ToolSpec,
};

use tribune_core::wire::{MAX_WIRE_BYTES, MAX_WIRE_COST, clip, object, wire_bytes};

use super::describe;

const DEFAULT_LIMIT: u64 = 10;
const MAX_LIMIT: u64 = 50;
const MAX_QUERY_CHARS: usize = 1000;
const MAX_TITLE_CHARS: usize = 200;
/// Names, quotes and commas of one result, written twice.
const ITEM_OVERHEAD: usize = 120;

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

/// The hits of one source, best first.
#[derive(Clone, Copy)]
struct Ranked<'a> {
    live: bool,
    hits: &'a [Hit],
}

#[derive(Serialize)]
struct Answer<'a> {
    results: Vec<Item<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing: Vec<Missing<'a>>,
}

#[derive(Serialize)]
struct Item<'a> {
    id: &'a DocumentId,
    title: std::borrow::Cow<'a, str>,
    text: &'a str,
    url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a JsonObject>,
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
        let one = |source: &Arc<dyn Source>| {
            let source = source.clone();
            let (query, cx) = (query.clone(), cx.clone());
            async move { within(&cx, now, source.search(&query, &cx)).await }
        };
        match self.sources.as_slice() {
            [only] => vec![one(only).await],
            many => join_all(many.iter().map(one)).await,
        }
    }
}

async fn within<T>(cx: &CallContext, now: Instant, work: impl Future<Output = Result<T>>) -> Result<T> {
    let left = cx.time_left(now);
    tokio::time::timeout(left, work).await.unwrap_or_else(|_| {
        Err(Error::new(
            ErrorKind::DeadlineExceeded,
            format!("timed out after {:.1} seconds", left.as_secs_f64()),
        ))
    })
}

#[async_trait]
impl Tool for SearchTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, args: JsonObject, cx: &CallContext) -> Result<ToolOutput> {
        let text = args
            .get("query")
            .and_then(serde_json::Value::as_str)
            .unwrap_or_default();
        if text.trim().is_empty() {
            return Err(Error::invalid_argument(
                "`query` is blank. Call search again with the words to look for.",
            ));
        }
        let limit = args
            .get("limit")
            .and_then(serde_json::Value::as_f64)
            .map_or(DEFAULT_LIMIT, |limit| limit as u64);
        let query = Query {
            text: text.to_owned(),
            limit: usize::try_from(limit.clamp(1, MAX_LIMIT)).unwrap_or(1),
        };
        let answers = self.ask(&query, cx).await;

        let mut missing = Vec::new();
        let mut ranked: Vec<Ranked<'_>> = Vec::with_capacity(answers.len());
        for ((source, live), answer) in self.sources.iter().zip(&self.live).zip(&answers) {
            match answer {
                Ok(hits) => ranked.push(Ranked { live: *live, hits }),
                Err(error) => missing.push(Missing {
                    source: source.name(),
                    reason: error.message().to_owned(),
                }),
            }
        }
        if ranked.is_empty() && !missing.is_empty() {
            return Err(nothing_answered(&missing));
        }
        let results = self.items(merge(&ranked, query.limit));
        let count = results.len();
        ToolOutput::structured(&Answer { results, missing }, count)
    }
}

impl SearchTool {
    fn items<'a>(&self, hits: Vec<&'a Hit>) -> Vec<Item<'a>> {
        let mut items: Vec<Item<'a>> = hits
            .into_iter()
            .map(|hit| Item {
                id: &hit.id,
                title: clip(&hit.title, MAX_TITLE_CHARS),
                text: &hit.snippet,
                url: hit
                    .url
                    .clone()
                    .unwrap_or_else(|| self.links.citation(&hit.id, hit.passage)),
                metadata: hit.metadata.as_ref(),
            })
            .collect();
        let raw: usize = items
            .iter()
            .map(|item| item.parts().map(str::len).iter().sum::<usize>() + item.metadata_bytes())
            .sum();
        if raw * MAX_WIRE_COST + items.len() * ITEM_OVERHEAD > MAX_WIRE_BYTES {
            // An item that is too large is omitted; later ones may still fit.
            let mut spent = 0;
            items.retain(|item| {
                let takes = item.parts().map(wire_bytes).iter().sum::<usize>() + item.metadata_bytes() + ITEM_OVERHEAD;
                let fits = spent + takes <= MAX_WIRE_BYTES;
                spent += if fits { takes } else { 0 };
                fits
            });
        }
        items
    }
}

impl Item<'_> {
    fn parts(&self) -> [&str; 4] {
        [self.id.as_str(), &self.title, self.text, &self.url]
    }

    fn metadata_bytes(&self) -> usize {
        self.metadata.map_or(0, |fields| {
            fields
                .iter()
                .map(|(name, value)| wire_bytes(name) + wire_bytes(&value.to_string()) + 12)
                .sum()
        })
    }
}

/// Keeps the order of each source and picks the next hit by coverage of the query: scores of different sources are not
/// comparable, coverage is. Live documents win a tie, because they are found only by name.
fn merge<'a>(ranked: &[Ranked<'a>], limit: usize) -> Vec<&'a Hit> {
    let mut taken = vec![0; ranked.len()];
    let mut merged: Vec<&Hit> = Vec::with_capacity(limit);
    while merged.len() < limit {
        let heads = (0..ranked.len()).filter_map(|source| Some((source, ranked[source].hits.get(taken[source])?)));
        // Then the better rank, then the order of the configuration.
        let best = heads.reduce(|best, head| {
            let fuller = head.1.coverage.total_cmp(&best.1.coverage);
            let live = ranked[head.0].live.cmp(&ranked[best.0].live);
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
    ToolSpec {
        name: "search".to_owned(),
        title: "Search".to_owned(),
        description: describe::search(facts),
        input_schema: object(json!({
            "type": "object",
            "properties": {
                "query": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": MAX_QUERY_CHARS,
                    "description": "What to look for, in plain words. \"Exact phrase\", field:value and -word also work.",
                },
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MAX_LIMIT,
                    "default": DEFAULT_LIMIT,
                    "description": "How many results to return at most (1-50, default 10).",
                },
            },
            "required": ["query"],
        })),
        output_schema: object(json!({
            "type": "object",
            "properties": {
                "results": {
                    "type": "array",
                    "description": "Best first; empty when nothing matches.",
                    "items": {
                        "type": "object",
                        "properties": {
                            "id": {"type": "string", "description": "Pass it to fetch exactly as it is."},
                            "title": {"type": "string"},
                            "text": {"type": "string", "description": "The best passage, cut short."},
                            "metadata": {"type": "object", "description": "How the query was understood, if that is not obvious."},
                            "url": {"type": "string", "description": "Opens for a person; cite it."},
                        },
                        "required": ["id", "title", "text", "url"],
                    },
                },
                "missing": {
                    "type": "array",
                    "description": "Sources that did not answer, if any.",
                    "items": {
                        "type": "object",
                        "properties": {"source": {"type": "string"}, "reason": {"type": "string"}},
                        "required": ["source", "reason"],
                    },
                },
            },
            "required": ["results"],
        })),
        // Not idempotent: results change when documents are added.
        hints: Hints {
            idempotent: false,
            ..Hints::READ
        },
        icon: Some(ICON.to_owned()),
        display: CallDisplay {
            progress: Some(("Searching", "Searched")),
            ..CallDisplay::default()
        },
        aliases: vec![("q", "query"), ("top_k", "limit"), ("max_results", "limit")],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let ids = |ranked: &[(bool, &[Hit])], limit| -> Vec<String> {
            let ranked: Vec<Ranked<'_>> = ranked.iter().map(|&(live, hits)| Ranked { live, hits }).collect();
            merge(&ranked, limit)
                .into_iter()
                .map(|hit| hit.id.to_string())
                .collect()
        };
        let a = [hit("a:1", 0.1, 0.5), hit("a:2", 0.05, 0.5), hit("a:3", 0.01, 0.5)];
        let b = [hit("b:1", 99.0, 0.5)];
        assert_eq!(ids(&[(false, &a), (false, &b)], 3), ["a:1", "b:1", "a:2"]);
        let c = [hit("c:1", 0.0, 1.0)];
        assert_eq!(
            ids(&[(false, &a), (false, &c)], 2),
            ["c:1", "a:1"],
            "the fuller match first"
        );
        let d = [hit("d:1", 0.0, 0.9), hit("d:2", 0.0, 0.8), hit("d:3", 0.0, 0.1)];
        assert_eq!(
            ids(&[(false, &a), (false, &d)], 4),
            ["d:1", "d:2", "a:1", "a:2"],
            "a source that does not answer stays behind"
        );
        let e = [hit("e:1", 0.0, 0.5), hit("e:2", 0.0, 0.5), hit("e:3", 0.0, 0.4)];
        assert_eq!(
            ids(&[(false, &a), (true, &e)], 4),
            ["e:1", "e:2", "a:1", "a:2"],
            "what is live wins a tie"
        );
    }
}
