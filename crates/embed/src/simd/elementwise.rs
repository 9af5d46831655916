//! Elementwise functions: plain loops that the compiler vectorises, compiled once per level.

use super::{Kind, Level};

const LANES: usize = 16;

/// A layer norm over rows of as many values as `gain` has.
pub struct Norm {
    pub gain: Vec<f32>,
    pub bias: Vec<f32>,
    pub epsilon: f32,
}

macro_rules! at_every_level {
    ($(#[$doc:meta])* $name:ident = $body:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?) => {
        $(#[$doc])*
        pub fn $name(level: Level, $($argument: $type),*) $(-> $result)? {
            match level.0 {
                Kind::Portable => $body::<false>($($argument),*),
                #[cfg(target_arch = "x86_64")]
                Kind::Avx2 => super::x86::with_avx2(
                    #[inline(always)]
                    || $body::<true>($($argument),*),
                ),
                #[cfg(target_arch = "x86_64")]
                Kind::Avx512 => super::x86::with_avx512(
                    #[inline(always)]
                    || $body::<true>($($argument),*),
                ),
            }
        }
    };
}

at_every_level!(
    /// The Gaussian error linear unit of every value, within 0.0001.
    gelu = gelu_body(values: &mut [f32])
);
at_every_level!(
    /// Quantises values to 8 bits; returns scale and minimum: `value ≈ scale · byte + minimum`.
    quantise = quantise_body(values: &[f32], into: &mut [u8]) -> (f32, f32)
);
at_every_level!(
    /// Layer norm of each row.
    layer_norm = layer_norm_body(rows: &mut [f32], norm: &Norm)
);
at_every_level!(
    /// Replaces `rows` by the layer norm of `rows + added`.
    add_layer_norm = add_layer_norm_body(rows: &mut [f32], added: &[f32], norm: &Norm)
);
at_every_level!(
    /// Replaces each row of `width` values by `exp(scale · (value - maximum))`, and writes the row sums to `sums`.
    exp_rows = exp_rows_body(rows: &mut [f32], width: usize, scale: f32, sums: &mut [f32])
);

/// Fused if the processor has the instruction, else rounded twice: the library's `mul_add` would be far slower.
#[inline(always)]
fn fma<const FUSED: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}

/// One instruction, because unlike `f32::min` it does not handle NaN.
#[inline(always)]
fn least(a: f32, b: f32) -> f32 {
    if a < b { a } else { b }
}

#[inline(always)]
fn greatest(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

/// Folds in independent lanes. The compiler may not reorder float operations by itself.
#[inline(always)]
fn fold(values: &[f32], start: f32, each: impl Fn(f32, f32) -> f32, join: impl Fn(f32, f32) -> f32) -> f32 {
    let mut lanes = [start; LANES];
    let chunks = values.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (lane, &value) in lanes.iter_mut().zip(chunk) {
            *lane = each(*lane, value);
        }
    }
    for (lane, &value) in lanes.iter_mut().zip(rest) {
        *lane = each(*lane, value);
    }
    lanes.into_iter().fold(start, join)
}

/// Beyond this, the normal distribution function is close enough to 0 or 1.
const GELU_EDGE: f32 = 4.2;
/// `(Φ(x) - 1/2) / x` as a minimax polynomial of `x²`.
const GELU_TERMS: [f32; 9] = [
    4.923_708_3e-11,
    -4.795_575e-9,
    2.072_448e-7,
    -5.289_514_5e-6,
    8.983_543_4e-5,
    -1.086_456e-3,
    9.740_93e-3,
    -6.622_206e-2,
    3.988_345_7e-1,
];

#[inline(always)]
fn gelu_body<const FUSED: bool>(values: &mut [f32]) {
    for value in values {
        let x = greatest(least(*value, GELU_EDGE), -GELU_EDGE);
        let square = x * x;
        let mut sum = GELU_TERMS[0];
        for term in &GELU_TERMS[1..] {
            sum = fma::<FUSED>(sum, square, *term);
        }
        *value *= fma::<FUSED>(x, sum, 0.5);
    }
}

/// Added to a small float, it leaves the rounded integer in the low bits.
const ROUNDING: f32 = 12_582_912.0; // 1.5 · 2^23

#[inline(always)]
fn quantise_body<const FUSED: bool>(values: &[f32], into: &mut [u8]) -> (f32, f32) {
    let least_value = fold(values, f32::INFINITY, least, least);
    let greatest_value = fold(values, f32::NEG_INFINITY, greatest, greatest);
    let scale = (greatest_value - least_value) / 255.0;
    let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
    let shift = -least_value * inverse;
    for (byte, &value) in into.iter_mut().zip(values) {
        *byte = (fma::<FUSED>(value, inverse, shift) + ROUNDING).to_bits() as u8;
    }
    (scale, least_value)
}

#[inline(always)]
fn layer_norm_body<const FUSED: bool>(rows: &mut [f32], norm: &Norm) {
    for row in rows.chunks_exact_mut(norm.gain.len()) {
        normalise::<FUSED>(row, norm);
    }
}

#[inline(always)]
fn add_layer_norm_body<const FUSED: bool>(rows: &mut [f32], added: &[f32], norm: &Norm) {
    let width = norm.gain.len();
    for (row, added) in rows.chunks_exact_mut(width).zip(added.chunks_exact(width)) {
        for (value, &added) in row.iter_mut().zip(added) {
            *value += added;
        }
        normalise::<FUSED>(row, norm);
    }
}

#[inline(always)]
fn normalise<const FUSED: bool>(row: &mut [f32], norm: &Norm) {
    let count = row.len() as f32;
    let mean = fold(row, 0.0, |a, b| a + b, |a, b| a + b) / count;
    let square = |sum: f32, value: f32| fma::<FUSED>(value - mean, value - mean, sum);
    let variance = fold(row, 0.0, square, |a, b| a + b) / count;
    let inverse = 1.0 / (variance + norm.epsilon).sqrt();
    for ((value, &gain), &bias) in row.iter_mut().zip(&norm.gain).zip(&norm.bias) {
        *value = fma::<FUSED>((*value - mean) * inverse, gain, bias);
    }
}

#[inline(always)]
fn exp_rows_body<const FUSED: bool>(rows: &mut [f32], width: usize, scale: f32, sums: &mut [f32]) {
    for (row, sum) in rows.chunks_exact_mut(width).zip(sums) {
        let top = fold(row, f32::NEG_INFINITY, greatest, greatest);
        let shift = -top * scale;
        for value in row.iter_mut() {
            *value = exp::<FUSED>(fma::<FUSED>(*value, scale, shift));
        }
        *sum = fold(row, 0.0, |a, b| a + b, |a, b| a + b);
    }
}

/// `e^x` for `x` up to 88 with a relative error of about 1e-6; close to 0 below -87.
#[inline(always)]
fn exp<const FUSED: bool>(x: f32) -> f32 {
    let x = greatest(x, -87.0);
    let rounded = fma::<FUSED>(x, std::f32::consts::LOG2_E, ROUNDING);
    let whole = rounded - ROUNDING;
    // ln 2 in two parts, so that the difference keeps its digits.
    let rest = fma::<FUSED>(whole, -0.693_145_75, x);
    let rest = fma::<FUSED>(whole, -1.428_606_8e-6, rest);
    let mut sum = 1.0 / 720.0;
    for term in [1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        sum = fma::<FUSED>(sum, rest, term);
    }
    f32::from_bits(sum.to_bits().wrapping_add(rounded.to_bits() << 23))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(from: f32, to: f32, count: usize) -> Vec<f32> {
        (0..count).map(|at| from + (to - from) * at as f32 / (count - 1) as f32).collect()
    }

    #[test]
    fn gelu_matches_known_values() {
        // From tables of the normal distribution.
        let known = [(-3.0, -0.004_049_7), (-1.0, -0.158_655_3), (0.0, 0.0), (0.5, 0.345_731_2), (2.0, 1.954_499_7)];
        for level in Level::available() {
            for (x, expected) in known {
                let mut values = [x; 3];
                gelu(level, &mut values);
                assert!((values[2] - expected).abs() < 1e-4, "{x}: {values:?}");
            }
            let mut far = [9.0, -9.0];
            gelu(level, &mut far);
            assert!((far[0] - 9.0).abs() < 2e-4 && far[1].abs() < 2e-4, "{far:?}");
        }
    }

    #[test]
    fn exp_rows_match_the_definition() {
        for level in Level::available() {
            for width in [1, 7, 16, 33] {
                let row = spread(-30.0, 12.0, width.max(2))[..width].to_vec();
                let mut out = row.clone();
                let mut sums = [0.0];
                exp_rows(level, &mut out, width, 0.5, &mut sums);
                let top = row.iter().copied().fold(f32::MIN, f32::max);
                for (&x, &y) in row.iter().zip(&out) {
                    let expected = (0.5 * (x - top)).exp();
                    assert!((y - expected).abs() <= expected * 3e-6, "{x}: {y} for {expected}");
                }
                assert!((sums[0] - out.iter().sum::<f32>()).abs() < 1e-4);
            }
        }
    }

    #[test]
    fn quantisation_error_is_below_half_a_step() {
        for level in Level::available() {
            for count in [1, 5, 16, 100] {
                let values = spread(-1.5, 3.0, count.max(2))[..count].to_vec();
                let mut bytes = vec![0; count];
                let (scale, least) = quantise(level, &values, &mut bytes);
                for (&value, &byte) in values.iter().zip(&bytes) {
                    assert!((scale * f32::from(byte) + least - value).abs() <= scale * 0.501, "{value}");
                }
            }
        }
    }

    #[test]
    fn layer_norm_centres_and_scales() {
        for level in Level::available() {
            let mut row = spread(1.0, 20.0, 20);
            let norm = Norm { gain: vec![2.0; 20], bias: vec![1.0; 20], epsilon: 1e-12 };
            add_layer_norm(level, &mut row, &[5.0; 20], &norm);
            let mean = row.iter().sum::<f32>() / 20.0;
            let variance = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / 20.0;
            assert!((mean - 1.0).abs() < 1e-5 && (variance - 4.0).abs() < 1e-4, "{mean} {variance}");
        }
    }
}
