//! Converts 16-bit floats to 32 bits.

/// IEEE 754 binary16.
pub fn from_f16(bits: u16) -> f32 {
    const INFINITY: u32 = 0x0f80_0000;
    const TWO_TO_THE_112: f32 = f32::from_bits(0x7780_0000);
    let magnitude = match u32::from(bits & 0x7fff) << 13 {
        infinite @ INFINITY.. => f32::from_bits(infinite | f32::INFINITY.to_bits()),
        // The exponent counts from another zero; that of subnormal numbers too.
        finite => f32::from_bits(finite) * TWO_TO_THE_112,
    };
    f32::from_bits(magnitude.to_bits() | u32::from(bits >> 15) << 31)
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
