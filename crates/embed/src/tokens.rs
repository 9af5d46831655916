//! Splits texts into token ids.

use serde_json::json;
use tokenizers::{Tokenizer, TruncationParams};

use crate::EmbedError;

/// The tokenizer of the built-in models.
pub(crate) static BUILT_IN_TOKENIZER: &[u8] =
    include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/all-MiniLM-L6-v2/tokenizer.json"));

/// Texts are truncated to this many bytes per token before tokenising: tokens are shorter in every vocabulary.
const MAX_BYTES_PER_TOKEN: usize = 64;

pub struct Tokens {
    tokenizer: Tokenizer,
    max_tokens: usize,
}

impl Tokens {
    /// From `tokenizer.json`.
    pub fn parse(json: &[u8], max_tokens: usize) -> Result<Self, EmbedError> {
        let tokenizer = Tokenizer::from_bytes(json)
            .map_err(|error| EmbedError::model(format!("tokenizer.json cannot be used: {error}")))?;
        Self::bounded(tokenizer, max_tokens)
    }

    /// From `vocab.txt`, which has one word piece per line.
    pub fn from_vocabulary(lines: &str, lowercase: bool, max_tokens: usize) -> Result<Self, EmbedError> {
        let vocabulary: serde_json::Map<_, _> =
            (0u32..).zip(lines.lines()).map(|(id, line)| (line.to_owned(), json!(id))).collect();
        let id = |token: &str| {
            let id = vocabulary.get(token).cloned();
            id.ok_or_else(|| EmbedError::model(format!("vocab.txt cannot be used: it has no {token}")))
        };
        let (start, end, unknown) = (id("[CLS]")?, id("[SEP]")?, id("[UNK]")?);
        let special = |token: &str, id: &serde_json::Value| {
            json!({ "id": id, "content": token, "special": true, "single_word": false, "lstrip": false,
                    "rstrip": false, "normalized": false })
        };
        let json = json!({
            "version": "1.0",
            "added_tokens": [special("[UNK]", &unknown), special("[CLS]", &start), special("[SEP]", &end)],
            "normalizer": { "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                            "strip_accents": null, "lowercase": lowercase },
            "pre_tokenizer": { "type": "BertPreTokenizer" },
            "post_processor": { "type": "BertProcessing", "sep": ["[SEP]", end], "cls": ["[CLS]", start] },
            "model": { "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                       "max_input_chars_per_word": 100, "vocab": vocabulary },
        });
        Self::parse(json.to_string().as_bytes(), max_tokens)
    }

    fn bounded(mut tokenizer: Tokenizer, max_tokens: usize) -> Result<Self, EmbedError> {
        let truncation = TruncationParams { max_length: max_tokens, ..TruncationParams::default() };
        tokenizer
            .with_truncation(Some(truncation))
            .map_err(|error| EmbedError::model(format!("texts cannot be truncated to {max_tokens} tokens: {error}")))?;
        tokenizer.with_padding(None);
        Ok(Self { tokenizer, max_tokens })
    }

    /// The ids of a text with start and end tokens, truncated to `max_tokens`.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, EmbedError> {
        self.ids(text, true)
    }

    /// The ids of a text without start and end tokens.
    pub fn encode_bare(&self, text: &str) -> Result<Vec<u32>, EmbedError> {
        self.ids(text, false)
    }

    fn ids(&self, text: &str, add_special_tokens: bool) -> Result<Vec<u32>, EmbedError> {
        let text = &text[..text.floor_char_boundary(self.max_tokens.saturating_mul(MAX_BYTES_PER_TOKEN))];
        let encoding = self
            .tokenizer
            .encode_fast(text, add_special_tokens)
            .map_err(|error| EmbedError::model(format!("a text could not be split into tokens: {error}")))?;
        Ok(encoding.get_ids().to_vec())
    }

    /// The greatest token id plus one.
    pub fn vocabulary(&self) -> usize {
        let greatest = self.tokenizer.get_vocab(true).into_values().max();
        greatest.map_or(0, |id| id as usize + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vocabulary_becomes_a_tokenizer() {
        let tokens = Tokens::from_vocabulary("[UNK]\n[CLS]\n[SEP]\nhouse\n##s\nof\n", true, 5).expect("is one");
        assert_eq!(tokens.encode("Houses OF x").expect("splits"), [1, 3, 4, 5, 2]);
        assert_eq!(tokens.encode("").expect("splits"), [1, 2]);
        assert_eq!(tokens.encode_bare("of house").expect("splits"), [5, 3]);
        assert_eq!(tokens.vocabulary(), 6);
    }

    #[test]
    fn truncation_keeps_start_and_end() {
        let tokens = Tokens::from_vocabulary("[UNK]\n[CLS]\n[SEP]\na\n", true, 4).expect("is one");
        assert_eq!(tokens.encode(&"a ".repeat(100_000)).expect("splits"), [1, 3, 3, 2]);
        assert_eq!(tokens.encode(&"漢".repeat(100_000)).expect("splits"), [1, 0, 0, 2]);
    }

    #[test]
    fn broken_files_are_refused() {
        assert!(Tokens::parse(b"{}", 8).is_err());
        let error = Tokens::from_vocabulary("[UNK]\na\n", true, 8).err().expect("is refused").to_string();
        assert!(error.contains("[CLS]"), "{error}");
    }
}
