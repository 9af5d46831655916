//! DatedDocument documents in order: by series, day and page.

use std::collections::{HashMap, HashSet};

use tantivy::columnar::Column;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocAddress, DocSet, Searcher, SegmentReader, TERMINATED};

use super::passage_id;
use super::schema::{Fields, facet_prefix};
use crate::collection::Timeline;
use crate::engine::TimelineEntry;

pub(super) fn places(
    searcher: &Searcher,
    documents: &[Column<u64>],
    fields: &Fields,
    timeline: Timeline,
) -> tantivy::Result<Vec<TimelineEntry>> {
    let mut series = Series::default();
    let page = timeline.page.map(|field| format!("numbers.{field}"));
    let mut known: HashSet<u64> = HashSet::new();
    let mut places = Vec::new();
    for (segment, (reader, documents)) in (0u32..).zip(searcher.segment_readers().iter().zip(documents)) {
        let days: Column<i64> = reader.fast_fields().i64("day")?;
        let pages: Option<Column<f64>> = match &page {
            Some(page) => reader.fast_fields().column_opt(page)?,
            None => None,
        };
        let series_of = match timeline.series {
            Some(field) => series.by_entry(reader, fields, field)?,
            None => Vec::new(),
        };
        let mut last = None;
        for doc in reader.doc_ids_alive() {
            // Passages of a document are mostly adjacent; the records of longer documents have no ordinal.
            let Some(document) = documents.first(doc).filter(|document| last != Some(*document)) else {
                continue;
            };
            last = Some(document);
            if let Some(day) = days.first(doc)
                && known.insert(document)
            {
                places.push(TimelineEntry {
                    series: series_of.get(doc as usize).copied().unwrap_or_default(),
                    day,
                    page: pages
                        .as_ref()
                        .and_then(|pages| pages.first(doc))
                        .map_or(0, |page| page as u32),
                    passage: passage_id(DocAddress::new(segment, doc)),
                    document,
                });
            }
        }
    }
    places.sort_unstable();
    Ok(places)
}

/// A number per series, the same in all segments.
#[derive(Default)]
struct Series(HashMap<Vec<u8>, u16>);

impl Series {
    /// The series of each entry of a segment.
    fn by_entry(&mut self, reader: &SegmentReader, fields: &Fields, field: &str) -> tantivy::Result<Vec<u16>> {
        let prefix = facet_prefix(field);
        let index = reader.inverted_index(fields.facet)?;
        let mut values = index.terms().range().ge(prefix.as_bytes()).into_stream()?;
        let mut series_of = vec![0; reader.max_doc() as usize];
        while values.advance() && values.key().starts_with(prefix.as_bytes()) {
            let next = u16::try_from(self.0.len() + 1).unwrap_or(u16::MAX);
            let series = *self.0.entry(values.key().to_owned()).or_insert(next);
            let mut postings = index.read_postings_from_terminfo(values.value(), IndexRecordOption::Basic)?;
            while postings.doc() != TERMINATED {
                if let Some(of) = series_of.get_mut(postings.doc() as usize) {
                    *of = series;
                }
                postings.advance();
            }
        }
        Ok(series_of)
    }
}
