//! Splits long texts at the ends of sentences.

use std::ops::Range;

/// The maximum words of a passage, and how many the next one repeats. Measured best on speeches: long enough for an
/// argument, short enough for one topic.
const MAX_WORDS: usize = 200;
const OVERLAP_WORDS: usize = 40;
/// A passage is not ended before this many words.
const MIN_WORDS: usize = 120;
/// Text without white space (data, some scripts) counts one word per this many bytes.
const MAX_WORD_BYTES: usize = 64;

#[derive(Clone, Copy)]
struct Word {
    start: usize,
    end: usize,
    ends: End,
}

/// What ends with a word.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd)]
enum End {
    Nothing,
    Sentence,
    /// A page, a chapter or a definition.
    Place,
}

/// Byte ranges of `text` in order, on character boundaries, that together cover every word. A passage rather ends before
/// one of `breaks`, which are in order, than at another sentence.
pub fn split(text: &str, breaks: impl Iterator<Item = usize>) -> Vec<Range<usize>> {
    let mut words = words(text);
    for at in breaks {
        if let Some(before) = words.partition_point(|word| word.start < at).checked_sub(1) {
            words[before].ends = End::Place;
        }
    }
    if words.len() <= MAX_WORDS {
        return vec![0..text.len()];
    }
    let mut passages = Vec::with_capacity(words.len() / (MAX_WORDS - OVERLAP_WORDS) + 1);
    let mut first = 0;
    loop {
        let last = last_word(&words, first);
        passages.push(words[first].start..words[last].end);
        if last + 1 == words.len() {
            return passages;
        }
        first = next_start(&words, first, last);
    }
}

/// The last word of a passage that begins at `first`: the last sentence end that fits.
fn last_word(words: &[Word], first: usize) -> usize {
    let limit = first + MAX_WORDS - 1;
    if limit >= words.len() - 1 {
        return words.len() - 1;
    }
    let last = |end: End| (first + MIN_WORDS..=limit).rev().find(|&at| words[at].ends >= end);
    last(End::Place).or_else(|| last(End::Sentence)).unwrap_or(limit)
}

/// The next passage repeats about `OVERLAP_WORDS`, from the start of a sentence if one is near.
fn next_start(words: &[Word], first: usize, last: usize) -> usize {
    if words[last].ends == End::Place {
        return last + 1;
    }
    let wanted = last + 1 - OVERLAP_WORDS;
    let begins_sentence = |at: &usize| words[*at - 1].ends >= End::Sentence;
    let earliest = (first + 1).max(wanted.saturating_sub(OVERLAP_WORDS / 2));
    (wanted..=last + 1)
        .find(begins_sentence)
        .or_else(|| (earliest..wanted).rev().find(begins_sentence))
        .unwrap_or(wanted)
}

fn words(text: &str) -> Vec<Word> {
    let mut words = Vec::with_capacity(text.len() / 6);
    let mut start = None;
    let mut paragraph_breaks = 0;
    for (at, c) in text.char_indices() {
        if c.is_whitespace() {
            if let Some(begin) = start.take() {
                push(&mut words, text, begin, at);
            }
            paragraph_breaks += usize::from(c == '\n');
            if paragraph_breaks == 2
                && let Some(word) = words.last_mut()
            {
                word.ends = End::Sentence;
            }
        } else {
            paragraph_breaks = 0;
            match start {
                None => start = Some(at),
                Some(begin) if at - begin >= MAX_WORD_BYTES => {
                    push(&mut words, text, begin, at);
                    start = Some(at);
                }
                Some(_) => {}
            }
        }
    }
    if let Some(begin) = start {
        push(&mut words, text, begin, text.len());
    }
    words
}

fn push(words: &mut Vec<Word>, text: &str, start: usize, end: usize) {
    let bare = text[start..end].trim_end_matches(['"', '\'', ')', ']', '”', '’', '*', '_']);
    let is_sentence = bare.ends_with(['.', '!', '?', '。', '！', '？']);
    words.push(Word { start, end, ends: if is_sentence { End::Sentence } else { End::Nothing } });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn none() -> std::iter::Empty<usize> {
        std::iter::empty()
    }

    #[test]
    fn passage_ends_before_a_place() {
        let page = "one two three four five six seven eight nine ten. ".repeat(15);
        let text = format!("{page}{page}");
        let passages = split(&text, std::iter::once(page.len()));
        assert_eq!(passages.len(), 2);
        assert_eq!(passages[1].start, page.len(), "without words of the page before");
    }

    #[test]
    fn a_short_text_is_one_passage_whole() {
        assert_eq!(split("  Two words. \n", none()), [0..14]);
        assert_eq!(split("", none()), [0..0]);
    }

    #[test]
    fn passages_end_where_sentences_do_and_overlap() {
        let sentence = "one two three four five six seven eight nine ten. ";
        let text = sentence.repeat(60);
        let passages = split(&text, none());
        assert!(passages.len() >= 3);
        for passage in &passages {
            assert!(text[passage.clone()].ends_with("ten."), "{passage:?}");
            assert!(text[passage.clone()].starts_with("one"), "{passage:?}");
        }
        for pair in passages.windows(2) {
            assert!(pair[1].start < pair[0].end && pair[1].start > pair[0].start);
        }
    }

    proptest! {
        #[test]
        fn every_word_is_in_a_passage_and_cuts_never_split_a_character(text in "(\\PC{0,12}[ \\n.]){0,900}") {
            let passages = split(&text, none());
            let mut covered = 0;
            for passage in &passages {
                prop_assert!(text.get(passage.clone()).is_some());
                prop_assert!(text[covered.min(passage.start)..passage.start].trim().is_empty() || passage.start <= covered);
                covered = covered.max(passage.end);
            }
            prop_assert!(text[covered..].trim().is_empty());
        }

        #[test]
        fn a_run_without_spaces_is_split_too(text in "[a-z漢字]{20000,30000}") {
            let passages = split(&text, none());
            prop_assert!(passages.len() > 1);
            prop_assert!(passages.iter().all(|p| p.len() <= (MAX_WORDS + 1) * (MAX_WORD_BYTES + 4)));
        }
    }
}
