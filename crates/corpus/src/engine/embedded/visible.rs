//! The entries that a caller may see, as bits.

use tantivy::{DocId, Term};

use super::schema::Fields;
use super::segments::{Segments, entries_with};

/// Up to one entry in this many is few: looking at each of them costs less than skipping over the others.
const FEW: usize = 64;

/// The entries of a version whose document has one of some readers. Deleted ones are not among them.
pub(super) struct VisibleEntries {
    segments: Vec<Vec<u64>>,
    pub(super) are_few: bool,
}

impl VisibleEntries {
    pub(super) fn new(segments: &Segments, fields: &Fields, readers: &[String]) -> tantivy::Result<Self> {
        let (mut all, mut seen) = (0, 0);
        let mut bits = Vec::new();
        for segment in segments.iter() {
            let entries = segment.reader.max_doc() as usize;
            let mut words = vec![0u64; entries.div_ceil(64)];
            for readers in readers {
                for doc in entries_with(segment.reader, &Term::from_field_text(fields.readers, readers))? {
                    words[doc as usize / 64] |= 1 << (doc % 64);
                    seen += 1;
                }
            }
            all += entries;
            bits.push(words);
        }
        Ok(Self { segments: bits, are_few: seen * FEW <= all })
    }

    pub(super) fn hold(&self, segment: u32, doc: DocId) -> bool {
        let words = self.segments.get(segment as usize);
        let word = words.and_then(|words| words.get(doc as usize / 64));
        word.is_some_and(|word| word & (1 << (doc % 64)) != 0)
    }

    /// The entries of a segment, in order.
    pub(super) fn in_segment(&self, segment: u32) -> impl Iterator<Item = DocId> {
        let words = self.segments.get(segment as usize).into_iter().flatten();
        (0u32..).zip(words).flat_map(|(number, word)| {
            let mut left = *word;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(number * 64 + bit)
            })
        })
    }
}
