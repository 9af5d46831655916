//! Self-attention.

use super::load::DISTANCE_BUCKETS;
use crate::simd::{Level, Matrix, exp_rows, matmul};

/// Tokens whose scores are computed together, so that they stay in the L1 cache.
const TILE: usize = 12;
/// Columns are padded to whole registers.
const LANES: usize = 16;

/// Buffers of attention, reused by the next call.
#[derive(Default)]
pub struct Attention {
    /// Keys of one head, transposed: one row per dimension.
    keys: Vec<f32>,
    values: Vec<f32>,
    scores: Vec<f32>,
    mixed: Vec<f32>,
    sums: [f32; TILE],
    /// The bias of one head by distance between two tokens.
    by_distance: Vec<f32>,
}

/// One head of an encoder.
#[derive(Clone, Copy)]
pub struct Head {
    pub number: usize,
    /// The number of heads.
    pub heads: usize,
    /// Floats per token over all heads.
    pub hidden: usize,
}

/// Computes softmax(Q·Kᵀ)·V of one head for one sequence, into the part of `context` that belongs to the head.
/// `projected` has query, key and value of each token side by side.
pub fn attend(
    level: Level,
    head: Head,
    projected: &[f32],
    context: &mut [f32],
    distances: Option<&[f32]>,
    scratch: &mut Attention,
) {
    let Head { number, heads, hidden } = head;
    let width = hidden / heads;
    let padded = width.next_multiple_of(LANES);
    let tokens = context.len() / hidden;
    let columns = tokens.next_multiple_of(LANES);
    scratch.gather(projected, head, tokens);
    if let Some(distances) = distances {
        scratch.by_distance.clear();
        scratch.by_distance.extend((0..2 * tokens - 1).map(|at| {
            let bucket = bucket(at as isize - (tokens as isize - 1));
            distances[bucket * heads + number]
        }));
    }
    let scale = 1.0 / (width as f32).sqrt();
    for first in (0..tokens).step_by(TILE) {
        let rows = TILE.min(tokens - first);
        let queries = Matrix { values: &projected[first * hidden * 3 + number * width..], stride: hidden * 3 };
        let keys = Matrix { values: &scratch.keys, stride: columns };
        let scores = &mut scratch.scores[..rows * columns];
        matmul(level, [rows, width, columns], queries, keys, scores, columns);
        for (row, scores) in scores.chunks_exact_mut(columns).enumerate() {
            if distances.is_some() {
                // Entry `n` of the table is for the distance `n - (tokens - 1)`.
                let by_distance = &scratch.by_distance[tokens - 1 - (first + row)..];
                scores.iter_mut().zip(by_distance).take(tokens).for_each(|(score, add)| *score += add / scale);
            }
            scores[tokens..].fill(f32::MIN);
        }
        exp_rows(level, scores, columns, scale, &mut scratch.sums);
        let weights = Matrix { values: scores, stride: columns };
        let values = Matrix { values: &scratch.values, stride: padded };
        matmul(level, [rows, tokens, padded], weights, values, &mut scratch.mixed, padded);
        let targets = context[first * hidden..].chunks_exact_mut(hidden);
        for ((target, mixed), sum) in targets.zip(scratch.mixed.chunks_exact(padded)).zip(&scratch.sums).take(rows) {
            let inverse = 1.0 / sum;
            let target = &mut target[number * width..][..width];
            target.iter_mut().zip(mixed).for_each(|(target, value)| *target = value * inverse);
        }
    }
}

impl Attention {
    /// Copies keys and values of one head out of those of all heads.
    fn gather(&mut self, projected: &[f32], head: Head, tokens: usize) {
        let Head { number, heads, hidden } = head;
        let width = hidden / heads;
        let padded = width.next_multiple_of(LANES);
        let columns = tokens.next_multiple_of(LANES);
        self.keys.resize(width * columns, 0.0);
        self.values.resize(tokens * padded, 0.0);
        self.scores.resize(TILE * columns, 0.0);
        self.mixed.resize(TILE * padded, 0.0);
        for (token, row) in projected.chunks_exact(hidden * 3).enumerate() {
            let key = &row[hidden + number * width..][..width];
            for (at, &value) in key.iter().enumerate() {
                self.keys[at * columns + token] = value;
            }
            let value = &row[2 * hidden + number * width..][..width];
            self.values[token * padded..][..width].copy_from_slice(value);
        }
    }
}

/// The bucket of a distance in MPNet's table: near distances have their own, far ones share one.
fn bucket(distance: isize) -> usize {
    const FAR: f32 = 128.0;
    let half = DISTANCE_BUCKETS / 2;
    let near = half / 2;
    let length = distance.unsigned_abs();
    let within = if length < near {
        length
    } else {
        let steps = (length as f32 / near as f32).ln() / (FAR / near as f32).ln() * (half - near) as f32;
        (near + steps as usize).min(half - 1)
    };
    if distance > 0 { half + within } else { within }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plainly(projected: &[f32], head: Head, tokens: usize, add: impl Fn(usize, usize) -> f32) -> Vec<f32> {
        let Head { number, heads, hidden } = head;
        let width = hidden / heads;
        let part =
            |token: usize, which: usize| &projected[token * hidden * 3 + which * hidden + number * width..][..width];
        let mut out = Vec::new();
        for token in 0..tokens {
            let agreement = |other: usize| part(token, 0).iter().zip(part(other, 1)).map(|(a, b)| a * b).sum::<f32>();
            let weights: Vec<f32> =
                (0..tokens).map(|other| (agreement(other) / (width as f32).sqrt() + add(token, other)).exp()).collect();
            let sum: f32 = weights.iter().sum();
            out.extend((0..width).map(|at| {
                weights.iter().enumerate().map(|(other, weight)| weight / sum * part(other, 2)[at]).sum::<f32>()
            }));
        }
        out
    }

    #[test]
    fn attention_matches_the_definition() {
        let distances: Vec<f32> = (0..DISTANCE_BUCKETS * 3).map(|at| (at % 7) as f32 * 0.3).collect();
        for (tokens, hidden, heads) in [(1, 6, 3), (5, 96, 3), (33, 96, 3), (40, 60, 3)] {
            let projected: Vec<f32> =
                (0..tokens * hidden * 3).map(|at| ((at * 7919) % 101) as f32 / 50.0 - 1.0).collect();
            for level in Level::available() {
                for distances in [None, Some(distances.as_slice())] {
                    for number in 0..heads {
                        let head = Head { number, heads, hidden };
                        let mut context = vec![0.0; tokens * hidden];
                        attend(level, head, &projected, &mut context, distances, &mut Attention::default());
                        let expected = plainly(&projected, head, tokens, |token, other| {
                            distances
                                .map_or(0.0, |table| table[bucket(other as isize - token as isize) * heads + number])
                        });
                        let width = hidden / heads;
                        let found = context.chunks(hidden).flat_map(|row| &row[number * width..][..width]);
                        for (found, expected) in found.zip(&expected) {
                            assert!((found - expected).abs() < 1e-5, "{found} for {expected}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn distance_buckets_match_mpnet() {
        // Computed by hand from MPNet's definition.
        let known = [(0, 0), (-1, 1), (-7, 7), (-8, 8), (-16, 10), (-500, 15), (1, 17), (8, 24), (127, 31)];
        for (distance, expected) in known {
            assert_eq!(bucket(distance), expected, "{distance}");
        }
    }
}
