//! Conditions that a search must meet, understood as part of retrieval: they narrow what is ranked,
//! so that a filtered search still gives as many results as there are.

use std::ops::Bound;

use jiff::civil::Date;
use tantivy::query::{AllQuery, BooleanQuery, EmptyQuery, Query, RangeQuery, TermQuery, TermSetQuery};
use tantivy::schema::IndexRecordOption;
use tantivy::{Searcher, Term};

use crate::schema::{Fields, days, facet_prefix, facet_term, folded};

/// All conditions must hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter(pub Vec<Condition>);

#[derive(Debug, Clone, PartialEq)]
pub enum Condition {
    /// A field has this value, without regard to case and accents.
    Is { field: String, value: String },
    /// A field's value holds these words or parts of words: "kenn" finds Simon Kennedy.
    Holds { field: String, part: String },
    /// The document's date is within these days, both included.
    Days { from: Option<Date>, until: Option<Date> },
    /// A field's number is within these.
    Number {
        field: String,
        from: Bound<f64>,
        until: Bound<f64>,
    },
}

impl Filter {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As a query that matches and does not score.
    pub(crate) fn query(&self, searcher: &Searcher, fields: &Fields) -> tantivy::Result<Option<Box<dyn Query>>> {
        let mut parts: Vec<Box<dyn Query>> = Vec::with_capacity(self.0.len());
        for condition in &self.0 {
            parts.push(condition.query(searcher, fields)?);
        }
        Ok(match parts.len() {
            0 => None,
            1 => parts.pop(),
            _ => Some(Box::new(BooleanQuery::intersection(parts))),
        })
    }
}

impl Condition {
    fn query(&self, searcher: &Searcher, fields: &Fields) -> tantivy::Result<Box<dyn Query>> {
        Ok(match self {
            Self::Is { field, value } => Box::new(TermQuery::new(
                facet_term(fields, field, value),
                IndexRecordOption::Basic,
            )),
            Self::Holds { field, part } => values_holding(searcher, fields, field, part)?,
            Self::Days { from, until } => {
                let term = |date: &Date| Term::from_field_i64(fields.day, days(*date));
                let bound = |date: &Option<Date>| date.as_ref().map(term).map_or(Bound::Unbounded, Bound::Included);
                range(bound(from), bound(until))
            }
            Self::Number { field, from, until } => {
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
}

fn range(from: Bound<Term>, until: Bound<Term>) -> Box<dyn Query> {
    match (from, until) {
        (Bound::Unbounded, Bound::Unbounded) => Box::new(AllQuery),
        (from, until) => Box::new(RangeQuery::new(from, until)),
    }
}

/// The parts of a name that a list of names would have: "Hon. Katter, Bob MP" is katter and bob.
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

/// Every value of the field that holds `part`: a corpus has few names beside its passages.
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
