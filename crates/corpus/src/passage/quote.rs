//! Chooses the sentences of a passage that show the match.

use std::ops::Range;

use crate::hash;

/// Splits text into the words that an engine compares.
pub trait Words {
    /// Calls back with each word in its compared form and its range in the text.
    fn each(&mut self, text: &str, word: &mut dyn FnMut(&str, Range<usize>));

    /// The same with the stem of each word, which an engine may know without making the word's compared form.
    fn each_stem(&mut self, text: &str, stem: &mut dyn FnMut(Stem, Range<usize>)) {
        self.each(text, &mut |word, span| stem(stem_of(word), span));
    }
}

/// The hash of a word in its compared form. A collision only shows a wrong word in a quote.
pub type Stem = u32;

pub(crate) fn stem_of(word: &str) -> Stem {
    let hash = hash::stable(word);
    (hash ^ (hash >> 32)) as Stem
}

/// The maximum bytes of a quote.
const MAX_BYTES: usize = 500;
/// Words of context before the first match, if the sentence is too long to show.
const LEAD_WORDS: usize = 6;

/// A passage prepared for quoting: on one line, with the hash of each word's stem. Prepared once per passage, so that
/// finding matches only scans integers.
pub struct Quotable {
    line: String,
    stems: Vec<u32>,
    /// Start and end of each word in `line`.
    spans: Vec<(u32, u32)>,
    /// Where each sentence begins in `line`.
    sentences: Vec<u32>,
}

impl Quotable {
    pub fn new(text: &str, words: &mut dyn Words) -> Self {
        let mut line = String::with_capacity(text.len());
        for word in text.split_whitespace() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        let mut stems = Vec::with_capacity(line.len() / 6);
        let mut spans = Vec::with_capacity(line.len() / 6);
        let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        words.each_stem(&line, &mut |stem, span| {
            stems.push(stem);
            spans.push((offset(span.start), offset(span.end)));
        });
        Self { sentences: sentence_starts(&line), line, stems, spans }
    }

    pub fn bytes(&self) -> usize {
        self.line.len() + self.stems.len() * 12
    }

    /// The sentences with the most distinct query words, which are at `places`. Only a sentence longer than a quote is
    /// truncated, with an ellipsis.
    pub fn quote(&self, places: &[usize]) -> String {
        let line = self.line.as_str();
        if line.len() <= MAX_BYTES {
            return line.to_owned();
        }
        let match_at = self.best_first_match(places);
        match self.whole_sentences(match_at.map_or(0, |word| self.spans[word].0 as usize)) {
            Some(range) => line[range].trim().to_owned(),
            None => self.cut_sentence(match_at),
        }
    }

    /// Whether the passage is longer than a quote.
    pub fn is_cut(&self) -> bool {
        self.line.len() > MAX_BYTES
    }

    pub fn sentences(&self) -> impl Iterator<Item = &str> {
        let ends = self.sentences.iter().skip(1).map(|start| *start as usize).chain([self.line.len()]);
        self.sentences.iter().zip(ends).map(|(start, end)| self.line[*start as usize..end].trim())
    }

    /// Sentence `number`, with as many neighbours as fit.
    pub fn quote_sentence(&self, number: usize) -> String {
        let start = self.sentences.get(number).map_or(0, |start| *start as usize);
        match self.whole_sentences(start) {
            Some(range) => self.line[range].trim().to_owned(),
            None => self.cut_sentence(Some(self.spans.partition_point(|span| (span.0 as usize) < start))),
        }
    }

    /// The sentence around `at`, with as many following and preceding ones as fit. `None` if the sentence alone is too
    /// long.
    fn whole_sentences(&self, at: usize) -> Option<Range<usize>> {
        let start_of = |sentence: usize| {
            let start = self.sentences.get(sentence);
            start.map_or(self.line.len(), |start| *start as usize)
        };
        let containing = self.sentences.partition_point(|start| *start as usize <= at) - 1;
        let (mut first, mut last) = (containing, containing);
        // Without the space after the last sentence.
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

    /// The share of wanted words that occur at `places` or in `title`.
    pub fn coverage(&self, places: &[usize], title: &[u32], wanted: &[u32]) -> f32 {
        if wanted.is_empty() {
            return 0.0;
        }
        let is_here = |stem: &u32| places.iter().any(|place| self.stems[*place] == *stem);
        let found = wanted.iter().filter(|stem| is_here(stem) || title.contains(stem)).count();
        found as f32 / wanted.len() as f32
    }

    /// Where wanted words are. Most words are not wanted, so blocks are compared at once and skipped.
    pub fn places(&self, wanted: &[u32]) -> Vec<usize> {
        const RUN: usize = 32;
        let mut places = Vec::new();
        for (number, run) in self.stems.chunks(RUN).enumerate() {
            if wanted.iter().any(|word| holds(run, *word)) {
                let wanted_here = run.iter().enumerate().filter(|(_, stem)| wanted.contains(stem));
                places.extend(wanted_here.map(|(at, _)| number * RUN + at));
            }
        }
        places
    }

    /// The match that begins the window with the most distinct words.
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

/// Without an early exit, so that it compiles to a few SIMD comparisons.
fn holds(stems: &[u32], word: u32) -> bool {
    stems.iter().fold(false, |found, stem| found | (*stem == word))
}

/// The distinct stems of a text.
pub fn stems(text: &str, words: &mut dyn Words) -> Vec<u32> {
    let mut stems = Vec::new();
    words.each_stem(text, &mut |stem, _| stems.push(stem));
    distinct(stems)
}

/// The same of words in their compared form.
pub(crate) fn distinct_stems<'a>(words: impl Iterator<Item = &'a str>) -> Vec<u32> {
    distinct(words.map(stem_of).collect())
}

fn distinct(mut stems: Vec<u32>) -> Vec<u32> {
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

/// Where sentences begin. A full stop after an abbreviation or a single letter does not end a sentence.
fn sentence_starts(line: &str) -> Vec<u32> {
    const TITLES: [&str; 14] =
        ["mr", "mrs", "ms", "dr", "hon", "sen", "prof", "st", "no", "vs", "p", "pp", "e.g", "i.e"];
    let mut starts = vec![0];
    let mut from = 0;
    for (space, _) in line.match_indices(' ') {
        let word = line[from..space].trim_end_matches(['"', '\'', ')', ']', '”', '’', '*', '_']);
        from = space + 1;
        if !word.ends_with(['.', '!', '?', '。', '！', '？']) {
            continue;
        }
        let bare = word.trim_end_matches('.').trim_start_matches(['(', '"', '“', '\'', '‘']);
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
    use proptest::prelude::*;

    /// Lower case, without plurals.
    struct Singular;

    impl Words for Singular {
        fn each(&mut self, text: &str, word: &mut dyn FnMut(&str, Range<usize>)) {
            let mut start = 0;
            for part in text.split_inclusive(|c: char| !c.is_alphanumeric()) {
                let bare = part.trim_end_matches(|c: char| !c.is_alphanumeric());
                if !bare.is_empty() {
                    let lower = bare.to_lowercase();
                    let singular = lower.strip_suffix("es").or(lower.strip_suffix('s')).unwrap_or(&lower);
                    word(singular.trim_end_matches('s'), start..start + bare.len());
                }
                start += part.len();
            }
        }
    }

    fn snippet(text: &str, query: &str) -> String {
        let quotable = Quotable::new(text, &mut Singular);
        quotable.quote(&quotable.places(&stems(query, &mut Singular)))
    }

    #[test]
    fn short_passage_is_shown_whole() {
        assert_eq!(snippet("Beans\n\n grow.", "bean"), "Beans grow.");
    }

    #[test]
    fn snippet_contains_the_match() {
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
        assert!(shown.starts_with("Nothing") || shown.starts_with("The hon. member and Mr. Walrus"), "{shown}");
        assert!(shown.ends_with("at all."), "{shown}");
        assert!(text.contains(&shown));
    }

    #[test]
    fn long_sentence_is_cut_around_the_match() {
        let text = format!("{}walrus {}", "and so on ".repeat(80), "and so forth ".repeat(80));
        let shown = snippet(&text, "walrus");
        assert!(shown.starts_with('…') && shown.ends_with('…') && shown.contains("walrus"), "{shown}");
        assert!(shown.chars().count() <= MAX_BYTES);
    }

    proptest! {
        #[test]
        fn any_text_and_query_give_a_bounded_snippet(text in "(\\PC{0,10}[ .\\n]){0,120}", query in "\\PC{0,30}") {
            prop_assert!(snippet(&text, &query).len() <= MAX_BYTES);
        }
    }
}
