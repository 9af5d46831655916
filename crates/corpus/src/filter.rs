//! Conditions that a search must meet, understood as part of retrieval: they narrow what is ranked,
//! so that a filtered search still gives as many results as there are.

use std::ops::Bound;

use jiff::civil::Date;
use tantivy::query::{BooleanQuery, EmptyQuery, Occur, Query, RangeQuery, TermQuery, TermSetQuery};
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
    /// A field's number is within these, both included.
    Number {
        field: String,
        from: Option<f64>,
        until: Option<f64>,
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
                range(from.as_ref().map(term), until.as_ref().map(term))
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

fn range(from: Option<Term>, until: Option<Term>) -> Box<dyn Query> {
    let bound = |term: Option<Term>| term.map_or(Bound::Unbounded, Bound::Included);
    match (from, until) {
        (None, None) => Box::new(BooleanQuery::new(vec![(
            Occur::Must,
            Box::new(tantivy::query::AllQuery),
        )])),
        (from, until) => Box::new(RangeQuery::new(bound(from), bound(until))),
    }
}

/// Every value of the field that holds `part`: a corpus has few names beside its passages.
fn values_holding(searcher: &Searcher, fields: &Fields, field: &str, part: &str) -> tantivy::Result<Box<dyn Query>> {
    let wanted: Vec<String> = folded(part).split_whitespace().map(str::to_owned).collect();
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
