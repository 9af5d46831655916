//! Quantises floats to int8 with one scale per row.

/// Candidate ranges relative to the greatest value: clipping outliers makes all other values more precise.
const RANGES: [f32; 8] = [1.0, 0.97, 0.94, 0.91, 0.88, 0.85, 0.81, 0.77];

/// Returns int8 values and one scale per row of `width` values.
pub fn rows(values: &[f32], width: usize) -> (Vec<u8>, Vec<f32>) {
    let mut bytes = Vec::with_capacity(values.len());
    let mut scales = Vec::with_capacity(values.len() / width);
    for row in values.chunks_exact(width) {
        let scale = best_scale(row);
        let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
        bytes.extend(row.iter().map(|value| rounded(value * inverse) as i8 as u8));
        scales.push(scale);
    }
    (bytes, scales)
}

/// The scale with the smallest squared error.
fn best_scale(row: &[f32]) -> f32 {
    let greatest = row.iter().fold(0.0f32, |greatest, value| greatest.max(value.abs()));
    if greatest == 0.0 || !greatest.is_finite() {
        return 0.0;
    }
    let mut best = (f32::INFINITY, 0.0);
    for range in RANGES {
        let scale = greatest * range / 127.0;
        let inverse = 1.0 / scale;
        let error: f32 = row.iter().map(|value| (rounded(value * inverse) * scale - value).powi(2)).sum();
        if error < best.0 {
            best = (error, scale);
        }
    }
    best.1
}

/// Rounds to an integer within int8, by adding a number so large that no fraction remains: `f32::round` is a library
/// call on processors without a rounding instruction.
fn rounded(value: f32) -> f32 {
    const NO_FRACTION: f32 = 12_582_912.0; // 1.5 · 2^23
    value.clamp(-127.0, 127.0) + NO_FRACTION - NO_FRACTION
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantised_rows_are_within_a_step() {
        let values = [0.5, -0.25, 0.125, 1.0, 0.0, 0.0, 0.0, 0.0];
        let (bytes, scales) = rows(&values, 4);
        for (at, value) in values.iter().enumerate() {
            let back = f32::from(bytes[at] as i8) * scales[at / 4];
            assert!((back - value).abs() < 0.01, "{value} became {back}");
        }
        assert_eq!(scales[1], 0.0);
    }

    #[test]
    fn outlier_is_clipped_for_precision() {
        let mut row: Vec<f32> = (0..8000).map(|at| at as f32 / 16_000.0).collect();
        row[0] = 1.0;
        let (_, scales) = rows(&row, 8000);
        assert!(scales[0] < 1.0 / 127.0);
    }
}
