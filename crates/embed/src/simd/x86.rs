//! The kernels for x86-64, and the only unsafe code of the crate. A [`super::Level`] exists only if the processor has
//! the instructions, and the bounds of all loads are checked before the loops.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::linear::{self, Activations, BLOCK, GROUP, Weights};
use super::matmul::{LANES, Matrix, check};
use super::scan::{self, Rows};

pub fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

pub fn has_avx512() -> bool {
    has_avx2()
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vnni")
}

/// Compiles `work` with AVX2 and FMA.
pub fn with_avx2<T>(work: impl FnOnce() -> T) -> T {
    #[target_feature(enable = "avx2,fma")]
    fn inside<T>(work: impl FnOnce() -> T) -> T {
        work()
    }
    // SAFETY: the AVX2 level exists only if `has_avx2` is true.
    unsafe { inside(work) }
}

/// Compiles `work` with AVX-512.
pub fn with_avx512<T>(work: impl FnOnce() -> T) -> T {
    #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn inside<T>(work: impl FnOnce() -> T) -> T {
        work()
    }
    // SAFETY: the AVX-512 level exists only if `has_avx512` is true.
    unsafe { inside(work) }
}

pub fn linear_avx512(activations: &Activations, weights: &Weights, out: &mut [f32]) {
    linear::check(activations, weights, out);
    // SAFETY: the AVX-512 level exists only if `has_avx512` is true.
    unsafe { linear_512(activations, weights, out) }
}

/// Rows of one tile: six times four registers of sums leave eight for weights and activations.
const TILE_512: usize = 6;

#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn linear_512(activations: &Activations, weights: &Weights, out: &mut [f32]) {
    let rows = activations.rows();
    for block in 0..weights.outputs.div_ceil(BLOCK) {
        let mut row = 0;
        while row + TILE_512 <= rows {
            linear_tile_512::<TILE_512>(activations, weights, block, row, out);
            row += TILE_512;
        }
        match rows - row {
            0 => {}
            1 => linear_tile_512::<1>(activations, weights, block, row, out),
            2 => linear_tile_512::<2>(activations, weights, block, row, out),
            3 => linear_tile_512::<3>(activations, weights, block, row, out),
            4 => linear_tile_512::<4>(activations, weights, block, row, out),
            _ => linear_tile_512::<5>(activations, weights, block, row, out),
        }
    }
}

#[inline]
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn linear_tile_512<const ROWS: usize>(
    activations: &Activations,
    weights: &Weights,
    block: usize,
    row: usize,
    out: &mut [f32],
) {
    let stride = weights.stride();
    let packed = &weights.packed[block * BLOCK * stride..][..BLOCK * stride];
    let values = &activations.values[row * stride..][..ROWS * stride];
    let mut sums = [[_mm512_setzero_si512(); 4]; ROWS];
    for group in 0..stride / GROUP {
        // SAFETY: `packed` is 256 bytes for each group of four inputs, `values` four bytes for each in every row.
        unsafe {
            let packed = packed.as_ptr().add(group * BLOCK * GROUP);
            let columns: [__m512i; 4] = std::array::from_fn(|at| _mm512_loadu_si512(packed.add(at * 64).cast()));
            for (number, sums) in sums.iter_mut().enumerate() {
                let four = values.as_ptr().add(number * stride + group * GROUP);
                let four = _mm512_set1_epi32(four.cast::<i32>().read_unaligned());
                for (sum, column) in sums.iter_mut().zip(columns) {
                    *sum = _mm512_dpbusd_epi32(*sum, four, column);
                }
            }
        }
    }
    let first = block * BLOCK;
    for (number, sums) in sums.into_iter().enumerate() {
        let scale = _mm512_set1_ps(activations.scales[row + number]);
        let min = _mm512_set1_ps(activations.mins[row + number]);
        for (at, sum) in sums.into_iter().enumerate() {
            let column = first + at * 16;
            if column >= weights.outputs {
                break;
            }
            let count = 16.min(weights.outputs - column);
            let mask = ((1u32 << count) - 1) as __mmask16;
            let target = &mut out[(row + number) * weights.outputs + column..][..count];
            // SAFETY: scales, offsets and bias are padded to whole blocks; the mask keeps the store inside `target`.
            unsafe {
                let weight_scale = _mm512_loadu_ps(weights.scales.as_ptr().add(column));
                let offset = _mm512_loadu_ps(weights.offsets.as_ptr().add(column));
                let bias = _mm512_loadu_ps(weights.bias.as_ptr().add(column));
                let scaled = _mm512_mul_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(sum), scale), weight_scale);
                let value = _mm512_add_ps(scaled, _mm512_fmadd_ps(min, offset, bias));
                _mm512_mask_storeu_ps(target.as_mut_ptr(), mask, value);
            }
        }
    }
}

pub fn linear_avx2(activations: &Activations, weights: &Weights, out: &mut [f32]) {
    linear::check(activations, weights, out);
    // SAFETY: the AVX2 level exists only if `has_avx2` is true.
    unsafe { linear_256(activations, weights, out) }
}

/// Columns of one tile: four registers, each of four columns with two partial sums.
const COLUMNS_256: usize = 16;
const TILE_256: usize = 3;

#[target_feature(enable = "avx2,fma")]
fn linear_256(activations: &Activations, weights: &Weights, out: &mut [f32]) {
    let rows = activations.rows();
    for part in 0..weights.outputs.div_ceil(COLUMNS_256) {
        let mut row = 0;
        while row + TILE_256 <= rows {
            linear_tile_256::<TILE_256>(activations, weights, part, row, out);
            row += TILE_256;
        }
        while row < rows {
            linear_tile_256::<1>(activations, weights, part, row, out);
            row += 1;
        }
    }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn linear_tile_256<const ROWS: usize>(
    activations: &Activations,
    weights: &Weights,
    part: usize,
    row: usize,
    out: &mut [f32],
) {
    let stride = weights.stride();
    let first = part * COLUMNS_256;
    let packed = &weights.packed[first / BLOCK * BLOCK * stride..][..BLOCK * stride];
    let inside = first % BLOCK * GROUP;
    let values = &activations.values[row * stride..][..ROWS * stride];
    let mut sums = [[_mm256_setzero_si256(); 4]; ROWS];
    for group in 0..stride / GROUP {
        // SAFETY: `packed` is 256 bytes for each group of four inputs, of which 64 from `inside` on belong to this
        // part; `values` is four bytes for each group in every row.
        unsafe {
            let packed = packed.as_ptr().add(group * BLOCK * GROUP + inside);
            let columns: [__m256i; 4] =
                std::array::from_fn(|at| _mm256_cvtepi8_epi16(_mm_loadu_si128(packed.add(at * 16).cast())));
            for (number, sums) in sums.iter_mut().enumerate() {
                let four = values.as_ptr().add(number * stride + group * GROUP);
                let four = _mm256_cvtepu8_epi16(_mm_set1_epi32(four.cast::<i32>().read_unaligned()));
                for (sum, column) in sums.iter_mut().zip(columns) {
                    *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(four, column));
                }
            }
        }
    }
    for (number, sums) in sums.into_iter().enumerate() {
        let (scale, min) = (activations.scales[row + number], activations.mins[row + number]);
        let count = COLUMNS_256.min(weights.outputs - first);
        let target = &mut out[(row + number) * weights.outputs + first..][..count];
        let mut halves = [0i32; 2 * COLUMNS_256];
        for (at, sum) in sums.into_iter().enumerate() {
            // SAFETY: `halves` has room for four registers of eight.
            unsafe { _mm256_storeu_si256(halves.as_mut_ptr().add(at * 8).cast(), sum) };
        }
        for (at, (target, pair)) in target.iter_mut().zip(halves.chunks_exact(2)).enumerate() {
            let column = first + at;
            let scaled = (pair[0] + pair[1]) as f32 * scale * weights.scales[column];
            *target = scaled + min.mul_add(weights.offsets[column], weights.bias[column]);
        }
    }
}

macro_rules! matmul_of {
    ($entry:ident, $features:literal, $vector:ty, $width:literal, $zero:ident, $load:ident, $store:ident, $all:ident, $fused:ident,
     [$($rows:literal x $columns:literal),*]) => {
        pub fn $entry(size: [usize; 3], left: Matrix<'_>, right: Matrix<'_>, out: &mut [f32], out_stride: usize) {
            #[target_feature(enable = $features)]
            fn work([rows, inner, columns]: [usize; 3], left: Matrix<'_>, right: Matrix<'_>, out: &mut [f32], out_stride: usize) {
                let mut column = 0;
                while column < columns {
                    let registers = (columns - column) / $width;
                    let mut row = 0;
                    $(
                        if registers >= $columns && (registers == $columns || $columns == 4) {
                            while row + $rows <= rows {
                                tile::<$rows, $columns>(inner, left, right, out, out_stride, row, column);
                                row += $rows;
                            }
                            while row < rows {
                                tile::<1, $columns>(inner, left, right, out, out_stride, row, column);
                                row += 1;
                            }
                            column += $columns * $width;
                            continue;
                        }
                    )*
                }
            }

            #[inline]
            #[target_feature(enable = $features)]
            fn tile<const ROWS: usize, const COLUMNS: usize>(
                inner: usize,
                left: Matrix<'_>,
                right: Matrix<'_>,
                out: &mut [f32],
                out_stride: usize,
                row: usize,
                column: usize,
            ) {
                let mut sums = [[$zero(); COLUMNS]; ROWS];
                for at in 0..inner {
                    // SAFETY: `check` has seen that the first rows and columns of both matrices are there, and `work`
                    // asks for none beyond.
                    unsafe {
                        let right = right.values.as_ptr().add(at * right.stride + column);
                        let right: [$vector; COLUMNS] = std::array::from_fn(|n| $load(right.add(n * $width)));
                        for (number, sums) in sums.iter_mut().enumerate() {
                            let factor = $all(*left.values.as_ptr().add((row + number) * left.stride + at));
                            for (sum, right) in sums.iter_mut().zip(right) {
                                *sum = $fused(factor, right, *sum);
                            }
                        }
                    }
                }
                for (number, sums) in sums.into_iter().enumerate() {
                    let target = &mut out[(row + number) * out_stride + column..][..COLUMNS * $width];
                    for (at, sum) in sums.into_iter().enumerate() {
                        // SAFETY: `target` is as long as the registers together.
                        unsafe { $store(target.as_mut_ptr().add(at * $width), sum) };
                    }
                }
            }

            const { assert!(LANES.is_multiple_of($width)) };
            check(size, left, right, out, out_stride);
            // SAFETY: the level exists only where the processor has the features.
            unsafe { work(size, left, right, out, out_stride) }
        }
    };
}

matmul_of!(
    matmul_avx512, "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni", __m512, 16, _mm512_setzero_ps,
    _mm512_loadu_ps, _mm512_storeu_ps, _mm512_set1_ps, _mm512_fmadd_ps, [6 x 4, 8 x 3, 12 x 2, 14 x 1]
);
matmul_of!(
    matmul_avx2, "avx2,fma", __m256, 8, _mm256_setzero_ps,
    _mm256_loadu_ps, _mm256_storeu_ps, _mm256_set1_ps, _mm256_fmadd_ps, [2 x 4, 3 x 3, 4 x 2, 6 x 1]
);

pub fn dots_avx512(query: &[i8], rows: Rows<'_>, out: &mut [i32]) {
    /// A row's bytes become unsigned by adding 128, which adds 128 times the sum of the query to the product.
    #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn work(query: &[i8], rows: Rows<'_>, out: &mut [i32]) {
        let excess = 128 * query.iter().map(|&byte| i32::from(byte)).sum::<i32>();
        let flip = _mm512_set1_epi8(i8::MIN);
        let whole = rows.dimensions / 64;
        let rest = rows.dimensions % 64;
        let mask = (1u64 << rest) - 1;
        for (record, out) in rows.records.chunks_exact(rows.stride).zip(out) {
            let row = &record[rows.offset..][..rows.dimensions];
            let mut sums = _mm512_setzero_si512();
            // SAFETY: `row` has `whole` times 64 bytes and then as many as the mask has bits; `query` is padded to
            // whole registers.
            unsafe {
                for at in 0..whole {
                    let row = _mm512_xor_si512(_mm512_loadu_si512(row.as_ptr().add(at * 64).cast()), flip);
                    sums = _mm512_dpbusd_epi32(sums, row, _mm512_loadu_si512(query.as_ptr().add(at * 64).cast()));
                }
                if rest > 0 {
                    let row = _mm512_maskz_loadu_epi8(mask, row.as_ptr().add(whole * 64).cast());
                    let row = _mm512_xor_si512(row, flip);
                    sums = _mm512_dpbusd_epi32(sums, row, _mm512_loadu_si512(query.as_ptr().add(whole * 64).cast()));
                }
            }
            *out = _mm512_reduce_add_epi32(sums) - excess;
        }
    }
    scan::check(query, rows, out);
    // SAFETY: the AVX-512 level exists only if `has_avx512` is true.
    unsafe { work(query, rows, out) }
}

pub fn dots_avx2(query: &[i8], rows: Rows<'_>, out: &mut [i32]) {
    #[target_feature(enable = "avx2,fma")]
    fn work(query: &[i8], rows: Rows<'_>, out: &mut [i32]) {
        let whole = rows.dimensions / 16 * 16;
        for (record, out) in rows.records.chunks_exact(rows.stride).zip(out) {
            let row = &record[rows.offset..][..rows.dimensions];
            let mut sums = _mm256_setzero_si256();
            for at in (0..whole).step_by(16) {
                // SAFETY: both have at least `whole` bytes.
                let (row, query) = unsafe {
                    let row = _mm_loadu_si128(row.as_ptr().add(at).cast());
                    (row, _mm_loadu_si128(query.as_ptr().add(at).cast()))
                };
                let products = _mm256_madd_epi16(_mm256_cvtepi8_epi16(row), _mm256_cvtepi8_epi16(query));
                sums = _mm256_add_epi32(sums, products);
            }
            let mut lanes = [0i32; 8];
            // SAFETY: eight lanes fill the register.
            unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), sums) };
            *out = lanes.iter().sum::<i32>() + super::portable::dot(&query[whole..], &row[whole..]);
        }
    }
    scan::check(query, rows, out);
    // SAFETY: the AVX2 level exists only if `has_avx2` is true.
    unsafe { work(query, rows, out) }
}
