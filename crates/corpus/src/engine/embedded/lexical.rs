//! Keyword search: turns clauses into a tantivy query and finds passages.

use std::collections::HashMap;

use tantivy::query::{AllQuery, BooleanQuery, BoostQuery, EnableScoring, Occur, PhraseQuery, Query, TermQuery};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocSet, Searcher, TERMINATED, Term};

use super::best::Best;
use super::filter;
use super::schema::Fields;
use super::segments::{Segment, Segments};
use super::visible::VisibleEntries;
use crate::engine::{Candidate, Ranking, Visible};
use crate::query::{Demand, Want};

/// The most words to rank by: of a long query, the rarest say what it is about.
const MAX_RANKED_WORDS: usize = 64;

/// A query prepared for both legs.
pub(super) struct Plan {
    pub(super) query: BooleanQuery,
    /// The words, if not everything is visible and any of them is enough: the query is then nothing but the sum of them.
    words: Vec<Box<dyn Query>>,
    /// The conditions that every result must meet, if there are any.
    pub(super) constraint: Option<Box<dyn Query>>,
}

/// `None` if there is nothing to search for.
pub(super) fn plan(segments: &Segments, fields: &Fields, ranking: &Ranking<'_>) -> tantivy::Result<Option<Plan>> {
    // Distinct words with their counts: a repeated word weighs more.
    let mut ranked: Vec<(Term, u32)> = Vec::new();
    let mut known: HashMap<&str, usize> = HashMap::new();
    let mut demands: Vec<(Occur, Box<dyn Query>)> = Vec::new();
    let mut has_required_words = false;
    for clause in ranking.clauses {
        let occur = match clause.demand {
            Demand::Should => Occur::Should,
            Demand::Must => Occur::Must,
            Demand::MustNot => Occur::MustNot,
        };
        let (field, words) = match &clause.want {
            Want::Words { field, words, .. } => (field.as_deref(), words),
            Want::Within(condition) => {
                demands.push((occur, filter::condition(condition, segments, fields)?));
                continue;
            }
        };
        if occur == Occur::Should {
            for word in words {
                let at = *known.entry(word).or_insert_with(|| {
                    ranked.push((term(fields, None, word), 0));
                    ranked.len() - 1
                });
                ranked[at].1 += 1;
            }
        } else if !words.is_empty() {
            has_required_words |= occur == Occur::Must && field.is_none();
            let terms = words.iter().map(|word| term(fields, field, word)).collect();
            demands.push((occur, together(terms)));
        }
    }
    if let Some(filter) = filter::query(ranking.filter, segments, fields)? {
        demands.push((Occur::Must, filter));
    }
    if ranked.is_empty() && demands.iter().all(|(occur, _)| *occur != Occur::Must) {
        return Ok(None);
    }
    keep_the_rarest(&mut ranked, &segments.searcher)?;
    let constraint = constraint(&demands);
    let mut parts = demands;
    let ranked: Vec<(Occur, Box<dyn Query>)> = ranked.into_iter().map(ranking_word).collect();
    let mut words = Vec::new();
    if parts.is_empty() && *ranking.visible != Visible::All {
        words.extend(ranked.iter().map(|(_, word)| word.box_clone()));
    }
    if parts.is_empty() || has_required_words {
        parts.extend(ranked);
    } else if !ranked.is_empty() {
        // At least one of the words must occur; the conditions alone are not enough.
        parts.push((Occur::Must, Box::new(BooleanQuery::new(ranked))));
    }
    Ok(Some(Plan { query: BooleanQuery::new(parts), words, constraint }))
}

fn keep_the_rarest(ranked: &mut Vec<(Term, u32)>, searcher: &Searcher) -> tantivy::Result<()> {
    if ranked.len() <= MAX_RANKED_WORDS {
        return Ok(());
    }
    let mut frequencies = HashMap::with_capacity(ranked.len());
    for (term, _) in ranked.iter() {
        frequencies.insert(term.clone(), searcher.doc_freq(term)?);
    }
    ranked.retain(|(term, _)| frequencies[term] > 0);
    ranked.sort_by_key(|(term, _)| frequencies[term]);
    ranked.truncate(MAX_RANKED_WORDS);
    Ok(())
}

fn term(fields: &Fields, field: Option<&str>, word: &str) -> Term {
    match field {
        None => Term::from_field_text(fields.body, word),
        Some("title") => Term::from_field_text(fields.title, word),
        Some(path) => {
            let mut term = Term::from_field_json_path(fields.meta, path, false);
            term.append_type_and_str(word);
            term
        }
    }
}

/// A word that raises the rank, weighted by its count in the query.
fn ranking_word((term, count): (Term, u32)) -> (Occur, Box<dyn Query>) {
    let query = TermQuery::new(term, IndexRecordOption::WithFreqs);
    let query: Box<dyn Query> = match count {
        1 => Box::new(query),
        _ => Box::new(BoostQuery::new(Box::new(query), count as f32)),
    };
    (Occur::Should, query)
}

/// The conditions, without words that only rank.
fn constraint(demands: &[(Occur, Box<dyn Query>)]) -> Option<Box<dyn Query>> {
    if demands.is_empty() {
        return None;
    }
    let conditions = demands.iter().map(|(occur, query)| (*occur, query.box_clone()));
    let mut parts: Vec<(Occur, Box<dyn Query>)> = conditions.collect();
    if parts.iter().all(|(occur, _)| *occur == Occur::MustNot) {
        parts.push((Occur::Must, Box::new(AllQuery)));
    }
    Some(Box::new(BooleanQuery::new(parts)))
}

fn together(mut terms: Vec<Term>) -> Box<dyn Query> {
    if terms.len() == 1 {
        return Box::new(TermQuery::new(terms.remove(0), IndexRecordOption::WithFreqs));
    }
    Box::new(PhraseQuery::new(terms))
}

impl Plan {
    /// The best documents by the words of the query.
    pub(super) fn best_documents(
        &self,
        segments: &Segments,
        visible: Option<&VisibleEntries>,
        limit: usize,
    ) -> tantivy::Result<Vec<Candidate>> {
        match visible {
            Some(few) if few.are_few && !self.words.is_empty() => best_of_few(segments, &self.words, few, limit),
            _ => best_documents(segments, &self.query, visible, limit),
        }
    }
}

/// The best passage of each of the best `limit` documents, best first.
///
/// The threshold of one segment carries over to the next. It depends on documents, not passages, and whole blocks of
/// postings below it are skipped. What is not visible does not raise it.
pub(super) fn best_documents(
    segments: &Segments,
    query: &dyn Query,
    visible: Option<&VisibleEntries>,
    limit: usize,
) -> tantivy::Result<Vec<Candidate>> {
    let weight = query.weight(EnableScoring::enabled_from_searcher(&segments.searcher))?;
    let mut best = Best::new(limit);
    // Tantivy skips scores up to the threshold; among equal scores, the first in the index wins.
    let bar = |best: &Best| best.least().max(f32::MIN).next_down();
    for segment in segments.iter() {
        weight.for_each_pruning(bar(&best), segment.reader, &mut |doc, score| {
            if visible.is_none_or(|visible| visible.hold(segment.number, doc)) {
                offer(&mut best, segment, doc, score);
            }
            bar(&best)
        })?;
    }
    Ok(best.into_ranked())
}

/// The same by looking at each of the few entries that are visible, where skipping would find nothing to skip by.
fn best_of_few(
    segments: &Segments,
    words: &[Box<dyn Query>],
    few: &VisibleEntries,
    limit: usize,
) -> tantivy::Result<Vec<Candidate>> {
    let scoring = EnableScoring::enabled_from_searcher(&segments.searcher);
    let weights = words.iter().map(|word| word.weight(scoring)).collect::<tantivy::Result<Vec<_>>>()?;
    let mut best = Best::new(limit);
    for segment in segments.iter() {
        let scorers = weights.iter().map(|weight| weight.scorer(segment.reader, 1.0));
        let mut scorers = scorers.collect::<tantivy::Result<Vec<_>>>()?;
        for doc in few.in_segment(segment.number) {
            let mut score = None;
            for scorer in &mut scorers {
                if scorer.doc() < doc {
                    scorer.seek(doc);
                }
                if scorer.doc() == doc {
                    *score.get_or_insert(0.0) += scorer.score();
                }
            }
            if let Some(score) = score {
                offer(&mut best, segment, doc, score);
            }
            scorers.retain(|scorer| scorer.doc() != TERMINATED);
        }
    }
    Ok(best.into_ranked())
}

fn offer(best: &mut Best, segment: Segment<'_>, doc: u32, score: f32) {
    if !segment.reader.is_deleted(doc)
        && let Some(document) = segment.documents.first(doc)
    {
        best.offer(document, score, segment.passage(doc));
    }
}
