//! The hot loops, with the best instructions of the processor.
//!
//! All functions are safe and take a [`Level`], which exists only if the processor supports it. Integer results are
//! identical at every level.

mod elementwise;
mod linear;
mod matmul;
mod portable;
mod scan;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::sync::OnceLock;

pub use elementwise::{Norm, add_layer_norm, exp_rows, gelu, layer_norm, quantise};
pub use linear::{Activations, Weights, linear};
pub use matmul::{Matrix, matmul};
pub use scan::{Rows, dots};

/// An instruction set that this processor supports.
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

    /// The fastest level of this processor.
    pub fn best() -> Self {
        static BEST: OnceLock<Level> = OnceLock::new();
        *BEST.get_or_init(|| Self::available().last().copied().unwrap_or(Self::PORTABLE))
    }

    /// All levels of this processor, slowest first.
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

    /// The name that people see.
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
