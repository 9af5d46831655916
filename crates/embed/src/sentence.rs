//! A sentence encoder: tokens, encoder, pooling, and vectors of unit length.

use parking_lot::Mutex;

use crate::bert::{Encoder, Pooling, Scratch};
use crate::tokens::Tokens;
use crate::{EmbedError, Embedder, Role};

/// Tokens per pass through the encoder, unless one text has more: enough to share each read of the weights, few
/// enough that activations stay in the cache.
const PASS_TOKENS: usize = 256;
/// Scratch buffers kept for reuse.
const MAX_SCRATCH: usize = 16;

/// The prefixes that a model wants before queries and passages.
#[derive(Default, Clone, Debug, PartialEq, Eq)]
pub struct Prompts {
    pub query: String,
    pub passage: String,
}

/// A sentence transformer that runs in this process.
pub struct Sentence {
    pub(crate) name: String,
    pub(crate) fingerprint: String,
    pub(crate) tokens: Tokens,
    pub(crate) encoder: Encoder,
    pub(crate) pooling: Pooling,
    pub(crate) prompts: Prompts,
    pub(crate) scratch: Mutex<Vec<Scratch>>,
}

impl Embedder for Sentence {
    fn name(&self) -> &str {
        &self.name
    }

    fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    fn dimensions(&self) -> usize {
        self.encoder.hidden()
    }

    fn embed(&self, role: Role, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let prompt = match role {
            Role::Query => &self.prompts.query,
            Role::Passage => &self.prompts.passage,
        };
        let sequences = texts
            .iter()
            .map(|text| match prompt.as_str() {
                "" => self.ids(text),
                prompt => self.ids(&format!("{prompt}{text}")),
            })
            .collect::<Result<Vec<_>, _>>()?;
        let mut scratch = self.scratch.lock().pop().unwrap_or_default();
        let mut vectors = Vec::with_capacity(texts.len());
        for pass in passes(&sequences) {
            vectors.append(&mut self.encoder.run(&pass, self.pooling, &mut scratch));
        }
        let mut free = self.scratch.lock();
        if free.len() < MAX_SCRATCH {
            free.push(scratch);
        }
        drop(free);
        for vector in &mut vectors {
            normalise(vector)?;
        }
        Ok(vectors)
    }
}

impl Sentence {
    fn ids(&self, text: &str) -> Result<Vec<u32>, EmbedError> {
        let mut ids = self.tokens.encode(text)?;
        if ids.is_empty() {
            // A tokenizer without start and end tokens has no token for an empty text.
            ids.push(0);
        }
        match ids.iter().find(|&&id| id as usize >= self.encoder.vocabulary()) {
            Some(id) => Err(EmbedError::model(format!(
                "the tokenizer has token {id}, but the model only {} tokens; they belong to different models",
                self.encoder.vocabulary()
            ))),
            None => Ok(ids),
        }
    }
}

/// Groups consecutive sequences into passes of at most `PASS_TOKENS`.
fn passes(sequences: &[Vec<u32>]) -> Vec<Vec<&[u32]>> {
    let mut passes: Vec<Vec<&[u32]>> = Vec::new();
    let mut tokens = 0;
    for sequence in sequences {
        tokens += sequence.len();
        match passes.last_mut() {
            Some(pass) if tokens <= PASS_TOKENS => pass.push(sequence),
            _ => {
                tokens = sequence.len();
                passes.push(vec![sequence]);
            }
        }
    }
    passes
}

/// Scales a vector to unit length.
pub fn normalise(vector: &mut [f32]) -> Result<(), EmbedError> {
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    if !length.is_finite() {
        return Err(EmbedError::model("the model returns vectors with NaN or infinity; its weights are broken"));
    }
    if length > 0.0 {
        vector.iter_mut().for_each(|value| *value /= length);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_keep_order_and_stay_within_bounds() {
        let sequences: Vec<Vec<u32>> = [200, 56, 1, 300, 10, 10].iter().map(|&length| vec![7; length]).collect();
        let lengths: Vec<Vec<usize>> =
            passes(&sequences).iter().map(|pass| pass.iter().map(|sequence| sequence.len()).collect()).collect();
        assert_eq!(lengths, [vec![200, 56], vec![1], vec![300], vec![10, 10]]);
        assert!(passes(&[]).is_empty());
    }

    #[test]
    fn nan_vectors_are_refused() {
        assert!(normalise(&mut [f32::NAN, 1.0]).is_err());
        let mut vector = [3.0, 4.0];
        normalise(&mut vector).expect("is fine");
        assert_eq!(vector, [0.6, 0.8]);
    }
}
