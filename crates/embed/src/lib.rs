//! Models that turn text into vectors.
//!
//! - [`built_in`]: a sentence encoder that comes with the program;
//! - [`folder`]: any local sentence-transformer folder;
//! - [`StaticTable`]: vectors from a table alone;
//! - [`api`]: any embeddings endpoint;
//! - [`scan`]: the comparison of one vector with many.
//!
//! Within: [`bert`] is the encoder, [`simd`] its arithmetic, [`weights`] reads model files, [`tokens`] splits texts.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use the machine's clock"))]

pub mod api;
mod bert;
mod built_in;
mod error;
pub mod folder;
pub mod scan;
mod sentence;
mod simd;
mod static_table;
mod tokens;
mod weights;

pub use built_in::{built_in, static_table};
pub use error::EmbedError;
pub use sentence::Sentence;
pub use static_table::StaticTable;

/// Some models embed queries and passages differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Query,
    Passage,
}

/// A model that turns text into vectors.
pub trait Embedder: Send + Sync {
    /// The name that people see.
    fn name(&self) -> &str;

    /// A short hexadecimal id that changes whenever the vectors of the same texts change.
    fn fingerprint(&self) -> &str;

    fn dimensions(&self) -> usize;

    /// The weight of vector search in the fused ranking, from 0 to 1.
    fn weight(&self) -> f32 {
        0.5
    }

    /// The best number of passages per call.
    fn batch(&self) -> usize {
        8
    }

    /// Whether it waits for a network, so that it must not block a compute thread.
    fn is_remote(&self) -> bool {
        false
    }

    /// Returns one vector of unit length per text, in order. Blocks; may be called from several threads at once.
    fn embed(&self, role: Role, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError>;
}

/// The SIMD instructions in use on this processor.
pub fn instructions() -> &'static str {
    simd::Level::best().name()
}
