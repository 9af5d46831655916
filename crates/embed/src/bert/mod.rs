//! Encoders of the BERT family.
//!
//! - [`config`]: what `config.json` says, for each architecture under the same names;
//! - [`load`]: the encoder, from its tensors;
//! - [`forward`]: tokens to vectors;
//! - [`attention`]: the part of it in which tokens meet.

mod attention;
mod config;
mod forward;
mod load;

pub use config::Config;
pub use forward::Scratch;
pub use load::Encoder;

/// How the vectors of a text's tokens become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pooling {
    Mean,
    /// The vector of the first token.
    First,
}
