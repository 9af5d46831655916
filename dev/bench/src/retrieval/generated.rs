//! Generated vectors, because embedding a million passages takes hours.

use std::sync::Arc;

use tribune_embed::{EmbedError, Embedder, Role};

use crate::words::Rng;

const DIMENSIONS: usize = 384;
/// Vectors are clustered, as in a real corpus.
const CENTRES: usize = 4_096;

/// Passages get a random vector near a centre chosen by their text. Questions are embedded by the built-in model if there
/// is one, so that a search costs what it really costs.
pub struct Generated {
    centres: Vec<f32>,
    model: Option<Arc<dyn Embedder>>,
}

impl Generated {
    pub fn new() -> Self {
        let mut rng = Rng::new(1);
        Self { centres: (0..CENTRES * DIMENSIONS).map(|_| signed(rng.next() as u8)).collect(), model: model() }
    }

    fn passage(&self, text: &str) -> Vec<f32> {
        let hash = text
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        let mut rng = Rng::new(hash);
        let centre = rng.below(CENTRES) * DIMENSIONS;
        let mut vector = self.centres[centre..centre + DIMENSIONS].to_vec();
        for part in vector.chunks_mut(8) {
            for (value, noise) in part.iter_mut().zip(rng.next().to_le_bytes()) {
                *value += signed(noise);
            }
        }
        let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
        vector.iter_mut().for_each(|value| *value /= length);
        vector
    }
}

/// The built-in model, if these vectors can replace its own.
pub fn model() -> Option<Arc<dyn Embedder>> {
    tribune_embed::built_in().ok().filter(|model| model.dimensions() == DIMENSIONS)
}

impl Embedder for Generated {
    fn name(&self) -> &str {
        "generated vectors"
    }

    /// The model's fingerprint, so that a server accepts the vectors.
    fn fingerprint(&self) -> &str {
        self.model.as_ref().map_or("generated", |model| model.fingerprint())
    }

    fn dimensions(&self) -> usize {
        DIMENSIONS
    }

    fn batch(&self) -> usize {
        256
    }

    fn embed(&self, role: Role, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        match (role, &self.model) {
            (Role::Query, Some(model)) => model.embed(role, texts),
            _ => Ok(texts.iter().map(|text| self.passage(text)).collect()),
        }
    }
}

fn signed(byte: u8) -> f32 {
    f32::from(byte.cast_signed()) / 128.0
}
