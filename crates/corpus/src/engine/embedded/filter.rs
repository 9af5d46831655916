//! Conditions as tantivy queries that do not score.

use std::ops::Bound;

use jiff::civil::Date;
use tantivy::query::{AllQuery, BooleanQuery, EmptyQuery, Query, RangeQuery, TermQuery, TermSetQuery};
use tantivy::schema::IndexRecordOption;
use tantivy::{Searcher, Term};

use super::schema::{Fields, days, facet_prefix, facet_term, folded};
use crate::query::{Condition, Filter};

/// `None` if there are no conditions.
pub(super) fn query(filter: &Filter, searcher: &Searcher, fields: &Fields) -> tantivy::Result<Option<Box<dyn Query>>> {
    let mut parts: Vec<Box<dyn Query>> = Vec::with_capacity(filter.0.len());
    for part in &filter.0 {
        parts.push(condition(part, searcher, fields)?);
    }
    Ok(match parts.len() {
        0 => None,
        1 => parts.pop(),
        _ => Some(Box::new(BooleanQuery::intersection(parts))),
    })
}

pub(super) fn condition(
    condition: &Condition,
    searcher: &Searcher,
    fields: &Fields,
) -> tantivy::Result<Box<dyn Query>> {
    Ok(match condition {
        Condition::Is { field, value } => Box::new(TermQuery::new(
            facet_term(fields, field, value),
            IndexRecordOption::Basic,
        )),
        Condition::Holds { field, part } => values_holding(searcher, fields, field, part)?,
        Condition::Days { from, until } => {
            let term = |date: &Date| Term::from_field_i64(fields.day, days(*date));
            let bound = |date: &Option<Date>| date.as_ref().map(term).map_or(Bound::Unbounded, Bound::Included);
            range(bound(from), bound(until))
        }
        Condition::Number { field, from, until } => {
            let path = field.replace('.', "\\.");
            let term = |number: &f64| {
                let mut term = Term::from_field_json_path(fields.numbers, &path, false);
                term.append_type_and_fast_value(*number);
                term
            };
            range(from.as_ref().map(term), until.as_ref().map(term))
        }
    })
}

fn range(from: Bound<Term>, until: Bound<Term>) -> Box<dyn Query> {
    match (from, until) {
        (Bound::Unbounded, Bound::Unbounded) => Box::new(AllQuery),
        (from, until) => Box::new(RangeQuery::new(from, until)),
    }
}

/// The parts of a name without titles: "Hon. Katter, Bob MP" is katter and bob.
fn name_parts(name: &str) -> Vec<String> {
    const TITLES: [&str; 16] = [
        "mr",
        "mrs",
        "ms",
        "miss",
        "dr",
        "prof",
        "sir",
        "dame",
        "hon",
        "the",
        "honourable",
        "senator",
        "sen",
        "mp",
        "member",
        "minister",
    ];
    let folded = folded(name);
    let bare = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_owned();
    let words: Vec<String> = folded
        .split_whitespace()
        .map(bare)
        .filter(|word| !word.is_empty())
        .collect();
    let names: Vec<String> = words
        .iter()
        .filter(|word| !TITLES.contains(&word.as_str()))
        .cloned()
        .collect();
    if names.is_empty() { words } else { names }
}

/// Every value of the field that contains `part`. A corpus has far fewer names than passages.
fn values_holding(searcher: &Searcher, fields: &Fields, field: &str, part: &str) -> tantivy::Result<Box<dyn Query>> {
    let wanted = name_parts(part);
    let prefix = facet_prefix(field);
    let mut terms = Vec::new();
    for segment in searcher.segment_readers() {
        let index = segment.inverted_index(fields.facet)?;
        let mut values = index.terms().range().ge(prefix.as_bytes()).into_stream()?;
        while values.advance() {
            let Some(value) = values.key().strip_prefix(prefix.as_bytes()) else {
                break;
            };
            let value = String::from_utf8_lossy(value);
            if wanted.iter().all(|part| value.contains(part.as_str())) {
                terms.push(Term::from_field_text(fields.facet, &format!("{prefix}{value}")));
            }
        }
    }
    terms.sort_unstable();
    terms.dedup();
    if terms.is_empty() || wanted.is_empty() {
        return Ok(Box::new(EmptyQuery));
    }
    Ok(Box::new(TermSetQuery::new(terms)))
}
