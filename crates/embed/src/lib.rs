//! Texts as vectors.
//!
//! - [`built_in`]: a sentence encoder that comes with the program;
//! - [`folder`]: any local sentence-transformer folder;
//! - [`StaticTable`]: vectors from a table alone;
//! - [`api`]: any embeddings endpoint;
//! - [`scan`]: the comparison of one vector with many.
//!
//! Within: [`bert`] is the encoder, [`simd`] its arithmetic, [`weights`] reads model files, [`tokens`] splits texts.

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

/// What a text is: some models want to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Query,
    Passage,
}

/// Something that makes vectors of texts.
pub trait Embedder: Send + Sync {
    /// For people.
    fn name(&self) -> &str;

    /// A short hexadecimal number that changes whenever vectors would.
    fn fingerprint(&self) -> &str;

    /// How many numbers a vector has.
    fn dimensions(&self) -> usize;

    /// How much its ranking counts beside full text, from 0 to 1.
    fn weight(&self) -> f32 {
        0.5
    }

    /// How many passages are best given at once.
    fn batch(&self) -> usize {
        8
    }

    /// One vector of unit length for each text, in order. Blocks, and may be called from several threads at once.
    fn embed(&self, role: Role, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError>;
}

/// Which instructions the arithmetic uses on this processor.
pub fn instructions() -> &'static str {
    simd::Level::best().name()
}
