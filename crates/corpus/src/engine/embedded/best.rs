//! Collects the best passage of each of the best documents, from passages in any order.
//!
//! A document is ranked by its best passage. The best passages alone are not enough: a hundred of them may be of one
//! document. Memory is bounded by the number of wanted documents, and [`Best::least`] is the score below which
//! passages can be skipped.

use std::collections::HashMap;

use crate::engine::{Candidate, PassageId};

pub(super) struct Best {
    limit: usize,
    /// By hash of the document's key.
    documents: HashMap<u64, (f32, PassageId), BuildIdentity>,
    least: f32,
}

impl Best {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            documents: HashMap::with_capacity_and_hasher(limit * 2, BuildIdentity::default()),
            least: f32::NEG_INFINITY,
        }
    }

    /// Passages with a lower score change nothing.
    pub(super) fn least(&self) -> f32 {
        self.least
    }

    pub(super) fn offer(&mut self, document: u64, score: f32, passage: PassageId) {
        if score < self.least {
            return;
        }
        let held = self.documents.entry(document).or_insert((score, passage));
        if is_before((score, passage), *held) {
            *held = (score, passage);
        }
        // Pruning is deferred until it pays.
        if self.documents.len() > self.limit * 2 + 8 {
            self.sort_out();
        }
    }

    /// Best first; among equal scores, the first in the index.
    pub(super) fn into_ranked(self) -> Vec<Candidate> {
        let limit = self.limit;
        let mut ranked: Vec<Candidate> = self.documents.into_iter().map(ranked).collect();
        ranked.sort_unstable_by(|a, b| order((a.score, a.passage), (b.score, b.passage)));
        ranked.truncate(limit);
        ranked
    }

    fn sort_out(&mut self) {
        if self.limit == 0 {
            self.documents.clear();
            self.least = f32::INFINITY;
            return;
        }
        let mut held: Vec<(f32, PassageId)> = self.documents.values().copied().collect();
        let (_, last, _) = held.select_nth_unstable_by(self.limit - 1, |a, b| order(*a, *b));
        let last = *last;
        self.least = last.0;
        self.documents.retain(|_, held| !is_before(last, *held));
    }
}

fn ranked((document, (score, passage)): (u64, (f32, PassageId))) -> Candidate {
    Candidate { document, score, passage }
}

fn order(a: (f32, PassageId), b: (f32, PassageId)) -> std::cmp::Ordering {
    b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1))
}

fn is_before(a: (f32, PassageId), b: (f32, PassageId)) -> bool {
    order(a, b).is_lt()
}

/// A hasher for keys that are hashes already.
pub(super) type BuildIdentity = std::hash::BuildHasherDefault<Identity>;

#[derive(Default)]
pub(super) struct Identity(u64);

impl std::hash::Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {}
    fn write_u64(&mut self, hash: u64) {
        // The table uses the top bits as tag and the low bits as position, so both are mixed.
        self.0 = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same by sorting everything.
    fn plainly(limit: usize, passages: &[(u64, f32)]) -> Vec<Candidate> {
        let mut all: Vec<Candidate> = (0u32..)
            .zip(passages)
            .map(|(number, (document, score))| ranked((*document, (*score, PassageId(number.into())))))
            .collect();
        all.sort_by(|a, b| b.score.total_cmp(&a.score));
        let mut seen = std::collections::HashSet::new();
        all.retain(|ranked| seen.insert(ranked.document));
        all.truncate(limit);
        all
    }

    proptest! {
        #[test]
        fn best_equals_sorting_everything(
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
                    best.offer(document, score, PassageId(number as u64));
                }
            }
            prop_assert_eq!(best.into_ranked(), plainly(limit, &passages));
        }
    }
}
