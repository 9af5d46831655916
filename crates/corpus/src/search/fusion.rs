//! Fuses two rankings into one.
//!
//! Each leg's scores are normalised to 0–1 and added with a weight. Measured on eleven collections this
//! beat either leg alone on all of them, where fusing by rank lost to keyword search on two
//! (docs/retrieval.md).

use std::collections::{HashMap, HashSet};

use crate::engine::{Candidate, PassageId};

/// Documents per leg.
pub(crate) const DEPTH: usize = 500;

/// The union of both rankings, best first, scored from 0 to 1; `weight` is that of the vector leg. A document without a
/// word of the query needs a cosine of at least `floor`. One whose passage is `unseen`, because it has no vector yet,
/// keeps its keyword score.
pub(crate) fn fuse(
    lexical: &[Candidate],
    dense: &[Candidate],
    weight: f32,
    floor: f32,
    unseen: impl Fn(PassageId) -> bool,
) -> Vec<Candidate> {
    let near: HashMap<u64, Candidate> = normalised(dense).map(|found| (found.document, found)).collect();
    let found: HashSet<u64> = lexical.iter().map(|found| found.document).collect();
    let by_words = normalised(lexical).map(|found| match near.get(&found.document) {
        Some(near) => {
            let (words, meaning) = (found.score * (1.0 - weight), near.score * weight);
            Candidate {
                score: words + meaning,
                // The quoted passage is the one that the leg with the greater weight found.
                passage: if words >= meaning { found.passage } else { near.passage },
                ..found
            }
        }
        None if unseen(found.passage) => found,
        None => found.scaled(1.0 - weight),
    });
    let near_enough = normalised(dense).zip(dense).filter(|(_, near)| near.score >= floor);
    let by_meaning = near_enough.filter(|(_, near)| !found.contains(&near.document));
    let mut fused: Vec<Candidate> = by_words.chain(by_meaning.map(|(near, _)| near.scaled(weight))).collect();
    // Stable: among equal scores, the order of keyword search stays.
    fused.sort_by(|a, b| b.score.total_cmp(&a.score));
    fused
}

/// Scales scores to 0–1 between the lowest and the best; 1 if all are equal.
fn normalised(ranked: &[Candidate]) -> impl Iterator<Item = Candidate> {
    let best = ranked.first().map_or(0.0, |r| r.score);
    let least = ranked.last().map_or(0.0, |r| r.score);
    let span = best - least;
    ranked
        .iter()
        .map(move |found| Candidate { score: if span > 0.0 { (found.score - least) / span } else { 1.0 }, ..*found })
}

impl Candidate {
    fn scaled(self, factor: f32) -> Self {
        Self { score: self.score * factor, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn leg(scores: &[(u64, f32)]) -> Vec<Candidate> {
        scores
            .iter()
            .map(|(document, score)| Candidate { document: *document, score: *score, passage: PassageId(*document) })
            .collect()
    }

    fn order(fused: &[Candidate]) -> Vec<u64> {
        fused.iter().map(|ranked| ranked.document).collect()
    }

    #[test]
    fn documents_of_both_legs_come_first() {
        let fused =
            fuse(&leg(&[(1, 9.0), (2, 8.0), (3, 1.0)]), &leg(&[(4, 0.9), (2, 0.8), (5, 0.1)]), 0.5, -1.0, |_| false);
        assert_eq!(order(&fused), [2, 1, 4, 3, 5]);
        assert!((fused[0].score - 0.875).abs() < 1e-6);
    }

    #[test]
    fn document_without_vector_keeps_its_keyword_score() {
        let lexical = leg(&[(1, 9.0), (2, 8.0), (3, 1.0)]);
        let dense = leg(&[(2, 0.9), (3, 0.1)]);
        let fused = fuse(&lexical, &dense, 0.5, -1.0, |passage| passage == PassageId(1));
        assert_eq!((fused[0].document, fused[0].score), (1, 1.0));
    }

    proptest! {
        #[test]
        fn scores_stay_between_0_and_1_and_fall(
            mut a in proptest::collection::vec((0u64..50, -5.0f32..50.0), 0..40),
            mut b in proptest::collection::vec((0u64..50, -1.0f32..1.0), 0..40),
            weight in 0.0f32..=1.0,
        ) {
            for leg in [&mut a, &mut b] {
                leg.sort_by_key(|(document, _)| *document);
                leg.dedup_by_key(|(document, _)| *document);
                leg.sort_by(|x, y| y.1.total_cmp(&x.1));
            }
            let fused = fuse(&leg(&a), &leg(&b), weight, -1.0, |_| false);
            prop_assert!(fused.iter().all(|r| (0.0..=1.0001).contains(&r.score)));
            prop_assert!(fused.windows(2).all(|pair| pair[0].score >= pair[1].score));
        }
    }
}
