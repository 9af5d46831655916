//! Dated documents in order: by series, day and page.

use std::collections::{HashMap, HashSet};

use tantivy::columnar::Column;

use super::schema::Fields;
use super::segments::{Segment, Segments};
use crate::collection::Timeline;
use crate::engine::TimelineEntry;

pub(super) fn entries(segments: &Segments, fields: &Fields, timeline: Timeline) -> tantivy::Result<Vec<TimelineEntry>> {
    let mut numbers = HashMap::new();
    let page = timeline.page.map(|field| format!("numbers.{field}"));
    let mut known: HashSet<u64> = HashSet::new();
    let mut entries = Vec::new();
    for segment in segments.iter() {
        let days = segment.reader.fast_fields().i64("day")?;
        let pages: Option<Column<f64>> = match &page {
            Some(page) => segment.reader.fast_fields().column_opt(page)?,
            None => None,
        };
        let series = match timeline.series {
            Some(field) => series_by_entry(segment, fields, field, &mut numbers)?,
            None => Vec::new(),
        };
        for doc in segment.reader.doc_ids_alive() {
            if let Some(document) = segment.documents.first(doc)
                && let Some(day) = days.first(doc)
                && known.insert(document)
            {
                let page = pages.as_ref().and_then(|pages| pages.first(doc));
                entries.push(TimelineEntry {
                    series: series.get(doc as usize).copied().unwrap_or_default(),
                    day,
                    page: page.map_or(0, |page| page as u32),
                    passage: segment.passage(doc),
                    document,
                });
            }
        }
    }
    entries.sort_unstable();
    Ok(entries)
}

/// The series of each entry of a segment. `numbers` has the number of each series, the same in all segments.
fn series_by_entry(
    segment: Segment<'_>,
    fields: &Fields,
    field: &str,
    numbers: &mut HashMap<String, u16>,
) -> tantivy::Result<Vec<u16>> {
    let mut series = vec![0; segment.reader.max_doc() as usize];
    segment.each_value(fields, field, |value, info| {
        let next = u16::try_from(numbers.len() + 1).unwrap_or(u16::MAX);
        let number = *numbers.entry(value.to_owned()).or_insert(next);
        for doc in segment.entries_of(fields, info)? {
            series[doc as usize] = number;
        }
        Ok(())
    })?;
    Ok(series)
}
