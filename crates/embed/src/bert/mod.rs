//! Encoders of the BERT family.
//!
//! - [`config`]: `config.json`, with the same names for each architecture;
//! - [`load`]: loads the weights;
//! - [`forward`]: the forward pass, from tokens to vectors;
//! - [`attention`]: the self-attention of a layer.

mod attention;
mod config;
mod forward;
mod load;

pub use config::Config;
pub use forward::Scratch;
pub use load::Encoder;

/// How the token vectors of a text become one vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pooling {
    Mean,
    /// The vector of the first token.
    First,
}
