//! Vectors from a table: the mean of one row per token. Far faster than an encoder, and less accurate.

use std::borrow::Cow;

use sha2::{Digest, Sha256};

use crate::folder::short_hex;
use crate::sentence::normalise;
use crate::tokens::{BUILT_IN_TOKENIZER, Tokens};
use crate::weights::safetensors::SafeTensors;
use crate::weights::{ByteMatrix, Tensors};
use crate::{EmbedError, Embedder, Role};

/// Without attention the cost grows linearly, so that whole passages are embedded.
const MAX_TOKENS: usize = 4096;

/// A table with a row for each token of the built-in model's vocabulary.
pub struct StaticTable {
    name: String,
    fingerprint: String,
    tokens: Tokens,
    rows: ByteMatrix,
}

impl StaticTable {
    /// From a safetensors file with `rows` (I8, tokens × dimensions) and `rows.scale` (F32, one for each token), or
    /// `rows` in floats. Rows are already scaled by the weight of their token.
    pub fn parse(name: &str, table: Cow<'static, [u8]>) -> Result<Self, EmbedError> {
        let mut hash = Sha256::new();
        hash.update(BUILT_IN_TOKENIZER);
        hash.update(&table);
        let tokens = Tokens::parse(BUILT_IN_TOKENIZER, MAX_TOKENS)?;
        Self::assemble(name, short_hex(hash), tokens, table)
    }

    fn assemble(
        name: &str,
        fingerprint: String,
        tokens: Tokens,
        table: Cow<'static, [u8]>,
    ) -> Result<Self, EmbedError> {
        let rows = SafeTensors::parse(table)?.lookup("rows")?;
        let rows = rows.ok_or_else(|| EmbedError::model("the table has no rows"))?.into_bytes("rows")?;
        if rows.rows < tokens.vocabulary() {
            return Err(EmbedError::model(format!(
                "the table has {} rows for {} tokens; it belongs to another tokenizer",
                rows.rows,
                tokens.vocabulary()
            )));
        }
        Ok(Self { name: name.to_owned(), fingerprint, tokens, rows })
    }
}

impl Embedder for StaticTable {
    fn name(&self) -> &str {
        &self.name
    }

    fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    fn dimensions(&self) -> usize {
        self.rows.columns
    }

    /// With equal weights, results are worse than keyword search alone (docs/retrieval.md).
    fn weight(&self) -> f32 {
        0.3
    }

    /// A passage takes microseconds, so that small batches are not worth a thread switch.
    fn batch(&self) -> usize {
        256
    }

    /// A text without tokens has a zero vector, which matches nothing.
    fn embed(&self, _role: Role, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let width = self.rows.columns;
        let vector = |text: &&str| {
            let mut sum = vec![0.0; width];
            for id in self.tokens.encode_bare(text)? {
                let row = &self.rows.values[id as usize * width..][..width];
                let scale = self.rows.scales[id as usize];
                sum.iter_mut().zip(row).for_each(|(sum, &byte)| *sum += f32::from(byte as i8) * scale);
            }
            normalise(&mut sum)?;
            Ok(sum)
        };
        texts.iter().map(vector).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::weights::safetensors::tests::{Written, write};

    fn tokens() -> Tokens {
        Tokens::from_vocabulary("[UNK]\n[CLS]\n[SEP]\nwater\nprice\n", true, 64).expect("is a vocabulary")
    }

    fn table(rows: usize) -> Cow<'static, [u8]> {
        let bytes: Vec<u8> = [[0, 0], [9, 9], [9, 9], [3, 0], [0, 254]].iter().take(rows).flatten().copied().collect();
        Cow::Owned(write(&[
            Written::bytes("rows", &[rows, 2], &bytes),
            Written::floats("rows.scale", &[rows], &vec![0.5; rows]),
        ]))
    }

    #[test]
    fn vector_is_mean_of_token_rows() {
        let table = StaticTable::assemble("tiny", "f".into(), tokens(), table(5)).expect("is a table");
        assert_eq!(table.dimensions(), 2);
        let vectors = table.embed(Role::Query, &["Water", "water price", ""]).expect("embeds");
        assert_eq!(vectors[0], [1.0, 0.0]);
        let length = 13f32.sqrt();
        assert!((vectors[1][0] - 3.0 / length).abs() < 1e-6 && (vectors[1][1] + 2.0 / length).abs() < 1e-6);
        assert_eq!(vectors[2], [0.0, 0.0]);
    }

    #[test]
    fn table_of_another_vocabulary_is_refused() {
        let error = StaticTable::assemble("tiny", "f".into(), tokens(), table(4)).err().expect("is refused");
        assert!(error.to_string().contains("another tokenizer"), "{error}");
    }

    #[test]
    fn fingerprint_depends_on_the_table() {
        let big = |byte: u8| {
            Cow::Owned(write(&[
                Written::bytes("rows", &[30522, 1], &vec![byte; 30522]),
                Written::floats("rows.scale", &[30522], &vec![1.0; 30522]),
            ]))
        };
        let parse = |byte| StaticTable::parse("t", big(byte)).expect("is a table").fingerprint().to_owned();
        assert_ne!(parse(1), parse(2));
    }
}
