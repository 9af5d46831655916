//! The fields of an index.
//!
//! Each passage is one entry. A longer document has a further entry, its *record*, with the whole text, so that a
//! search never loads it.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use tantivy::schema::{
    Field, IndexRecordOption, JsonObjectOptions, STORED, STRING, Schema, TextFieldIndexing, TextOptions,
};
use tantivy::tokenizer::{
    AsciiFoldingFilter, Language, LowerCaser, RawTokenizer, RemoveLongFilter, SimpleTokenizer, Stemmer, TextAnalyzer,
    TextAnalyzerBuilder, TokenStream, Tokenizer,
};

pub(super) use crate::engine::days;
use crate::hash;
use crate::passage::{Stem, Words, stem_of};

/// Changes when older indexes can no longer be read; part of the folder's name.
pub(super) const FORMAT: &str = "v4";

/// The name of our analyser.
pub(super) const ANALYZER: &str = "tribune_en";

#[derive(Clone)]
pub(super) struct Fields {
    pub(super) schema: Schema,
    /// The file of an entry; its entries are deleted when the file changes.
    pub(super) file: Field,
    /// Who may see the document, as `Readers` prints them.
    pub(super) readers: Field,
    /// The document's key, only on the entry that `fetch` reads.
    pub(super) record: Field,
    /// The document's key, stored.
    pub(super) key: Field,
    /// Hash of the key: tells which passages are of one document without loading them.
    pub(super) document: Field,
    /// The number of the passage, from 0.
    pub(super) ordinal: Field,
    /// The number of passages of the document.
    pub(super) passages: Field,
    pub(super) title: Field,
    pub(super) url: Field,
    /// Days since 1970-01-01.
    pub(super) day: Field,
    /// The ranked text: header and passage; not stored.
    pub(super) body: Field,
    /// Hash of the ranked text: equal texts share a vector.
    pub(super) content: Field,
    /// `name=value` of short fields, folded; filters compare it.
    pub(super) facet: Field,
    /// Numeric fields, for ranges.
    pub(super) numbers: Field,
    /// The context header of the passage.
    pub(super) header: Field,
    /// The passage, unchanged.
    pub(super) passage: Field,
    /// The whole text, on records of longer documents.
    pub(super) text: Field,
    /// All other fields as JSON, on the entry that `fetch` reads.
    pub(super) fields: Field,
    /// The same fields, searchable as `field:value`.
    pub(super) meta: Field,
    /// The title on records of longer documents; not searchable, because the passages have it.
    pub(super) record_title: Field,
    /// Present if the text is Markdown; beside `fields`.
    pub(super) markdown: Field,
    /// The places of the document as JSON; beside `fields`.
    pub(super) places: Field,
    /// The place of the passage.
    pub(super) place: Field,
    /// Start and end of each passage as little-endian `u32` pairs, on records of longer documents.
    pub(super) ranges: Field,
}

impl Fields {
    pub(super) fn new() -> Self {
        let indexing = TextFieldIndexing::default()
            .set_tokenizer(ANALYZER)
            .set_index_option(IndexRecordOption::WithFreqsAndPositions);
        let searchable = TextOptions::default().set_indexing_options(indexing.clone());
        let mut schema = Schema::builder();
        Self {
            file: schema.add_text_field("file", STRING | STORED),
            readers: schema.add_text_field("readers", STRING | STORED),
            record: schema.add_text_field("record", STRING),
            key: schema.add_text_field("key", STORED),
            document: schema.add_u64_field("document", tantivy::schema::FAST),
            ordinal: schema.add_u64_field("ordinal", STORED),
            passages: schema.add_u64_field("passages", STORED),
            title: schema.add_text_field("title", searchable.clone().set_stored()),
            url: schema.add_text_field("url", STORED),
            day: schema.add_i64_field("day", tantivy::schema::FAST | STORED),
            body: schema.add_text_field("body", searchable),
            content: schema.add_u64_field("content", tantivy::schema::FAST),
            facet: schema.add_text_field("facet", STRING),
            numbers: schema.add_json_field("numbers", JsonObjectOptions::default().set_fast("raw")),
            header: schema.add_text_field("header", STORED),
            passage: schema.add_text_field("passage", STORED),
            text: schema.add_text_field("text", STORED),
            fields: schema.add_text_field("fields", STORED),
            meta: schema.add_json_field("meta", JsonObjectOptions::default().set_indexing_options(indexing)),
            record_title: schema.add_text_field("record_title", STORED),
            markdown: schema.add_bool_field("markdown", STORED),
            places: schema.add_text_field("places", STORED),
            place: schema.add_text_field("place", STORED),
            ranges: schema.add_bytes_field("ranges", STORED),
            schema: schema.build(),
        }
    }
}

/// Lower case, without accents, stemmed in English. Stop words stay, so that phrases with them are found.
pub(super) fn analyzer() -> TextAnalyzer {
    folding().filter(Stemmer::new(Language::English)).build()
}

fn folding() -> TextAnalyzerBuilder<impl Tokenizer> {
    let words = TextAnalyzer::builder(SimpleTokenizer::default()).filter(RemoveLongFilter::limit(100));
    words.filter(LowerCaser).filter(AsciiFoldingFilter)
}

/// The words of an index as the analyser makes them, in two steps.
#[derive(Clone)]
pub struct EnglishWords {
    folded: TextAnalyzer,
    /// Stems one folded word.
    stemmer: TextAnalyzer,
}

impl Default for EnglishWords {
    fn default() -> Self {
        let stemmer = TextAnalyzer::builder(RawTokenizer::default()).filter(Stemmer::new(Language::English));
        Self { folded: folding().build(), stemmer: stemmer.build() }
    }
}

impl Words for EnglishWords {
    fn each(&mut self, text: &str, word: &mut dyn FnMut(&str, Range<usize>)) {
        let Self { folded, stemmer } = self;
        folded.token_stream(text).process(&mut |token| {
            let span = token.offset_from..token.offset_to;
            stemmer.token_stream(&token.text).process(&mut |stemmed| word(&stemmed.text, span.clone()));
        });
    }

    fn each_stem(&mut self, text: &str, stem: &mut dyn FnMut(Stem, Range<usize>)) {
        let Self { folded, stemmer } = self;
        folded.token_stream(text).process(&mut |token| {
            let make = || {
                let mut made = 0;
                stemmer.token_stream(&token.text).process(&mut |stemmed| made = stem_of(&stemmed.text));
                made
            };
            stem(known_stem(&token.text, make), token.offset_from..token.offset_to);
        });
    }
}

/// The stem of a folded word. The last ones are kept, because most of the time of a search that finds new passages went
/// into stemming the same words again. A slot has the upper half of the word's hash, and the stem.
fn known_stem(word: &str, make: impl FnOnce() -> Stem) -> Stem {
    const SLOTS: usize = 1 << 14;
    const UPPER: u64 = !0 << 32;
    static KNOWN: [AtomicU64; SLOTS] = [const { AtomicU64::new(0) }; SLOTS];
    let hash = hash::stable(word);
    let slot = &KNOWN[hash as usize % SLOTS];
    let known = slot.load(Ordering::Relaxed);
    if known & UPPER == hash & UPPER {
        return known as Stem;
    }
    let stem = make();
    slot.store(hash & UPPER | u64::from(stem), Ordering::Relaxed);
    stem
}

/// The date of a day counted by [`days`].
pub(super) fn date_of(day: i64) -> Option<jiff::civil::Date> {
    let day = jiff::Span::new().try_days(day).ok()?;
    jiff::civil::date(1970, 1, 1).checked_add(day).ok()
}

/// Longer values cannot be filtered by.
pub(super) const MAX_FACET_BYTES: usize = 120;

/// Folds a value for filters: lower case, without accents, single spaces.
pub(super) fn folded(value: &str) -> String {
    let mut analyzer =
        TextAnalyzer::builder(RawTokenizer::default()).filter(LowerCaser).filter(AsciiFoldingFilter).build();
    let joined = value.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut folded = String::with_capacity(joined.len());
    analyzer.token_stream(&joined).process(&mut |token| folded.push_str(&token.text));
    folded
}

/// The prefix of every facet of a field. The separator is a control character that field names cannot contain.
pub(super) fn facet_prefix(field: &str) -> String {
    format!("{}\u{1f}", field.to_ascii_lowercase())
}

pub(super) fn facet_term(fields: &Fields, field: &str, value: &str) -> tantivy::Term {
    tantivy::Term::from_field_text(fields.facet, &(facet_prefix(field) + &folded(value)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn known_stems_are_those_of_the_words(texts in proptest::collection::vec("([a-zA-ZéÉß]{1,9}(ing|ness|ies|s)?[ ,.'-]){0,30}", 3)) {
            let words = &mut EnglishWords::default();
            for text in texts.iter().chain(&texts) {
                let (mut made, mut known) = (Vec::new(), Vec::new());
                analyzer().token_stream(text).process(&mut |token| {
                    made.push((stem_of(&token.text), token.offset_from..token.offset_to));
                });
                words.each_stem(text, &mut |stem, span| known.push((stem, span)));
                prop_assert_eq!(made, known);
            }
        }
    }
}
