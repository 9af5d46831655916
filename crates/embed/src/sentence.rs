//! A sentence encoder: tokens, encoder, pooling, and vectors of unit length.

use std::sync::{Mutex, PoisonError};

use crate::bert::{Encoder, Pooling, Scratch};
use crate::tokens::Tokens;
use crate::{EmbedError, Embedder, Role};

/// Tokens that go through the encoder in one pass, if one text has not more: enough that weights are read once for
/// many, few enough that what lies between the layers stays near.
const PASS_TOKENS: usize = 256;
/// Arrays of so many passes at a time are kept for later ones.
const KEPT_SCRATCH: usize = 16;

/// What stands before a text, by what it is for.
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
        let mut scratch = self.lock().pop().unwrap_or_default();
        let mut vectors = Vec::with_capacity(texts.len());
        for pass in passes(&sequences) {
            vectors.append(&mut self.encoder.run(&pass, self.pooling, &mut scratch));
        }
        let mut kept = self.lock();
        if kept.len() < KEPT_SCRATCH {
            kept.push(scratch);
        }
        drop(kept);
        for vector in &mut vectors {
            normalise(vector)?;
        }
        Ok(vectors)
    }
}

impl Sentence {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Scratch>> {
        self.scratch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ids(&self, text: &str) -> Result<Vec<u32>, EmbedError> {
        let mut ids = self.tokens.encode(text)?;
        if ids.is_empty() {
            // A tokenizer without start and end tokens gives nothing for an empty text.
            ids.push(0);
        }
        match ids.iter().find(|&&id| id as usize >= self.encoder.vocabulary()) {
            Some(id) => Err(EmbedError::model(format!(
                "the tokenizer knows token {id}, the model only {}; their files do not belong together",
                self.encoder.vocabulary()
            ))),
            None => Ok(ids),
        }
    }
}

/// Sequences in their order, in groups of about as many tokens as a pass takes.
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

/// To unit length.
pub fn normalise(vector: &mut [f32]) -> Result<(), EmbedError> {
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    if !length.is_finite() {
        return Err(EmbedError::model(
            "the model gives vectors that are no numbers; its weights are broken",
        ));
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
        let sequences: Vec<Vec<u32>> = [200, 56, 1, 300, 10, 10]
            .iter()
            .map(|&length| vec![7; length])
            .collect();
        let lengths: Vec<Vec<usize>> = passes(&sequences)
            .iter()
            .map(|pass| pass.iter().map(|sequence| sequence.len()).collect())
            .collect();
        assert_eq!(lengths, [vec![200, 56], vec![1], vec![300], vec![10, 10]]);
        assert!(passes(&[]).is_empty());
    }

    #[test]
    fn numbers_that_are_none_are_refused() {
        assert!(normalise(&mut [f32::NAN, 1.0]).is_err());
        let mut vector = [3.0, 4.0];
        normalise(&mut vector).expect("is fine");
        assert_eq!(vector, [0.6, 0.8]);
    }
}
