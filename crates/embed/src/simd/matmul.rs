//! Products of small float matrices, for attention.

use super::{Kind, Level};

/// Rows of floats in a longer array, `stride` apart.
#[derive(Clone, Copy)]
pub struct Matrix<'a> {
    pub values: &'a [f32],
    pub stride: usize,
}

/// Columns are padded to whole registers.
pub(super) const LANES: usize = 16;

/// `out = left · right` for the first `rows` rows of `left`, `inner` of its columns, and `columns` (a multiple of 16)
/// of `right`. Rows of `out` are `out_stride` apart.
pub fn matmul(level: Level, size: [usize; 3], left: Matrix<'_>, right: Matrix<'_>, out: &mut [f32], out_stride: usize) {
    let [rows, _, columns] = size;
    if rows == 0 || columns == 0 {
        return;
    }
    check(size, left, right, out, out_stride);
    match level.0 {
        Kind::Portable => portable(size, left, right, out, out_stride),
        #[cfg(target_arch = "x86_64")]
        Kind::Avx2 => super::x86::matmul_avx2(size, left, right, out, out_stride),
        #[cfg(target_arch = "x86_64")]
        Kind::Avx512 => super::x86::matmul_avx512(size, left, right, out, out_stride),
    }
}

/// Panics unless all three matrices have the rows and columns of `size`.
pub(super) fn check(
    [rows, inner, columns]: [usize; 3],
    left: Matrix<'_>,
    right: Matrix<'_>,
    out: &[f32],
    out_stride: usize,
) {
    let reaches = |length: usize, stride: usize, rows: usize, columns: usize| {
        columns <= stride && (rows == 0 || (rows - 1) * stride + columns <= length)
    };
    assert!(columns.is_multiple_of(LANES), "columns do not fill registers");
    assert!(reaches(left.values.len(), left.stride, rows, inner), "the left matrix is too small");
    assert!(reaches(right.values.len(), right.stride, inner, columns), "the right matrix is too small");
    assert!(reaches(out.len(), out_stride, rows, columns), "the result does not fit");
}

fn portable(
    [rows, inner, columns]: [usize; 3],
    left: Matrix<'_>,
    right: Matrix<'_>,
    out: &mut [f32],
    out_stride: usize,
) {
    for row in 0..rows {
        for column in (0..columns).step_by(LANES) {
            let mut sums = [0.0; LANES];
            for at in 0..inner {
                let factor = left.values[row * left.stride + at];
                for (sum, &value) in sums.iter_mut().zip(&right.values[at * right.stride + column..][..LANES]) {
                    *sum += factor * value;
                }
            }
            out[row * out_stride + column..][..LANES].copy_from_slice(&sums);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn every_level_agrees(rows in 0usize..40, inner in 0usize..40, blocks in 0usize..9, pad in 0usize..5) {
            let columns = blocks * LANES;
            // Small whole numbers: sums are exact in any order.
            let numbers = |count: usize, salt: usize| -> Vec<f32> {
                (0..count).map(|at| ((at * 7919 + salt * 104_729) % 17) as f32 - 8.0).collect()
            };
            let left = numbers(rows * (inner + pad), 1);
            let right = numbers(inner * (columns + pad), 2);
            let left = Matrix { values: &left, stride: inner + pad };
            let right = Matrix { values: &right, stride: columns + pad };
            let mut expected = vec![-1.0; rows * (columns + pad)];
            matmul(Level::PORTABLE, [rows, inner, columns], left, right, &mut expected, columns + pad);
            for row in 0..rows {
                for column in 0..columns {
                    let sum: f32 = (0..inner)
                        .map(|at| left.values[row * left.stride + at] * right.values[at * right.stride + column])
                        .sum();
                    prop_assert_eq!(expected[row * (columns + pad) + column], sum);
                }
            }
            for level in Level::available() {
                let mut out = vec![-1.0; rows * (columns + pad)];
                matmul(level, [rows, inner, columns], left, right, &mut out, columns + pad);
                prop_assert_eq!(&out, &expected, "{}", level.name());
            }
        }
    }
}
