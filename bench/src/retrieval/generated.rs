//! Vectors as a model would make them, without the hours that a million of them take.

use std::sync::Arc;

use tribune_embed::{EmbedError, Embedder, Role};

use crate::words::Rng;

const DIMENSIONS: usize = 384;
/// Texts lie in clusters, as those of a real corpus do.
const CENTRES: usize = 4_096;

/// Passages get a random vector near one of the centres, chosen by their text. Questions go through
/// the model that is built in, where there is one: what a search costs is then what it costs.
pub struct Generated {
    centres: Vec<f32>,
    model: Option<Arc<dyn Embedder>>,
}

impl Generated {
    pub fn new() -> Self {
        let mut rng = Rng::new(1);
        Self {
            centres: (0..CENTRES * DIMENSIONS).map(|_| signed(rng.next() as u8)).collect(),
            model: model(),
        }
    }

    fn passage(&self, text: &str) -> Vec<f32> {
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
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

/// The built-in model, if this build has one that these vectors can stand in for.
pub fn model() -> Option<Arc<dyn Embedder>> {
    tribune_embed::built_in()
        .ok()
        .filter(|model| model.dimensions() == DIMENSIONS)
}

impl Embedder for Generated {
    fn name(&self) -> &str {
        "generated vectors"
    }

    /// The model's own: a server takes the vectors for that model's, and can be measured with them.
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
