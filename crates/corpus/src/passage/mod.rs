//! Passages: the parts of a document that are ranked and quoted.
//!
//! - `split`: splits long texts at the ends of sentences;
//! - `header`: the context of a passage;
//! - `quote`: the sentences of a passage that show the match.

mod header;
mod quote;
mod split;

use std::ops::Range;

pub use quote::{Quotable, Words, stems};
pub use split::split;

use crate::format::{Markup, Record, sections};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    pub range: Range<usize>,
    /// Title, author, date and section.
    pub header: String,
}

/// The passages of a record.
pub fn passages(record: &Record, markup: Markup) -> Vec<Passage> {
    let ranges = split(&record.text);
    let sections = match markup {
        Markup::Markdown if ranges.len() > 1 => sections(&record.text),
        _ => Vec::new(),
    };
    let passage = |range: Range<usize>| {
        let section = sections.iter().rev().find(|section| section.at < range.start);
        let header = header::header(record, &record.text[range.clone()], section.map(|section| section.title.as_str()));
        Passage { range, header }
    };
    ranges.into_iter().map(passage).collect()
}

/// The text that keyword search and vectors both rank.
pub fn ranked_text(header: &str, passage: &str) -> String {
    if header == passage {
        // A passage that is only its title must not count twice.
        return passage.to_owned();
    }
    format!("{header}\n{passage}")
}

/// The beginning of a text, at a character boundary.
pub(crate) fn beginning(text: &str, max_bytes: usize) -> &str {
    &text[..text.floor_char_boundary(max_bytes)]
}
