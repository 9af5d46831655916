//! Linear layers: 8-bit activations times 8-bit weights, summed exactly in 32 bits.
//!
//! An activation row is `x ≈ scale·q + min` with `q` from 0 to 255, a weight column `w ≈ weight_scale·v` with `v` from
//! -128 to 127. So `x·w ≈ weight_scale·(scale·Σqv + min·Σv)`, and `Σv` is known when the weights are loaded.

use super::{Kind, Level, portable};

/// Output columns of one packed block: four 512-bit registers of 32-bit sums.
pub(super) const BLOCK: usize = 64;
/// Inputs per column of one multiply-add instruction.
pub(super) const GROUP: usize = 4;

/// The weights of a layer in the order of the kernels: blocks of 64 columns, in which each group of four inputs has
/// the four bytes of every column side by side.
pub struct Weights {
    pub(super) inputs: usize,
    pub(super) outputs: usize,
    pub(super) packed: Vec<i8>,
    /// For each column, padded to whole blocks: the scale, the scale times the sum of the column, and the bias.
    pub(super) scales: Vec<f32>,
    pub(super) offsets: Vec<f32>,
    pub(super) bias: Vec<f32>,
}

impl Weights {
    /// From one row of `inputs` bytes per output. `None` if the sizes do not match.
    pub fn pack(inputs: usize, rows: &[i8], scales: &[f32], bias: &[f32]) -> Option<Self> {
        let outputs = scales.len();
        if inputs == 0 || outputs == 0 || rows.len() != inputs.checked_mul(outputs)? || bias.len() != outputs {
            return None;
        }
        let groups = inputs.div_ceil(GROUP);
        let blocks = outputs.div_ceil(BLOCK);
        let mut packed = vec![0; blocks * groups * BLOCK * GROUP];
        let mut offsets = padded(scales);
        for (column, row) in rows.chunks_exact(inputs).enumerate() {
            let block = &mut packed[column / BLOCK * groups * BLOCK * GROUP..][..groups * BLOCK * GROUP];
            let places = block[column % BLOCK * GROUP..].chunks_mut(BLOCK * GROUP);
            for (place, group) in places.zip(row.chunks(GROUP)) {
                match group {
                    &[a, b, c, d] => place[..GROUP].copy_from_slice(&[a, b, c, d]),
                    short => place[..short.len()].copy_from_slice(short),
                }
            }
            offsets[column] *= row.iter().map(|&weight| i32::from(weight)).sum::<i32>() as f32;
        }
        Some(Self { inputs, outputs, packed, scales: padded(scales), offsets, bias: padded(bias) })
    }

    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Bytes from one row of activations to the next.
    pub(super) fn stride(&self) -> usize {
        self.inputs.next_multiple_of(GROUP)
    }
}

fn padded(values: &[f32]) -> Vec<f32> {
    let mut values = values.to_vec();
    values.resize(values.len().next_multiple_of(BLOCK), 0.0);
    values
}

/// 8-bit activations; each row has a scale and a minimum.
#[derive(Default)]
pub struct Activations {
    width: usize,
    pub(super) values: Vec<u8>,
    pub(super) scales: Vec<f32>,
    pub(super) mins: Vec<f32>,
}

impl Activations {
    /// Replaces the contents by `rows` of `width` values each.
    pub fn fill(&mut self, level: Level, rows: &[f32], width: usize) {
        let count = rows.len() / width;
        let stride = width.next_multiple_of(GROUP);
        self.width = width;
        self.values.resize(count * stride, 0);
        self.scales.resize(count, 0.0);
        self.mins.resize(count, 0.0);
        let targets = self.values.chunks_exact_mut(stride);
        for (number, (row, target)) in rows.chunks_exact(width).zip(targets).enumerate() {
            let (target, padding) = target.split_at_mut(width);
            padding.fill(0);
            (self.scales[number], self.mins[number]) = super::quantise(level, row, target);
        }
    }

    pub fn rows(&self) -> usize {
        self.scales.len()
    }
}

/// Panics unless activations and result fit the weights, and all parts of the weights fit each other.
pub(super) fn check(activations: &Activations, weights: &Weights, out: &[f32]) {
    let (rows, stride) = (activations.rows(), weights.stride());
    let padded = weights.outputs.next_multiple_of(BLOCK);
    assert_eq!(activations.width, weights.inputs, "activations of another width than the layer's inputs");
    assert!(activations.values.len() == rows * stride && activations.mins.len() == rows);
    assert!(weights.outputs > 0 && weights.packed.len() == padded * stride);
    assert!(weights.scales.len() == padded && weights.offsets.len() == padded && weights.bias.len() == padded);
    assert_eq!(out.len(), rows * weights.outputs, "room for other outputs than the layer's");
}

/// Writes the outputs of the layer to `out`, row by row.
pub fn linear(level: Level, activations: &Activations, weights: &Weights, out: &mut [f32]) {
    check(activations, weights, out);
    match level.0 {
        Kind::Portable => portable::linear(activations, weights, out),
        #[cfg(target_arch = "x86_64")]
        Kind::Avx2 => super::x86::linear_avx2(activations, weights, out),
        #[cfg(target_arch = "x86_64")]
        Kind::Avx512 => super::x86::linear_avx512(activations, weights, out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn exact(inputs: usize, outputs: usize, values: &[u8], rows: &[i8]) -> Vec<f32> {
        let sum = |row: &[u8], column: &[i8]| {
            row.iter().zip(column).map(|(&a, &b)| i32::from(a) * i32::from(b)).sum::<i32>() as f32
        };
        values
            .chunks_exact(inputs)
            .flat_map(|row| rows.chunks_exact(inputs).map(move |column| sum(row, column)))
            .take(values.len() / inputs * outputs)
            .collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn every_level_gives_the_exact_sums(inputs in 1usize..300, outputs in 1usize..150, count in 0usize..20, seed: u64) {
            let mut state = seed | 1;
            let mut byte = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 56) as u8
            };
            let values: Vec<u8> = (0..inputs * count).map(|_| byte() | (byte() & 128)).collect();
            let rows: Vec<i8> = (0..inputs * outputs).map(|_| byte() as i8).collect();
            let weights = Weights::pack(inputs, &rows, &vec![1.0; outputs], &vec![0.0; outputs]).expect("sizes agree");
            let stride = weights.stride();
            let mut activations = Activations { width: inputs, ..Activations::default() };
            for row in values.chunks_exact(inputs) {
                activations.values.extend_from_slice(row);
                activations.values.resize(activations.values.len().next_multiple_of(stride), 0);
                activations.scales.push(1.0);
                activations.mins.push(0.0);
            }
            let expected = exact(inputs, outputs, &values, &rows);
            for level in Level::available() {
                let mut out = vec![f32::NAN; count * outputs];
                linear(level, &activations, &weights, &mut out);
                prop_assert_eq!(&out, &expected, "{}", level.name());
            }
        }
    }

    #[test]
    fn scale_minimum_and_bias_are_applied() {
        let weights = Weights::pack(2, &[1, 2, -3, 4], &[0.5, 2.0], &[10.0, 20.0]).expect("sizes agree");
        for level in Level::available() {
            let mut activations = Activations::default();
            activations.fill(level, &[-1.0, 4.1], 2);
            let mut out = [0.0; 2];
            linear(level, &activations, &weights, &mut out);
            assert!((out[0] - (10.0 + 0.5 * (-1.0 + 8.2))).abs() < 1e-4, "{out:?}");
            assert!((out[1] - (20.0 + 2.0 * (3.0 + 16.4))).abs() < 1e-4, "{out:?}");
        }
    }

    #[test]
    fn mismatched_sizes_are_refused() {
        assert!(Weights::pack(2, &[1, 2, 3], &[1.0], &[0.0]).is_none());
        assert!(Weights::pack(usize::MAX, &[1], &[1.0, 1.0], &[0.0, 0.0]).is_none());
        assert!(Weights::pack(0, &[], &[], &[]).is_none());
    }
}
