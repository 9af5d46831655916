//! The position of a document among the dated ones. Computed once per index version, on first use.

use std::ops::Range;

use crate::engine::TimelineEntry;

/// Documents of one page and day that are ordered by their position in the file.
const MAX_TIED: usize = 200;

/// All places, in order.
pub(super) struct Chronology<'a>(pub(super) &'a [TimelineEntry]);

fn is_beside(one: &TimelineEntry, other: &TimelineEntry) -> bool {
    (one.series, one.day, one.page) == (other.series, other.day, other.page)
}

impl Chronology<'_> {
    pub(super) fn position(&self, document: u64) -> Option<usize> {
        self.0.iter().position(|place| place.document == document)
    }

    pub(super) fn places(&self, range: Range<usize>) -> &[TimelineEntry] {
        self.0.get(range).unwrap_or_default()
    }

    /// The documents of the same series, day and page as `position`; the nearest if there are very many.
    pub(super) fn tied(&self, position: usize) -> Range<usize> {
        let Some(place) = self.0.get(position) else {
            return 0..0;
        };
        let before = self.0[..position]
            .iter()
            .rev()
            .take_while(|other| is_beside(other, place));
        let after = self.0[position..].iter().take_while(|other| is_beside(other, place));
        let start = position - before.take(MAX_TIED / 2).count();
        start..position + after.take(MAX_TIED / 2).count()
    }

    /// The position before or after `range` in the same series.
    pub(super) fn beyond(&self, range: &Range<usize>, is_before: bool) -> Option<usize> {
        let series = self.0.get(range.start)?.series;
        let position = if is_before {
            range.start.checked_sub(1)?
        } else {
            range.end
        };
        (self.0.get(position)?.series == series).then_some(position)
    }
}
