//! One search from question to hits: both legs, fused, the best passage of each document quoted.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tantivy::query::Query;
use tribune_core::Hit;
use tribune_embed::{Embedder, Role};

use crate::dense::Dense;
use crate::filter::Filter;
use crate::fusion::{self, DEPTH, Ranked, Weight};
use crate::lexical::{Plan, Planner, best_documents};
use crate::query;
use crate::snapshot::Snapshot;
use crate::snippet::Quotable;

/// Nearer than this a passage may have something to do with the query, even if it shares no word with
/// it. Passages about other things altogether lie around 0 and rarely above 0.15.
const MIN_COSINE: f32 = 0.2;
/// The same where no word of the query occurs anywhere: it may be no words at all, and of those even
/// the nearest passage stays below this (docs/retrieval.md).
const MIN_COSINE_OF_UNKNOWN: f32 = 0.3;

/// How near documents are to a query, by the hash of their key.
type Cosines = HashMap<u64, f32>;

/// What is asked of a corpus.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    pub text: &'a str,
    pub limit: usize,
    pub filter: &'a Filter,
    pub legs: Legs,
}

/// By what passages are ranked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Legs {
    /// By words and by meaning; by words alone until there are vectors.
    #[default]
    Both,
    Words,
    Meaning,
}

impl Snapshot {
    /// The best documents for a query, each by its best passage.
    pub fn search(&self, text: &str, limit: usize) -> tantivy::Result<Arc<[Hit]>> {
        let ask = Ask {
            text,
            limit,
            filter: &Filter::default(),
            legs: Legs::Both,
        };
        let hits: Arc<[Hit]> = self.find(&ask)?.into();
        self.keep(text, limit, &hits);
        Ok(hits)
    }

    /// The same with conditions and a choice of legs.
    pub fn find(&self, ask: &Ask<'_>) -> tantivy::Result<Vec<Hit>> {
        let clauses = query::parse(ask.text, |name| self.field_name(name));
        let mut analyzer = self.analyzer.clone();
        let planned = Planner {
            searcher: &self.searcher,
            fields: &self.fields,
            analyzer: &mut analyzer,
        }
        .plan(&clauses, ask.filter)?;
        let Some(plan) = planned else {
            return Ok(Vec::new());
        };
        let (ranked, cosines) = self.ranked(&plan, ask)?;
        let sense = cosines.as_ref().and_then(|_| Sense::of(&plan.meaning));
        let mut hits = Vec::with_capacity(ranked.len());
        for Ranked {
            document,
            score,
            address,
        } in ranked
        {
            let passage = self.passage(address, &mut analyzer)?;
            hits.push(Hit {
                id: passage.id.clone(),
                title: passage.title.clone(),
                snippet: quote(&passage.text, &plan.stems, sense.as_ref()),
                url: passage.url.clone(),
                passage: passage.ordinal,
                score,
                coverage: coverage(
                    passage.text.coverage(&passage.title_stems, &plan.stems),
                    cosines
                        .as_ref()
                        .map(|cosines| cosines.get(&document).copied().unwrap_or(0.0)),
                ),
                metadata: None,
            });
        }
        Ok(hits)
    }

    /// Documents with a relevance from 0 to 1, best first; and how near each is, where that is known.
    fn ranked(&self, plan: &Plan, ask: &Ask<'_>) -> tantivy::Result<(Vec<Ranked>, Option<Cosines>)> {
        let vector = match (&self.dense, ask.legs) {
            (None, _) | (_, Legs::Words) => None,
            (Some(dense), _) if !dense.is_ready() => None,
            (Some(dense), _) => self.vector(&plan.meaning).map(|vector| (dense, vector)),
        };
        let Some((dense, vector)) = vector else {
            let found = best_documents(&self.searcher, &self.documents, &plan.query, ask.limit)?;
            return Ok((relative(found), None));
        };
        let depth = DEPTH.max(ask.limit);
        let near = self.nearest(dense, &vector, depth, plan.constraint.as_deref())?;
        let cosines: Cosines = near.iter().map(|ranked| (ranked.document, ranked.score)).collect();
        let mut fused = if ask.legs == Legs::Meaning {
            let above = |ranked: Ranked| Ranked {
                score: ranked.score.clamp(0.0, 1.0),
                ..ranked
            };
            near.into_iter().map(above).collect()
        } else {
            let lexical = best_documents(&self.searcher, &self.documents, &plan.query, depth)?;
            // A weak likeness is no reason to show what shares no word with the query.
            let found: HashSet<u64> = lexical.iter().map(|ranked| ranked.document).collect();
            let floor = if found.is_empty() {
                MIN_COSINE_OF_UNKNOWN
            } else {
                MIN_COSINE
            };
            let weak: HashSet<u64> = near
                .iter()
                .filter(|ranked| ranked.score < floor && !found.contains(&ranked.document))
                .map(|ranked| ranked.document)
                .collect();
            let weight = Weight(self.embedder.as_ref().map_or(0.5, |embedder| embedder.weight()));
            let mut fused = fusion::fuse(&lexical, &near, weight, |address| !dense.has_vector(address));
            fused.retain(|ranked| !weak.contains(&ranked.document));
            fused
        };
        fused.truncate(ask.limit);
        Ok((fused, Some(cosines)))
    }

    /// `None` where the model cannot say: full text then serves alone.
    fn vector(&self, meaning: &str) -> Option<Vec<f32>> {
        let embedder = self.embedder.as_ref()?;
        if meaning.trim().is_empty() {
            return None;
        }
        match embedder.embed(Role::Query, &[meaning]) {
            Ok(vectors) => vectors.into_iter().next().filter(|v| v.iter().any(|x| *x != 0.0)),
            Err(error) => {
                tracing::warn!(source = self.source, %error, "the query could not be embedded; full text serves alone");
                None
            }
        }
    }

    pub(crate) fn nearest(
        &self,
        dense: &Dense,
        vector: &[f32],
        depth: usize,
        only: Option<&dyn Query>,
    ) -> tantivy::Result<Vec<Ranked>> {
        dense.nearest(vector, depth, &self.searcher, &self.documents, only)
    }
}

/// A query as the table of word vectors has it: weak for ranking, good enough to tell which sentence
/// of a passage is meant, and fast enough to be asked of every one that is shown.
struct Sense {
    table: Arc<dyn Embedder>,
    query: Vec<f32>,
}

impl Sense {
    fn of(meaning: &str) -> Option<Self> {
        let table = tribune_embed::static_table().ok()?;
        let query = table.embed(Role::Query, &[meaning]).ok()?.pop()?;
        Some(Self { table, query })
    }

    /// The number of the sentence that is nearest.
    fn nearest(&self, sentences: &[&str]) -> Option<usize> {
        let vectors = self.table.embed(Role::Passage, sentences).ok()?;
        let likeness = |vector: &[f32]| vector.iter().zip(&self.query).map(|(a, b)| a * b).sum::<f32>();
        let numbered = vectors.iter().map(|vector| likeness(vector)).enumerate();
        numbered.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(number, _)| number)
    }
}

/// The sentences that show the match: those with the words, or, where the passage was found by its
/// meaning rather than by them, those nearest to the query.
fn quote(passage: &Quotable, stems: &[u32], sense: Option<&Sense>) -> String {
    let by_words = passage.coverage(&[], stems) >= 0.5;
    if !by_words
        && passage.is_cut()
        && let Some(sense) = sense
        && let Some(sentence) = sense.nearest(&passage.sentences().collect::<Vec<_>>())
    {
        return passage.quote_sentence(sentence);
    }
    passage.quote(stems)
}

/// How much of the query a passage holds, by its words and by its meaning: what sources are compared by.
fn coverage(words: f32, cosine: Option<f32>) -> f32 {
    /// As near as a passage that plainly answers a question.
    const NEAR: f32 = 0.6;
    match cosine {
        None => words,
        Some(cosine) => (words + (cosine / NEAR).clamp(0.0, 1.0)) / 2.0,
    }
}

/// Full-text scores beside the best of them.
pub(crate) fn relative(mut found: Vec<Ranked>) -> Vec<Ranked> {
    let best = found.first().map_or(1.0, |ranked| ranked.score);
    for ranked in &mut found {
        ranked.score = if best > 0.0 {
            (ranked.score / best).clamp(0.0, 1.0)
        } else {
            0.0
        };
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::analyzer;

    #[test]
    fn a_passage_found_by_its_meaning_is_quoted_where_it_is_meant() {
        let filler = "The committee met on a Tuesday and the minutes were read and signed. ".repeat(9);
        let meant = "A dog chased the cat across the garden.";
        let passage = Quotable::of(&format!("{filler}{meant} {filler}"), &mut analyzer());
        let sense = Sense::of("puppy running after a kitten");
        let quoted = quote(&passage, &[1, 2, 3], sense.as_ref());
        assert!(quoted.contains(meant) && quoted.len() <= 500, "{quoted}");
        // Without the table, or with the words in it, nothing changes.
        assert!(!quote(&passage, &[1, 2, 3], None).contains(meant));
    }
}
