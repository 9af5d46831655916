//! How sure a difference is: a paired bootstrap over queries, which draws them again and again, with repetition.

use std::fmt;

use serde::Serialize;

pub const RESAMPLES: usize = 10_000;
/// Smaller differences of one query are none.
const TIE: f64 = 1e-9;

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Difference {
    /// Mean of the first less mean of the second.
    #[serde(rename = "ndcg@10")]
    pub mean: f64,
    /// 95 of 100 resamples lie between these.
    pub low: f64,
    pub high: f64,
    /// How often chance alone would give a difference this large, in either direction.
    pub p: f64,
    pub wins: usize,
    pub ties: usize,
    pub losses: usize,
    pub resamples: usize,
    pub seed: u64,
}

impl Difference {
    /// From the differences of single queries, those of each dataset together: every dataset counts
    /// the same, however many queries it has.
    pub fn of(datasets: &[Vec<f64>], seed: u64) -> Self {
        let observed = mean(datasets.iter().map(|differences| mean(differences.iter().copied())));
        let mut random = fastrand::Rng::with_seed(seed);
        let mut draw = |from: &Vec<f64>| mean((0..from.len()).map(|_| from[random.usize(..from.len())]));
        let mut resampled: Vec<f64> = (0..RESAMPLES).map(|_| mean(datasets.iter().map(&mut draw))).collect();
        resampled.sort_by(f64::total_cmp);
        // Without a real difference, resamples would scatter around 0 as they now scatter around the observed one.
        let is_as_far = |resample: &&f64| (**resample - observed).abs() >= observed.abs() - TIE;
        let as_far = resampled.iter().filter(is_as_far).count();
        let at = |share: f64| resampled[((RESAMPLES - 1) as f64 * share).round() as usize];
        let count = |wanted: fn(f64) -> bool| datasets.iter().flatten().filter(|d| wanted(**d)).count();
        Self {
            mean: observed,
            low: at(0.025),
            high: at(0.975),
            p: (as_far + 1) as f64 / (RESAMPLES + 1) as f64,
            wins: count(|d| d > TIE),
            ties: count(|d| d.abs() <= TIE),
            losses: count(|d| d < -TIE),
            resamples: RESAMPLES,
            seed,
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "nDCG@10 differs by {:+.4}, between {:+.4} and {:+.4} in 95 of 100 resamples, p = {:.4}",
            self.mean, self.low, self.high, self.p
        )?;
        writeln!(
            f,
            "  better on {} queries, the same on {}, worse on {} ({} resamples, seed {})",
            self.wins, self.ties, self.losses, self.resamples, self.seed
        )
    }
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len().max(1) as f64;
    values.sum::<f64>() / count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_difference_is_no_difference() {
        let none = Difference::of(&[vec![0.0; 50]], 1);
        assert_eq!((none.mean, none.low, none.high, none.p), (0.0, 0.0, 0.0, 1.0));
        assert_eq!((none.wins, none.ties, none.losses), (0, 50, 0));
    }

    #[test]
    fn only_consistent_differences_are_significant() {
        let steady: Vec<f64> = (0..100).map(|n| 0.1 + f64::from(n % 5) * 0.01).collect();
        let sure = Difference::of(&[steady], 1);
        assert!((sure.mean - 0.12).abs() < 1e-9 && sure.low > 0.11 && sure.high < 0.13, "{sure:?}");
        assert!(sure.p < 0.001 && sure.wins == 100, "{sure:?}");

        let scattered: Vec<f64> = (0..40).map(|n| if n % 2 == 0 { 0.52 } else { -0.5 }).collect();
        let unsure = Difference::of(&[scattered], 1);
        assert!(unsure.low < 0.0 && unsure.high > 0.0 && unsure.p > 0.5, "{unsure:?}");
        assert_eq!((unsure.wins, unsure.ties, unsure.losses), (20, 0, 20));
    }

    #[test]
    fn confidence_interval_has_the_expected_width() {
        // 400 differences of ±1 have a standard error of 1/20: 95% lie within 1.96 of them.
        let coins: Vec<f64> = (0..400).map(|n| if n % 2 == 0 { 1.0 } else { -1.0 }).collect();
        let difference = Difference::of(&[coins], 7);
        assert!((difference.high - 0.098).abs() < 0.008, "{difference:?}");
        assert!((difference.low + 0.098).abs() < 0.008, "{difference:?}");
    }

    #[test]
    fn bootstrap_is_reproducible_and_weighs_datasets_equally() {
        let uneven = [0.3, 0.1, 0.2, -0.17, 0.41, 0.07, -0.09, 0.13, 0.11, -0.06];
        let datasets = [uneven.to_vec(), vec![0.0; 30]];
        assert_eq!(Difference::of(&datasets, 5), Difference::of(&datasets, 5));
        assert_ne!(Difference::of(&datasets, 5), Difference::of(&datasets, 6));
        assert!((Difference::of(&datasets, 5).mean - 0.05).abs() < 1e-9);
    }
}
