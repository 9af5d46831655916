//! Exhaustive vector search: one query against int8 vectors, at memory speed.

pub use crate::simd::Rows;
use crate::simd::{self, Level};

/// Quantises a vector to int8: `value ≈ scale · byte`.
pub fn quantise(vector: &[f32]) -> (Vec<i8>, f32) {
    let greatest = vector.iter().fold(0.0f32, |greatest, value| greatest.max(value.abs()));
    if greatest == 0.0 || !greatest.is_finite() {
        return (vec![0; vector.len()], 0.0);
    }
    let bytes = vector.iter().map(|value| (value / greatest * 127.0).round() as i8).collect();
    (bytes, greatest / 127.0)
}

/// A quantised query.
pub struct ScanQuery {
    bytes: Vec<i8>,
    dimensions: usize,
    scale: f32,
}

impl ScanQuery {
    pub fn new(vector: &[f32]) -> Self {
        let (mut bytes, scale) = quantise(vector);
        bytes.resize(vector.len().next_multiple_of(64), 0);
        Self { bytes, dimensions: vector.len(), scale }
    }

    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// The cosine is a result of [`dots`] times the row's scale times this.
    pub fn scale(&self) -> f32 {
        self.scale
    }
}

/// Writes the exact dot product of the query with each row to `out`.
///
/// # Panics
/// If the dimensions differ, the rows exceed their records, or `out` has another length than there are rows.
pub fn dots(query: &ScanQuery, rows: Rows<'_>, out: &mut [i32]) {
    assert_eq!(query.dimensions, rows.dimensions, "query and rows have different dimensions");
    simd::dots(Level::best(), &query.bytes, rows, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_level_computes_exact_products(
            dimensions in 1usize..400, count in 0usize..20, offset in 0usize..9, after in 0usize..5, seed: u64
        ) {
            let mut state = seed | 1;
            let mut byte = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 56) as u8
            };
            let stride = offset + dimensions + after;
            let records: Vec<u8> = (0..stride * count + after / 2).map(|_| byte()).collect();
            let records = &records[..stride * count];
            let mut query: Vec<i8> = (0..dimensions).map(|_| byte() as i8).collect();
            let expected: Vec<i32> = records
                .chunks_exact(stride)
                .map(|record| {
                    let row = &record[offset..][..dimensions];
                    row.iter().zip(&query).map(|(&a, &b)| i32::from(a as i8) * i32::from(b)).sum()
                })
                .collect();
            query.resize(dimensions.next_multiple_of(64), 0);
            for level in Level::available() {
                let mut out = vec![-1; count];
                simd::dots(level, &query, Rows { records, stride, offset, dimensions }, &mut out);
                prop_assert_eq!(&out, &expected, "{}", level.name());
            }
        }

        #[test]
        fn scaled_dot_is_close_to_cosine(values in prop::collection::vec(-1.0f32..1.0, 1..100)) {
            let (bytes, scale) = quantise(&values);
            let query = ScanQuery::new(&values);
            let records: Vec<u8> = bytes.iter().map(|&byte| byte as u8).collect();
            let rows = Rows { records: &records, stride: bytes.len(), offset: 0, dimensions: bytes.len() };
            let mut out = [0];
            dots(&query, rows, &mut out);
            let expected: f32 = values.iter().map(|x| x * x).sum();
            prop_assert!((out[0] as f32 * scale * query.scale() - expected).abs() < 0.02 * expected.max(1.0));
        }
    }

    #[test]
    fn zero_and_infinite_vectors_quantise_to_zero() {
        assert_eq!(quantise(&[0.0, 0.0]), (vec![0, 0], 0.0));
        assert_eq!(quantise(&[f32::NAN, f32::INFINITY]).1, 0.0);
    }
}
