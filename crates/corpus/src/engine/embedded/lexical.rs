//! Keyword search: turns clauses into a tantivy query and finds passages.

use std::collections::HashMap;

use tantivy::columnar::Column;
use tantivy::query::{BooleanQuery, BoostQuery, EnableScoring, Occur, PhraseQuery, Query, TermQuery};
use tantivy::schema::IndexRecordOption;
use tantivy::tokenizer::{TextAnalyzer, TokenStream};
use tantivy::{DocAddress, Searcher, Term};

use super::best::Best;
use super::schema::Fields;
use super::{filter, passage_id};
use crate::engine::Candidate;
use crate::query::{Clause, Demand, Filter, Want, significant};

/// The most words to rank by: of a long query, the rarest say what it is about.
const MAX_RANKED_WORDS: usize = 64;

/// A query prepared for both legs.
pub(super) struct Plan {
    pub(super) query: BooleanQuery,
    /// The conditions that every result must meet, if there are any.
    pub(super) constraint: Option<Box<dyn Query>>,
}

pub(super) struct Planner<'a> {
    pub(super) searcher: &'a Searcher,
    pub(super) fields: &'a Fields,
    pub(super) analyzer: &'a mut TextAnalyzer,
}

impl Planner<'_> {
    /// `None` if there is nothing to search for.
    pub(super) fn plan(&mut self, clauses: &[Clause], filter: &Filter) -> tantivy::Result<Option<Plan>> {
        // Distinct words with their counts: a repeated word weighs more.
        let mut ranked: Vec<(Term, u32)> = Vec::new();
        let mut known: HashMap<String, usize> = HashMap::new();
        let mut demands: Vec<(Occur, Box<dyn Query>)> = Vec::new();
        let mut has_required_words = false;
        for clause in significant(clauses) {
            let Want::Words { field, text, .. } = &clause.want else {
                demands.push((occur(clause.demand), self.within(&clause.want)?));
                continue;
            };
            let words = words(self.analyzer, text);
            if clause.demand == Demand::Should {
                for word in &words {
                    let at = *known.entry(word.clone()).or_insert_with(|| {
                        ranked.push((self.term(None, word), 0));
                        ranked.len() - 1
                    });
                    ranked[at].1 += 1;
                }
            } else if !words.is_empty() {
                has_required_words |= clause.demand == Demand::Must && field.is_none();
                let terms = words.iter().map(|word| self.term(field.as_deref(), word)).collect();
                demands.push((occur(clause.demand), together(terms)));
            }
        }
        if let Some(filter) = filter::query(filter, self.searcher, self.fields)? {
            demands.push((Occur::Must, filter));
        }
        let anything = !ranked.is_empty() || demands.iter().any(|(occur, _)| *occur == Occur::Must);
        if !anything {
            return Ok(None);
        }
        self.keep_the_rarest(&mut ranked)?;
        let constraint = constraint(&demands);
        let mut parts = demands;
        let ranking: Vec<(Occur, Box<dyn Query>)> = ranked.into_iter().map(ranking).collect();
        if parts.is_empty() || has_required_words {
            parts.extend(ranking);
        } else if !ranking.is_empty() {
            // At least one of the words must occur; the conditions alone are not enough.
            parts.push((Occur::Must, Box::new(BooleanQuery::new(ranking))));
        }
        Ok(Some(Plan {
            query: BooleanQuery::new(parts),
            constraint,
        }))
    }

    fn within(&self, want: &Want) -> tantivy::Result<Box<dyn Query>> {
        match want {
            Want::Within(condition) => filter::condition(condition, self.searcher, self.fields),
            Want::Words { .. } => Ok(Box::new(tantivy::query::AllQuery)),
        }
    }

    fn keep_the_rarest(&self, ranked: &mut Vec<(Term, u32)>) -> tantivy::Result<()> {
        if ranked.len() <= MAX_RANKED_WORDS {
            return Ok(());
        }
        let mut frequencies = HashMap::with_capacity(ranked.len());
        for (term, _) in ranked.iter() {
            frequencies.insert(term.clone(), self.searcher.doc_freq(term)?);
        }
        ranked.retain(|(term, _)| frequencies[term] > 0);
        ranked.sort_by_key(|(term, _)| frequencies[term]);
        ranked.truncate(MAX_RANKED_WORDS);
        Ok(())
    }

    fn term(&self, field: Option<&str>, word: &str) -> Term {
        match field {
            None => Term::from_field_text(self.fields.body, word),
            Some("title") => Term::from_field_text(self.fields.title, word),
            Some(path) => {
                let mut term = Term::from_field_json_path(self.fields.meta, path, false);
                term.append_type_and_str(word);
                term
            }
        }
    }
}

/// A word that raises the rank, weighted by its count in the query.
fn ranking((term, count): (Term, u32)) -> (Occur, Box<dyn Query>) {
    let query = TermQuery::new(term, IndexRecordOption::WithFreqs);
    let query: Box<dyn Query> = match count {
        1 => Box::new(query),
        _ => Box::new(BoostQuery::new(Box::new(query), count as f32)),
    };
    (Occur::Should, query)
}

fn occur(demand: Demand) -> Occur {
    match demand {
        Demand::Should => Occur::Should,
        Demand::Must => Occur::Must,
        Demand::MustNot => Occur::MustNot,
    }
}

/// The conditions, without words that only rank.
fn constraint(demands: &[(Occur, Box<dyn Query>)]) -> Option<Box<dyn Query>> {
    if demands.is_empty() {
        return None;
    }
    let mut parts: Vec<(Occur, Box<dyn Query>)> = demands
        .iter()
        .map(|(occur, query)| (*occur, query.box_clone()))
        .collect();
    if parts.iter().all(|(occur, _)| *occur == Occur::MustNot) {
        parts.push((Occur::Must, Box::new(tantivy::query::AllQuery)));
    }
    Some(Box::new(BooleanQuery::new(parts)))
}

fn together(mut terms: Vec<Term>) -> Box<dyn Query> {
    if terms.len() == 1 {
        return Box::new(TermQuery::new(terms.remove(0), IndexRecordOption::WithFreqs));
    }
    Box::new(PhraseQuery::new(terms))
}

pub(super) fn words(analyzer: &mut TextAnalyzer, text: &str) -> Vec<String> {
    let mut words = Vec::new();
    analyzer
        .token_stream(text)
        .process(&mut |token| words.push(token.text.clone()));
    words
}

/// The best passage of each of the best `limit` documents, best first. `documents` has the column of document hashes
/// of each segment.
///
/// The threshold of one segment carries over to the next. It depends on documents, not passages, and whole blocks of
/// postings below it are skipped.
pub(super) fn best_documents(
    searcher: &Searcher,
    documents: &[Column<u64>],
    query: &dyn Query,
    limit: usize,
) -> tantivy::Result<Vec<Candidate>> {
    let weight = query.weight(EnableScoring::enabled_from_searcher(searcher))?;
    let mut best = Best::new(limit);
    // Tantivy skips scores up to the threshold; among equal scores, the first in the index wins.
    let bar = |best: &Best| best.least().max(f32::MIN).next_down();
    for (number, (segment, column)) in (0u32..).zip(searcher.segment_readers().iter().zip(documents)) {
        weight.for_each_pruning(bar(&best), segment, &mut |doc, score| {
            // The record entry of a longer document is not a passage.
            if !segment.is_deleted(doc)
                && let Some(document) = column.first(doc)
            {
                best.offer(document, score, passage_id(DocAddress::new(number, doc)));
            }
            bar(&best)
        })?;
    }
    Ok(best.into_ranked())
}
