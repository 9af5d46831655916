//! Passages: the parts of a document that are ranked and quoted.
//!
//! - `split`: splits long texts at the ends of sentences;
//! - `quote`: the sentences of a passage that show the match.

mod quote;
mod split;

use std::ops::Range;

use serde_json::Value;

pub use quote::{Quotable, Stem, Words, stems};
pub(crate) use quote::{distinct_stems, stem_of};
pub use split::split;

use crate::format::{Markup, Place, Record, sections};

const MAX_TITLE_BYTES: usize = 500;
const MAX_PART_BYTES: usize = 160;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    pub range: Range<usize>,
    /// Title, author, date, section and place.
    pub header: String,
    /// The page, slide or chapter that it begins in.
    pub place: Option<String>,
}

/// The passages of a record.
pub fn passages(record: &Record) -> Vec<Passage> {
    let ranges = split(&record.text, record.places.iter().map(|place| place.at));
    let sections = match record.markup {
        Markup::Markdown if ranges.len() > 1 => sections(&record.text),
        _ => Vec::new(),
    };
    let is_one = ranges.len() == 1;
    let passage = |range: Range<usize>| {
        let section = sections.iter().rev().find(|section| section.at < range.start);
        let place = place_at(&record.places, range.start).filter(|_| !is_one || record.places.len() == 1);
        let parts = [section.map(|section| section.title.as_str()), place.map(|place| place.label.as_str())];
        let header = header(record, &record.text[range.clone()], &parts);
        Passage { range, header, place: place.map(|place| place.label.clone()) }
    };
    ranges.into_iter().map(passage).collect()
}

/// The page, slide or chapter that a byte of the text is in.
pub fn place_at(places: &[Place], at: usize) -> Option<&Place> {
    places[..places.partition_point(|place| place.at <= at)].last()
}

/// The context of a passage: document, author, date, heading and page.
fn header(record: &Record, passage: &str, parts: &[Option<&str>]) -> String {
    let text_of = |name: &str| record.fields.get(name).and_then(Value::as_str);
    let mut header = String::new();
    // A title made from the first words is already in the passage, and must not count twice.
    if !passage.trim_start().starts_with(record.title.trim_end_matches('…')) {
        header.push_str(beginning(&record.title, MAX_TITLE_BYTES));
    }
    let mut add = |part: &str| {
        let part = beginning(part.trim(), MAX_PART_BYTES);
        if !part.is_empty() && !header.contains(part) {
            if !header.is_empty() {
                header.push_str(". ");
            }
            header.push_str(part);
        }
    };
    if let Some(speaker) = text_of("speaker").or_else(|| text_of("author")) {
        add(speaker);
    }
    if let Some(date) = record.date {
        add(&date.strftime("%-d %B %Y").to_string());
    }
    for part in [text_of("section")].iter().chain(parts).copied().flatten() {
        add(part);
    }
    header
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
