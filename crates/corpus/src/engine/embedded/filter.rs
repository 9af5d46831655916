//! Conditions as tantivy queries that do not score.

use std::collections::BTreeSet;
use std::ops::Bound;

use jiff::civil::Date;
use tantivy::Term;
use tantivy::query::{AllQuery, BooleanQuery, EmptyQuery, Query, RangeQuery, TermQuery, TermSetQuery};
use tantivy::schema::IndexRecordOption;

use super::schema::{Fields, days, facet_prefix, facet_term, folded};
use super::segments::Segments;
use crate::query::{Condition, Filter};

/// `None` if there are no conditions.
pub(super) fn query(filter: &Filter, segments: &Segments, fields: &Fields) -> tantivy::Result<Option<Box<dyn Query>>> {
    let parts = filter.0.iter().map(|part| condition(part, segments, fields));
    let mut parts = parts.collect::<tantivy::Result<Vec<_>>>()?;
    Ok(match parts.len() {
        0 => None,
        1 => parts.pop(),
        _ => Some(Box::new(BooleanQuery::intersection(parts))),
    })
}

pub(super) fn condition(
    condition: &Condition,
    segments: &Segments,
    fields: &Fields,
) -> tantivy::Result<Box<dyn Query>> {
    Ok(match condition {
        Condition::Is { field, value } => {
            Box::new(TermQuery::new(facet_term(fields, field, value), IndexRecordOption::Basic))
        }
        Condition::Holds { field, part } => values_holding(segments, fields, field, part)?,
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
    const TITLES: &str = "mr mrs ms miss dr prof sir dame hon the honourable senator sen mp member minister";
    let bare = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_owned();
    let words = folded(name).split_whitespace().map(bare).collect::<Vec<_>>();
    let (titles, names): (Vec<_>, Vec<_>) = words
        .into_iter()
        .filter(|word| !word.is_empty())
        .partition(|word| TITLES.split(' ').any(|title| title == word));
    if names.is_empty() { titles } else { names }
}

/// Every value of the field that contains `part`. A corpus has far fewer names than passages.
fn values_holding(segments: &Segments, fields: &Fields, field: &str, part: &str) -> tantivy::Result<Box<dyn Query>> {
    let wanted = name_parts(part);
    let prefix = facet_prefix(field);
    let mut terms = BTreeSet::new();
    for segment in segments.iter() {
        segment.each_value(fields, field, |value, _| {
            if wanted.iter().all(|part| value.contains(part.as_str())) {
                terms.insert(Term::from_field_text(fields.facet, &format!("{prefix}{value}")));
            }
            Ok(())
        })?;
    }
    if terms.is_empty() || wanted.is_empty() {
        return Ok(Box::new(EmptyQuery));
    }
    Ok(Box::new(TermSetQuery::new(terms)))
}
