//! The reference kernels, for processors without AVX2.

use super::linear::{Activations, BLOCK, GROUP, Weights};

pub fn linear(activations: &Activations, weights: &Weights, out: &mut [f32]) {
    let stride = weights.stride();
    let outputs = weights.outputs;
    let block_bytes = stride * BLOCK;
    for (block, packed) in weights.packed.chunks_exact(block_bytes).enumerate() {
        let first = block * BLOCK;
        let columns = BLOCK.min(outputs - first);
        for row in 0..activations.rows() {
            let mut sums = [0i32; BLOCK];
            let values = &activations.values[row * stride..][..stride];
            for (values, packed) in values.chunks_exact(GROUP).zip(packed.chunks_exact(BLOCK * GROUP)) {
                for (sum, weights) in sums.iter_mut().zip(packed.chunks_exact(GROUP)) {
                    for (&value, &weight) in values.iter().zip(weights) {
                        *sum += i32::from(value) * i32::from(weight);
                    }
                }
            }
            let (scale, min) = (activations.scales[row], activations.mins[row]);
            let out = &mut out[row * outputs + first..][..columns];
            for (column, (out, &sum)) in out.iter_mut().zip(&sums).enumerate() {
                let at = first + column;
                *out = sum as f32 * scale * weights.scales[at] + min * weights.offsets[at] + weights.bias[at];
            }
        }
    }
}

/// The dot product of a query and an int8 row.
pub fn dot(query: &[i8], row: &[u8]) -> i32 {
    query.iter().zip(row).map(|(&a, &b)| i32::from(a) * i32::from(b as i8)).sum()
}
