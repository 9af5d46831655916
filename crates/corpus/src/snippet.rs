//! The part of a passage that shows the match.

use std::ops::Range;

use tantivy::tokenizer::{TextAnalyzer, TokenStream};

use crate::schema::document_hash;

/// Bytes of the passage a snippet shows at most.
const MAX_BYTES: usize = 300;
/// Words of context before the first match.
const LEAD_TOKENS: usize = 6;

/// A passage's words by the hash of their stem, made once for each passage that is ever shown, so
/// that finding the match is a scan of integers.
pub(crate) struct Tokens(Vec<Token>);

struct Token {
    stem: u64,
    start: u32,
    end: u32,
}

impl Tokens {
    pub(crate) fn of(text: &str, analyzer: &mut TextAnalyzer) -> Self {
        let mut tokens = Vec::with_capacity(text.len() / 6);
        let mut stream = analyzer.token_stream(text);
        while let Some(token) = stream.next() {
            tokens.push(Token {
                stem: document_hash(&token.text),
                start: u32::try_from(token.offset_from).unwrap_or(u32::MAX),
                end: u32::try_from(token.offset_to).unwrap_or(u32::MAX),
            });
        }
        Self(tokens)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.0.len() * size_of::<Token>()
    }
}

/// The stems a query looks for, hashed like a passage's.
pub(crate) fn stems<'a>(words: impl Iterator<Item = &'a str>) -> Vec<u64> {
    let mut stems: Vec<u64> = words.map(document_hash).collect();
    stems.sort_unstable();
    stems.dedup();
    stems
}

/// The stretch of `text` with the most different words of the query, on one line.
pub(crate) fn cut(text: &str, tokens: &Tokens, wanted: &[u64]) -> String {
    let range = best_range(text, &tokens.0, wanted);
    let mut snippet = String::with_capacity(MAX_BYTES + 8);
    if text[..range.start].contains(|c: char| !c.is_whitespace()) {
        snippet.push('…');
    }
    let mut space = false;
    for word in text[range.clone()].split_whitespace() {
        if space {
            snippet.push(' ');
        }
        snippet.push_str(word);
        space = true;
    }
    if text[range.end..].contains(|c: char| !c.is_whitespace()) {
        snippet.push('…');
    }
    snippet
}

fn best_range(text: &str, tokens: &[Token], wanted: &[u64]) -> Range<usize> {
    if text.len() <= MAX_BYTES {
        return 0..text.len();
    }
    let matches: Vec<usize> = (0..tokens.len())
        .filter(|&at| wanted.binary_search(&tokens[at].stem).is_ok())
        .collect();
    let Some(&first) = best_first_match(tokens, &matches) else {
        return 0..char_floor(text, MAX_BYTES);
    };
    // Room to read: begin some words before the match, at a sentence's start if one is that near.
    let lead = first.saturating_sub(LEAD_TOKENS);
    let begins_sentence = |&at: &usize| {
        at == 0 || text[tokens[at - 1].end as usize..tokens[at].start as usize].contains(['.', '!', '?', '\n'])
    };
    let from = (lead.saturating_sub(LEAD_TOKENS)..=first)
        .find(begins_sentence)
        .unwrap_or(lead);
    let start = if from == 0 { 0 } else { tokens[from].start as usize };
    let end = char_floor(text, start + MAX_BYTES);
    // Near the end of the passage, show more of what comes before instead of a short snippet.
    let start = if end == text.len() {
        word_ceiling(text, end.saturating_sub(MAX_BYTES)).min(start)
    } else {
        start
    };
    start..if end == text.len() {
        end
    } else {
        word_floor(text, start, end)
    }
}

/// The match from which a snippet's length holds the most different words.
fn best_first_match<'a>(tokens: &[Token], matches: &'a [usize]) -> Option<&'a usize> {
    let mut best: Option<(&usize, usize)> = None;
    let mut seen: Vec<u64> = Vec::new();
    for (nth, first) in matches.iter().enumerate() {
        let reach = tokens[*first].start as usize + MAX_BYTES * 3 / 4;
        seen.clear();
        for at in &matches[nth..] {
            if tokens[*at].end as usize > reach {
                break;
            }
            if !seen.contains(&tokens[*at].stem) {
                seen.push(tokens[*at].stem);
            }
        }
        if best.is_none_or(|(_, most)| seen.len() > most) {
            best = Some((first, seen.len()));
        }
    }
    best.map(|(first, _)| first)
}

fn char_floor(text: &str, at: usize) -> usize {
    text.floor_char_boundary(at.min(text.len()))
}

fn word_floor(text: &str, start: usize, end: usize) -> usize {
    match text[start..end].rfind(char::is_whitespace) {
        Some(space) if space > 0 => start + space,
        _ => end,
    }
}

fn word_ceiling(text: &str, at: usize) -> usize {
    let at = text.ceil_char_boundary(at);
    match text[at..].find(char::is_whitespace) {
        Some(space) if at > 0 => at + space,
        _ => at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::analyzer;
    use proptest::prelude::*;

    fn snippet(text: &str, query: &str) -> String {
        let mut analyzer = analyzer();
        let tokens = Tokens::of(text, &mut analyzer);
        let mut words = Vec::new();
        analyzer
            .token_stream(query)
            .process(&mut |token| words.push(token.text.clone()));
        cut(text, &tokens, &stems(words.iter().map(String::as_str)))
    }

    #[test]
    fn a_short_passage_is_shown_whole_on_one_line() {
        assert_eq!(snippet("Beans\n\n grow.", "bean"), "Beans grow.");
    }

    #[test]
    fn the_match_is_in_the_snippet_wherever_it_stands() {
        let filler = "Nothing of note happens in this sentence at all. ".repeat(12);
        for text in [
            format!("{filler}The walruses were counted twice. {filler}"),
            format!("{filler}{filler}At last a walrus"),
            format!("Walrus first. {filler}"),
        ] {
            let shown = snippet(&text, "walruses");
            assert!(shown.to_lowercase().contains("walrus"), "{shown}");
            assert!(shown.chars().count() <= MAX_BYTES + 2, "{}", shown.len());
        }
    }

    proptest! {
        #[test]
        fn any_text_and_query_give_a_bounded_snippet(text in "(\\PC{0,10}[ .\\n]){0,120}", query in "\\PC{0,30}") {
            prop_assert!(snippet(&text, &query).chars().count() <= MAX_BYTES + 2);
        }
    }
}
