//! The part of a passage that shows the match.

use std::ops::Range;

use tantivy::tokenizer::{TextAnalyzer, TokenStream};

use crate::schema::document_hash;

/// Bytes of the passage a snippet shows at most.
const MAX_BYTES: usize = 300;
/// Words of context before the first match.
const LEAD_WORDS: usize = 6;

/// A passage made ready to be quoted: on one line, its words known by the hash of their stem. Made
/// once for each passage that is ever shown, so that finding a match is a scan of integers.
pub(crate) struct Quotable {
    line: String,
    stems: Vec<u32>,
    /// Start and end of each word in `line`.
    spans: Vec<(u32, u32)>,
}

impl Quotable {
    pub(crate) fn of(text: &str, analyzer: &mut TextAnalyzer) -> Self {
        let mut line = String::with_capacity(text.len());
        for word in text.split_whitespace() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        let mut stems = Vec::with_capacity(line.len() / 6);
        let mut spans = Vec::with_capacity(line.len() / 6);
        let mut stream = analyzer.token_stream(&line);
        let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        while let Some(token) = stream.next() {
            stems.push(stem(&token.text));
            spans.push((offset(token.offset_from), offset(token.offset_to)));
        }
        drop(stream);
        Self { line, stems, spans }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.line.len() + self.stems.len() * 12
    }

    /// The stretch with the most different words of the query.
    pub(crate) fn quote(&self, wanted: &[u32]) -> String {
        let range = self.best_range(wanted);
        let mut quote = String::with_capacity(range.len() + 6);
        if range.start > 0 {
            quote.push('…');
        }
        quote.push_str(self.line[range.clone()].trim());
        if range.end < self.line.len() {
            quote.push('…');
        }
        quote
    }

    fn best_range(&self, wanted: &[u32]) -> Range<usize> {
        let line = self.line.as_str();
        if line.len() <= MAX_BYTES {
            return 0..line.len();
        }
        let Some(first) = self.best_first_match(&self.matches(wanted)) else {
            return 0..word_floor(line, 0, line.floor_char_boundary(MAX_BYTES));
        };
        // Room to read: begin some words before the match, at a sentence's start if one is that near.
        let lead = first.saturating_sub(LEAD_WORDS);
        let begins_sentence = |&at: &usize| {
            at == 0 || line[self.spans[at - 1].1 as usize..self.spans[at].0 as usize].contains(['.', '!', '?'])
        };
        let from = (lead.saturating_sub(LEAD_WORDS)..=first)
            .find(begins_sentence)
            .unwrap_or(lead);
        let start = if from == 0 { 0 } else { self.spans[from].0 as usize };
        if line.len() - start <= MAX_BYTES {
            // Near the end, show more of what comes before instead of a short quote.
            return word_ceiling(line, line.len() - MAX_BYTES).min(start)..line.len();
        }
        start..word_floor(line, start, line.floor_char_boundary(start + MAX_BYTES))
    }

    /// Which share of the wanted words stands here or in `title`.
    pub(crate) fn coverage(&self, title: &[u32], wanted: &[u32]) -> f32 {
        if wanted.is_empty() {
            return 0.0;
        }
        let found = wanted
            .iter()
            .filter(|stem| holds(&self.stems, **stem) || title.contains(stem))
            .count();
        found as f32 / wanted.len() as f32
    }

    /// Which words are wanted. Most are not: whole runs are compared at once and passed over.
    fn matches(&self, wanted: &[u32]) -> Vec<usize> {
        const RUN: usize = 32;
        let mut matches = Vec::new();
        for (number, run) in self.stems.chunks(RUN).enumerate() {
            if wanted.iter().any(|word| holds(run, *word)) {
                let wanted_here = run.iter().enumerate().filter(|(_, stem)| wanted.contains(stem));
                matches.extend(wanted_here.map(|(at, _)| number * RUN + at));
            }
        }
        matches
    }

    /// The match from which a quote's length holds the most different words.
    fn best_first_match(&self, matches: &[usize]) -> Option<usize> {
        let mut best: Option<(usize, usize)> = None;
        let mut seen: Vec<u32> = Vec::new();
        for (nth, &first) in matches.iter().enumerate() {
            let reach = self.spans[first].0 as usize + MAX_BYTES * 3 / 4;
            seen.clear();
            for &at in &matches[nth..] {
                if self.spans[at].1 as usize > reach {
                    break;
                }
                if !seen.contains(&self.stems[at]) {
                    seen.push(self.stems[at]);
                }
            }
            if best.is_none_or(|(_, most)| seen.len() > most) {
                best = Some((first, seen.len()));
            }
        }
        best.map(|(first, _)| first)
    }
}

/// Looks at all of them without stopping, which compiles to a few wide comparisons.
fn holds(stems: &[u32], word: u32) -> bool {
    stems.iter().fold(false, |found, stem| found | (*stem == word))
}

/// A stem as passages and queries compare it. A collision shows a wrong word in a quote, no more.
fn stem(word: &str) -> u32 {
    let hash = document_hash(word);
    (hash ^ (hash >> 32)) as u32
}

/// The stems a query looks for.
pub(crate) fn stems<'a>(words: impl Iterator<Item = &'a str>) -> Vec<u32> {
    let mut stems: Vec<u32> = words.map(stem).collect();
    stems.sort_unstable();
    stems.dedup();
    stems
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
        let quotable = Quotable::of(text, &mut analyzer);
        let mut words = Vec::new();
        analyzer
            .token_stream(query)
            .process(&mut |token| words.push(token.text.clone()));
        quotable.quote(&stems(words.iter().map(String::as_str)))
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
