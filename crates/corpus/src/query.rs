//! What people and models type, understood without ever failing.
//!
//! Plain words rank; a `"phrase in quotes"` must occur; `field:value` and `field:"a value"` must
//! match where the corpus has that field; `-word` and `-"phrase"` must not occur. Everything else,
//! however odd, is words.

/// One thing a query asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clause {
    pub demand: Demand,
    /// `None` for the text itself.
    pub field: Option<String>,
    pub text: String,
    /// The words must stand together in this order.
    pub phrase: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Demand {
    /// Raises the rank.
    Should,
    Must,
    MustNot,
}

/// Beyond this, further clauses cost time and say nothing new.
const MAX_CLAUSES: usize = 64;

/// Splits a query into clauses. `field` gives the corpus's own spelling of a field name, if it has it.
pub fn parse(query: &str, field: impl Fn(&str) -> Option<String>) -> Vec<Clause> {
    let mut clauses = Vec::new();
    let mut rest = query.trim_start();
    while !rest.is_empty() && clauses.len() < MAX_CLAUSES {
        let (clause, after) = next_clause(rest, &field);
        clauses.extend(clause);
        rest = after.trim_start();
    }
    // A query of exclusions alone would match nothing: read them as words.
    if clauses.iter().all(|clause| clause.demand == Demand::MustNot) {
        for clause in &mut clauses {
            clause.demand = Demand::Should;
        }
    }
    clauses
}

fn next_clause<'a>(rest: &'a str, field: &impl Fn(&str) -> Option<String>) -> (Option<Clause>, &'a str) {
    let negated = rest
        .strip_prefix('-')
        .filter(|after| after.starts_with(|c: char| c.is_alphabetic() || c == '"'));
    let body = negated.unwrap_or(rest);
    let demand = |otherwise| {
        if negated.is_some() { Demand::MustNot } else { otherwise }
    };

    if let Some((text, after)) = quoted(body) {
        return (clause(demand(Demand::Must), None, text, true), after);
    }
    if let Some((name, value)) = body.split_once(':')
        && !name.contains(|c: char| c.is_whitespace() || c == '"')
        && let Some(name) = field(name)
    {
        if let Some((text, after)) = quoted(value) {
            return (clause(demand(Demand::Must), Some(name), text, true), after);
        }
        let (word, after) = word(value);
        if !word.is_empty() {
            return (clause(demand(Demand::Must), Some(name), word, false), after);
        }
    }
    let (word, after) = word(body);
    (clause(demand(Demand::Should), None, word, false), after)
}

fn clause(demand: Demand, field: Option<String>, text: &str, phrase: bool) -> Option<Clause> {
    text.contains(char::is_alphanumeric).then(|| Clause {
        demand,
        field,
        text: text.to_owned(),
        phrase,
    })
}

/// The text between a leading quote and the next one. A quote that is never closed is not a quote.
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

/// Words that say nothing about what a question is about. They are left out of ranking as long
/// as anything else is asked for.
pub(crate) fn is_stop_word(word: &str) -> bool {
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
    use proptest::prelude::*;

    fn known(name: &str) -> Option<String> {
        ["title", "Speaker"]
            .iter()
            .find(|field| field.eq_ignore_ascii_case(name))
            .map(|field| (*field).to_owned())
    }

    fn shape(query: &str) -> Vec<(Demand, Option<String>, String, bool)> {
        parse(query, known)
            .into_iter()
            .map(|c| (c.demand, c.field, c.text, c.phrase))
            .collect()
    }

    #[test]
    fn words_phrases_fields_and_exclusions_are_told_apart() {
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
            [
                (Should, None, "\"never".into(), false),
                (Should, None, "closed".into(), false)
            ]
        );
        assert_eq!(shape("-only"), [(Should, None, "only".into(), false)]);
        assert_eq!(shape("\"\" - : :: *"), []);
    }

    #[test]
    fn stop_words_are_sorted_for_the_binary_search() {
        assert!(is_stop_word("the") && is_stop_word("a") && is_stop_word("you"));
        assert!(!is_stop_word("housing"));
        for word in ["what", "did", "say", "about"] {
            assert_eq!(is_stop_word(word), word != "say", "{word}");
        }
    }

    proptest! {
        #[test]
        fn no_input_fails(query in "[-\":a-z“” \\PC]{0,200}") {
            let clauses = parse(&query, known);
            prop_assert!(clauses.len() <= MAX_CLAUSES);
        }
    }
}
