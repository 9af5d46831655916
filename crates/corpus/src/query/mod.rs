//! Parses what people and models type, without ever failing. [`Filter`] has conditions beside the query.
//!
//! Plain words rank; a `"phrase in quotes"` must occur; `field:value` and `field:"a value"` must
//! match where the corpus has that field; `field:>=10` and `field:10..20` compare numbers;
//! `date:2024-05`, `date:2024-05-01..2024-06-30`, `after:2024-05-01` and `before:2024` (without that
//! day or year; `since` and `until` with it) compare the document's date; `-word` and `-"phrase"` must not occur. Everything else, however odd, is words.

use std::ops::Bound;

use jiff::civil::{Date, date};

use crate::passage::Words;

/// Conditions beside a query, all of which must hold. They are part of both legs, so that a filtered search returns as
/// many results as match.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter(pub Vec<Condition>);

#[derive(Debug, Clone, PartialEq)]
pub enum Condition {
    /// A field has this value, ignoring case and accents.
    Is { field: String, value: String },
    /// A field's value contains these words or parts of words: "kenn" finds Simon Kennedy.
    Holds { field: String, part: String },
    /// The document's date is in this range, inclusive.
    Days { from: Option<Date>, until: Option<Date> },
    /// A field's number is in this range.
    Number { field: String, from: Bound<f64>, until: Bound<f64> },
}

impl Filter {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// One part of a query.
#[derive(Debug, Clone, PartialEq)]
pub struct Clause {
    pub demand: Demand,
    pub want: Want,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Want {
    Words {
        /// `None` for the document's text.
        field: Option<String>,
        text: String,
        /// As the engine compares them. A stop word that only ranks has none, unless there are only stop words.
        words: Vec<String>,
        /// The words must occur in this order, next to each other.
        phrase: bool,
    },
    Within(Condition),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Demand {
    /// Only ranks higher.
    Should,
    Must,
    MustNot,
}

impl Clause {
    /// Whether it is a stop word.
    fn is_stop_word(&self) -> bool {
        match &self.want {
            Want::Words { text, .. } => {
                let bare = text.trim_matches(|c: char| !c.is_alphanumeric());
                is_stop_word(&bare.to_lowercase())
            }
            Want::Within(_) => false,
        }
    }
}

/// The text to embed: the words without field names and exclusions.
pub fn meaning(clauses: &[Clause]) -> String {
    let words = clauses.iter().filter_map(|clause| match &clause.want {
        Want::Words { field: None, text, .. } if clause.demand != Demand::MustNot => Some(text.as_str()),
        _ => None,
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Clauses beyond this number are ignored.
const MAX_CLAUSES: usize = 400;

/// Splits a query into clauses, and these into words. `field` returns the corpus's spelling of a field name.
pub fn parse(query: &str, field: impl Fn(&str) -> Option<String>, words: &mut dyn Words) -> Vec<Clause> {
    let mut clauses = Vec::new();
    let mut rest = query.trim_start();
    while !rest.is_empty() && clauses.len() < MAX_CLAUSES {
        let (clause, after) = next_clause(rest, &field);
        clauses.extend(clause);
        rest = after.trim_start();
    }
    // Exclusions alone would match nothing, so they are read as words.
    if clauses.iter().all(|clause| clause.demand == Demand::MustNot) {
        for clause in &mut clauses {
            clause.demand = Demand::Should;
        }
    }
    let all_stop = clauses.iter().all(Clause::is_stop_word);
    for clause in &mut clauses {
        let is_ranked = all_stop || clause.demand != Demand::Should || !clause.is_stop_word();
        if let Want::Words { text, words: found, .. } = &mut clause.want
            && is_ranked
        {
            words.each(text, &mut |word, _| found.push(word.to_owned()));
        }
    }
    clauses
}

fn next_clause<'a>(rest: &'a str, field: &impl Fn(&str) -> Option<String>) -> (Option<Clause>, &'a str) {
    let negated = rest.strip_prefix('-').filter(|after| after.starts_with(|c: char| c.is_alphabetic() || c == '"'));
    let body = negated.unwrap_or(rest);
    let demand = |otherwise| {
        if negated.is_some() { Demand::MustNot } else { otherwise }
    };

    if let Some((text, after)) = quoted(body) {
        return (words(demand(Demand::Must), None, text, true), after);
    }
    if let Some((name, value)) = body.split_once(':')
        && !name.contains(|c: char| c.is_whitespace() || c == '"')
    {
        let (word, after) = word(value);
        if let Some(condition) = within_days(name, word).or_else(|| within_numbers(&field(name)?, word)) {
            let clause = Clause { demand: demand(Demand::Must), want: Want::Within(condition) };
            return (Some(clause), after);
        }
        if let Some(name) = field(name) {
            if let Some((text, after)) = quoted(value) {
                return (words(demand(Demand::Must), Some(name), text, true), after);
            }
            if !word.is_empty() {
                return (words(demand(Demand::Must), Some(name), word, false), after);
            }
        }
    }
    let (word, after) = word(body);
    (words(demand(Demand::Should), None, word, false), after)
}

fn words(demand: Demand, field: Option<String>, text: &str, phrase: bool) -> Option<Clause> {
    text.contains(char::is_alphanumeric)
        .then(|| Clause { demand, want: Want::Words { field, text: text.to_owned(), words: Vec::new(), phrase } })
}

fn within_days(name: &str, value: &str) -> Option<Condition> {
    let (from, until) = match name.to_ascii_lowercase().as_str() {
        "date" => bounds(value, period)?,
        "after" => (Bound::Excluded(period(value)?), Bound::Unbounded),
        "since" => (Bound::Included(period(value)?), Bound::Unbounded),
        "before" => (Bound::Unbounded, Bound::Excluded(period(value)?)),
        "until" => (Bound::Unbounded, Bound::Included(period(value)?)),
        _ => return None,
    };
    Some(Condition::Days {
        from: match from {
            Bound::Included((first, _)) => Some(first),
            Bound::Excluded((_, last)) => Some(last.tomorrow().ok()?),
            Bound::Unbounded => None,
        },
        until: match until {
            Bound::Included((_, last)) => Some(last),
            Bound::Excluded((first, _)) => Some(first.yesterday().ok()?),
            Bound::Unbounded => None,
        },
    })
}

fn within_numbers(field: &str, value: &str) -> Option<Condition> {
    let number = |text: &str| text.parse::<f64>().ok().filter(|n| n.is_finite());
    // A bare number is compared as text, so that `plot:7` also finds "7"; text has no sign.
    let is_compared = value.starts_with(['<', '>', '-']) || value.contains("..");
    if !is_compared {
        return None;
    }
    let (from, until) = bounds(value, number)?;
    Some(Condition::Number { field: field.to_owned(), from, until })
}

/// `5`, `>5`, `>=5`, `<5`, `<=5`, `5..9`, `5..`, `..9`; ranges are inclusive.
fn bounds<T: Copy>(text: &str, read: impl Fn(&str) -> Option<T>) -> Option<(Bound<T>, Bound<T>)> {
    let one_end = |text: &str| {
        Some(match text.strip_prefix('=') {
            Some(text) => Bound::Included(read(text)?),
            None => Bound::Excluded(read(text)?),
        })
    };
    if let Some(text) = text.strip_prefix('>') {
        return Some((one_end(text)?, Bound::Unbounded));
    }
    if let Some(text) = text.strip_prefix('<') {
        return Some((Bound::Unbounded, one_end(text)?));
    }
    if let Some((from, until)) = text.split_once("..") {
        let end = |text: &str| match text {
            "" => Some(Bound::Unbounded),
            text => read(text).map(Bound::Included),
        };
        return (from != until).then_some((end(from)?, end(until)?));
    }
    let exact = read(text)?;
    Some((Bound::Included(exact), Bound::Included(exact)))
}

/// First and last day of `2024`, `2024-05` or `2024-05-28`.
fn period(text: &str) -> Option<(Date, Date)> {
    let text = text.trim_end_matches([',', '.', ';']);
    let digits_at = |from: usize, to: usize| -> Option<i16> {
        let part = text.get(from..to)?;
        part.bytes().all(|b| b.is_ascii_digit()).then(|| part.parse().ok())?
    };
    let year = digits_at(0, 4)?;
    match text.len() {
        4 => Some((date(year, 1, 1), date(year, 12, 31))),
        7 | 10 if text.as_bytes()[4] == b'-' => {
            let month = i8::try_from(digits_at(5, 7)?).ok()?;
            let first = Date::new(year, month, 1).ok()?;
            if text.len() == 7 {
                return Some((first, first.last_of_month()));
            }
            let day: Date = text.parse().ok()?;
            Some((day, day))
        }
        _ => None,
    }
}

/// The text up to the closing quote. An unclosed quote is not a quote.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let (open, close) = match text.chars().next()? {
        '"' => ('"', '"'),
        '“' => ('“', '”'),
        _ => return None,
    };
    text[open.len_utf8()..].split_once(close)
}

fn word(text: &str) -> (&str, &str) {
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    text.split_at(end)
}

fn is_stop_word(word: &str) -> bool {
    const STOP_WORDS: [&str; 72] = [
        "a", "about", "am", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can", "could", "did",
        "do", "does", "find", "for", "from", "give", "had", "has", "have", "he", "her", "his", "how", "i", "if", "in",
        "into", "is", "it", "its", "me", "my", "no", "not", "of", "on", "or", "our", "please", "she", "should", "show",
        "so", "tell", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this", "to", "us",
        "was", "we", "were", "what", "when", "where", "which", "who", "with", "you",
    ];
    STOP_WORDS.binary_search(&word).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::embedded::EnglishWords;
    use proptest::prelude::*;

    fn known(name: &str) -> Option<String> {
        ["title", "Speaker"].iter().find(|field| field.eq_ignore_ascii_case(name)).map(|field| (*field).to_owned())
    }

    fn shape(query: &str) -> Vec<(Demand, Option<String>, String, bool)> {
        parse(query, known, &mut EnglishWords::default())
            .into_iter()
            .map(|clause| match clause.want {
                Want::Words { field, text, phrase, .. } => (clause.demand, field, text, phrase),
                Want::Within(condition) => (clause.demand, None, format!("{condition:?}"), false),
            })
            .collect()
    }

    fn condition(query: &str) -> Option<Condition> {
        match parse(query, known, &mut EnglishWords::default()).pop()?.want {
            Want::Within(condition) => Some(condition),
            Want::Words { .. } => None,
        }
    }

    #[test]
    fn dates_and_numbers_are_ranges() {
        let days = |from: Option<(i16, i8, i8)>, until: Option<(i16, i8, i8)>| {
            let day = |(y, m, d)| date(y, m, d);
            Some(Condition::Days { from: from.map(day), until: until.map(day) })
        };
        assert_eq!(condition("date:2024-02"), days(Some((2024, 2, 1)), Some((2024, 2, 29))));
        assert_eq!(condition("date:2024-05-28..2025"), days(Some((2024, 5, 28)), Some((2025, 12, 31))));
        assert_eq!(condition("since:2024-05-28"), days(Some((2024, 5, 28)), None));
        assert_eq!(condition("after:2024-05-28"), days(Some((2024, 5, 29)), None));
        assert_eq!(condition("Before:2023"), days(None, Some((2022, 12, 31))));
        assert_eq!(condition("date:<=2023-02"), days(None, Some((2023, 2, 28))));
        assert_eq!(condition("date:>2023"), days(Some((2024, 1, 1)), None));
        let number = |from, until| Some(Condition::Number { field: "Speaker".to_owned(), from, until });
        assert_eq!(condition("speaker:>=10"), number(Bound::Included(10.0), Bound::Unbounded));
        assert_eq!(condition("speaker:<-3"), number(Bound::Unbounded, Bound::Excluded(-3.0)));
        assert_eq!(condition("speaker:-3"), number(Bound::Included(-3.0), Bound::Included(-3.0)));
        assert_eq!(condition("speaker:1..2.5"), number(Bound::Included(1.0), Bound::Included(2.5)));
        for odd in ["date:2024-13-45", "date:..", "speaker:..", "speaker:>x", "date:soon", "nofield:>3"] {
            assert_eq!(condition(odd), None, "{odd}");
        }
    }

    #[test]
    fn query_is_split_into_clauses() {
        use Demand::{Must, MustNot, Should};
        let speaker = Some("Speaker".to_owned());
        assert_eq!(
            shape("housing \"cost of living\" speaker:\"Jane Doe\" speaker:doe -tax note: http://x"),
            [
                (Should, None, "housing".into(), false),
                (Must, None, "cost of living".into(), true),
                (Must, speaker.clone(), "Jane Doe".into(), true),
                (Must, speaker, "doe".into(), false),
                (MustNot, None, "tax".into(), false),
                (Should, None, "note:".into(), false),
                (Should, None, "http://x".into(), false),
            ]
        );
    }

    #[test]
    fn odd_input_is_words() {
        use Demand::Should;
        assert_eq!(
            shape("\"never closed"),
            [(Should, None, "\"never".into(), false), (Should, None, "closed".into(), false)]
        );
        assert_eq!(shape("-only"), [(Should, None, "only".into(), false)]);
        assert_eq!(shape("\"\" - : :: *"), []);
    }

    #[test]
    fn stop_words_rank_only_alone() {
        let words = |query: &str| -> Vec<String> {
            let clauses = parse(query, known, &mut EnglishWords::default());
            let words = clauses.into_iter().filter_map(|clause| match clause.want {
                Want::Words { words, .. } => Some(words),
                Want::Within(_) => None,
            });
            words.flatten().collect()
        };
        assert_eq!(words("What did the Walruses say? title:the"), ["walrus", "say", "the"]);
        assert_eq!(words("who are they"), ["who", "are", "they"]);
    }

    #[test]
    fn stop_words_are_sorted() {
        assert!(is_stop_word("the") && is_stop_word("a") && is_stop_word("you"));
        assert!(!is_stop_word("housing"));
        for word in ["what", "did", "say", "about"] {
            assert_eq!(is_stop_word(word), word != "say", "{word}");
        }
    }

    proptest! {
        #[test]
        fn no_input_fails(query in "[-\":a-z“” \\PC]{0,200}") {
            let clauses = parse(&query, known, &mut EnglishWords::default());
            prop_assert!(clauses.len() <= MAX_CLAUSES);
        }
    }
}
