//! The best passage of each of the best documents, kept while passages come by in any order.
//!
//! A document counts by its best passage, so the best passages alone do not say which documents are
//! the best: a hundred of them may be of one. What is kept is bounded by how many documents are
//! wanted, whatever number of passages is looked at, and [`Best::least`] tells the one who looks
//! which passages need not be shown at all.

use std::collections::HashMap;

use tantivy::DocAddress;

use crate::fusion::Ranked;

pub(crate) struct Best {
    limit: usize,
    /// By the hash of the document's key.
    documents: HashMap<u64, (f32, DocAddress), BuildIdentity>,
    least: f32,
}

impl Best {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            documents: HashMap::with_capacity_and_hasher(limit * 2, BuildIdentity::default()),
            least: f32::NEG_INFINITY,
        }
    }

    /// A passage with a lower score changes nothing.
    pub(crate) fn least(&self) -> f32 {
        self.least
    }

    pub(crate) fn offer(&mut self, document: u64, score: f32, address: DocAddress) {
        if score < self.least {
            return;
        }
        let held = self.documents.entry(document).or_insert((score, address));
        if is_before((score, address), *held) {
            *held = (score, address);
        }
        // Sorting out is put off until it is worth it.
        if self.documents.len() > self.limit * 2 + 8 {
            self.sort_out();
        }
    }

    /// Best first; of equals, the one that stands first in the index.
    pub(crate) fn into_ranked(self) -> Vec<Ranked> {
        let limit = self.limit;
        let mut ranked: Vec<Ranked> = self.documents.into_iter().map(ranked).collect();
        ranked.sort_unstable_by(|a, b| order((a.score, a.address), (b.score, b.address)));
        ranked.truncate(limit);
        ranked
    }

    fn sort_out(&mut self) {
        if self.limit == 0 {
            self.documents.clear();
            self.least = f32::INFINITY;
            return;
        }
        let mut held: Vec<(f32, DocAddress)> = self.documents.values().copied().collect();
        let (_, last, _) = held.select_nth_unstable_by(self.limit - 1, |a, b| order(*a, *b));
        let last = *last;
        self.least = last.0;
        self.documents.retain(|_, held| !is_before(last, *held));
    }
}

fn ranked((document, (score, address)): (u64, (f32, DocAddress))) -> Ranked {
    Ranked {
        document,
        score,
        address,
    }
}

fn order(a: (f32, DocAddress), b: (f32, DocAddress)) -> std::cmp::Ordering {
    b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1))
}

fn is_before(a: (f32, DocAddress), b: (f32, DocAddress)) -> bool {
    order(a, b).is_lt()
}

/// For keys that are hashes already.
pub(crate) type BuildIdentity = std::hash::BuildHasherDefault<Identity>;

#[derive(Default)]
pub(crate) struct Identity(u64);

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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same by sorting everything.
    fn plainly(limit: usize, passages: &[(u64, f32)]) -> Vec<Ranked> {
        let mut all: Vec<Ranked> = (0u32..)
            .zip(passages)
            .map(|(number, (document, score))| ranked((*document, (*score, DocAddress::new(0, number)))))
            .collect();
        all.sort_by(|a, b| b.score.total_cmp(&a.score));
        let mut seen = std::collections::HashSet::new();
        all.retain(|ranked| seen.insert(ranked.document));
        all.truncate(limit);
        all
    }

    proptest! {
        #[test]
        fn what_is_kept_is_what_sorting_everything_finds(
            limit in 0usize..12,
            passages in proptest::collection::vec((0u64..120, 0u8..40), 0..900),
            backwards: bool,
        ) {
            // Few different scores, so that many are equal.
            let passages: Vec<(u64, f32)> = passages.iter().map(|(d, score)| (*d, f32::from(*score))).collect();
            let mut best = Best::new(limit);
            let mut numbers: Vec<usize> = (0..passages.len()).collect();
            if backwards {
                numbers.reverse();
            }
            for number in numbers {
                let (document, score) = passages[number];
                if score >= best.least() {
                    best.offer(document, score, DocAddress::new(0, number as u32));
                }
            }
            prop_assert_eq!(best.into_ranked(), plainly(limit, &passages));
        }
    }
}
