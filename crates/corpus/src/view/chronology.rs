//! The order in which dated documents came: by chamber, day and page. Made once for each state of the index, when it is
//! first asked for.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use tantivy::columnar::Column;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocAddress, DocSet, SegmentReader, TERMINATED};

use crate::schema::{Fields, facet_prefix};
use crate::snapshot::Snapshot;

/// Documents of one page and day that are compared by where they stand in their files.
const MAX_TIED: usize = 200;

pub(crate) struct Chronology(Vec<Place>);

/// When a document came; and the entry of its first passage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// 0 where none is known.
    chamber: u16,
    day: i64,
    page: u32,
    pub(super) address: DocAddress,
    document: u64,
}

impl Place {
    fn is_beside(&self, other: &Self) -> bool {
        (self.chamber, self.day, self.page) == (other.chamber, other.day, other.page)
    }
}

impl Chronology {
    pub(super) fn of(snapshot: &Snapshot) -> tantivy::Result<Self> {
        let mut chambers = Chambers::default();
        let mut known: HashSet<u64> = HashSet::new();
        let mut places = Vec::new();
        let segments = snapshot.searcher.segment_readers().iter().zip(&snapshot.documents);
        for (segment, (reader, documents)) in (0u32..).zip(segments) {
            let days: Column<i64> = reader.fast_fields().i64("day")?;
            let pages: Option<Column<f64>> = reader.fast_fields().column_opt("numbers.page")?;
            let chamber_of = chambers.of(reader, &snapshot.fields)?;
            let mut last = None;
            for doc in reader.doc_ids_alive() {
                // Passages of one document mostly stand together; records of longer ones have no such number.
                let Some(document) = documents.first(doc).filter(|document| last != Some(*document)) else {
                    continue;
                };
                last = Some(document);
                if let Some(day) = days.first(doc)
                    && known.insert(document)
                {
                    places.push(Place {
                        chamber: chamber_of.get(doc as usize).copied().unwrap_or_default(),
                        day,
                        page: pages
                            .as_ref()
                            .and_then(|pages| pages.first(doc))
                            .map_or(0, |page| page as u32),
                        address: DocAddress::new(segment, doc),
                        document,
                    });
                }
            }
        }
        places.sort_unstable();
        Ok(Self(places))
    }

    pub(super) fn position(&self, document: u64) -> Option<usize> {
        self.0.iter().position(|place| place.document == document)
    }

    pub(super) fn places(&self, range: Range<usize>) -> &[Place] {
        self.0.get(range).unwrap_or_default()
    }

    /// Those of the same chamber, day and page as the one at `position`; of very many, the nearest.
    pub(super) fn tied(&self, position: usize) -> Range<usize> {
        let Some(place) = self.0.get(position) else {
            return 0..0;
        };
        let before = self.0[..position]
            .iter()
            .rev()
            .take_while(|other| other.is_beside(place));
        let after = self.0[position..].iter().take_while(|other| other.is_beside(place));
        let start = position - before.take(MAX_TIED / 2).count();
        start..position + after.take(MAX_TIED / 2).count()
    }

    /// The position before or after those of `range`, in the same chamber.
    pub(super) fn beyond(&self, range: &Range<usize>, is_before: bool) -> Option<usize> {
        let chamber = self.0.get(range.start)?.chamber;
        let position = if is_before {
            range.start.checked_sub(1)?
        } else {
            range.end
        };
        (self.0.get(position)?.chamber == chamber).then_some(position)
    }
}

/// A number for each chamber, the same in all segments.
#[derive(Default)]
struct Chambers(HashMap<Vec<u8>, u16>);

impl Chambers {
    /// The chamber of each entry of a segment.
    fn of(&mut self, reader: &SegmentReader, fields: &Fields) -> tantivy::Result<Vec<u16>> {
        let prefix = facet_prefix("chamber");
        let index = reader.inverted_index(fields.facet)?;
        let mut values = index.terms().range().ge(prefix.as_bytes()).into_stream()?;
        let mut chamber_of = vec![0; reader.max_doc() as usize];
        while values.advance() && values.key().starts_with(prefix.as_bytes()) {
            let next = u16::try_from(self.0.len() + 1).unwrap_or(u16::MAX);
            let chamber = *self.0.entry(values.key().to_owned()).or_insert(next);
            let mut postings = index.read_postings_from_terminfo(values.value(), IndexRecordOption::Basic)?;
            while postings.doc() != TERMINATED {
                if let Some(of) = chamber_of.get_mut(postings.doc() as usize) {
                    *of = chamber;
                }
                postings.advance();
            }
        }
        Ok(chamber_of)
    }
}
