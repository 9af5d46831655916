//! Vector search: compares the query with every passage.
//!
//! A flat scan over int8 rows is exact, works with any filter and needs no build step, and is fast enough for a
//! million passages. A graph index has none of the first three properties.

use std::collections::HashMap;

use tantivy::DocAddress;
use tantivy::query::{EnableScoring, Query};
use tribune_embed::scan::{self, ScanQuery};

use super::best::{Best, BuildIdentity};
use super::segments::Segments;
use super::vectors::Vectors;
use super::visible::VisibleEntries;
use crate::engine::Candidate;

/// A scan of fewer rows finishes before another thread wakes up.
const PARALLEL_FROM_ROWS: usize = 60_000;
const NONE: u32 = u32::MAX;

/// The vectors of one index version.
pub(super) struct Dense {
    vectors: Vectors,
    /// The row of each entry over all segments, or none.
    row_of: Vec<u32>,
    /// The first entry of each segment.
    bases: Vec<usize>,
    /// The number of passages, and of those with a vector.
    pub(super) passages: usize,
    pub(super) covered: usize,
}

impl Dense {
    pub(super) fn new(segments: &Segments, vectors: Vectors) -> tantivy::Result<Self> {
        let keys = vectors.keys.iter().zip(0u32..);
        let rows: HashMap<u64, u32, BuildIdentity> = keys.map(|(key, row)| (key.content, row)).collect();
        let mut dense = Self { row_of: Vec::new(), bases: Vec::new(), passages: 0, covered: 0, vectors };
        for segment in segments.iter() {
            let base = dense.row_of.len();
            dense.bases.push(base);
            dense.row_of.resize(base + segment.reader.max_doc() as usize, NONE);
            let contents = segment.reader.fast_fields().u64("content")?;
            for doc in segment.reader.doc_ids_alive() {
                let Some(content) = contents.first(doc) else {
                    continue; // the record of a longer document
                };
                dense.passages += 1;
                if let Some(row) = rows.get(&content) {
                    dense.row_of[base + doc as usize] = *row;
                    dense.covered += 1;
                }
            }
        }
        Ok(dense)
    }

    /// Whether enough passages have vectors to rank by them. The few others are ranked by keywords only.
    pub(super) fn is_ready(&self) -> bool {
        self.covered * 10 >= self.passages * 9
    }

    pub(super) fn has_vector(&self, address: DocAddress) -> bool {
        self.row(address) != NONE
    }

    /// The best passage of each of the `depth` nearest documents, best first.
    pub(super) fn nearest(
        &self,
        vector: &[f32],
        depth: usize,
        segments: &Segments,
        only: Option<&dyn Query>,
        visible: Option<&VisibleEntries>,
    ) -> tantivy::Result<Vec<Candidate>> {
        let scores = self.scores(vector);
        let only =
            only.map(|query| query.weight(EnableScoring::disabled_from_searcher(&segments.searcher))).transpose()?;
        let mut best = Best::new(depth);
        for (segment, base) in segments.iter().zip(&self.bases) {
            let rows = &self.row_of[*base..base + segment.reader.max_doc() as usize];
            let mut consider = |doc: u32, row: u32| {
                // Most passages end here, so that the document is looked up only for the rest.
                if row == NONE || scores[row as usize] < best.least() {
                    return;
                }
                if visible.is_some_and(|visible| !visible.hold(segment.number, doc)) {
                    return;
                }
                if let Some(document) = segment.documents.first(doc) {
                    best.offer(document, scores[row as usize], segment.passage(doc));
                }
            };
            match &only {
                None => (0u32..).zip(rows).for_each(|(doc, row)| consider(doc, *row)),
                Some(weight) => weight.for_each_no_score(segment.reader, &mut |docs| {
                    docs.iter().for_each(|doc| consider(*doc, rows[*doc as usize]));
                })?,
            }
        }
        Ok(best.into_ranked())
    }

    /// The mean of the vectors of entries, if they have any.
    pub(super) fn mean(&self, entries: impl Iterator<Item = DocAddress>) -> Option<Vec<f32>> {
        let mut mean = vec![0.0f32; self.vectors.dimensions];
        for row in entries.map(|entry| self.row(entry)).filter(|row| *row != NONE) {
            for (sum, value) in mean.iter_mut().zip(self.vectors.vector(row as usize)) {
                *sum += value;
            }
        }
        let length = mean.iter().map(|value| value * value).sum::<f32>().sqrt();
        mean.iter_mut().for_each(|value| *value /= length);
        (length > 0.0).then_some(mean)
    }

    /// The cosine of every row with `vector`.
    fn scores(&self, vector: &[f32]) -> Vec<f32> {
        let query = ScanQuery::new(vector);
        let rows = self.vectors.len();
        let mut scores = vec![0.0f32; rows];
        let threads = match rows {
            0..PARALLEL_FROM_ROWS => 1,
            _ => std::thread::available_parallelism().map_or(1, usize::from).min(8),
        };
        let share = rows.div_ceil(threads).max(1);
        std::thread::scope(|scope| {
            let mut parts = scores.chunks_mut(share).zip((0..).step_by(share));
            let mine = parts.next();
            for (part, from) in parts {
                let query = &query;
                scope.spawn(move || self.score(query, from, part));
            }
            if let Some((part, from)) = mine {
                self.score(&query, from, part);
            }
        });
        scores
    }

    fn score(&self, query: &ScanQuery, from: usize, scores: &mut [f32]) {
        // As many rows per block as keep the results in the L1 cache.
        const BLOCK: usize = 1024;
        let mut dots = [0i32; BLOCK];
        for (block, part) in scores.chunks_mut(BLOCK).enumerate() {
            let first = from + block * BLOCK;
            let last = first + part.len();
            let dots = &mut dots[..part.len()];
            let keys = &self.vectors.keys[first..last];
            scan::dots(query, self.vectors.rows(first, last), dots);
            for ((score, dot), key) in part.iter_mut().zip(dots).zip(keys) {
                *score = *dot as f32 * key.scale * query.scale();
            }
        }
    }

    fn row(&self, address: DocAddress) -> u32 {
        self.row_of[self.bases[address.segment_ord as usize] + address.doc_id as usize]
    }
}
