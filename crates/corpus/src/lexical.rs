//! The full-text leg: what was typed becomes a query, and the query finds passages.

use std::collections::HashMap;

use tantivy::columnar::Column;
use tantivy::query::{BooleanQuery, BoostQuery, EnableScoring, Occur, PhraseQuery, Query, TermQuery};
use tantivy::schema::IndexRecordOption;
use tantivy::tokenizer::{TextAnalyzer, TokenStream};
use tantivy::{DocAddress, Searcher, Term};

use crate::best::Best;
use crate::filter::Filter;
use crate::fusion::Ranked;
use crate::query::{self, Clause, Demand, Want};
use crate::schema::Fields;
use crate::snippet;

/// Words of a query that are ranked by at most: of a pasted page, the rarest say what it is about.
const MAX_RANKED_WORDS: usize = 64;

/// A query made ready for both legs.
pub(crate) struct Plan {
    pub(crate) query: BooleanQuery,
    /// What every result must meet, if the query demands anything.
    pub(crate) constraint: Option<Box<dyn Query>>,
    /// The words, hashed, to find them again in a passage.
    pub(crate) stems: Vec<u32>,
    /// What a model is to read of the query: without field names and exclusions.
    pub(crate) meaning: String,
}

pub(crate) struct Planner<'a> {
    pub(crate) searcher: &'a Searcher,
    pub(crate) fields: &'a Fields,
    pub(crate) analyzer: &'a mut TextAnalyzer,
}

impl Planner<'_> {
    /// `None` if there is nothing in it to look for.
    pub(crate) fn plan(&mut self, clauses: &[Clause], filter: &Filter) -> tantivy::Result<Option<Plan>> {
        let all_stop = clauses.iter().all(|clause| is_stop(&clause.want));
        // Each word once, counted: a word that is repeated weighs more.
        let mut ranked: Vec<(Term, u32)> = Vec::new();
        let mut known: HashMap<String, usize> = HashMap::new();
        let mut demands: Vec<(Occur, Box<dyn Query>)> = Vec::new();
        let mut has_required_words = false;
        let mut stems = Vec::new();
        let mut meaning: Vec<&str> = Vec::new();
        for clause in clauses {
            let Want::Words { field, text, .. } = &clause.want else {
                demands.push((occur(clause.demand), self.within(&clause.want)?));
                continue;
            };
            if clause.demand != Demand::MustNot && field.is_none() {
                meaning.push(text);
            }
            if clause.demand == Demand::Should && !all_stop && is_stop(&clause.want) {
                continue;
            }
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
            if clause.demand != Demand::MustNot {
                stems.extend(words);
            }
        }
        if let Some(filter) = filter.query(self.searcher, self.fields)? {
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
            // What merely meets the conditions is no answer: one of the words must occur, too.
            parts.push((Occur::Must, Box::new(BooleanQuery::new(ranking))));
        }
        Ok(Some(Plan {
            query: BooleanQuery::new(parts),
            constraint,
            stems: snippet::stems(stems.iter().map(String::as_str)),
            meaning: meaning.join(" "),
        }))
    }

    fn within(&self, want: &Want) -> tantivy::Result<Box<dyn Query>> {
        let condition = match want {
            Want::Within(condition) => Filter(vec![condition.clone()]),
            Want::Words { .. } => Filter::default(),
        };
        let query = condition.query(self.searcher, self.fields)?;
        Ok(query.unwrap_or_else(|| Box::new(tantivy::query::AllQuery)))
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

/// A word that raises the rank, as often as the query has it.
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

fn is_stop(want: &Want) -> bool {
    match want {
        Want::Words { text, .. } => {
            let bare = text.trim_matches(|c: char| !c.is_alphanumeric());
            query::is_stop_word(&bare.to_lowercase())
        }
        Want::Within(_) => false,
    }
}

/// What must and must not hold, without what only ranks.
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

pub(crate) fn words(analyzer: &mut TextAnalyzer, text: &str) -> Vec<String> {
    let mut words = Vec::new();
    analyzer
        .token_stream(text)
        .process(&mut |token| words.push(token.text.clone()));
    words
}

/// The best passage of each of the best `limit` documents, best first. `documents` is the column of
/// document hashes of each segment.
///
/// What one segment has found is the bar for the next, and the bar is set by documents, not by
/// passages: whole blocks of postings below it are never read.
pub(crate) fn best_documents(
    searcher: &Searcher,
    documents: &[Column<u64>],
    query: &dyn Query,
    limit: usize,
) -> tantivy::Result<Vec<Ranked>> {
    let weight = query.weight(EnableScoring::enabled_from_searcher(searcher))?;
    let mut best = Best::new(limit);
    // Tantivy passes over what is not above the bar; of equals, the first in the index is wanted.
    let bar = |best: &Best| best.least().max(f32::MIN).next_down();
    for (number, (segment, column)) in (0u32..).zip(searcher.segment_readers().iter().zip(documents)) {
        weight.for_each_pruning(bar(&best), segment, &mut |doc, score| {
            // The record of a longer document is no passage of it.
            if !segment.is_deleted(doc)
                && let Some(document) = column.first(doc)
            {
                best.offer(document, score, DocAddress::new(number, doc));
            }
            bar(&best)
        })?;
    }
    Ok(best.into_ranked())
}
