//! Conditions of a search. They are part of both queries, so that a filtered search returns as many results as match.

use std::ops::Bound;

use jiff::civil::Date;

/// All conditions must hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter(pub Vec<Condition>);

#[derive(Debug, Clone, PartialEq)]
pub enum Condition {
    /// A field has this value, ignoring case and accents.
    Is { field: String, value: String },
    /// A field's value contains these words or parts of words: "kenn" finds Simon Kennedy.
    Holds { field: String, part: String },
    /// The document's date is in this range, inclusive.
    Days { from: Option<Date>, until: Option<Date> },
    /// A field's number is in this range.
    Number { field: String, from: Bound<f64>, until: Bound<f64> },
}

impl Filter {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
