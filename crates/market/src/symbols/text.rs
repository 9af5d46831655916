//! A query as words: normalised, folded, and with what stood between them.

use unicode_normalization::UnicodeNormalization;

/// How much of a query is read. Questions are shorter; more would only cost time.
const MAX_CHARS: usize = 1_000;

/// What stands before a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gap {
    /// Spaces, or any punctuation that says nothing.
    Loose,
    /// `/`: the two words are a pair, if they are assets.
    Slash,
    /// One of `-` `_` `:` `|` without spaces: the two words may be a pair, or one compound.
    Pair,
    /// A dash with spaces: a pair or a list.
    Dash,
    /// An arrow: the first is changed into the second.
    Arrow,
    /// `btcusdt@trade`, as the exchange names its streams.
    Stream,
    /// A comma, semicolon, `&` or `+`: one more of a list.
    List,
}

impl Gap {
    /// Whether two assets are written as one market.
    pub const fn is_pair(self) -> bool {
        matches!(self, Self::Slash | Self::Pair)
    }
}

#[derive(Debug, Clone)]
pub(super) struct Word {
    /// As typed, in NFKC.
    pub text: String,
    /// In lower case.
    pub folded: String,
    pub gap: Gap,
    /// `$near` and `#near`: whoever writes so means the ticker.
    pub tagged: bool,
    /// All its letters are capitals, and it has one.
    pub capitals: bool,
    /// `-bitcoin`: what it names is not to be found.
    pub left_out: Option<LeftOut>,
}

/// How far a leading minus reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeftOut {
    UpToSpace,
    UpToQuote,
}

impl Word {
    pub fn is_number(&self) -> bool {
        let counted = ["k", "mm", "mn", "bn"]
            .iter()
            .find_map(|unit| self.folded.strip_suffix(unit));
        let digits = counted.filter(|digits| !digits.is_empty()).unwrap_or(&self.folded);
        digits.chars().all(|c| c.is_numeric() || within_number(c))
    }
}

/// Characters that are not seen and therefore do not divide words.
const fn invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}')
}

/// `200,000` and `2.5` are one number each.
const fn within_number(c: char) -> bool {
    matches!(c, ',' | '.')
}

/// Signs that are names of their own. A dollar sign marks tickers instead.
const fn sign(c: char) -> bool {
    matches!(c, '₿' | '€' | '£' | '¥' | '₺' | '₽' | '₩' | '₹' | '₴')
}

/// What looks like a hyphen.
const fn hyphen(c: char) -> bool {
    matches!(c, '-' | '\u{2010}'..='\u{2013}' | '\u{2212}')
}

const fn apostrophe(c: char) -> bool {
    matches!(c, '\'' | '\u{2019}' | '\u{2018}')
}

pub(super) fn words(query: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut between = String::new();
    let mut word = String::new();
    let text = query.nfkc().filter(|c| !invisible(*c)).take(MAX_CHARS);
    let mut rest = text.peekable();
    while let Some(c) = rest.next() {
        if c.is_alphanumeric() {
            word.push(c);
            continue;
        }
        let number = !word.is_empty() && word.chars().all(|c| c.is_ascii_digit() || within_number(c));
        if number && within_number(c) && rest.peek().is_some_and(char::is_ascii_digit) {
            word.push(c);
            continue;
        }
        if sign(c) {
            finish(&mut word, &mut between, &mut words);
            word.push(c);
            finish(&mut word, &mut between, &mut words);
            continue;
        }
        if apostrophe(c) && matches!(word.to_lowercase().as_str(), "l" | "d") {
            // "l'ethereum": the article says nothing.
            word.clear();
            continue;
        }
        if apostrophe(c) && !word.is_empty() {
            // "bitcoin's", "what's": the rest of the word says nothing.
            while rest.next_if(|c| c.is_alphanumeric()).is_some() {}
            continue;
        }
        finish(&mut word, &mut between, &mut words);
        between.push(c);
    }
    finish(&mut word, &mut between, &mut words);
    words
}

fn finish(word: &mut String, between: &mut String, words: &mut Vec<Word>) {
    if word.is_empty() {
        return;
    }
    let text = std::mem::take(word);
    if let Some(last) = words.last_mut().filter(|last| is_initials(last, between, &text)) {
        *last = Word {
            text: format!("{}&{text}", last.text),
            folded: format!("{}&{}", last.folded, text.to_lowercase()),
            ..last.clone()
        };
        between.clear();
        return;
    }
    words.push(Word {
        folded: text.to_lowercase(),
        gap: gap(between),
        tagged: between.ends_with(['$', '#']),
        left_out: left_out(between, words.last(), &text),
        capitals: text.chars().any(char::is_uppercase) && !text.chars().any(char::is_lowercase),
        text,
    });
    between.clear();
}

/// "AT&T" and "S&P" are one word each, and no tickers.
fn is_initials(last: &Word, between: &str, text: &str) -> bool {
    let letter = |text: &str| text.chars().count() == 1 && text.chars().all(char::is_alphabetic);
    between == "&" && (letter(text) || letter(&last.text))
}

/// A minus directly before a word or a quotation, and behind a space, leaves it out.
fn left_out(between: &str, before: Option<&Word>, text: &str) -> Option<LeftOut> {
    let reach = before.and_then(|word| word.left_out);
    let reaches = match reach {
        Some(LeftOut::UpToSpace) => !between.contains(char::is_whitespace),
        Some(LeftOut::UpToQuote) => !between.contains('"'),
        None => false,
    };
    if reaches {
        return reach;
    }
    let (marks, reach) = match between.strip_suffix('"') {
        Some(marks) => (marks, LeftOut::UpToQuote),
        None => (between, LeftOut::UpToSpace),
    };
    let ahead = marks.strip_suffix('-')?;
    let apart = ahead.ends_with(char::is_whitespace) || (ahead.is_empty() && before.is_none());
    (apart && text.starts_with(char::is_alphabetic)).then_some(reach)
}

fn gap(between: &str) -> Gap {
    let mark = between.trim();
    match mark {
        "/" | "\u{2044}" | "\u{2215}" => Gap::Slash,
        "->" | "=>" | "→" | "⇒" | "⟶" | "➡" | "➡\u{fe0f}" => Gap::Arrow,
        "_" | ":" | "|" if mark == between => Gap::Pair,
        "@" if mark == between => Gap::Stream,
        _ if between.contains([',', ';', '&', '+', '\n']) => Gap::List,
        _ if mark.len() <= 3 && !mark.is_empty() && mark.chars().all(hyphen) => {
            if mark == between {
                Gap::Pair
            } else {
                Gap::Dash
            }
        }
        _ => Gap::Loose,
    }
}

/// The words of a name or an alias, as a query's are compared with them.
pub(super) fn phrase(text: &str) -> String {
    let folded: Vec<String> = words(text).into_iter().map(|word| word.folded).collect();
    folded.join(" ")
}

/// Whether one insertion, deletion, substitution or swap of neighbours makes `a` of `b`.
pub(super) fn one_edit_apart(a: &str, b: &str) -> bool {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let (short, long) = if a.len() <= b.len() { (&a, &b) } else { (&b, &a) };
    if long.len() - short.len() > 1 || a == b {
        return false;
    }
    let same = short.iter().zip(long).take_while(|(s, l)| s == l).count();
    if short.len() < long.len() {
        return short[same..] == long[same + 1..];
    }
    if short[same + 1..] == long[same + 1..] {
        return true;
    }
    let swapped = same + 1 < short.len() && short[same] == long[same + 1] && short[same + 1] == long[same];
    swapped && short[same + 2..] == long[same + 2..]
}

/// Edits (with swaps of neighbours) that make one of the other, if there are at most `most`.
pub(super) fn edits_within(a: &[char], b: &[char], most: usize) -> Option<usize> {
    if a.len().abs_diff(b.len()) > most {
        return None;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let differs = usize::from(a[i - 1] != b[j - 1]);
            row[j] = (above[j] + 1).min(row[j - 1] + 1).min(above[j - 1] + differs);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        if row.iter().all(|edits| *edits > most) {
            return None;
        }
        before = std::mem::replace(&mut above, row);
    }
    above.last().copied().filter(|edits| *edits <= most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn folded(query: &str) -> Vec<String> {
        words(query).into_iter().map(|word| word.folded).collect()
    }

    #[test]
    fn a_query_is_folded_and_its_gaps_are_known() {
        assert_eq!(folded("What’s ＢＴＣ's price—now?"), ["what", "btc", "price", "now"]);
        assert_eq!(folded("bit\u{200b}coin"), ["bitcoin"]);
        let gaps: Vec<Gap> = words("eth/btc, eth-btc and eth - btc eth / btc a_b")
            .iter()
            .map(|word| word.gap)
            .collect();
        use Gap::{Arrow, Dash, List, Loose, Pair, Slash, Stream};
        assert_eq!(
            gaps,
            [Loose, Slash, List, Pair, Loose, Loose, Dash, Loose, Slash, Loose, Pair]
        );
        for (pair, gap) in [
            ("a–b", Pair),
            ("a‐b", Pair),
            ("a−b", Pair),
            ("a—b", Loose),
            ("a∕b", Slash),
            ("a⁄b", Slash),
            ("a ／ b", Slash),
            ("a->b", Arrow),
            ("a => b", Arrow),
            ("a → b", Arrow),
            ("btcusdt@trade", Stream),
            ("a @b", Loose),
            ("a. -b", Loose),
        ] {
            assert_eq!(words(pair)[1].gap, gap, "{pair}");
        }
        assert_eq!(folded("AT&T S&P Q&A btc&eth"), ["at&t", "s&p", "q&a", "btc", "eth"]);
        assert_eq!(
            folded("le prix de l'ethereum, I'd"),
            ["le", "prix", "de", "ethereum", "i"]
        );
        assert_eq!(folded("5€ btc/€"), ["5", "€", "btc", "€"]);
        let tagged = words("$near is near");
        assert!(tagged[0].tagged && !tagged[2].tagged);
        assert_eq!(folded("200,000 or 2.5, 3. ₿4"), ["200,000", "or", "2.5", "3", "₿", "4"]);
        let left_out = |query| -> Vec<String> {
            let out = words(query).into_iter().filter(|word| word.left_out.is_some());
            out.map(|word| word.folded).collect()
        };
        assert_eq!(left_out("-btc eth-sol -ada/usdt - xrp --link"), ["btc", "ada", "usdt"]);
        assert_eq!(left_out("x -\"bitcoin cash\" y"), ["bitcoin", "cash"]);
        assert!(words("1M")[0].capitals && !words("1m")[0].capitals && !words("42")[0].capitals);
    }

    #[test]
    fn one_edit_is_one_key_pressed_wrongly() {
        for (a, b) in [
            ("bitcon", "bitcoin"),
            ("bitcoinn", "bitcoin"),
            ("bitcion", "bitcoin"),
            ("bitcoun", "bitcoin"),
            ("ibtcoin", "bitcoin"),
            ("bitcoi", "bitcoin"),
        ] {
            assert!(one_edit_apart(a, b) && one_edit_apart(b, a), "{a} {b}");
        }
        for (a, b) in [("bitcoin", "bitcoin"), ("bticion", "bitcoin"), ("", "ab"), ("ab", "cd")] {
            assert!(!one_edit_apart(a, b), "{a} {b}");
        }
    }

    proptest! {
        #[test]
        fn both_ways_of_counting_edits_agree(a in "[abc]{0,6}", b in "[abc]{0,6}") {
            let letters = |text: &str| text.chars().collect::<Vec<char>>();
            let counted = edits_within(&letters(&a), &letters(&b), 6).expect("within its length");
            prop_assert_eq!(one_edit_apart(&a, &b), counted == 1);
            let bounded = edits_within(&letters(&a), &letters(&b), 2);
            prop_assert_eq!(bounded, (counted <= 2).then_some(counted));
        }
    }
}
