//! The vector leg of a search: every passage compared with the query, exactly.
//!
//! A flat scan over int8 rows is exact, takes any filter, needs no building, and at a million
//! passages is still faster than a person notices; a graph would be none of the first three.

use std::collections::HashMap;

use tantivy::columnar::Column;
use tantivy::query::{EnableScoring, Query};
use tantivy::{DocAddress, Searcher};
use tribune_embed::scan::{self, ScanQuery};

use crate::vectors::Vectors;

/// A scan of fewer rows than this is over before another thread has woken up.
const PARALLEL_FROM_ROWS: usize = 60_000;
const NONE: u32 = u32::MAX;

/// Vectors laid over the entries of one state of the index.
pub(crate) struct Dense {
    vectors: Vectors,
    /// For each entry, counted through all segments: its row, or none.
    row_of: Vec<u32>,
    /// For each entry: its document, numbered from 0.
    document_of: Vec<u32>,
    /// The first entry of each segment.
    bases: Vec<u32>,
    documents: usize,
    /// Entries that are passages, and those of them that have a vector.
    pub(crate) passages: usize,
    pub(crate) covered: usize,
}

/// A document's best passage for a query.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Best {
    pub(crate) cosine: f32,
    pub(crate) address: DocAddress,
}

impl Dense {
    /// `documents` and `contents` are the columns of each segment of `searcher`.
    pub(crate) fn new(
        searcher: &Searcher,
        documents: &[Column<u64>],
        contents: &[Column<u64>],
        vectors: Vectors,
    ) -> Self {
        let entries: usize = searcher.segment_readers().iter().map(|s| s.max_doc() as usize).sum();
        let rows: HashMap<u64, u32, BuildIdentity> = vectors
            .keys
            .iter()
            .zip(0u32..)
            .map(|(key, row)| (key.content, row))
            .collect();
        let mut numbers: HashMap<u64, u32, BuildIdentity> = HashMap::default();
        let mut dense = Self {
            row_of: vec![NONE; entries],
            document_of: vec![NONE; entries],
            bases: Vec::with_capacity(searcher.segment_readers().len()),
            documents: 0,
            passages: 0,
            covered: 0,
            vectors,
        };
        let mut base = 0u32;
        for ((segment, document), content) in searcher.segment_readers().iter().zip(documents).zip(contents) {
            dense.bases.push(base);
            for doc in segment.doc_ids_alive() {
                let (Some(document), Some(content)) = (document.first(doc), content.first(doc)) else {
                    continue; // the record of a longer document
                };
                let entry = (base + doc) as usize;
                let next = numbers.len() as u32;
                dense.document_of[entry] = *numbers.entry(document).or_insert(next);
                dense.passages += 1;
                if let Some(row) = rows.get(&content) {
                    dense.row_of[entry] = *row;
                    dense.covered += 1;
                }
            }
            base += segment.max_doc();
        }
        dense.documents = numbers.len();
        dense
    }

    /// Whether enough passages have vectors for ranks by them to be fair. The few without are ranked
    /// by full text alone.
    pub(crate) fn is_ready(&self) -> bool {
        self.covered * 10 >= self.passages * 9
    }

    pub(crate) fn has_vector(&self, address: DocAddress) -> bool {
        self.row_of[self.entry(address)] != NONE
    }

    /// The best passage of each of the `depth` nearest documents, best first.
    pub(crate) fn nearest(
        &self,
        vector: &[f32],
        depth: usize,
        searcher: &Searcher,
        only: Option<&dyn Query>,
    ) -> tantivy::Result<Vec<Best>> {
        let scores = self.scores(vector);
        let mut best = vec![(f32::NEG_INFINITY, NONE); self.documents];
        let mut consider = |entry: usize| {
            let row = self.row_of[entry];
            if row == NONE {
                return;
            }
            let score = scores[row as usize];
            let held = &mut best[self.document_of[entry] as usize];
            if score > held.0 {
                *held = (score, entry as u32);
            }
        };
        match only {
            None => (0..self.row_of.len()).for_each(consider),
            Some(query) => {
                let weight = query.weight(EnableScoring::disabled_from_searcher(searcher))?;
                for (segment, base) in searcher.segment_readers().iter().zip(&self.bases) {
                    weight.for_each_no_score(segment, &mut |docs| {
                        for doc in docs {
                            consider((base + doc) as usize);
                        }
                    })?;
                }
            }
        }
        let mut found: Vec<(f32, u32)> = best.into_iter().filter(|(_, entry)| *entry != NONE).collect();
        let order = |a: &(f32, u32), b: &(f32, u32)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
        if found.len() > depth {
            found.select_nth_unstable_by(depth, order);
            found.truncate(depth);
        }
        found.sort_unstable_by(order);
        Ok(found
            .into_iter()
            .map(|(cosine, entry)| Best {
                cosine,
                address: self.address(entry),
            })
            .collect())
    }

    /// The middle of a document's passages, if they have vectors.
    pub(crate) fn middle(&self, entries: &[DocAddress]) -> Option<Vec<f32>> {
        let dimensions = self.vectors.dimensions();
        let mut middle = vec![0.0f32; dimensions];
        let mut any = false;
        for address in entries {
            let row = self.row_of[self.entry(*address)];
            if row == NONE {
                continue;
            }
            any = true;
            for (sum, value) in middle.iter_mut().zip(self.vectors.vector(row as usize)) {
                *sum += value;
            }
        }
        let length = middle.iter().map(|value| value * value).sum::<f32>().sqrt();
        if !any || length == 0.0 {
            return None;
        }
        middle.iter_mut().for_each(|value| *value /= length);
        Some(middle)
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
        // So many rows at once that the results stay in the first cache.
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

    fn entry(&self, address: DocAddress) -> usize {
        (self.bases[address.segment_ord as usize] + address.doc_id) as usize
    }

    fn address(&self, entry: u32) -> DocAddress {
        let segment = self.bases.partition_point(|base| *base <= entry) - 1;
        DocAddress::new(segment as u32, entry - self.bases[segment])
    }
}

/// The keys are hashes already.
type BuildIdentity = std::hash::BuildHasherDefault<Identity>;

#[derive(Default)]
struct Identity(u64);

impl std::hash::Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {}
    fn write_u64(&mut self, hash: u64) {
        // The table takes its tag from the top bits and its place from the low ones: spread both.
        self.0 = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
