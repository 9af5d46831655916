//! How good one ranking is, and how long queries take. nDCG, recall and reciprocal rank are those of
//! trec_eval, so that figures can be compared with published ones.

use std::collections::HashMap;

use serde::Serialize;

/// Hits that nDCG and the reciprocal rank look at.
pub const SHORT: usize = 10;
/// Hits that recall looks at.
pub const LONG: usize = 100;

/// What was judged of one query: the relevance of documents; 0 and less is "not relevant".
pub type Judgements = HashMap<String, i64>;

/// The scores of one query, or the means of many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Scores {
    #[serde(rename = "ndcg@10")]
    pub ndcg_10: f64,
    #[serde(rename = "recall@100")]
    pub recall_100: f64,
    #[serde(rename = "mrr@10")]
    pub mrr_10: f64,
}

impl Scores {
    /// `ranked` holds each document once, best first.
    pub fn of(ranked: &[String], judged: &Judgements) -> Self {
        Self {
            ndcg_10: ndcg(ranked, judged),
            recall_100: recall(ranked, judged),
            mrr_10: reciprocal_rank(ranked, judged),
        }
    }

    pub fn mean(all: impl Iterator<Item = Self>) -> Self {
        let all: Vec<Self> = all.collect();
        let mean = |score: fn(&Self) -> f64| all.iter().map(score).sum::<f64>() / all.len().max(1) as f64;
        Self {
            ndcg_10: mean(|scores| scores.ndcg_10),
            recall_100: mean(|scores| scores.recall_100),
            mrr_10: mean(|scores| scores.mrr_10),
        }
    }
}

/// The scores of many queries, and how long they took.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Figures {
    #[serde(flatten)]
    pub scores: Scores,
    pub p50_ms: f64,
    pub p99_ms: f64,
}

impl Figures {
    pub fn new(scores: Scores, times: &[f64]) -> Self {
        Self { scores, p50_ms: percentile(times, 50.0), p99_ms: percentile(times, 99.0) }
    }
}

fn relevance(document: &str, judged: &Judgements) -> i64 {
    judged.get(document).copied().unwrap_or(0).max(0)
}

/// The gain is the relevance itself; the ideal is made of all judgements, found or not.
fn ndcg(ranked: &[String], judged: &Judgements) -> f64 {
    let mut ideal: Vec<i64> = judged.values().map(|relevance| (*relevance).max(0)).collect();
    ideal.sort_unstable_by(|a, b| b.cmp(a));
    let best = discounted(ideal.into_iter());
    if best == 0.0 {
        return 0.0;
    }
    discounted(ranked.iter().map(|document| relevance(document, judged))) / best
}

fn discounted(gains: impl Iterator<Item = i64>) -> f64 {
    let discounts = (2..).map(|rank| f64::from(rank).log2());
    let sum: f64 = gains.take(SHORT).zip(discounts).map(|(gain, discount)| gain as f64 / discount).sum();
    // The sum of nothing is a negative zero.
    sum + 0.0
}

fn recall(ranked: &[String], judged: &Judgements) -> f64 {
    let relevant = judged.values().filter(|relevance| **relevance > 0).count();
    if relevant == 0 {
        return 0.0;
    }
    let is_relevant = |document: &&String| relevance(document, judged) > 0;
    ranked.iter().take(LONG).filter(is_relevant).count() as f64 / relevant as f64
}

fn reciprocal_rank(ranked: &[String], judged: &Judgements) -> f64 {
    let is_relevant = |document: &String| relevance(document, judged) > 0;
    let first = ranked.iter().take(SHORT).position(is_relevant);
    first.map_or(0.0, |at| 1.0 / (at + 1) as f64)
}

/// The nearest-rank percentile: a time that one of the queries really took.
fn percentile(times: &[f64], percent: f64) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranked(ids: &[&str]) -> Vec<String> {
        ids.iter().map(|id| (*id).to_owned()).collect()
    }

    fn judged(pairs: &[(&str, i64)]) -> Judgements {
        pairs.iter().map(|(id, grade)| ((*id).to_owned(), *grade)).collect()
    }

    fn near(got: f64, wanted: f64) {
        assert!((got - wanted).abs() < 1e-9, "{got} instead of {wanted}");
    }

    #[test]
    fn graded_judgements_score_as_worked_by_hand() {
        let judged = judged(&[("a", 2), ("b", 1), ("c", 1), ("d", 0), ("e", -1)]);
        let scores = Scores::of(&ranked(&["d", "a", "x", "c", "e"]), &judged);
        // Found: 2 at rank 2, 1 at rank 4. Ideal: 2, 1, 1.
        let found = 2.0 / 3f64.log2() + 1.0 / 5f64.log2();
        let ideal = 2.0 + 1.0 / 3f64.log2() + 1.0 / 4f64.log2();
        near(scores.ndcg_10, found / ideal);
        near(scores.ndcg_10, 0.540_585_767_9); // what trec_eval says
        near(scores.recall_100, 2.0 / 3.0);
        near(scores.mrr_10, 0.5);
    }

    #[test]
    fn best_ranking_scores_1_and_useless_0() {
        let judged = judged(&[("a", 3), ("b", 1)]);
        assert_eq!(
            Scores::of(&ranked(&["a", "b", "z"]), &judged),
            Scores { ndcg_10: 1.0, recall_100: 1.0, mrr_10: 1.0 }
        );
        assert_eq!(Scores::of(&ranked(&["y", "z"]), &judged), Scores::default());
        assert_eq!(Scores::of(&[], &judged), Scores::default());
    }

    #[test]
    fn only_so_many_hits_count() {
        let hits: Vec<String> = (1..=101).map(|n| n.to_string()).collect();
        let eleventh = Scores::of(&hits, &judged(&[("11", 1)]));
        assert_eq!((eleventh.ndcg_10, eleventh.mrr_10, eleventh.recall_100), (0.0, 0.0, 1.0));
        assert_eq!(Scores::of(&hits, &judged(&[("101", 1)])).recall_100, 0.0);
        near(Scores::of(&hits, &judged(&[("10", 1)])).ndcg_10, 1.0 / 11f64.log2());
    }

    #[test]
    fn ideal_ranking_counts_ten_documents() {
        let many: Vec<String> = (0..30).map(|n| n.to_string()).collect();
        let judged: Judgements = many.iter().map(|id| (id.clone(), 1)).collect();
        near(Scores::of(&many, &judged).ndcg_10, 1.0);
    }

    #[test]
    fn percentiles_are_times_that_were_taken() {
        let times: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        assert_eq!(percentile(&times, 50.0), 100.0);
        assert_eq!(percentile(&times, 99.0), 198.0);
        assert_eq!(percentile(&[7.0], 99.0), 7.0);
        assert_eq!(percentile(&[1.0, 2.0], 50.0), 1.0);
        assert_eq!(percentile(&[], 50.0), 0.0);
    }
}
