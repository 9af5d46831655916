//! The arithmetic that costs time, in the best form the processor has.
//!
//! Everything here is a safe function that takes a [`Level`]; a level exists only where the processor has been found
//! to have it. Integer results are the same at every level, down to the bit.

mod elementwise;
mod linear;
mod matmul;
mod portable;
mod scan;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::sync::OnceLock;

pub use elementwise::{add_layer_norm, exp_rows, gelu, layer_norm, quantise};
pub use linear::{Activations, Weights, linear};
pub use matmul::{Matrix, matmul};
pub use scan::{Rows, dots};

/// Which instructions may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Level {
    pub const PORTABLE: Self = Self(Kind::Portable);

    /// The fastest this processor has.
    pub fn best() -> Self {
        static BEST: OnceLock<Level> = OnceLock::new();
        *BEST.get_or_init(|| Self::available().last().copied().unwrap_or(Self::PORTABLE))
    }

    /// All this processor has, the slowest first.
    pub fn available() -> Vec<Self> {
        #[allow(unused_mut, reason = "only x86 has more than one")]
        let mut levels = vec![Self::PORTABLE];
        #[cfg(target_arch = "x86_64")]
        {
            if x86::has_avx2() {
                levels.push(Self(Kind::Avx2));
            }
            if x86::has_avx512() {
                levels.push(Self(Kind::Avx512));
            }
        }
        levels
    }

    /// For people: which instructions these are.
    pub fn name(self) -> &'static str {
        match self.0 {
            Kind::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "AVX2",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => "AVX-512 VNNI",
        }
    }
}
