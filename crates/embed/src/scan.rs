//! The flat scan: one query against vectors of bytes, as fast as memory delivers them.

pub use crate::simd::Rows;
use crate::simd::{self, Level};

/// A vector in signed bytes: `value ≈ scale · byte`.
pub fn quantise(vector: &[f32]) -> (Vec<i8>, f32) {
    let greatest = vector.iter().fold(0.0f32, |greatest, value| greatest.max(value.abs()));
    if greatest == 0.0 || !greatest.is_finite() {
        return (vec![0; vector.len()], 0.0);
    }
    let bytes = vector
        .iter()
        .map(|value| (value / greatest * 127.0).round() as i8)
        .collect();
    (bytes, greatest / 127.0)
}

/// A query ready to be compared with rows.
pub struct ScanQuery {
    bytes: Vec<i8>,
    dimensions: usize,
    scale: f32,
}

impl ScanQuery {
    pub fn new(vector: &[f32]) -> Self {
        let (mut bytes, scale) = quantise(vector);
        bytes.resize(vector.len().next_multiple_of(64), 0);
        Self {
            bytes,
            dimensions: vector.len(),
            scale,
        }
    }

    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// What a dot of [`dots`] times the row's own scale is to be multiplied by: then it is the cosine.
    pub fn scale(&self) -> f32 {
        self.scale
    }
}

/// `out` becomes the exact product of the query's bytes with each row's.
///
/// # Panics
/// If the rows have other dimensions than the query, do not fit their records, or are not as many as `out`.
pub fn dots(query: &ScanQuery, rows: Rows<'_>, out: &mut [i32]) {
    assert_eq!(
        query.dimensions, rows.dimensions,
        "a query of other dimensions than the rows"
    );
    simd::dots(Level::best(), &query.bytes, rows, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_level_gives_the_exact_products(
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
        fn a_dot_times_both_scales_is_near_the_product(values in prop::collection::vec(-1.0f32..1.0, 1..100)) {
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
    fn nothing_is_quantised_to_zeros() {
        assert_eq!(quantise(&[0.0, 0.0]), (vec![0, 0], 0.0));
        assert_eq!(quantise(&[f32::NAN, f32::INFINITY]).1, 0.0);
    }
}
