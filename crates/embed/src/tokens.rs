//! Texts as token ids.

use serde_json::json;
use tokenizers::{Tokenizer, TruncationParams};

use crate::EmbedError;

/// No text is looked at beyond so many bytes for each token it may have: even words of another kind than the
/// vocabulary's are shorter.
const MAX_BYTES_PER_TOKEN: usize = 64;

pub struct Tokens {
    tokenizer: Tokenizer,
    longest: usize,
}

impl Tokens {
    /// From `tokenizer.json`.
    pub fn parse(json: &[u8], longest: usize) -> Result<Self, EmbedError> {
        let tokenizer = Tokenizer::from_bytes(json)
            .map_err(|error| EmbedError::model(format!("tokenizer.json cannot be used: {error}")))?;
        Self::bounded(tokenizer, longest)
    }

    /// From `vocab.txt`, which has one word piece in a line.
    pub fn from_vocabulary(lines: &str, lowercase: bool, longest: usize) -> Result<Self, EmbedError> {
        let vocabulary: serde_json::Map<_, _> = (0u32..)
            .zip(lines.lines())
            .map(|(id, line)| (line.to_owned(), json!(id)))
            .collect();
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
        Self::parse(json.to_string().as_bytes(), longest)
    }

    fn bounded(mut tokenizer: Tokenizer, longest: usize) -> Result<Self, EmbedError> {
        let truncation = TruncationParams {
            max_length: longest,
            ..TruncationParams::default()
        };
        tokenizer
            .with_truncation(Some(truncation))
            .map_err(|error| EmbedError::model(format!("texts cannot be cut to {longest} tokens: {error}")))?;
        tokenizer.with_padding(None);
        Ok(Self { tokenizer, longest })
    }

    /// The ids of a text, with what the model wants before and after it, cut to the longest it takes.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, EmbedError> {
        self.ids(text, true)
    }

    /// The ids of a text alone.
    pub fn encode_bare(&self, text: &str) -> Result<Vec<u32>, EmbedError> {
        self.ids(text, false)
    }

    fn ids(&self, text: &str, framed: bool) -> Result<Vec<u32>, EmbedError> {
        let text = &text[..text.floor_char_boundary(self.longest.saturating_mul(MAX_BYTES_PER_TOKEN))];
        let encoding = self
            .tokenizer
            .encode_fast(text, framed)
            .map_err(|error| EmbedError::model(format!("a text could not be split into tokens: {error}")))?;
        Ok(encoding.get_ids().to_vec())
    }

    /// One more than the greatest id there is.
    pub fn vocabulary(&self) -> usize {
        let greatest = self.tokenizer.get_vocab(true).into_values().max();
        greatest.map_or(0, |id| id as usize + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vocabulary_is_a_tokenizer() {
        let tokens = Tokens::from_vocabulary("[UNK]\n[CLS]\n[SEP]\nhouse\n##s\nof\n", true, 5).expect("is one");
        assert_eq!(tokens.encode("Houses OF x").expect("splits"), [1, 3, 4, 5, 2]);
        assert_eq!(tokens.encode("").expect("splits"), [1, 2]);
        assert_eq!(tokens.encode_bare("of house").expect("splits"), [5, 3]);
        assert_eq!(tokens.vocabulary(), 6);
    }

    #[test]
    fn cutting_keeps_start_and_end() {
        let tokens = Tokens::from_vocabulary("[UNK]\n[CLS]\n[SEP]\na\n", true, 4).expect("is one");
        assert_eq!(tokens.encode(&"a ".repeat(100_000)).expect("splits"), [1, 3, 3, 2]);
        assert_eq!(tokens.encode(&"漢".repeat(100_000)).expect("splits"), [1, 0, 0, 2]);
    }

    #[test]
    fn broken_files_are_refused() {
        assert!(Tokens::parse(b"{}", 8).is_err());
        let error = Tokens::from_vocabulary("[UNK]\na\n", true, 8)
            .err()
            .expect("is refused")
            .to_string();
        assert!(error.contains("[CLS]"), "{error}");
    }
}
