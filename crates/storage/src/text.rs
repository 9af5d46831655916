//! Text for comparisons: case-folded, and escaped for `LIKE` patterns.

/// Equal for texts that differ only in case. Folds letter by letter, so that part of a word folds as in the whole word;
/// both forms of the Greek sigma become one.
pub(crate) fn fold(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).map(|letter| if letter == 'ς' { 'σ' } else { letter }).collect()
}

/// Separates the fields of a search text, so that no word is found across two of them.
const FIELD_SEPARATOR: char = '\u{1f}';

/// The text in which words are searched.
pub(crate) fn search_text<'a>(fields: impl IntoIterator<Item = &'a str>) -> String {
    let mut text = String::new();
    for field in fields {
        text.push_str(&fold(field));
        text.push(FIELD_SEPARATOR);
    }
    text
}

/// Tags as one text, one line each, with a line break before and after, so that only whole tags match.
pub(crate) fn tags_key(tags: &[String]) -> String {
    let mut key = String::from("\n");
    for tag in tags {
        key.push_str(&tag_line(tag));
        key.push('\n');
    }
    key
}

fn tag_line(tag: &str) -> String {
    fold(tag).replace('\\', "\\\\").replace('\n', "\\n")
}

/// A pattern for `LIKE … ESCAPE '\'` that finds the tag in a [`tags_key`].
pub(crate) fn tag_pattern(tag: &str) -> String {
    pattern(&format!("\n{}\n", tag_line(tag)))
}

/// A pattern that finds the word in a [`search_text`].
pub(crate) fn word_pattern(word: &str) -> String {
    pattern(&fold(word))
}

fn pattern(part: &str) -> String {
    let mut pattern = String::with_capacity(part.len() + 2);
    pattern.push('%');
    for letter in part.chars() {
        if matches!(letter, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern.push('%');
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_of_a_word_folds_like_the_whole() {
        assert_eq!(fold("ÄRGER"), "ärger");
        assert_eq!(fold("ΟΔΟΣ"), fold("οδος"));
        assert!(fold("ΟΔΟΣΗΜΟ").contains(&fold("οδος")));
    }

    #[test]
    fn wildcards_are_plain_in_patterns() {
        assert_eq!(word_pattern(r"50%_\X"), r"%50\%\_\\x%");
    }

    #[test]
    fn tag_key_escapes_line_breaks() {
        let key = tags_key(&["Work".to_owned(), "a\nb".to_owned(), r"c\nd".to_owned()]);
        assert_eq!(key, "\nwork\na\\nb\nc\\\\nd\n");
        assert_eq!(tag_pattern("WORK"), "%\nwork\n%");
        assert_eq!(tags_key(&[]), "\n");
    }
}
