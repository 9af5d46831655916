//! A query as tokens: normalised words, with what stands between them.

use unicode_normalization::UnicodeNormalization;

/// How much of a query is read; questions are shorter.
const MAX_CHARS: usize = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gap {
    /// Spaces, or punctuation without a meaning here.
    Space,
    /// `/` or an arrow: what stands on its sides is a pair.
    Slash,
    /// One of `-` `_` `:` `|` `@` without spaces: two assets are a pair, other words are one compound.
    Join,
    /// A comma, semicolon, `&`, `+` or line break: one more of a list.
    List,
}

impl Gap {
    pub const fn joins(self) -> bool {
        matches!(self, Self::Slash | Self::Join)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Token {
    /// As typed, in NFKC.
    pub text: String,
    /// In lower case.
    pub folded: String,
    pub gap: Gap,
    /// `$near` and `#near` are tickers.
    pub is_tagged: bool,
    /// Without lower-case letters, with at least one capital.
    pub is_upper: bool,
    /// `-bitcoin` excludes bitcoin from the results.
    pub is_excluded: bool,
}

impl Token {
    /// An amount or count: `5`, `200,000`, `2.5`, `50k`.
    pub fn is_number(&self) -> bool {
        let digits = self.folded.trim_end_matches(['k', 'm', 'n', 'b']);
        !digits.is_empty() && digits.chars().all(|c| c.is_numeric() || SEPARATORS.contains(&c))
    }
}

/// `200,000` and `2.5` are one number each.
const SEPARATORS: [char; 2] = [',', '.'];
/// Signs that name an asset. A dollar sign marks tickers instead.
const CURRENCY_SIGNS: [char; 9] = ['₿', '€', '£', '¥', '₺', '₽', '₩', '₹', '₴'];
const APOSTROPHES: [char; 3] = ['\'', '\u{2018}', '\u{2019}'];

pub(crate) fn tokens(query: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut between = String::new();
    let mut word = String::new();
    // Soft hyphens and zero-width characters do not divide words.
    let is_seen = |c: &char| !matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}');
    let mut rest = query.nfkc().filter(is_seen).take(MAX_CHARS).peekable();
    while let Some(c) = rest.next() {
        let in_number = !word.is_empty() && word.chars().all(|c| c.is_ascii_digit() || SEPARATORS.contains(&c));
        if c.is_alphanumeric()
            || (in_number && SEPARATORS.contains(&c) && rest.peek().is_some_and(char::is_ascii_digit))
        {
            word.push(c);
        } else if CURRENCY_SIGNS.contains(&c) {
            finish(&mut word, &mut between, &mut tokens);
            word.push(c);
            finish(&mut word, &mut between, &mut tokens);
        } else if APOSTROPHES.contains(&c) && matches!(word.as_str(), "l" | "L" | "d" | "D") {
            // The French article in "l'ethereum".
            word.clear();
        } else if APOSTROPHES.contains(&c) && !word.is_empty() {
            // The rest of "bitcoin's" or "what's" says nothing.
            while rest.next_if(|c| c.is_alphanumeric()).is_some() {}
        } else {
            finish(&mut word, &mut between, &mut tokens);
            between.push(c);
        }
    }
    finish(&mut word, &mut between, &mut tokens);
    tokens
}

fn finish(word: &mut String, between: &mut String, tokens: &mut Vec<Token>) {
    if word.is_empty() {
        return;
    }
    let text = std::mem::take(word);
    let starts_with_letter = text.starts_with(char::is_alphabetic);
    // A minus directly before a word or a quotation, and behind a space, excludes it.
    let minus = between.trim_end_matches('"').strip_suffix('-');
    let excludes =
        minus.is_some_and(|ahead| ahead.ends_with(char::is_whitespace) || (ahead.is_empty() && tokens.is_empty()));
    tokens.push(Token {
        folded: text.to_lowercase(),
        gap: gap(between),
        is_tagged: starts_with_letter && between.ends_with(['$', '#']),
        is_upper: text.chars().any(char::is_uppercase) && !text.chars().any(char::is_lowercase),
        is_excluded: starts_with_letter && excludes,
        text,
    });
    between.clear();
}

fn gap(between: &str) -> Gap {
    match between.trim() {
        "/" | "\u{2044}" | "\u{2215}" | "->" | "=>" | "→" => Gap::Slash,
        "-" | "_" | ":" | "|" | "@" | "\u{2010}" | "\u{2011}" | "\u{2012}" | "\u{2013}" | "\u{2212}"
            if between == between.trim() =>
        {
            Gap::Join
        }
        _ if between.contains([',', ';', '&', '+', '\n']) => Gap::List,
        _ => Gap::Space,
    }
}

/// The words of a name, as a query's words are compared with them.
pub(crate) fn phrase(text: &str) -> String {
    let folded: Vec<String> = tokens(text).into_iter().map(|token| token.folded).collect();
    folded.join(" ")
}

/// Whether one insertion, deletion, substitution or swap of neighbours makes `a` of `b`.
pub(crate) fn is_one_edit_apart(a: &str, b: &str) -> bool {
    // A character has at most four bytes.
    a.len().abs_diff(b.len()) <= 4 && strsim::osa_distance(a, b) == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(query: &str) -> Vec<String> {
        tokens(query).into_iter().map(|token| token.folded).collect()
    }

    #[test]
    fn query_is_split_and_folded() {
        assert_eq!(folded("What’s ＢＴＣ's price—now?"), ["what", "btc", "price", "now"]);
        assert_eq!(folded("bit\u{200b}coin"), ["bitcoin"]);
        assert_eq!(folded("le prix de l'ethereum"), ["le", "prix", "de", "ethereum"]);
        assert_eq!(folded("5€ btc/€"), ["5", "€", "btc", "€"]);
        assert_eq!(folded("200,000 or 2.5, 3. ₿4"), ["200,000", "or", "2.5", "3", "₿", "4"]);
    }

    #[test]
    fn gaps_tell_pairs_from_lists() {
        for (query, gap) in [
            ("a/b", Gap::Slash),
            ("a / b", Gap::Slash),
            ("a-b", Gap::Join),
            ("a–b", Gap::Join),
            ("a_b", Gap::Join),
            ("a->b", Gap::Slash),
            ("btcusdt@trade", Gap::Join),
            ("a - b", Gap::Space),
            ("a, b", Gap::List),
            ("a & b", Gap::List),
            ("a b", Gap::Space),
        ] {
            assert_eq!(tokens(query)[1].gap, gap, "{query}");
        }
    }

    #[test]
    fn tags_capitals_and_exclusions_are_marked() {
        let marked = tokens("$near is near -btc eth-sol $50 1M 42");
        assert!(marked[0].is_tagged && !marked[2].is_tagged);
        let excluded = marked.iter().filter(|token| token.is_excluded);
        assert_eq!(excluded.map(|token| &*token.folded).collect::<Vec<_>>(), ["btc"]);
        assert!(!marked[6].is_tagged && marked[6].is_number());
        assert!(marked[7].is_upper && !marked[8].is_upper);
    }

    #[test]
    fn one_edit_is_one_wrong_key() {
        for other in ["bitcon", "bitcoinn", "bitcion", "bitcoun", "ibtcoin", "bitcoi"] {
            assert!(is_one_edit_apart("bitcoin", other), "{other}");
        }
        for other in ["bitcoin", "bticion", ""] {
            assert!(!is_one_edit_apart("bitcoin", other), "{other}");
        }
    }
}
