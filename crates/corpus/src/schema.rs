//! What one index holds.
//!
//! Each passage is one index entry. A document of one passage is that one entry; a longer one
//! has a further entry, its *record*, with the whole text, so that a search never loads it.

use tantivy::schema::{
    Field, IndexRecordOption, JsonObjectOptions, STORED, STRING, Schema, TextFieldIndexing, TextOptions,
};
use tantivy::tokenizer::{
    AsciiFoldingFilter, Language, LowerCaser, RemoveLongFilter, SimpleTokenizer, Stemmer, TextAnalyzer,
};

/// Changes whenever an index made before could not be read as it should be; part of the folder's name.
pub(crate) const FORMAT: &str = "v2";

/// The name our analyser is registered under.
pub(crate) const ANALYZER: &str = "tribune_en";

#[derive(Clone)]
pub(crate) struct Fields {
    pub(crate) schema: Schema,
    /// The file an entry came from: what is deleted when the file changes.
    pub(crate) file: Field,
    /// The document's key, on the one entry that `fetch` reads.
    pub(crate) record: Field,
    /// The document's key, to show.
    pub(crate) key: Field,
    /// Hash of the key, to see without loading anything that two passages are of one document.
    pub(crate) document: Field,
    /// Which passage, counted from 0.
    pub(crate) ordinal: Field,
    /// How many passages the document has.
    pub(crate) passages: Field,
    pub(crate) title: Field,
    pub(crate) url: Field,
    /// Days since 1970-01-01.
    pub(crate) day: Field,
    /// What is ranked: the passage under its context header, not stored.
    pub(crate) body: Field,
    /// Hash of what is ranked: passages of the same words have the same vector.
    pub(crate) content: Field,
    /// `name=value` of short fields, folded: what filters compare whole.
    pub(crate) facet: Field,
    /// The fields that are numbers, for ranges.
    pub(crate) numbers: Field,
    /// The header that the passage is ranked under.
    pub(crate) header: Field,
    /// The passage as it stands in the text.
    pub(crate) passage: Field,
    /// The whole text, on records of longer documents.
    pub(crate) text: Field,
    /// Everything else the file said, as JSON, on the entry that `fetch` reads.
    pub(crate) fields: Field,
    /// The same, searchable as `field:value`.
    pub(crate) meta: Field,
    /// The title on records of longer documents, where it must not be found beside the passages.
    pub(crate) record_title: Field,
    /// Start and end of each passage as little-endian `u32` pairs, on records of longer documents.
    pub(crate) ranges: Field,
}

impl Fields {
    pub(crate) fn new() -> Self {
        let indexing = TextFieldIndexing::default()
            .set_tokenizer(ANALYZER)
            .set_index_option(IndexRecordOption::WithFreqsAndPositions);
        let searchable = TextOptions::default().set_indexing_options(indexing.clone());
        let mut schema = Schema::builder();
        Self {
            file: schema.add_text_field("file", STRING | STORED),
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
            ranges: schema.add_bytes_field("ranges", STORED),
            schema: schema.build(),
        }
    }
}

/// Words in lower case without accents, reduced to their English stem. Stop words stay, so that
/// phrases with them can be found.
pub(crate) fn analyzer() -> TextAnalyzer {
    TextAnalyzer::builder(SimpleTokenizer::default())
        .filter(RemoveLongFilter::limit(100))
        .filter(LowerCaser)
        .filter(AsciiFoldingFilter)
        .filter(Stemmer::new(Language::English))
        .build()
}

/// Days since 1970-01-01.
pub(crate) fn days(date: jiff::civil::Date) -> i64 {
    let epoch = jiff::civil::date(1970, 1, 1);
    i64::from(epoch.until(date).map_or(0, |span| span.get_days()))
}

/// Values longer than this are text, not something to filter by.
pub(crate) const MAX_FACET_BYTES: usize = 120;

/// A value as filters compare it: lower case, without accents, single spaces.
pub(crate) fn folded(value: &str) -> String {
    let mut analyzer = TextAnalyzer::builder(tantivy::tokenizer::RawTokenizer::default())
        .filter(LowerCaser)
        .filter(AsciiFoldingFilter)
        .build();
    let joined = value.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut folded = String::with_capacity(joined.len());
    tantivy::tokenizer::TokenStream::process(&mut analyzer.token_stream(&joined), &mut |token| {
        folded.push_str(&token.text);
    });
    folded
}

/// What every facet of a field begins with. Names cannot hold the separator's control character
/// and still be typed, so no name can pass for another's value.
pub(crate) fn facet_prefix(field: &str) -> String {
    format!("{}\u{1f}", field.to_ascii_lowercase())
}

pub(crate) fn facet_term(fields: &Fields, field: &str, value: &str) -> tantivy::Term {
    tantivy::Term::from_field_text(fields.facet, &(facet_prefix(field) + &folded(value)))
}

/// The hash that [`Fields::content`] holds: of cryptographic make, because vectors are kept by it and
/// texts are not trusted.
pub(crate) fn content_hash(text: &str) -> u64 {
    use sha2::Digest;
    let hash = sha2::Sha256::digest(text.as_bytes());
    let mut first = [0u8; 8];
    first.copy_from_slice(&hash[..8]);
    u64::from_le_bytes(first)
}

/// The hash that [`Fields::document`] holds.
pub(crate) fn document_hash(key: &str) -> u64 {
    // FNV-1a: the same on every machine and release, which a std hasher does not promise.
    key.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
