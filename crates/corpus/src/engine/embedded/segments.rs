//! The segments of an index version, and the entries and values in them.

use tantivy::columnar::Column;
use tantivy::postings::{SegmentPostings, TermInfo};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocAddress, DocId, DocSet, Searcher, SegmentReader, TERMINATED, Term};

use super::passage_id;
use super::schema::{Fields, facet_prefix};
use crate::engine::PassageId;

/// An open commit.
pub(super) struct Segments {
    pub(super) searcher: Searcher,
    documents: Vec<Column<u64>>,
}

#[derive(Clone, Copy)]
pub(super) struct Segment<'a> {
    pub(super) number: u32,
    pub(super) reader: &'a SegmentReader,
    /// The hash of each entry's document; none on the record of a longer document, which is not a passage.
    pub(super) documents: &'a Column<u64>,
}

impl Segments {
    pub(super) fn open(searcher: Searcher) -> tantivy::Result<Self> {
        let columns = searcher.segment_readers().iter();
        let documents = columns.map(|reader| reader.fast_fields().u64("document"));
        Ok(Self { documents: documents.collect::<tantivy::Result<_>>()?, searcher })
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Segment<'_>> {
        let readers = self.searcher.segment_readers().iter().zip(&self.documents);
        (0u32..).zip(readers).map(|(number, (reader, documents))| Segment { number, reader, documents })
    }
}

impl<'a> Segment<'a> {
    pub(super) fn passage(&self, doc: DocId) -> PassageId {
        passage_id(DocAddress::new(self.number, doc))
    }

    /// Calls `each` with every value of a field, folded.
    pub(super) fn each_value(
        &self,
        fields: &Fields,
        field: &str,
        mut each: impl FnMut(&str, &TermInfo) -> tantivy::Result<()>,
    ) -> tantivy::Result<()> {
        let prefix = facet_prefix(field);
        let index = self.reader.inverted_index(fields.facet)?;
        let mut values = index.terms().range().ge(prefix.as_bytes()).into_stream()?;
        while values.advance() {
            let Some(value) = values.key().strip_prefix(prefix.as_bytes()) else {
                break;
            };
            each(&String::from_utf8_lossy(value), values.value())?;
        }
        Ok(())
    }

    /// The entries with a value that [`Self::each_value`] gave.
    pub(super) fn entries_of(
        &self,
        fields: &Fields,
        value: &TermInfo,
    ) -> tantivy::Result<impl Iterator<Item = DocId> + use<'a>> {
        let index = self.reader.inverted_index(fields.facet)?;
        let postings = index.read_postings_from_terminfo(value, IndexRecordOption::Basic)?;
        Ok(alive(self.reader, postings))
    }
}

/// The entries of a segment with a term.
pub(super) fn entries_with<'a>(
    reader: &'a SegmentReader,
    term: &Term,
) -> tantivy::Result<impl Iterator<Item = DocId> + use<'a>> {
    let index = reader.inverted_index(term.field())?;
    let postings = index.read_postings(term, IndexRecordOption::Basic)?;
    Ok(alive(reader, postings.unwrap_or_else(SegmentPostings::empty)))
}

/// Without deleted entries.
fn alive(reader: &SegmentReader, mut postings: SegmentPostings) -> impl Iterator<Item = DocId> {
    let entries = std::iter::from_fn(move || {
        let doc = postings.doc();
        postings.advance();
        (doc != TERMINATED).then_some(doc)
    });
    entries.filter(|doc| !reader.is_deleted(*doc))
}
