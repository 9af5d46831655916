//! Converts 16-bit floats to 32 bits.

/// IEEE 754 binary16.
pub fn from_f16(bits: u16) -> f32 {
    let sign = u32::from(bits >> 15) << 31;
    let exponent = u32::from(bits >> 10) & 0x1f;
    let fraction = u32::from(bits) & 0x3ff;
    match exponent {
        // Subnormal: the fraction in units of 2^-24.
        0 => {
            let value = fraction as f32 / 16_777_216.0;
            f32::from_bits(value.to_bits() | sign)
        }
        0x1f => f32::from_bits(sign | 0x7f80_0000 | (fraction << 13)),
        _ => f32::from_bits(sign | ((exponent + 112) << 23) | (fraction << 13)),
    }
}

/// The upper half of a 32-bit float.
pub fn from_bf16(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values_widen() {
        for (bits, value) in [
            (0x0000, 0.0),
            (0x8000, -0.0),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x3555, 0.333_251_95),
            (0x7bff, 65504.0),
            (0x0001, 5.960_464_5e-8),
            (0x03ff, 6.097_555e-5),
            (0x0400, 6.103_515_6e-5),
            (0x7c00, f32::INFINITY),
        ] {
            assert_eq!(from_f16(bits).to_bits(), f32::to_bits(value), "{bits:#x}");
        }
        assert!(from_f16(0x7e00).is_nan());
        assert_eq!(from_bf16(0x3fc0), 1.5);
    }
}
