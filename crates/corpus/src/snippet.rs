//! The part of a passage that shows the match.

use std::ops::Range;

use tantivy::tokenizer::{TextAnalyzer, TokenStream};

use crate::schema::document_hash;

/// Bytes of the passage a quote shows at most.
const MAX_BYTES: usize = 500;
/// Words of context before the first match, where a sentence is too long to be shown whole.
const LEAD_WORDS: usize = 6;

/// A passage made ready to be quoted: on one line, its words known by the hash of their stem. Made
/// once for each passage that is ever shown, so that finding a match is a scan of integers.
pub(crate) struct Quotable {
    line: String,
    stems: Vec<u32>,
    /// Start and end of each word in `line`.
    spans: Vec<(u32, u32)>,
    /// Where each sentence begins in `line`.
    sentences: Vec<u32>,
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
        Self {
            sentences: sentence_starts(&line),
            line,
            stems,
            spans,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.line.len() + self.stems.len() * 12
    }

    /// The sentences with the most different words of the query. Only a sentence that is longer than
    /// a quote may be is cut, and shows by an ellipsis that it was.
    pub(crate) fn quote(&self, wanted: &[u32]) -> String {
        let line = self.line.as_str();
        if line.len() <= MAX_BYTES {
            return line.to_owned();
        }
        let match_at = self.best_first_match(&self.matches(wanted));
        match self.whole_sentences(match_at.map_or(0, |word| self.spans[word].0 as usize)) {
            Some(range) => line[range].trim().to_owned(),
            None => self.cut_sentence(match_at),
        }
    }

    /// Whether a quote cannot show all of it.
    pub(crate) fn is_cut(&self) -> bool {
        self.line.len() > MAX_BYTES
    }

    pub(crate) fn sentences(&self) -> impl Iterator<Item = &str> {
        let ends = self
            .sentences
            .iter()
            .skip(1)
            .map(|start| *start as usize)
            .chain([self.line.len()]);
        self.sentences
            .iter()
            .zip(ends)
            .map(|(start, end)| self.line[*start as usize..end].trim())
    }

    /// The sentence of this number, with as many around it as fit.
    pub(crate) fn quote_sentence(&self, number: usize) -> String {
        let start = self.sentences.get(number).map_or(0, |start| *start as usize);
        match self.whole_sentences(start) {
            Some(range) => self.line[range].trim().to_owned(),
            None => self.cut_sentence(Some(self.spans.partition_point(|span| (span.0 as usize) < start))),
        }
    }

    /// The sentence around `at`, then as many after it and before it as fit. `None` if not even the
    /// one does.
    fn whole_sentences(&self, at: usize) -> Option<Range<usize>> {
        let start_of = |sentence: usize| {
            let start = self.sentences.get(sentence);
            start.map_or(self.line.len(), |start| *start as usize)
        };
        let containing = self.sentences.partition_point(|start| *start as usize <= at) - 1;
        let (mut first, mut last) = (containing, containing);
        // The space after a sentence is not shown.
        let end_of = |last: usize| start_of(last + 1) - usize::from(last + 1 < self.sentences.len());
        let fits = |first: usize, last: usize| end_of(last) - start_of(first) <= MAX_BYTES;
        if !fits(first, last) {
            return None;
        }
        while last + 1 < self.sentences.len() && fits(first, last + 1) {
            last += 1;
        }
        while first > 0 && fits(first - 1, last) {
            first -= 1;
        }
        Some(start_of(first)..start_of(last + 1))
    }

    fn cut_sentence(&self, match_at: Option<usize>) -> String {
        // Room for an ellipsis on both sides.
        const MAX_CUT: usize = MAX_BYTES - 6;
        let line = self.line.as_str();
        let from = match_at.unwrap_or(0).saturating_sub(LEAD_WORDS);
        let start = if from == 0 { 0 } else { self.spans[from].0 as usize };
        let end = match line.len() - start {
            ..=MAX_CUT => line.len(),
            _ => word_floor(line, start, line.floor_char_boundary(start + MAX_CUT)),
        };
        let before = if start > 0 { "…" } else { "" };
        let after = if end < line.len() { "…" } else { "" };
        format!("{before}{}{after}", line[start..end].trim())
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

/// Where sentences begin. A full stop after a short title or a single letter ends none.
fn sentence_starts(line: &str) -> Vec<u32> {
    const TITLES: [&str; 14] = [
        "mr", "mrs", "ms", "dr", "hon", "sen", "prof", "st", "no", "vs", "p", "pp", "e.g", "i.e",
    ];
    let mut starts = vec![0];
    let mut from = 0;
    for (space, _) in line.match_indices(' ') {
        let word = line[from..space].trim_end_matches(['"', '\'', ')', ']', '”', '’', '*', '_']);
        from = space + 1;
        if !word.ends_with(['.', '!', '?', '。', '！', '？']) {
            continue;
        }
        let bare = word
            .trim_end_matches('.')
            .trim_start_matches(['(', '"', '“', '\'', '‘']);
        let is_abbreviation = word.ends_with('.')
            && (bare.chars().count() == 1 && bare.chars().all(char::is_uppercase)
                || TITLES.contains(&bare.to_lowercase().as_str()));
        if !is_abbreviation {
            starts.push(u32::try_from(from).unwrap_or(u32::MAX));
        }
    }
    starts
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
            assert!(shown.len() <= MAX_BYTES, "{}", shown.len());
        }
    }

    #[test]
    fn a_quote_is_whole_sentences() {
        let filler = "Nothing of note happens in this sentence at all. ".repeat(12);
        let text = format!("{filler}The hon. member and Mr. Walrus spoke. {filler}");
        let shown = snippet(&text, "walrus");
        assert!(
            shown.starts_with("Nothing") || shown.starts_with("The hon. member and Mr. Walrus"),
            "{shown}"
        );
        assert!(shown.ends_with("at all."), "{shown}");
        assert!(text.contains(&shown));
    }

    #[test]
    fn a_sentence_too_long_to_show_is_cut_around_the_match() {
        let text = format!("{}walrus {}", "and so on ".repeat(80), "and so forth ".repeat(80));
        let shown = snippet(&text, "walrus");
        assert!(
            shown.starts_with('…') && shown.ends_with('…') && shown.contains("walrus"),
            "{shown}"
        );
        assert!(shown.chars().count() <= MAX_BYTES);
    }

    proptest! {
        #[test]
        fn any_text_and_query_give_a_bounded_snippet(text in "(\\PC{0,10}[ .\\n]){0,120}", query in "\\PC{0,30}") {
            prop_assert!(snippet(&text, &query).len() <= MAX_BYTES);
        }
    }
}
