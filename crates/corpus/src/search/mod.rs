//! One search: two legs, fused (`fusion`), with the best passage of each document quoted; related documents.

mod fusion;

use std::collections::HashMap;
use std::sync::Arc;

use tribune_core::Hit;
use tribune_embed::{Embedder, Role};

use self::fusion::DEPTH;
use crate::engine::{Candidate, Leg, Ranking, Result};
use crate::hash;
use crate::passage::{Quotable, distinct_stems};
use crate::query::{self, Clause, Demand, Filter, Want};
use crate::snapshot::Snapshot;

/// The minimum cosine of a result without a word of the query. Unrelated passages are around 0 and rarely above 0.15.
const MIN_COSINE: f32 = 0.2;
/// The minimum if no word of the query occurs anywhere: even the nearest passage to gibberish stays below it
/// (docs/retrieval.md).
const MIN_COSINE_OF_UNKNOWN: f32 = 0.3;

/// The part of a long document that is compared.
const MAX_COMPARED_BYTES: usize = 20_000;

/// The cosine of documents with the query, by the hash of their key.
type Cosines = HashMap<u64, f32>;

#[derive(Debug, Clone, Copy)]
pub struct SearchRequest<'a> {
    pub text: &'a str,
    pub limit: usize,
    pub filter: &'a Filter,
    pub legs: Legs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Legs {
    /// Both; words alone until there are vectors.
    #[default]
    Both,
    Words,
    Meaning,
}

impl Snapshot {
    /// The best documents for a query, each by its best passage.
    pub fn search(&self, text: &str, limit: usize) -> Result<Arc<[Hit]>> {
        let ask = SearchRequest { text, limit, filter: &Filter::default(), legs: Legs::Both };
        let hits: Arc<[Hit]> = self.find(&ask)?.into();
        self.cache(text, limit, &hits);
        Ok(hits)
    }

    /// A search with conditions and a choice of legs.
    pub fn find(&self, ask: &SearchRequest<'_>) -> Result<Vec<Hit>> {
        let mut words = self.version.words();
        let clauses = query::parse(ask.text, |name| self.field_name(name), &mut *words);
        let wanted = distinct_stems(searched_words(&clauses));
        let is_condition = |clause: &Clause| clause.demand == Demand::Must && matches!(clause.want, Want::Within(_));
        if wanted.is_empty() && ask.filter.is_empty() && !clauses.iter().any(is_condition) {
            return Ok(Vec::new());
        }
        let meaning = query::meaning(&clauses);
        let (ranked, cosines) = self.ranked(&clauses, &meaning, ask)?;
        let sense = cosines.as_ref().and_then(|_| Sense::new(&meaning));
        let mut hits = Vec::with_capacity(ranked.len());
        for candidate in ranked {
            let passage = self.passage(candidate.passage, &mut *words)?;
            let cosine = cosines.as_ref().map(|cosines| cosines.get(&candidate.document).copied().unwrap_or(0.0));
            let places = passage.text.places(&wanted);
            let words = passage.text.coverage(&places, &passage.title_stems, &wanted);
            let snippet = quote(&passage.text, &places, &wanted, sense.as_ref());
            hits.push(passage.hit(snippet, candidate.score, coverage(words, cosine)));
        }
        Ok(hits)
    }

    /// The documents most similar to `key`, best first; `None` if there is no such document.
    pub fn related(&self, key: &str, limit: usize) -> Result<Option<Vec<Hit>>> {
        let Some(document) = self.stored(key)? else {
            return Ok(None);
        };
        let centroid = match self.version.ranks_by_vector() {
            true => self.version.centroid(key)?,
            false => None,
        };
        let found = match centroid {
            Some(centroid) => {
                let (filter, visible) = (&Filter::default(), self.visible());
                let ranking = Ranking { clauses: &[], filter, visible, depth: limit + 1 };
                let mut legs = self.version.rank(&ranking, &[Leg::Vector(&centroid)])?;
                legs.pop().unwrap_or_default()
            }
            None => {
                let text = &document.text[..document.text.floor_char_boundary(MAX_COMPARED_BYTES)];
                let text = format!("{}\n{text}", document.title);
                relative(self.version.similar(&text, self.visible(), limit + 1)?)
            }
        };
        let itself = hash::stable(key);
        let mut words = self.version.words();
        let mut hits = Vec::with_capacity(limit);
        for candidate in found.into_iter().filter(|found| found.document != itself).take(limit) {
            let passage = self.passage(candidate.passage, &mut *words)?;
            hits.push(passage.hit(passage.text.quote(&[]), candidate.score.clamp(0.0, 1.0), 0.0));
        }
        Ok(Some(hits))
    }

    /// Documents with a relevance from 0 to 1, best first, and their cosines if known.
    fn ranked(
        &self,
        clauses: &[Clause],
        meaning: &str,
        ask: &SearchRequest<'_>,
    ) -> Result<(Vec<Candidate>, Option<Cosines>)> {
        let vector = match ask.legs {
            Legs::Both | Legs::Meaning if self.version.ranks_by_vector() => self.vector(meaning),
            _ => None,
        };
        let ranking = |depth| Ranking { clauses, filter: ask.filter, visible: self.visible(), depth };
        let Some(vector) = vector else {
            let mut legs = self.version.rank(&ranking(ask.limit), &[Leg::Words])?;
            return Ok((relative(legs.pop().unwrap_or_default()), None));
        };
        let legs: &[Leg<'_>] = match ask.legs {
            Legs::Meaning => &[Leg::Vector(&vector)],
            _ => &[Leg::Vector(&vector), Leg::Words],
        };
        let mut found = self.version.rank(&ranking(DEPTH.max(ask.limit)), legs)?.into_iter();
        let near = found.next().unwrap_or_default();
        let cosines: Cosines = near.iter().map(|found| (found.document, found.score)).collect();
        let mut fused = match found.next() {
            Some(lexical) => self.fused(&lexical, &near),
            None => {
                let positive = |found: Candidate| Candidate { score: found.score.clamp(0.0, 1.0), ..found };
                near.into_iter().map(positive).collect()
            }
        };
        fused.truncate(ask.limit);
        Ok((fused, Some(cosines)))
    }

    fn fused(&self, lexical: &[Candidate], near: &[Candidate]) -> Vec<Candidate> {
        let floor = match lexical {
            [] => MIN_COSINE_OF_UNKNOWN,
            _ => MIN_COSINE,
        };
        let weight = match &self.settings.embedder {
            Some(embedder) => embedder.weight(),
            None => 0.5,
        };
        let unseen = |passage| !self.version.has_vector(passage);
        fusion::fuse(lexical, near, weight, floor, unseen)
    }

    /// `None` if the model fails; the search then uses keywords only.
    fn vector(&self, meaning: &str) -> Option<Vec<f32>> {
        let embedder = self.settings.embedder.as_ref()?;
        if meaning.trim().is_empty() {
            return None;
        }
        match embedder.embed(Role::Query, &[meaning]) {
            Ok(vectors) => vectors.into_iter().next().filter(|v| v.iter().any(|x| *x != 0.0)),
            Err(error) => {
                tracing::warn!(source = self.settings.name, %error, "the query could not be embedded; using keyword search only");
                None
            }
        }
    }
}

/// The words of the query that a quote may show.
fn searched_words(clauses: &[Clause]) -> impl Iterator<Item = &str> {
    let words = clauses.iter().filter_map(|clause| match &clause.want {
        Want::Words { words, .. } if clause.demand != Demand::MustNot => Some(words),
        _ => None,
    });
    words.flatten().map(String::as_str)
}

/// A query embedded by the static table: too weak for ranking, but good enough to choose a sentence, and fast enough
/// to do it for every result.
struct Sense {
    table: Arc<dyn Embedder>,
    query: Vec<f32>,
}

impl Sense {
    fn new(meaning: &str) -> Option<Self> {
        let table = tribune_embed::static_table().ok()?;
        let query = table.embed(Role::Query, &[meaning]).ok()?.pop()?;
        Some(Self { table, query })
    }

    /// The number of the nearest sentence.
    fn nearest(&self, sentences: &[&str]) -> Option<usize> {
        let vectors = self.table.embed(Role::Passage, sentences).ok()?;
        let likeness = |vector: &[f32]| vector.iter().zip(&self.query).map(|(a, b)| a * b).sum::<f32>();
        let numbered = vectors.iter().map(|vector| likeness(vector)).enumerate();
        numbered.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(number, _)| number)
    }
}

/// The sentences with the query's words, or the nearest ones if the passage was found by its vector.
fn quote(passage: &Quotable, places: &[usize], wanted: &[u32], sense: Option<&Sense>) -> String {
    if let Some(sense) = sense
        && passage.is_cut()
        && passage.coverage(places, &[], wanted) < 0.5
        && let Some(sentence) = sense.nearest(&passage.sentences().collect::<Vec<_>>())
    {
        return passage.quote_sentence(sentence);
    }
    passage.quote(places)
}

/// How much of the query a passage covers, by words and vector. Results of several sources are merged by it.
fn coverage(words: f32, cosine: Option<f32>) -> f32 {
    /// The cosine of a passage that clearly answers a question.
    const NEAR: f32 = 0.6;
    match cosine {
        None => words,
        Some(cosine) => (words + (cosine / NEAR).clamp(0.0, 1.0)) / 2.0,
    }
}

/// Keyword scores relative to the best one.
fn relative(mut found: Vec<Candidate>) -> Vec<Candidate> {
    let best = found.first().map_or(1.0, |ranked| ranked.score);
    for ranked in &mut found {
        let share = if best > 0.0 { ranked.score / best } else { 0.0 };
        ranked.score = share.clamp(0.0, 1.0);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::embedded::EnglishWords;

    #[test]
    fn passage_found_by_meaning_quotes_nearest_sentence() {
        let filler = "The committee met on a Tuesday and the minutes were read and signed. ".repeat(9);
        let meant = "A dog chased the cat across the garden.";
        let passage = Quotable::new(&format!("{filler}{meant} {filler}"), &mut EnglishWords::default());
        let sense = Sense::new("puppy running after a kitten");
        let quoted = quote(&passage, &[], &[1, 2, 3], sense.as_ref());
        assert!(quoted.contains(meant) && quoted.len() <= 500, "{quoted}");
        // Without the table, or if the words occur, the quote is chosen by words.
        assert!(!quote(&passage, &[], &[1, 2, 3], None).contains(meant));
    }
}
